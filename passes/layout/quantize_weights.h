// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "lathe/ir/types.h"
#include "lathe/passes/weight_formats.h"
#include "mlir/IR/BuiltinOps.h"

namespace lathe {

/// Linear layers and embeddings of the checkpoint's floats read them in few bits: scales, zero
/// points and integers are made of the weight by ops of the dialect, which hoisting moves into
/// `load`. Weakens the contract `weight-precision`, and `activation-precision` where the formats
/// say that activations are rounded, too.
void quantizeWeights(mlir::ModuleOp module, const WeightFormats& formats);

/// A linear layer on a dequantized weight becomes one on the integers (`lathe.quantized_linear`),
/// where scales and integers are weights. Where dequantizing rounds to 16 bits this weakens
/// `intermediate-rounding`.
void fuseDequantize(mlir::ModuleOp module);

/// Linear layers on quantized weights read them packed where `wants` says so; so are their scales
/// and zero points where they have several columns.
void packQuantizedWeights(mlir::ModuleOp module,
                          const std::function<bool(QuantizedLinearOp)>& wants);

}  // namespace lathe
