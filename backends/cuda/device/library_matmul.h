// SPDX-License-Identifier: Apache-2.0
#pragma once
// A product that a vendor's library computes as well.
#include <cstdint>

#include "lathe/runtime/dtype.h"

namespace lathe::cuda {

/// Algorithms that a library is asked to propose for a product.
constexpr int kLibraryRanks = 8;

/// result[rows, columns] = alpha * x[rows, depth] * weight^T + beta * addend[rows, columns] + bias,
/// all row-major and dense, summed in f32.
struct LibraryMatmul {
  int64_t rows = 0, columns = 0, depth = 0;
  DType dtype = DType::BF16;   ///< of x and weight: F32, BF16 or F16
  DType result = DType::BF16;  ///< of result, addend and bias: the same or F32
  bool weightInOut = false;    ///< the weight is [depth, columns], else [columns, depth]
  float alpha = 1, beta = 0;
  int rank = 0;  ///< which of the algorithms that the library proposes, its favourite first
};

struct LibraryOperands {
  const void* x = nullptr;
  const void* weight = nullptr;
  const void* bias = nullptr;    ///< [columns], or null
  const void* addend = nullptr;  ///< a residual; null unless beta is set; may be the result
  void* result = nullptr;
};

}  // namespace lathe::cuda
