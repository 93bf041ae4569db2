// SPDX-License-Identifier: Apache-2.0
#pragma once
// From attention of the IR to the plain description that its kernels are printed from.
#include "backends/cuda/lowering/attention/attention_kernels.h"
#include "lathe/ir/dialect.h"

namespace lathe::cuda {

/// What an attention call computes; its config is that of foldTransposes
/// (lathe/backends/to_kernels.h).
AttentionKernel attentionOf(KernelOp call, llvm::StringRef name);

/// Empty if there are kernels for the op, else what stands against them.
std::string whyNotAttention(AttentionOp op);
std::string whyNotAttention(PagedAttentionOp op);

}  // namespace lathe::cuda
