// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {

Sheet::Sheet() : s(g.dim("s", 1, 32)), t(g.dim("t", 1, 32)), p(g.dim("p", 0, 32)) {}

Tensor Sheet::in(std::string_view name, const Dims& shape, DType dtype) {
  return g.input(name, dtype, shape);
}
Tensor Sheet::w(std::string_view name, const Shape& shape, DType dtype) {
  return g.weight(name, dtype, shape);
}
Tensor Sheet::list(const std::vector<int64_t>& values) {
  Array array(DType::I64, {int64_t(values.size())});
  for (size_t i = 0; i < values.size(); ++i) array.set(int64_t(i), double(values[i]));
  return g.constant(array);
}
Tensor Sheet::infinity(DType dtype) {
  return g.constant(std::numeric_limits<double>::infinity(), dtype);
}
Tensor Sheet::ramp(const Dims& shape, int64_t axis, DType dtype) {
  return iota(g.constant(0, dtype), shape, axis, dtype);
}
Tensor Sheet::asked(const Tensor& y, std::source_location at) {
  line = at.file_name();
  line = line.substr(line.rfind('/') + 1) + ":" + std::to_string(at.line());
  return y;
}

Tensor softmaxOf(const Tensor& x, std::source_location at) {
  Tensor e = exp(sub(x, reduceMax(x, {-1}, true, at), at), at);
  return div(e, reduceSum(e, {-1}, true, at), at);
}
Tensor scoresOf(const Tensor& q, const Tensor& k, std::source_location at) {
  return matmul(q, swapAxes(k, -1, -2, at), at);
}

}  // namespace lathe::conformance
