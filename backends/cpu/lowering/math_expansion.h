// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exponentials on f32 scalars and vectors, without calls: within 3 ulp, denormals, infinities and
// NaN as in IEEE 754.
#include "backends/cpu/lowering/region_emitter_builder.h"

namespace lathe::cpu {

mlir::Value expandExp(KernelBuilder& k, mlir::Value x);
/// 1 / (1 + exp(-x))
mlir::Value expandSigmoid(KernelBuilder& k, mlir::Value x);
mlir::Value expandTanh(KernelBuilder& k, mlir::Value x);

}  // namespace lathe::cpu
