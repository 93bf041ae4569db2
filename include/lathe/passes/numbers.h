// SPDX-License-Identifier: Apache-2.0
#pragma once
// When are two constants the same number, and which casts change nothing but a rounding? Patterns
// and canonical rewrites ask here and nowhere else.
#include <optional>

#include "llvm/ADT/APInt.h"
#include "mlir/IR/BuiltinAttributeInterfaces.h"
#include "mlir/IR/Value.h"

namespace lathe {

class CastOp;

/// The one element of a constant of equal elements, as a FloatAttr or IntegerAttr of its element
/// type, also behind broadcasts and reshapes. Null for anything else. Two constants are the same
/// exactly if their elements are the same attribute: no bit of an i64 or sign of a zero is lost.
mlir::TypedAttr splatElement(mlir::Value value);

/// The element of an integer (or boolean) constant in its own width.
std::optional<llvm::APInt> splatInteger(mlir::Value value);

/// The element as a double. Nothing if a double does not hold it: beyond 2^53 neighbours among the
/// i64 would become one number.
///
/// `throughCasts` also looks behind casts. Those that only round are seen through without the
/// rounding, for a pattern means the number that its author wrote; any other cast is carried out,
/// and gives nothing where it wraps or saturates.
std::optional<double> splatValue(mlir::Value value, bool throughCasts = true);

/// True for a constant all of whose elements are `wanted`: integers exactly, floats within a
/// relative tolerance or as `wanted` rounds to the constant's element type.
bool isSplatOf(mlir::Value value, double wanted, double tolerance = 1e-6);

/// `number` as a value of the element type has it; bf16 and f16 are rounded from f32, as
/// everywhere.
double roundedTo(mlir::Type element, double number);

/// `number` as an element of the type, rounded to a float type. Null if it is an integer type that
/// does not hold the number.
mlir::TypedAttr asElement(mlir::Type element, double number);

/// True for a cast from a float to a float. It rounds or widens, so an op that computes in f32 and
/// rounds once may take it in. A cast from or to an integer or a boolean truncates, wraps or
/// compares: it is a step of the computation, and a fusion that drops it computes something else.
bool onlyRounds(CastOp cast);

}  // namespace lathe
