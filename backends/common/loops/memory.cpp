// SPDX-License-Identifier: Apache-2.0
// Loads, stores and constants.
#include "backends/common/loops/evaluator.h"
#include "lathe/backends/region_plan.h"

using namespace mlir;

namespace lathe::loops {

unsigned bytesOf(Type stored) { return stored.getIntOrFloatBitWidth() / 8; }

Value Evaluator::address(Value pointer, Type stored, Value offset) {
  Type type = pointer.getType();
  if (auto vector = dyn_cast<VectorType>(offset.getType()))
    type = VectorType::get(vector.getShape(), type);
  return k.make<LLVM::GEPOp>(type, stored, pointer, ArrayRef<LLVM::GEPArg>{offset});
}

Value Evaluator::argument(BlockArgument argument, const Index& index) {
  const unsigned number = argument.getArgNumber();
  if (Value held = heldOperand(argument, index)) return held;
  auto type = tensorType(argument);
  const Coord at = linear(dims(argument), index);
  // Only a read at the element that is stored, or of the own row before anything is stored, leaves
  // an operand replaceable by a result.
  if (!(storedPosition ? at.sameAs(*storedPosition) : endsBeforeStores(index)))
    scattered.insert(number);
  read.insert(number);
  const int64_t divisor = divisorOf(*elementCountOf(type));
  return load({pointerTo(number), type.getElementType(), divisor}, at, index);
}

Value Evaluator::constant(ConstantOp op, const Index& index) {
  auto value = cast<DenseElementsAttr>(op.getValue());
  Type element = tensorType(op.getResult()).getElementType(), type = computedType(element);
  if (value.isSplat()) {
    if (isa<FloatType>(element))
      return k.number(type, value.getSplatValue<APFloat>().convertToDouble());
    APInt word = value.getSplatValue<APInt>();
    return k.integer(type,
                     word.getBitWidth() == 1 ? int64_t(word.getZExtValue()) : word.getSExtValue());
  }
  Value table = k.shared(0, keyOf("table", op.getOperation()), [&] { return makeTable(op); });
  return load({table, element, value.getNumElements()}, linear(dims(op.getResult()), index), index);
}

Value Evaluator::load(const Source& source, const Coord& at, const Index& index) {
  Type stored = storedType(source.element);
  const unsigned align = bytesOf(stored);
  if (at.uniform())
    return k.fromStored(
        k.make<LLVM::LoadOp>(stored, address(source.pointer, stored, m.scalar(at)), align),
        source.element);
  if (at.lanes)
    if (Value span = loadSpan(source, stored, at, index)) return k.fromStored(span, source.element);
  auto type = VectorType::get({index.width}, stored);
  Value where = address(source.pointer, stored, m.vector(at, index.width)), mask = index.mask;
  if (!mask) mask = k.constants(k.b.getI1Type(), SmallVector<int64_t>(index.width, 1));
  return k.fromStored(k.make<LLVM::masked_gather>(type, where, mask, k.none(type), align),
                      source.element);
}

void Evaluator::storeResult(unsigned result, Value value, const Coord& position,
                            const Index& index) {
  const unsigned number = region_.getNumArguments() + result;
  Type element = tensorType(tensorAt(number)).getElementType(), stored = storedType(element);
  Value where = address(pointerTo(number), stored, m.scalar(position.base()));
  Value bits = k.toStored(spread(value, index), element);
  if (index.mask && !index.uniform())
    k.make<LLVM::MaskedStoreOp>(bits, where, index.mask, bytesOf(stored));
  else
    k.make<LLVM::StoreOp>(bits, where, bytesOf(stored));
}

}  // namespace lathe::loops
