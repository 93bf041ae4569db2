// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the families of ops share. Each `eval...` runs the ops of its family on operand values and
// returns nothing for an op of another; operands fit the verified types.
#include <array>
#include <cmath>
#include <optional>

#include "backends/reference/dense.h"
#include "lathe/backends/interpreter.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/TypeSwitch.h"

namespace lathe::reference {

using Operands = llvm::ArrayRef<Dense>;

struct Context {
  Precision precision;
  const WeightProvider& weights;
  Symbols symbols;
  Communicator* ranks = nullptr;  ///< this rank's end, where several interpret one function

  /// Rounds to the dtype, unless everything is f64.
  Dense reals(DType dtype, Shape shape, std::vector<double> values) const;
  /// The same of sums of `terms` terms; under RoughSums they are moved by what their rounding may
  /// be. `squares` gives the sums of the terms' squares.
  Dense sums(DType dtype, Shape shape, std::vector<double> values, int64_t terms,
             llvm::function_ref<std::vector<double>()> squares) const;
  /// Wraps modulo the dtype's width.
  Dense integers(DType dtype, Shape shape, std::vector<int64_t> values) const;
  /// The sizes that an op's `#lathe.dims` stand for; throws Error for one that is unbound or
  /// negative.
  Shape sizes(mlir::Operation* op, DimsAttr dims) const;
};

/// "model.cc:40", the first line of a location; "unknown location" if it has none.
std::string sourceOf(mlir::Location loc);
/// An Error with the op's source line and name in front.
[[noreturn]] void fail(mlir::Operation* op, ErrorCode code, const std::string& message);
/// Throws Error in the terms of an argument or weight if the array does not fit the type.
void checkArray(const std::string& what, const Array& array, mlir::RankedTensorType type,
                Precision precision);
/// The value of an array that fits.
Dense checkedArray(const std::string& what, const Array& array, mlir::RankedTensorType type,
                   Precision precision);
inline DType resultDType(mlir::Operation* op) {
  return *dtypeOf(tensorType(op->getResult(0)).getElementType());
}

std::optional<Dense> evalElementwise(const Context& cx, mlir::Operation* op, Operands operands);
std::optional<Dense> evalReduce(const Context& cx, mlir::Operation* op, Operands operands);
std::optional<Dense> evalShape(const Context& cx, mlir::Operation* op, Operands operands);
std::optional<Dense> evalContraction(const Context& cx, mlir::Operation* op, Operands operands);
std::optional<Dense> evalIndex(const Context& cx, mlir::Operation* op, Operands operands);
std::optional<Dense> evalState(const Context& cx, mlir::Operation* op, Operands operands);
std::optional<Dense> evalCollective(const Context& cx, mlir::Operation* op, Operands operands);
/// It has no result.
void runSend(const Context& cx, SendOp op, const Dense& x);
/// Values and indices.
std::vector<Dense> evalTopK(TopKOp op, const Dense& x);

inline bool isNan(double v) { return std::isnan(v); }
inline bool isNan(int64_t) { return false; }
/// IEEE 754-2019 maximum and minimum: NaN if either is, and -0 is below 0.
inline double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
inline double smaller(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
// Integers wrap: through unsigned, where overflow is defined.
inline int64_t wrappingAdd(int64_t a, int64_t b) { return int64_t(uint64_t(a) + uint64_t(b)); }
inline int64_t wrappingSub(int64_t a, int64_t b) { return int64_t(uint64_t(a) - uint64_t(b)); }
inline int64_t wrappingMul(int64_t a, int64_t b) { return int64_t(uint64_t(a) * uint64_t(b)); }

/// The block of Philox-4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC
/// 2011. Counter and key are little-endian in 32-bit words.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

}  // namespace lathe::reference
