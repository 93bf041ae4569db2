// SPDX-License-Identifier: Apache-2.0
// Products of matrices, of floats and of integers that stand for reals.
#include <limits>

#include <fmt/format.h>

#include "frontend/onnx/node.h"
#include "frontend/onnx/quantized.h"

namespace lathe::onnx {

Tensor matrixProduct(const Tensor& a, const Tensor& b) {
  const bool isRow = a.rank() == 1, isColumn = b.rank() == 1;
  Tensor y = matmul(isRow ? unsqueeze(a, 0) : a, isColumn ? unsqueeze(b, -1) : b);
  if (isColumn) y = squeeze(y, -1);
  if (isRow) y = squeeze(y, isColumn ? -1 : -2);
  return y;
}

namespace {

void matrixMultiply(Node& n) { n.set(matrixProduct(n.in(0), n.in(1))); }

void gemm(Node& n) {
  Tensor a = n.in(0), b = n.in(1);
  if (a.rank() != 2 || b.rank() != 2) n.fail("expected two matrices");
  if (n.attribute("transA", 0)) a = transpose(a, {1, 0});
  if (n.attribute("transB", 0)) b = transpose(b, {1, 0});
  const double alpha = n.real("alpha", 1), beta = n.real("beta", 1);
  Tensor y = matmul(a, b);
  if (alpha != 1) y = y * alpha;
  if (n.has(2)) y = add(y, beta == 1 ? n.in(2) : n.in(2) * beta);
  n.set(y);
}

void einsumOf(Node& n) {
  std::string equation;
  for (char c : n.text("equation", ""))
    if (c != ' ') equation += c;
  std::vector<Tensor> operands;
  for (size_t i = 0; i < n.operands(); ++i) operands.push_back(n.in(i));
  n.set(einsum(equation, operands));
}

// A zero point of a matrix's rows or columns, or of all, as what stretches to the matrix.
Tensor zeroPointOf(Node& n, size_t i, int64_t rank, bool ofRows) {
  Tensor zero = n.in(i, DType::I32);
  if (zero.rank() == 1) {
    if (zero.dim(0) == Dim(1)) return reshape(zero, {});
    return rank > 1 && ofRows ? unsqueeze(zero, -1) : zero;
  }
  return zero;
}

// Sums of 8-bit products are whole in i32.
void integerMatmul(Node& n) {
  Tensor a = n.in(0, DType::I32), b = n.in(1, DType::I32);
  if (n.has(2)) a = sub(a, zeroPointOf(n, 2, a.rank(), true));
  if (n.has(3)) b = sub(b, zeroPointOf(n, 3, b.rank(), false));
  n.set(matrixProduct(a, b));
}

// (a - a0)(b - b0) in whole numbers, then scaled and quantized: y = q(ab * (sa * sb / sy)) + y0.
void quantizedMatmul(Node& n) {
  n.expectOperands(8);
  auto centred = [&](size_t i, bool ofRows) {
    const Tensor x = n.in(i, DType::I32);
    return sub(x, zeroPointOf(n, i + 2, x.rank(), ofRows));
  };
  const Tensor sums = matrixProduct(centred(0, true), centred(3, false));
  auto scale = [&](size_t i, bool ofRows) {
    Tensor s = n.in(i, DType::F32);
    if (s.rank() == 1 && s.dim(0) == Dim(1)) return reshape(s, {});
    return s.rank() == 1 && ofRows && sums.rank() > 1 ? unsqueeze(s, -1) : s;
  };
  const Tensor factor = mul(scale(1, true), scale(4, false));
  const Tensor y = mul(as(sums, DType::F32), div(factor, scale(6, true)));
  n.set(rounded(y, zeroPointOf(n, 7, sums.rank(), true), n.value(7).dtype()));
}

const Lowering kTable[] = {{"Einsum", {"equation"}, einsumOf},
                           {"Gemm", {"alpha", "beta", "transA", "transB"}, gemm},
                           {"MatMul", {}, matrixMultiply},
                           {"MatMulInteger", {}, integerMatmul},
                           {"QLinearMatMul", {}, quantizedMatmul, "8-bit floats"}};

}  // namespace

std::span<const Lowering> matmulLowerings() { return kTable; }

}  // namespace lathe::onnx
