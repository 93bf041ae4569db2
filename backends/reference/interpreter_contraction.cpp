// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/interpreter_ops.h"
#include "backends/reference/matmul.h"
#include "backends/reference/strided.h"

using namespace mlir;

namespace lathe::reference {
namespace {

// y[m, n] += a[m, k] b[k, n] of integers, which wrap.
void multiply(const int64_t* a, const int64_t* b, uint64_t* y, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p)
      for (int64_t j = 0; j < n; ++j)
        y[i * n + j] += uint64_t(a[i * k + p]) * uint64_t(b[p * n + j]);
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
  if (a.isReal())
    return cx.sums(a.dtype, std::move(shape), product(a, b, *fromA, *fromB), k,
                   [&] { return product(a, b, *fromA, *fromB, /*squared=*/true); });
  std::vector<uint64_t> y(size_t(elementCount(shape)), 0);
  for (size_t i = 0; i < fromA->size(); ++i)
    multiply(a.integers->data() + (*fromA)[i] * m * k, b.integers->data() + (*fromB)[i] * k * n,
             y.data() + int64_t(i) * m * n, m, k, n);
  return cx.integers(a.dtype, std::move(shape), std::vector<int64_t>(y.begin(), y.end()));
}

// Rows of x are matrices of one row, multiplied by the weights that they choose: no other is read.
Dense groupedLinear(const Context& cx, GroupedLinearOp op, const Dense& x, const Dense& w,
                    const Dense& indices) {
  const int64_t groups = w.shape[0];
  for (size_t i = 0; i < indices.integers->size(); ++i)
    if (const int64_t index = (*indices.integers)[i]; index < 0 || index >= groups)
      fail(op, ErrorCode::InvalidArgument,
           "expected indices in [0, " + std::to_string(groups) + ") of " + std::to_string(groups) +
               " weights, got " + std::to_string(index) + " at element " + std::to_string(i));
  // A packed weight is its logical [n, k] matrix.
  const bool inOut = op.getLayout() == WeightLayout::in_out;
  const int64_t k = w.shape[inOut ? 1 : 2], n = w.shape[inOut ? 2 : 1];
  const Shape strides = stridesIn(w);
  const Dense byRow = inOut ? w : strided(w, {groups, k, n}, {strides[0], strides[2], strides[1]});
  Dense rows = settled(x);
  Shape of(x.shape.begin(), x.shape.end() - 1);
  std::vector<int64_t> number(size_t(elementCount(of)));
  for (size_t i = 0; i < number.size(); ++i) number[i] = int64_t(i);
  const Dense fromX = stretch(makeIntegers(DType::I64, of, std::move(number)), indices.shape);
  rows.shape = {elementCount(of), 1, k};
  Shape shape = indices.shape;
  shape.push_back(n);
  auto products = [&](bool squared) {
    return product(rows, byRow, *fromX.integers, *indices.integers, squared);
  };
  return cx.sums(*dtypeOf(tensorType(op.getY()).getElementType()), std::move(shape),
                 products(false), k, [&] { return products(true); });
}

Dense convolution(const Context& cx, ConvolutionOp op, const Dense& x, const Dense& w) {
  int64_t images = x.shape[0], channels = x.shape[1], height = x.shape[2], width = x.shape[3];
  int64_t filters = w.shape[0], kh = w.shape[2], kw = w.shape[3];
  auto s = op.getStrides(), p = op.getPadding();
  int64_t oh = (height + p[0] + p[1] - kh) / s[0] + 1, ow = (width + p[2] + p[3] - kw) / s[1] + 1;
  std::vector<double> y, squares;
  for (int64_t n = 0; n < images; ++n)
    for (int64_t f = 0; f < filters; ++f)
      for (int64_t r = 0; r < oh; ++r)
        for (int64_t c = 0; c < ow; ++c) {
          double sum = 0, squared = 0;
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
                double term = value * (*w.reals)[size_t(((f * channels + g) * kh + i) * kw + j)];
                sum += term;
                squared += term * term;
              }
          y.push_back(sum);
          squares.push_back(squared);
        }
  return cx.sums(x.dtype, {images, filters, oh, ow}, std::move(y), channels * kh * kw,
                 [&] { return squares; });
}

}  // namespace

std::optional<Dense> evalContraction(const Context& cx, Operation* op, Operands o) {
  if (isa<MatmulOp>(op)) return matmul(cx, o[0], o[1]);
  if (auto g = dyn_cast<GroupedLinearOp>(op)) return groupedLinear(cx, g, o[0], o[1], o[2]);
  if (auto c = dyn_cast<ConvolutionOp>(op)) return convolution(cx, c, o[0], o[1]);
  return std::nullopt;
}

}  // namespace lathe::reference
