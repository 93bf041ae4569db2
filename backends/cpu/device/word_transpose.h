// SPDX-License-Identifier: Apache-2.0
#pragma once
// Transposes of 32-bit words, the common step of packing weights and attention keys: a word is one
// f32 or two bf16 that stay neighbours.
#include <cstdint>

#include "backends/cpu/device/cpu_features.h"

namespace lathe::cpu {

/// to[column * toStride + row] = word `column` of source row `row`, for rows x columns words.
/// Source rows lie `fromStride` bytes apart at any address; toStride counts words.
using WordTranspose = void (*)(const char* from, int64_t fromStride, int64_t rows, int64_t columns,
                               uint32_t* to, int64_t toStride);

/// The transpose of a tier; all of them give the same bits.
WordTranspose wordTranspose(Isa tier);

}  // namespace lathe::cpu
