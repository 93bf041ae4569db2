// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/data/data_calls.h"

#include "backends/cuda/lowering/data/data_kernels.h"
#include "backends/cuda/lowering/kernel/call_facts.h"
#include "lathe/backends/call_attributes.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

// What both kinds of updates say; the operand of the positions differs.
void fillUpdate(UpdateKernel& u, KernelOp call, const std::string& name, unsigned positions) {
  auto inputs = call.getInputs();
  auto sizes = dimExprs(inputs[0]);
  u.name = name;
  u.dtype = elementOf(inputs[0]);
  u.positions = elementOf(inputs[positions]);
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
}

}  // namespace

KernelSet updateKernels(KernelOp call, const std::string& name) {
  UpdateKernel u;
  fillUpdate(u, call, name, 2);
  return updateKernels(u);
}

KernelSet pagedUpdateKernels(KernelOp call, const std::string& name) {
  PagedUpdateKernel u;
  fillUpdate(u, call, name, 3);
  const auto table = dimExprs(call.getInputs()[2]);
  u.table = elementOf(call.getInputs()[2]);
  u.batch = table[0];
  u.entries = table[1];
  return pagedUpdateKernels(u);
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
