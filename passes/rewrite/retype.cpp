// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/retype.h"

#include <cmath>

#include "ir/checked_create.h"
#include "lathe/ir/types.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace lathe {
namespace {

StringAttr resized(StringAttr dim, const Retyping& retyping) {
  return retyping.dim && dim ? retyping.dim(dim) : dim;
}

RankedTensorType retypedTensor(Type type, const Retyping& retyping) {
  auto tensor = cast<RankedTensorType>(type);
  if (retyping.dim) {
    SmallVector<StringAttr> dims;
    for (StringAttr dim : dimsOf(tensor)) dims.push_back(resized(dim, retyping));
    tensor = tensorOf(dims, tensor.getElementType());
  }
  return retyping.element ? withElement(tensor, retyping.element(tensor.getElementType())) : tensor;
}

// A constant of another type: null for a table of other sizes or of another dtype.
Attribute retypedConstant(DenseElementsAttr value, const Retyping& retyping) {
  auto type = cast<RankedTensorType>(value.getType());
  auto to = retypedTensor(type, retyping);
  if (to == type) return value;
  if (!value.isSplat() || !to.hasStaticShape()) return {};
  Type had = type.getElementType(), wanted = to.getElementType();
  if (had == wanted) return value.resizeSplat(to);
  double number;
  if (isa<FloatType>(had))
    number = value.getSplatValue<APFloat>().convertToDouble();
  else
    number = double(value.getSplatValue<APInt>().getSExtValue());
  if (isa<FloatType>(wanted))
    return DenseElementsAttr::get(to, Attribute(FloatAttr::get(wanted, number)));
  if (number != std::trunc(number) || std::abs(number) > 100) return {};
  return DenseElementsAttr::get(
      to, APInt(wanted.getIntOrFloatBitWidth(), uint64_t(int64_t(number)), true, true));
}

Operation* copyOf(OpBuilder& b, Operation& op, IRMapping& mapping, const Retyping& retyping) {
  SmallVector<Value> operands;
  for (Value v : op.getOperands()) operands.push_back(mapping.lookup(v));
  OperationState state(op.getLoc(), op.getName());
  state.addOperands(operands);
  for (NamedAttribute a : op.getAttrDictionary()) {
    Attribute value = a.getValue();
    if (auto dims = dyn_cast<DimsAttr>(value)) {
      SmallVector<StringAttr> changed;
      for (StringAttr dim : dims.getDims()) changed.push_back(resized(dim, retyping));
      value = DimsAttr::get(dims.getContext(), changed);
    }
    if (auto dense = dyn_cast<DenseElementsAttr>(value)) value = retypedConstant(dense, retyping);
    if (!value) return nullptr;
    state.addAttribute(a.getName(), value);
  }
  if (auto weight = dyn_cast<WeightOp>(op)) {
    state.addTypes(retypedTensor(weight.getType(), retyping));
    return b.create(state);
  }
  std::string why;
  return op.getNumRegions() ? nullptr : createChecked(b, state, why);
}

}  // namespace

func::FuncOp retyped(OpBuilder& b, func::FuncOp function, const Retyping& retyping) {
  SmallVector<Type> arguments, results;
  for (Type t : function.getArgumentTypes()) arguments.push_back(retypedTensor(t, retyping));
  auto copy = func::FuncOp::create(b, function.getLoc(), function.getName(),
                                   b.getFunctionType(arguments, {}));
  OpBuilder inner(copy.addEntryBlock(), copy.getBody().front().end());
  IRMapping mapping;
  mapping.map(function.getArguments(), copy.getArguments());
  Operation* end = function.getBody().front().getTerminator();
  for (Operation& op : function.getBody().front()) {
    if (&op == end) break;
    Operation* made = copyOf(inner, op, mapping, retyping);
    if (!made) {
      copy.erase();
      return {};
    }
    for (auto [old, value] : llvm::zip_equal(op.getResults(), made->getResults()))
      mapping.map(old, value);
  }
  SmallVector<Value> values;
  for (Value v : end->getOperands()) {
    values.push_back(mapping.lookup(v));
    results.push_back(values.back().getType());
  }
  func::ReturnOp::create(inner, end->getLoc(), values);
  copy.setType(b.getFunctionType(arguments, results));
  return copy;
}

}  // namespace lathe
