// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention with one query and the linear op behind it, as one call.
#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "lathe/ir/ops.h"

namespace lathe::cuda {

/// The kind of such a call. Its operands are those of the attention, then those of the linear op
/// but for x; its config has the fields of both.
constexpr llvm::StringLiteral kAttendedLinear = "attended_linear";

/// For one sequence and few keys one kernel (lathe_attended_linear.cuh), else those of the two ops.
KernelSet attendedLinearKernels(KernelOp call, const std::string& name);

}  // namespace lathe::cuda
