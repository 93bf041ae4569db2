// SPDX-License-Identifier: Apache-2.0
#pragma once
// What rank 0's session tells the sessions of the other ranks to do.
#include <string>
#include <vector>

#include "lathe/runtime/array.h"
#include "lathe/runtime/communicator.h"

namespace lathe {

struct RankCommand {
  enum class Kind : uint8_t {
    Run,
    SetSymbol,
    ResetStates,
    GatherRows,
    KeepRows,
    CopyRow,
    CopyBlock,
    Stop
  };
  Kind kind = Kind::Stop;
  std::string name;    ///< a symbol
  int64_t number = 0;  ///< an entry point's, the symbol's value, or how many are kept or copied
  int64_t times = 1;   ///< of a run
  bool wantsOutputs = true;
  /// Of gatherStateRows; of a copy, from and to; of a run on kept rows, the first of them.
  std::vector<int64_t> rows;
  std::vector<Array> inputs;  ///< of a run
};

/// How commands reach the others: all of them meet for each, or, where they are stages of a
/// pipeline and some are behind, each has its own message.
enum class CommandWay : uint8_t { Meeting, Messages };

/// Called by rank 0.
void announce(Communicator& ranks, const RankCommand& command, CommandWay way);
/// The next command, on another rank. Waits as long as it takes.
RankCommand awaitCommand(Communicator& ranks, CommandWay way);

}  // namespace lathe
