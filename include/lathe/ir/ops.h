// SPDX-License-Identifier: Apache-2.0
#pragma once
// All that records ops: the functions of lathe/ir/recorded_ops.h, what is spelled with them, and
// operators.
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

}  // namespace lathe
