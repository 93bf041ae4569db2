// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/data/data_calls.h"

#include "backends/cuda/lowering/data/data_kernels.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "lathe/backends/call_attributes.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
KernelSet updateKernels(KernelOp call, const std::string& name) {
  auto inputs = call.getInputs();
  auto sizes = dimExprs(inputs[0]);
  UpdateKernel u;
  u.name = name;
  u.dtype = elementOf(inputs[0]);
  u.positions = elementOf(inputs[2]);
  u.sizes.assign(sizes.begin(), sizes.end());
  const auto config = configOf<UpdateConfig>(call);
  u.axis = size_t(config.axis);
  if (config.check) u.check = int(*config.check);
  if (config.view) {
    const ViewTerms& view = *config.view;
    const size_t rank = (view.size() - 1) / 2;
    u.offset = view[0];
    u.count = view[1 + u.axis];
    u.valueStrides.assign(view.begin() + 1 + rank, view.end());
  } else {
    u.count = dimExprs(inputs[1])[u.axis];
  }
  return updateKernels(u);
}

KernelSet topKKernels(KernelOp call, const std::string& name) {
  auto sizes = dimExprs(call.getInputs()[0]);
  TopKKernel t;
  t.name = name;
  t.dtype = elementOf(call.getInputs()[0]);
  t.rows = productOf(ArrayRef(sizes).drop_back());
  t.columns = sizes.back();
  t.k = configOf<TopKConfig>(call).k;
  return topKKernels(t);
}

KernelSet cumSumKernels(KernelOp call, const std::string& name) {
  auto sizes = dimExprs(call.getInputs()[0]);
  const size_t axis = size_t(configOf<CumSumConfig>(call).axis);
  CumSumKernel c;
  c.name = name;
  c.dtype = elementOf(call.getInputs()[0]);
  c.outer = productOf(ArrayRef(sizes).take_front(axis));
  c.length = sizes[axis];
  c.inner = productOf(ArrayRef(sizes).drop_front(axis + 1));
  return cumSumKernels(c);
}

KernelSet randomBitsKernels(KernelOp call, const std::string& name) {
  return randomBitsKernels(RandomBitsKernel{name, productOf(dimExprs(call.getOutputs()[0]))});
}

KernelSet packedCastKernels(KernelOp call, const std::string& name) {
  const Value x = call.getInputs()[0], y = call.getOutputs()[0];
  return packedCastKernels(
      PackedCastKernel{name, elementOf(x), elementOf(y), productOf(dimExprs(x))});
}

}  // namespace lathe::cuda
