// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/matmul/matmul_calls.h"

#include "backends/cuda/lowering/kernel/call_facts.h"
#include "lathe/backends/call_attributes.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// Strides of a matrix's batch axes, right-aligned to `rank` of them.
std::vector<DimExpr> batchStrides(Value v, size_t rank) {
  auto strides = broadcastStrides(dimExprs(v));
  std::vector<DimExpr> batch(rank, DimExpr(0));
  const size_t own = strides.size() - 2;
  for (size_t i = 0; i < own; ++i) batch[rank - own + i] = strides[i];
  return batch;
}

PlainMatmul plainMatmulOf(const MatmulKernel& p, int bias, int residual, int result) {
  auto buffer = [](int index) { return Argument{Argument::Kind::Buffer, index, 0}; };
  PlainMatmul matmul{p.dtype, p.m, p.n, p.k, buffer(p.a), buffer(p.b), buffer(result), {}, {}};
  if (bias >= 0) matmul.bias = buffer(bias);
  if (residual >= 0) matmul.residual = buffer(residual);
  return matmul;
}

}  // namespace

MatmulKernel matmulOf(Value x, Value w, const std::string& name) {
  auto sizes = dimExprs(x);
  MatmulKernel p;
  p.name = name;
  p.dtype = elementOf(x);
  p.m = productOf(ArrayRef(sizes).drop_back());
  p.n = dimExprs(w)[0];
  p.k = sizes.back();
  return p;
}

KernelSet linearKernels(KernelOp call, const std::string& name) {
  auto inputs = call.getInputs();
  MatmulKernel p = matmulOf(inputs[0], inputs[1], name);
  const auto config = configOf<LinearConfig>(call);
  p.constantB = config.constantWeight.value_or(false);
  const int result = int(inputs.size()), bias = config.bias ? 2 : -1,
            residual = config.residual ? result - 1 : -1;
  const DType written = elementOf(call.getOutputs()[0]);
  const bool unrounded = written != p.dtype;
  p.hooks = linearHooks(p, result, config.activation, bias, residual, unrounded);
  // A library's bias and residual have the result's dtype.
  if (config.activation == Activation::none && !(unrounded && (config.bias || config.residual))) {
    p.plain = plainMatmulOf(p, bias, residual, result);
    if (unrounded) p.plain->resultDType = written;
  }
  return kernelsOf(p);
}

KernelSet matmulKernels(KernelOp call, const std::string& name) {
  Value a = call.getInputs()[0], b = call.getInputs()[1];
  auto left = dimExprs(a), right = dimExprs(b), result = dimExprs(call.getOutputs()[0]);
  const size_t rank = result.size() - 2;
  MatmulKernel p;
  p.name = name;
  p.dtype = elementOf(a);
  p.m = left[left.size() - 2];
  p.k = left.back();
  p.transposedB = !configOf<MatmulConfig>(call).transposeB;
  p.n = p.transposedB ? right.back() : right[right.size() - 2];
  p.batch.assign(result.begin(), result.begin() + rank);
  p.aStrides = batchStrides(a, rank);
  p.bStrides = batchStrides(b, rank);
  p.constantB = false;
  p.hooks = linearHooks(p, 2);
  return kernelsOf(p);
}

KernelSet convolutionKernels(KernelOp call, const std::string& name) {
  const auto config = configOf<ConvolutionConfig>(call);
  auto image = dimExprs(call.getInputs()[0]), kernel = dimExprs(call.getInputs()[1]);
  auto number = [](const DimExpr& d) { return d.asConstant().value(); };
  ConvolutionKernel c;
  c.name = name;
  c.dtype = elementOf(call.getInputs()[0]);
  c.images = image[0];
  c.channels = number(image[1]);
  c.height = number(image[2]);
  c.width = number(image[3]);
  c.filters = number(kernel[0]);
  c.kernelH = number(kernel[2]);
  c.kernelW = number(kernel[3]);
  c.strideH = config.strides[0];
  c.strideW = config.strides[1];
  c.top = config.padding[0];
  c.bottom = config.padding[1];
  c.left = config.padding[2];
  c.right = config.padding[3];
  return convolutionKernels(c);
}

}  // namespace lathe::cuda
