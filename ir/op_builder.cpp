// SPDX-License-Identifier: Apache-2.0
#include "ir/op_builder.h"

using namespace mlir;

namespace lathe {

Value OpMaker::scalar(Type element, double value) {
  auto type = RankedTensorType::get({}, element);
  Attribute a = isa<FloatType>(element) ? Attribute(b.getFloatAttr(element, value))
                                        : Attribute(b.getIntegerAttr(element, int64_t(value)));
  return make<ConstantOp>(DenseElementsAttr::get(type, a));
}

Value OpMaker::cast(Value x, Type element) {
  if (tensorType(x).getElementType() == element) return x;
  return make<CastOp>(x, element);
}

Value OpMaker::inBits(Value x) {
  Type element = tensorType(x).getElementType();
  if (!element.isF32()) return x;
  return make<BitcastOp>(make<BitcastOp>(x, b.getI32Type()), element);
}

Value OpMaker::swapLastTwo(Value x) {
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(x).getRank()));
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return transpose(x, permutation);
}

Value OpMaker::reshape(Value x, ArrayRef<StringAttr> dims) {
  return make<ReshapeOp>(x, DimsAttr::get(b.getContext(), dims));
}

Value OpMaker::broadcast(Value x, ArrayRef<StringAttr> dims) {
  return make<BroadcastOp>(x, DimsAttr::get(b.getContext(), dims));
}

Value OpMaker::iota(ArrayRef<StringAttr> dims, int64_t axis, Type element) {
  return make<IotaOp>(DimsAttr::get(b.getContext(), dims), axis, element);
}

Value OpMaker::sliceLast(Value x, int64_t start, int64_t size, int64_t stride) {
  auto sizes = dimsOf(tensorType(x));
  SmallVector<StringAttr> starts(sizes.size(), dim(0));
  SmallVector<int64_t> strides(sizes.size(), 1);
  starts.back() = dim(start);
  sizes.back() = dim(size);
  strides.back() = stride;
  MLIRContext* c = b.getContext();
  return make<SliceOp>(x, DimsAttr::get(c, starts), DimsAttr::get(c, sizes), strides);
}

}  // namespace lathe
