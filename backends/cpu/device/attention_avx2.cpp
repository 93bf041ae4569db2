// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/isa_region.h"

namespace lathe::cpu {
namespace {

LATHE_ISA_BEGIN(LATHE_TARGET_AVX2)

#include "backends/cpu/device/vec256.inc"
#include "backends/cpu/device/vec_math.inc"
#include "backends/cpu/device/attention_simd.inc"
#include "backends/cpu/device/attention_matmul_f32.inc"
#include "backends/cpu/device/attention_in_place.inc"
#include "backends/cpu/device/transpose256.inc"
#include "backends/cpu/device/attention_pairs256.inc"

LATHE_ISA_END

}  // namespace

const AttentionKernels kAttentionAvx2 = {false,    false,    matmulF32,     softmaxRows,
                                         scaleRow, storeRow, scoresOfPairs, sumOfPairs,
                                         16,       8,        Isa::Avx2};

}  // namespace lathe::cpu
