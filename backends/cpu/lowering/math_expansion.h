// SPDX-License-Identifier: Apache-2.0
#pragma once
// Exponentials on f32 scalars and vectors, without calls: within 3 ulp, denormals, infinities and
// NaN as in IEEE 754.
#include "backends/cpu/lowering/tier.h"
#include "ir/scalar_builder.h"

namespace lathe::cpu {

mlir::Value expandExp(ScalarBuilder& k, mlir::Value x, const Tier& tier);
mlir::Value expandTanh(ScalarBuilder& k, mlir::Value x);

}  // namespace lathe::cpu
