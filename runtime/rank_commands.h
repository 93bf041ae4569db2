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
  /// Of gatherStateRows; of a copy, from and to; of a run on kept rows, the first of them.
  std::vector<int64_t> rows;
  std::vector<Array> inputs;  ///< of a run
};

/// Called by rank 0.
void announce(Communicator& ranks, const RankCommand& command);
/// The next command, on another rank. Waits as long as it takes.
RankCommand awaitCommand(Communicator& ranks);

}  // namespace lathe
