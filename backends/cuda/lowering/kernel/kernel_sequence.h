// SPDX-License-Identifier: Apache-2.0
#pragma once
// Several kernels as one call: what a fused kernel does at once, done step by step.
#include "backends/cuda/lowering/kernel/kernel_text.h"

namespace lathe::cuda {

struct SequenceStep {
  KernelSet kernels;
  /// Where operand or result i of the step is in the whole call: a Buffer, or Scratch whose `index`
  /// counts the sequence's temporaries from 1.
  std::vector<Argument> buffers;
};

/// Every combination of the steps' variants whose conditions can hold together, in the order of
/// their variants. `temporaries` are the bytes of what steps hand to each other.
KernelSet sequenceOf(const std::vector<SequenceStep>& steps,
                     const std::vector<DimExpr>& temporaries);

/// Adds `more` where no two contradict each other; false if some do.
bool addConditions(std::vector<Condition>& conditions, const std::vector<Condition>& more);

}  // namespace lathe::cuda
