// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backends/reference/interpreter_ops.h"

using namespace mlir;

namespace lathe::reference {
namespace {

// y[m, n] += a[m, k] b[k, n], every sum in ascending k. Rows go in blocks so that a row of b is
// read once for several rows of a. T wraps (unsigned) or is double.
template <class T, class S>
void multiply(const S* a, const S* b, T* y, int64_t m, int64_t k, int64_t n) {
  constexpr int64_t kRows = 8;
  for (int64_t top = 0; top < m; top += kRows) {
    int64_t bottom = std::min(top + kRows, m);
    for (int64_t p = 0; p < k; ++p)
      for (int64_t i = top; i < bottom; ++i) {
        T left = T(a[i * k + p]);
        const S* right = b + p * n;
        T* out = y + i * n;
        for (int64_t j = 0; j < n; ++j) out[j] += left * T(right[j]);
      }
  }
}

Dense matmul(const Context& cx, const Dense& a, const Dense& b) {
  Shape leadA(a.shape.begin(), a.shape.end() - 2), leadB(b.shape.begin(), b.shape.end() - 2);
  int64_t m = a.shape.end()[-2], k = a.shape.back(), n = b.shape.back();
  Shape lead = broadcastShape(leadA, leadB);
  // The number of the matrix that each operand contributes to a matrix of the result.
  auto matrices = [&](const Shape& from) {
    std::vector<int64_t> number(size_t(elementCount(from)));
    for (size_t i = 0; i < number.size(); ++i) number[i] = int64_t(i);
    return stretch(makeIntegers(DType::I64, from, std::move(number)), lead).integers;
  };
  auto fromA = matrices(leadA), fromB = matrices(leadB);
  Shape shape = lead;
  shape.insert(shape.end(), {m, n});
  size_t size = size_t(elementCount(shape));
  auto each = [&](auto* pa, auto* pb, auto* y) {
    for (size_t i = 0; i < fromA->size(); ++i)
      multiply(pa + (*fromA)[i] * m * k, pb + (*fromB)[i] * k * n, y + int64_t(i) * m * n, m, k, n);
  };
  if (a.isReal()) {
    std::vector<double> y(size, 0.0);
    each(a.reals->data(), b.reals->data(), y.data());
    return cx.reals(a.dtype, std::move(shape), std::move(y));
  }
  std::vector<uint64_t> y(size, 0);
  each(a.integers->data(), b.integers->data(), y.data());
  return cx.integers(a.dtype, std::move(shape), std::vector<int64_t>(y.begin(), y.end()));
}

Dense convolution(const Context& cx, ConvolutionOp op, const Dense& x, const Dense& w) {
  int64_t images = x.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  int64_t filters = w.shape[0], kh = w.shape[2], kw = w.shape[3];
  auto s = op.getStrides(), p = op.getPadding();
  int64_t oh = (height + p[0] + p[1] - kh) / s[0] + 1, ow = (width + p[2] + p[3] - kw) / s[1] + 1;
  std::vector<double> y;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t r = 0; r < oh; ++r)
        for (int64_t c = 0; c < ow; ++c) {
          double sum = 0;
          for (int64_t g = 0; g < channels; ++g)
            for (int64_t i = 0; i < kh; ++i)
              for (int64_t j = 0; j < kw; ++j) {
                int64_t row = r * s[0] + i - p[0], column = c * s[1] + j - p[2];
                bool inside = row >= 0 && row < height && column >= 0 && column < width;
                // The padding is zeros, and 0 times an infinite weight is NaN.
                double value =
                    inside
                        ? (*x.reals)[size_t(((n * channels + g) * height + row) * width + column)]
                        : 0.0;
                sum += value * (*w.reals)[size_t(((f * channels + g) * kh + i) * kw + j)];
              }
          y.push_back(sum);
        }
  return cx.reals(x.dtype, {images, filters, oh, ow}, std::move(y));
}

}  // namespace

std::optional<Dense> evalContraction(const Context& cx, Operation* op, Operands o) {
  if (isa<MatmulOp>(op)) return matmul(cx, o[0], o[1]);
  if (auto c = dyn_cast<ConvolutionOp>(op)) return convolution(cx, c, o[0], o[1]);
  return std::nullopt;
}

}  // namespace lathe::reference
