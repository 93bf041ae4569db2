// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the ranks of a mesh have to have in common before they run a program together.
#include <vector>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/program.h"

namespace lathe {

/// All ranks of a program call it. Throws Error (InvalidArgument) on every one of them that has not
/// the same program as another.
void agreeOnProgram(Communicator& ranks, const Program& program);

/// The weights that every rank has whole: where they differ, ranks would compute numbers that do
/// not belong together.
class WholeWeights {
 public:
  explicit WholeWeights(const Program& program) : program_(program) {}
  /// Of weight `index` of the program; of one that is read in pieces nothing is noted.
  void note(size_t index, const Array& values);
  /// All ranks call it. Throws Error (InvalidArgument) naming the first weight that differs.
  void agree(Communicator& ranks) const;

 private:
  const Program& program_;
  std::map<size_t, std::string> digests_;  // by index
};

}  // namespace lathe
