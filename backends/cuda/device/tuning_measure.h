// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures one problem of a program of candidates (backends/cuda/lowering/tuning_program.h).
#include <string>
#include <vector>

#include "backends/cuda/device/tuning_record.h"
#include "lathe/runtime/program.h"

namespace lathe::cuda {

struct TuningProblem {
  std::string entry, problem;
  int version = 0;
  SymbolValues symbols;
  int64_t integers = 0;  ///< what operands of integers hold
  std::vector<std::string> choices;
  std::vector<double> modelMicroseconds;  ///< empty where the model has no numbers
};
/// Throws Error (InvalidFile) for a program without candidates.
std::vector<TuningProblem> tuningProblemsOf(const Program& program);

struct MeasuredChoice {
  std::string error;        ///< why it may not win; empty if all is well
  double microseconds = 0;  ///< median of one run
  double spread = 0;        ///< (third quartile - first quartile) / median
  double apart = 0;  ///< largest difference from the first choice, as a share of the tolerance
};
struct TuningEffort {
  int warmUps = 3, replays = 20;
  int64_t walkedBytes = 128 << 20;  ///< operands are rotated over this much: twice an L2 cache
  double secondsPerReplay = 1e-3;   ///< of the recorded launches together, about
};

/// Random operands, the same for all choices, on copies that no cache holds together.
std::vector<MeasuredChoice> measureChoices(const Program& program, const TuningProblem& problem,
                                           const std::string& device, const TuningEffort& effort);

/// The number of the choice to keep: the fastest sound one, if it beats the first by more than 2 %.
size_t winnerOf(const std::vector<MeasuredChoice>& measured);

}  // namespace lathe::cuda
