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

/// A tensor operand together with the caller's line: operators cannot have default arguments.
struct Operand {
  Operand(const Tensor& tensor, LATHE_AT) : tensor(tensor), at(at) {}
  Tensor tensor;
  std::source_location at;
};
inline Tensor operator+(const Operand& a, const Tensor& b) { return add(a.tensor, b, a.at); }
inline Tensor operator-(const Operand& a, const Tensor& b) { return sub(a.tensor, b, a.at); }
inline Tensor operator*(const Operand& a, const Tensor& b) { return mul(a.tensor, b, a.at); }
inline Tensor operator/(const Operand& a, const Tensor& b) { return div(a.tensor, b, a.at); }
inline Tensor operator-(const Operand& x) { return neg(x.tensor, x.at); }
inline Tensor operator+(const Operand& a, double b) {
  return add(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator-(const Operand& a, double b) {
  return sub(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator*(const Operand& a, double b) {
  return mul(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator/(const Operand& a, double b) {
  return div(a.tensor, scalarLike(a.tensor, b, a.at), a.at);
}
inline Tensor operator+(double a, const Operand& b) {
  return add(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}
inline Tensor operator-(double a, const Operand& b) {
  return sub(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}
inline Tensor operator*(double a, const Operand& b) {
  return mul(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}
inline Tensor operator/(double a, const Operand& b) {
  return div(scalarLike(b.tensor, a, b.at), b.tensor, b.at);
}

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
