// SPDX-License-Identifier: Apache-2.0
// Loads, stores, constants and scratch rows.
#include "backends/cpu/lowering/region_emitter_evaluator.h"

using namespace mlir;

namespace lathe::cpu {
namespace {

unsigned bytesOf(Type stored) { return stored.getIntOrFloatBitWidth() / 8; }

// Elements of a small constant as raw bytes in their storage type.
std::string rawBytes(DenseElementsAttr value, Type element) {
  std::string bytes;
  auto append = [&](const APInt& word, unsigned size) {
    uint64_t bits = word.getZExtValue();
    bytes.append(reinterpret_cast<const char*>(&bits), size);
  };
  unsigned size = bytesOf(storedType(element));
  if (isa<FloatType>(element))
    for (APFloat v : value.getValues<APFloat>()) append(v.bitcastToAPInt(), size);
  else
    for (APInt v : value.getValues<APInt>()) append(v, size);
  return bytes;
}

}  // namespace

Value Evaluator::pointerTo(unsigned number) {
  auto type = LLVM::LLVMPointerType::get(k.b.getContext());
  static const char kind = 0;
  return k.shared(0, {&kind, reinterpret_cast<const void*>(size_t(number))}, [&]() -> Value {
    Value slot = k.make<LLVM::GEPOp>(type, type, kernel_.getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{int32_t(number)});
    return k.make<LLVM::LoadOp>(type, slot, 8);
  });
}

Value Evaluator::size(const DimExpr& dim) {
  if (auto number = dim.asConstant()) return k.i64(*number);
  std::string text = dim.text();
  auto it = llvm::find(sizes_, text);
  size_t number = size_t(it - sizes_.begin());
  if (it == sizes_.end()) sizes_.push_back(text);
  static const char kind = 0;
  return k.shared(0, {&kind, reinterpret_cast<const void*>(number)}, [&]() -> Value {
    auto pointer = LLVM::LLVMPointerType::get(k.b.getContext());
    Value slot = k.make<LLVM::GEPOp>(pointer, k.b.getI64Type(), kernel_.getArgument(1),
                                     ArrayRef<LLVM::GEPArg>{int32_t(number)});
    return k.make<LLVM::LoadOp>(k.b.getI64Type(), slot, 8);
  });
}

Value Evaluator::address(Value pointer, Type stored, Value at) {
  return k.make<LLVM::GEPOp>(LLVM::LLVMPointerType::get(k.b.getContext()), stored, pointer,
                             ArrayRef<LLVM::GEPArg>{at});
}

Value Evaluator::tailMask(Value count, int64_t width) {
  std::vector<int64_t> ramp = *k.ramp(width);
  static const char kind = 0;
  return k.shared(k.levelOf(count),
                  {&kind, count.getAsOpaquePointer(), reinterpret_cast<const void*>(width)}, [&] {
                    if (auto fixed = KernelBuilder::constOf(count)) {
                      std::vector<int64_t> bits(width);
                      for (int64_t i = 0; i < width; ++i) bits[i] = i < *fixed;
                      return k.constants(k.b.getI1Type(), bits);
                    }
                    Type i32 = k.b.getI32Type();
                    Value n = k.make<arith::TruncIOp>(i32, count);
                    return Value(k.make<arith::CmpIOp>(arith::CmpIPredicate::slt,
                                                       k.constants(i32, ramp), k.splat(n, width)));
                  });
}

Coord Evaluator::linear(Value tensor, const Index& index) {
  auto shape = dims(tensor);
  Coord at = m.constant(0);
  size_t first = 0;
  // A tensor whose leading dims are the rows' has the row's number as its leading index. Where all
  // of them are 1 nothing in the index ties it to the loop over rows: it may be emitted in front.
  if (rowNumber && shape.size() > row.size()) {
    bool same = llvm::any_of(rowDims, [](const DimExpr& d) { return !(d == DimExpr(1)); });
    for (size_t i = 0; i < row.size() && same; ++i)
      same = shape[i] == rowDims[i] && index.coords[i].uniform() &&
             index.coords[i].base == row[i].base;
    if (same) {
      at = m.scalar(rowNumber);
      first = row.size();
    }
  }
  for (size_t i = first; i < shape.size(); ++i)
    at = m.sum(m.times(at, size(shape[i]), index.width), index.coords[i], index.width);
  return at;
}

Value Evaluator::argument(BlockArgument argument, const Index& index) {
  auto type = tensorType(argument);
  // Only a read at the element that is stored, or of the own row before anything is stored, leaves
  // an operand replaceable by a result.
  bool own = inOwnRow(index);
  if (own && storedLane) {
    const Coord& lane = index.coords.back();
    own =
        !lane.vec && lane.base == storedLane && (!lane.lanes || lane.lanes == k.ramp(index.width));
  }
  if (!own) scattered.insert(argument.getArgNumber());
  return load(pointerTo(argument.getArgNumber()), type.getElementType(), linear(argument, index),
              index);
}

Value Evaluator::constant(ConstantOp op, const Index& index) {
  auto value = cast_or_null<DenseElementsAttr>(op.getValue());
  Type element = tensorType(op.getResult()).getElementType(), type = computedType(element);
  if (value.isSplat()) {
    if (isa<FloatType>(element))
      return k.number(type, value.getSplatValue<APFloat>().convertToDouble());
    APInt word = value.getSplatValue<APInt>();
    return k.integer(type,
                     word.getBitWidth() == 1 ? int64_t(word.getZExtValue()) : word.getSExtValue());
  }
  std::string bytes = rawBytes(value, element);
  static const char kind = 0;
  Value pointer = k.shared(0, {&kind, op.getOperation()}, [&]() -> Value {
    auto module = kernel_->getParentOfType<ModuleOp>();
    std::string name;
    for (int i = 0; name.empty() || module.lookupSymbol(name); ++i)
      name = kernel_.getName().str() + "_constant" + std::to_string(i);
    auto array = LLVM::LLVMArrayType::get(k.b.getI8Type(), bytes.size());
    {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(module.getBody());
      k.make<LLVM::GlobalOp>(array, true, LLVM::Linkage::Internal, name, k.b.getStringAttr(bytes),
                             64);
    }
    return k.make<LLVM::AddressOfOp>(LLVM::LLVMPointerType::get(k.b.getContext()), name);
  });
  return load(pointer, element, linear(op.getResult(), index), index);
}

Value Evaluator::load(Value pointer, Type element, const Coord& at, const Index& index) {
  Type stored = storedType(element);
  if (at.uniform())
    return k.fromStored(
        k.make<LLVM::LoadOp>(stored, address(pointer, stored, at.base), bytesOf(stored)), element);
  if (at.lanes) {
    auto [least, most] = std::minmax_element(at.lanes->begin(), at.lanes->end());
    if (*most - *least < 2 * index.width)
      return k.fromStored(loadSpan(pointer, stored, at, index), element);
  }
  auto type = VectorType::get({index.width}, stored);
  auto pointers = VectorType::get({index.width}, LLVM::LLVMPointerType::get(k.b.getContext()));
  Value where = k.make<LLVM::GEPOp>(pointers, stored, pointer,
                                    ArrayRef<LLVM::GEPArg>{m.vector(at, index.width)});
  Value mask = index.mask ? index.mask : tailMask(k.i64(index.width), index.width);
  Value zero = isa<FloatType>(stored) ? k.number(type, 0) : k.integer(type, 0);
  return k.fromStored(k.make<LLVM::masked_gather>(type, where, mask, zero, bytesOf(stored)),
                      element);
}

Value Evaluator::loadSpan(Value pointer, Type stored, const Coord& at, const Index& index) {
  int64_t least = *std::min_element(at.lanes->begin(), at.lanes->end());
  int64_t span = *std::max_element(at.lanes->begin(), at.lanes->end()) - least + 1;
  std::vector<int64_t> offsets = *at.lanes;
  for (int64_t& o : offsets) o -= least;
  bool plain = span == index.width && k.pattern(offsets) == k.ramp(index.width);
  // At most two loads of `part` elements that end exactly at the last one, then a permutation.
  int64_t part = plain ? span : int64_t(llvm::bit_floor(uint64_t(span)));
  auto type = VectorType::get({part}, stored);
  unsigned align = bytesOf(stored);
  auto loadPart = [&](int64_t start) -> Value {
    Value where = address(pointer, stored, k.add(at.base, k.i64(least + start)));
    if (!index.mask) return k.make<LLVM::LoadOp>(type, where, align);
    Value mask = index.mask;
    if (!plain) {
      // An element is touched if an active lane wants it.
      SmallVector<int32_t> owner(part, int32_t(index.width));
      for (int64_t i = index.width; i-- > 0;)
        if (int64_t e = offsets[i] - start; e >= 0 && e < part) owner[e] = int32_t(i);
      mask = k.shuffle(mask, tailMask(k.i64(0), index.width), owner);
      for (int64_t lane = 0; lane < index.width; ++lane) {
        int64_t e = offsets[lane] - start;
        if (e < 0 || e >= part || owner[e] == lane) continue;
        SmallVector<int32_t> other(part, int32_t(index.width));
        other[e] = int32_t(lane);
        mask = k.make<arith::OrIOp>(mask,
                                    k.shuffle(index.mask, tailMask(k.i64(0), index.width), other));
      }
    }
    Value zero = isa<FloatType>(stored) ? k.number(type, 0) : k.integer(type, 0);
    return k.make<LLVM::MaskedLoadOp>(type, where, mask, zero, align);
  };
  Value low = loadPart(0);
  if (plain) return low;
  Value high = part == span ? low : loadPart(span - part);
  SmallVector<int32_t> lanes;
  for (int64_t o : offsets) lanes.push_back(int32_t(o < part ? o : part + o - (span - part)));
  return k.shuffle(low, high, lanes);
}

void Evaluator::store(unsigned result, Value value, Value position, const Index& index) {
  Type element =
      tensorType(region_.getBody().front().getTerminator()->getOperand(result)).getElementType();
  Type stored = storedType(element);
  Value where = address(pointerTo(region_.getNumArguments() + result), stored, position);
  Value bits = k.toStored(spread(value, index), element);
  unsigned align = bytesOf(stored);
  if (index.mask && !index.uniform())
    k.make<LLVM::MaskedStoreOp>(bits, where, index.mask, align);
  else
    k.make<LLVM::StoreOp>(bits, where, align);
}

KernelBuilder::Key Evaluator::keyOf(Value tensor, const Index& index, const void* kind) const {
  KernelBuilder::Key key{kind, tensor.getAsOpaquePointer()};
  for (const Coord& c : index.coords) {
    key.push_back(c.base.getAsOpaquePointer());
    key.push_back(c.lanes);
    key.push_back(c.vec.getAsOpaquePointer());
  }
  if (!index.uniform()) {
    key.push_back(index.mask.getAsOpaquePointer());
    key.push_back(reinterpret_cast<const void*>(index.width));
  }
  return key;
}

// A scratch row belongs to the row being computed and is addressed by the last coordinate.
static const char keptRow = 0;
KernelBuilder::Key Evaluator::rowKey(Value tensor) const {
  KernelBuilder::Key key{&keptRow, tensor.getAsOpaquePointer()};
  for (const Coord& c : row) key.push_back(c.base.getAsOpaquePointer());
  return key;
}

bool Evaluator::inOwnRow(const Index& index) const {
  if (index.coords.size() != row.size() + 1) return false;
  for (auto [c, own] : llvm::zip(index.coords, row))
    if (!c.uniform() || c.base != own.base) return false;
  return true;
}

void Evaluator::keep(Value tensor, Value value, const Index& index) {
  if (flat_ || !inOwnRow(index) || !(dims(tensor).back() == pass_->length)) return;
  const Coord& lane = index.coords.back();
  if (lane.vec || lane.base != pass_->lane.base || lane.lanes != pass_->lane.lanes) return;
  if (k.top() != pass_->level || k.find(rowKey(tensor)) || !pass_->done.insert(tensor).second)
    return;
  Type type = getElementTypeOrSelf(value);
  unsigned bytes = bytesOf(type);
  if (!slots_.count(tensor)) {
    slots_[tensor] = {scratchBytes, type};
    scratchBytes = scratchBytes + dims(tensor).back() * DimExpr(bytes) + DimExpr(64);
  }
  Value start = address(kernel_.getArgument(4), k.b.getI8Type(), size(slots_[tensor].first));
  Value where = address(start, type, lane.base);
  if (index.mask && !index.uniform())
    k.make<LLVM::MaskedStoreOp>(value, where, index.mask, bytes);
  else
    k.make<LLVM::StoreOp>(value, where, bytes);
  ++pass_->stores[tensor];
}

Value Evaluator::spilled(Value tensor, const Index& index) {
  auto slot = slots_.find(tensor);
  if (slot == slots_.end() || !inOwnRow(index) || !k.find(rowKey(tensor))) return {};
  auto [offset, type] = slot->second;
  Value start = address(kernel_.getArgument(4), k.b.getI8Type(), size(offset));
  return load(start, type, index.coords.back(), index);
}

}  // namespace lathe::cpu
