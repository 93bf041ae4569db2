// SPDX-License-Identifier: Apache-2.0
#pragma once
// All that records ops: the functions of lathe/ir/recorded_ops.h and lathe/ir/composed_ops.h, and
// operators.
#include "lathe/ir/composed_ops.h"
#include "lathe/ir/recorded_ops.h"

namespace lathe {

/// A scalar of `like`'s dtype in the same graph.
Tensor scalarLike(const Tensor& like, double value, LATHE_AT);
/// Exchanges two axes.
Tensor swapAxes(const Tensor& x, int64_t a, int64_t b, LATHE_AT);
/// Elements start, start + stride, ... (`size` of them) of one axis.
Tensor sliceAxis(const Tensor& x, int64_t axis, const Dim& start, const Dim& size,
                 int64_t stride = 1, LATHE_AT);

/// What `a / b` records: a quotient of floats. Throws Error for integers, where PyTorch and MLX
/// give floats: cast them first, or call `div`, which rounds toward zero.
Tensor divide(const Tensor& a, const Tensor& b, LATHE_AT);
/// With a number on one side, which takes the other's dtype.
inline Tensor div(const Tensor& a, double b, LATHE_AT) { return div(a, scalarLike(a, b, at), at); }
inline Tensor pow(const Tensor& a, double b, LATHE_AT) { return pow(a, scalarLike(a, b, at), at); }
inline Tensor pow(double a, const Tensor& b, LATHE_AT) { return pow(scalarLike(b, a, at), b, at); }
inline Tensor max(const Tensor& a, double b, LATHE_AT) { return max(a, scalarLike(a, b, at), at); }
inline Tensor min(const Tensor& a, double b, LATHE_AT) { return min(a, scalarLike(a, b, at), at); }

/// A tensor operand together with the caller's line: operators cannot have default arguments.
struct Operand {
  Operand(const Tensor& tensor, LATHE_AT) : tensor(tensor), at(at) {}
  Tensor tensor;
  std::source_location at;
};
/// The same for a number on the right of an assignment.
struct NumberOperand {
  NumberOperand(double number, LATHE_AT) : number(number), at(at) {}
  double number;
  std::source_location at;
};

// `%` is the remainder with the sign of b, as PyTorch's and Python's are. `a += b` makes `a` the
// handle of a + b: other handles of what it was keep their value.
#define LATHE_ARITHMETIC(op, function)                                  \
  inline Tensor operator op(const Operand& a, const Tensor& b) {        \
    return function(a.tensor, b, a.at);                                 \
  }                                                                     \
  inline Tensor operator op(const Operand& a, double b) {               \
    return function(a.tensor, scalarLike(a.tensor, b, a.at), a.at);     \
  }                                                                     \
  inline Tensor operator op(double a, const Operand& b) {               \
    return function(scalarLike(b.tensor, a, b.at), b.tensor, b.at);     \
  }                                                                     \
  inline Tensor& operator op## = (Tensor & a, const Operand& b) {       \
    return a = function(a, b.tensor, b.at);                             \
  }                                                                     \
  inline Tensor& operator op## = (Tensor & a, const NumberOperand& b) { \
    return a = function(a, scalarLike(a, b.number, b.at), b.at);        \
  }
LATHE_ARITHMETIC(+, add)
LATHE_ARITHMETIC(-, sub)
LATHE_ARITHMETIC(*, mul)
LATHE_ARITHMETIC(/, divide)
LATHE_ARITHMETIC(%, mod)
#undef LATHE_ARITHMETIC
inline Tensor operator-(const Operand& x) { return neg(x.tensor, x.at); }

// Comparisons give bool tensors, elementwise. A tensor is no condition of C++: `if (a == b)` does
// not compile.
#define LATHE_COMPARISON(op, predicate)                                                \
  inline Tensor operator op(const Operand& a, const Operand& b) {                      \
    return compare(a.tensor, b.tensor, Compare::predicate, a.at);                      \
  }                                                                                    \
  inline Tensor operator op(const Operand& a, double b) {                              \
    return compare(a.tensor, scalarLike(a.tensor, b, a.at), Compare::predicate, a.at); \
  }                                                                                    \
  inline Tensor operator op(double a, const Operand& b) {                              \
    return compare(scalarLike(b.tensor, a, b.at), b.tensor, Compare::predicate, b.at); \
  }
LATHE_COMPARISON(==, eq)
LATHE_COMPARISON(!=, ne)
LATHE_COMPARISON(<, lt)
LATHE_COMPARISON(<=, le)
LATHE_COMPARISON(>, gt)
LATHE_COMPARISON(>=, ge)
#undef LATHE_COMPARISON
// Logical for bool tensors, of the bits for integers.
inline Tensor operator&(const Operand& a, const Tensor& b) {
  return a.tensor.dtype(a.at) == DType::Bool ? logicalAnd(a.tensor, b, a.at)
                                             : bitwiseAnd(a.tensor, b, a.at);
}
inline Tensor operator|(const Operand& a, const Tensor& b) {
  return a.tensor.dtype(a.at) == DType::Bool ? logicalOr(a.tensor, b, a.at)
                                             : bitwiseOr(a.tensor, b, a.at);
}
inline Tensor operator!(const Operand& x) { return logicalNot(x.tensor, x.at); }

}  // namespace lathe
