// SPDX-License-Identifier: Apache-2.0
#pragma once
// The last step before LLVM's dialect: what x86 wants spelled otherwise than arith and math say it.
#include "backends/cpu/lowering/tier.h"
#include "ir/scalar_builder.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe::cpu {

/// Replaces, in all kernels of a module:
/// - exponentials of f32 by polynomials; other functions that have no instruction are left to LLVM,
///   which calls the C library lane by lane;
/// - `maximumf` and `minimumf` by one vmaxps and what it loses, a NaN;
/// - bf16 and f16 by i16, as x86 moves no vectors of them, and roundings to bf16 by integers where
///   there is no instruction.
/// Flags that allow less precision are dropped. Fails with a diagnostic.
llvm::LogicalResult expandForX86(mlir::ModuleOp kernels, const Tier& tier);

// Functions of f32 scalars and vectors without calls: within 3 ulp, denormals, infinities and NaN
// as in IEEE 754.
mlir::Value expandExp(ScalarBuilder& k, mlir::Value x, const Tier& tier);
mlir::Value expandTanh(ScalarBuilder& k, mlir::Value x);

}  // namespace lathe::cpu
