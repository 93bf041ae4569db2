// SPDX-License-Identifier: Apache-2.0
#pragma once
// Kernel problems as text, and their candidates: what tuning records are found by.
#include "backends/cuda/lowering/attention_kernels.h"
#include "backends/cuda/lowering/gemm_kernels.h"
#include "backends/cuda/lowering/tuning_choice.h"

namespace lathe::cuda {

/// Raised when a template changes so much that measurements of its choices say nothing any more.
constexpr int kProductVersion = 1, kAttentionVersion = 1, kRegionVersion = 1;

/// "gemv-dot warps=8x1 splits=1 columns=2 steps=4": every number that the method uses.
std::string textOf(const ProductChoice& choice);
std::string textOf(const AttentionChoice& choice);

/// For `low` to `high` rows; `sizes` are those by which the candidates were ranked.
TuningQuestion questionOf(const ProductKernel& product, const ProductSizes& sizes,
                          const std::vector<ProductChoice>& candidates, const std::string& kernel,
                          int64_t low, int64_t high);
/// Asked where the call's sizes fulfil `when`.
TuningQuestion questionOf(const AttentionKernel& attention, const AttentionSizes& sizes,
                          const std::vector<AttentionChoice>& candidates, const std::string& kernel,
                          std::vector<Condition> when);

/// 8 hexadecimal digits of `text`.
std::string shortHash(std::string_view text);

}  // namespace lathe::cuda
