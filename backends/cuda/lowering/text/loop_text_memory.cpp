// SPDX-License-Identifier: Apache-2.0
// Vectors and their lanes, addresses, loads and stores of the loop form.
#include "backends/cuda/lowering/text/loop_printer.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace lathe::cuda {

VectorType vectorOf(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  return vector && vector.getRank() == 1 && !vector.isScalable() ? vector : VectorType();
}

Operation* localArray(Value pointer) {
  while (auto gep = pointer.getDefiningOp<LLVM::GEPOp>()) pointer = gep.getBase();
  return pointer.getDefiningOp<LLVM::AllocaOp>();
}

// A local array holds vectors whole, a buffer their elements.
static Type storedAs(Value pointer, Type type) {
  return localArray(pointer) ? type : getElementTypeOrSelf(type);
}

// ---- lanes

Lane LoopPrinter::laneAt(int64_t position) { return {std::to_string(position), {position}, ""}; }

Lane LoopPrinter::laneAt(const Expr& position) {
  for (const Lane* lane : laneStack_)
    if (lane->text == position.text) return *lane;
  return {position.text, {}, "", position.level};
}

Lane LoopPrinter::laneOf(ArrayRef<int64_t> values, const Lane& lane) {
  const std::vector<int64_t> numbers(values);
  if (lane.variable.empty()) return laneAt(values[0] == kAnyElement ? 0 : values[0]);
  if (auto formula = formulaOf(values, lane.variable))
    return {formula->text, numbers, lane.variable, formula->level};
  std::string items;
  for (int64_t value : values)
    items += (items.empty() ? "" : ", ") + std::to_string(value == kAnyElement ? 0 : value);
  const std::string name = table("source_lanes", "constexpr int", values.size(), items);
  return {name + "[" + lane.variable + "]", numbers, lane.variable};
}

std::string LoopPrinter::table(const std::string& hint, const std::string& type, size_t count,
                               const std::string& items) {
  std::string& known = tables_[type + items];
  // Outside of loops over lanes nobody knows how long a name holds.
  if (known.empty() || !front_) {
    known = names_.unique(hint);
    inFront(type + " " + known + "[" + std::to_string(count) + "] = {" + items + "};");
  }
  return known;
}

Expr LoopPrinter::shuffled(Value a, Value b, ArrayRef<int64_t> mask, const Lane& lane) {
  const int64_t border = vectorOf(a.getType()).getDimSize(0);
  if (lane.values.empty()) {
    fail("a shuffle is read at a lane that is not known");
    return {"0"};
  }
  std::vector<int64_t> first, inA, inB;
  bool onlyA = true, onlyB = true;
  for (int64_t at : lane.values) {
    const int64_t from = at == kAnyElement || mask[size_t(at)] < 0 ? kAnyElement : mask[size_t(at)];
    const bool any = from == kAnyElement, isA = !any && from < border;
    onlyA &= any || isA;
    onlyB &= any || !isA;
    first.push_back(any ? kAnyElement : int64_t(isA));
    inA.push_back(isA ? from : kAnyElement);
    inB.push_back(any || isA ? kAnyElement : from - border);
  }
  if (onlyA || onlyB) {
    const Lane at = laneOf(onlyA ? inA : inB, lane);
    return read(onlyA ? a : b, &at);
  }
  const Lane atA = laneOf(inA, lane), atB = laneOf(inB, lane);
  return chosen(conditionOf(first, lane.variable), read(a, &atA), read(b, &atB));
}

Expr LoopPrinter::tabled(DenseElementsAttr values, const Lane& lane) {
  Type type = values.getElementType();
  std::vector<Attribute> items;
  for (Attribute item : values.getValues<Attribute>()) items.push_back(item);
  if (lane.values.size() == 1) {
    const int64_t at = lane.values[0];
    return literal(items[size_t(at == kAnyElement ? 0 : at)], type);
  }
  // Of the lane's variable, or of a position that only the kernel knows.
  const bool known = !lane.values.empty();
  const std::string at = known                    ? lane.variable
                         : lane.level == kPrimary ? lane.text
                                                  : "(" + lane.text + ")";
  std::vector<int64_t> elements = lane.values;
  for (int64_t i = 0; !known && i < int64_t(items.size()); ++i) elements.push_back(i);
  if (type.isIntOrIndex()) {
    std::vector<int64_t> numbers;
    for (int64_t i : elements) {
      const int64_t bits =
          i == kAnyElement ? kAnyElement
                           : llvm::cast<IntegerAttr>(items[size_t(i)]).getValue().getSExtValue();
      numbers.push_back(type.isInteger(1) && bits != kAnyElement ? bits & 1 : bits);
    }
    if (type.isInteger(1)) return conditionOf(numbers, at);
    if (auto formula = formulaOf(numbers, at)) {
      if (!type.isInteger(32)) formula->type = Expr::Type::Narrow;
      return *formula;
    }
  }
  std::string text;
  for (Attribute item : items) text += (text.empty() ? "" : ", ") + literal(item, type).text;
  return {table("table", "const " + typeName(type), items.size(), text) + "[" + lane.text + "]"};
}

Expr LoopPrinter::element(Operation* op, const Lane& lane) {
  if (auto shuffle = dyn_cast<vector::ShuffleOp>(op))
    return shuffled(shuffle.getV1(), shuffle.getV2(), shuffle.getMask(), lane);
  // A lane of a gather under its mask.
  auto gather = cast<LLVM::masked_gather>(op);
  Expr r = loaded(gather.getPtrs(), op->getResult(0).getType(), &lane);
  Type type = vectorOf(op->getResult(0).getType()).getElementType();
  r = valued(r, type);
  Expr condition = read(gather.getMask(), &lane);
  if (condition.text == "true") return r;
  r = chosen(condition, r, valued(read(gather.getPassThru()[0], &lane), type));
  r.reads = true;
  return r;
}

// ---- addresses

LoopPrinter::Place LoopPrinter::place(Value pointer, const Lane* lane, Type access) {
  if (auto broadcast = pointer.getDefiningOp<vector::BroadcastOp>())
    pointer = broadcast.getSource();
  Place p;
  Type element = access;
  if (auto gep = pointer.getDefiningOp<LLVM::GEPOp>()) {
    if (gep.getIndices().size() != 1) {
      fail(gep, "with several indices");
      return {};
    }
    element = gep.getElemType();
    p = place(gep.getBase(), lane, element);
    auto at = gep.getIndices()[0];
    Expr index;
    if (auto number = dyn_cast<IntegerAttr>(at)) {
      index = {std::to_string(number.getInt()), number.getInt() < 0 ? kUnary : kPrimary};
    } else {
      Value value = llvm::cast<Value>(at);
      index = valued(read(value, lane), value.getType());
    }
    if (index.text != "0") p.index = p.index ? binary(*p.index, " + ", index, kSum, true) : index;
  } else if (auto it = bound_.find(pointer); it != bound_.end()) {
    p = {wrapped(it->second.expr, kUnary).text, {}, localArray(pointer)};
    if (p.local) element = llvm::cast<LLVM::AllocaOp>(p.local).getElemType();
  } else {
    fail("an address is neither an argument nor an offset from one");
  }
  if (element != access) fail("memory is read or written as another type than its own");
  return p;
}

std::string LoopPrinter::elementText(const Place& place) {
  return place.base + "[" + (place.index ? place.index->text : "0") + "]";
}

std::string LoopPrinter::pointerText(const Place& place) {
  return place.base + (place.index ? binary({""}, " + ", *place.index, kSum, true).text : "");
}

std::string LoopPrinter::pointerName(Value pointer) {
  while (true) {
    if (auto gep = pointer.getDefiningOp<LLVM::GEPOp>())
      pointer = gep.getBase();
    else if (auto broadcast = pointer.getDefiningOp<vector::BroadcastOp>())
      pointer = broadcast.getSource();
    else
      break;
  }
  auto it = bound_.find(pointer);
  StringRef name = it == bound_.end() ? "x" : StringRef(it->second.expr.text);
  name.consume_back("_kept");
  return identifierOf(std::string_view(name.data(), name.size()));
}

Expr LoopPrinter::loaded(Value pointer, Type type, const Lane* lane) {
  const Type element = getElementTypeOrSelf(type);
  const Place p = place(pointer, lane, element);
  Expr e{elementText(p)};
  // The buffer may be one of u8.
  if (element.isInteger(8) && !p.local) e.type = Expr::Type::Foreign;
  e.reads = true;
  return e;
}

// ---- vectors in memory

void LoopPrinter::vectorLoad(LLVM::LoadOp op) {
  auto type = vectorOf(op.getType());
  const bool isByte = type.getElementType().isInteger(8);
  Place p = place(op.getAddr(), nullptr, storedAs(op.getAddr(), type));
  if (!failure.empty()) return;
  const std::string hint = hintOf(op.getLoc());
  std::string value;
  if (p.local) {
    value = elementText(p);
    // The element itself, as long as nothing is written to the array.
    if (!writesBehind(p.local, op)) {
      bound_[op.getResult()] = {Bound::Form::Array, {value}};
      return;
    }
  } else {
    if (isByte) p.base = "(const i8*)" + p.base;  // it may be one of u8
    value = "load_vec<" + std::to_string(type.getDimSize(0)) + ">(" + pointerText(p) + ")";
  }
  const std::string name = names_.unique(hint.empty() ? pointerName(op.getAddr()) + "_v" : hint);
  line("const " + typeName(type) + " " + name + " = " + value + ";", op);
  bound_[op.getResult()] = {Bound::Form::Array, {name}};
}

std::string LoopPrinter::whole(Value vector, const std::string& hint) {
  if (auto it = bound_.find(vector); it != bound_.end() && it->second.form == Bound::Form::Array)
    return it->second.expr.text;
  auto type = vectorOf(vector.getType());
  const std::string name = names_.unique(hint);
  line(typeName(type) + " " + name + ";");
  overLanes(type.getDimSize(0), [&](const Lane& lane) {
    line(name + "[" + lane.text + "] = " + read(vector, &lane).text + ";");
  });
  return name;
}

// The f32 vector that a store of 16-bit floats rounds.
static Value unrounded(LLVM::StoreOp op) {
  auto rounded = op.getValue().getDefiningOp<arith::TruncFOp>();
  return rounded && rounded->hasOneUse() && vectorOf(rounded.getType()) &&
                 getElementTypeOrSelf(rounded.getIn().getType()).isF32()
             ? rounded.getIn()
             : Value();
}

Value storedWhole(LLVM::StoreOp op) {
  if (localArray(op.getAddr())) return op.getValue();
  Value wide = unrounded(op);
  return wide ? wide : op.getValue();
}

void LoopPrinter::store(LLVM::StoreOp op) {
  Type type = op.getValue().getType();
  if (typeName(type).empty()) return fail(op, "of a value of another kind");
  auto vector = vectorOf(type);
  Place p = place(op.getAddr(), nullptr, storedAs(op.getAddr(), type));
  if (!failure.empty()) return;
  if (!vector || p.local) {
    const std::string value =
        vector ? whole(op.getValue(), pointerName(op.getAddr())) : read(op.getValue()).text;
    line(elementText(p) + " = " + value + ";", op);
    return;
  }
  Value wide = unrounded(op);
  const std::string value = whole(wide ? wide : op.getValue(), pointerName(op.getAddr()) + "_v");
  if (vector.getElementType().isInteger(8)) p.base = "(i8*)" + p.base;
  const bool isShared =
      llvm::cast<LLVM::LLVMPointerType>(op.getAddr().getType()).getAddressSpace() == kSharedMemory;
  line(std::string(wide ? "store_f32" : "store_vec") + (isShared ? "_shared(" : "(") +
           pointerText(p) + ", " + value + ");",
       op);
}

void LoopPrinter::storeLane(LLVM::StoreOp op, const Lane& lane) {
  const Place p = place(op.getAddr(), nullptr, op.getValue().getType());
  line(elementText(p) + "[" + lane.text + "] = " + read(op.getValue(), &lane).text + ";", op);
}

void LoopPrinter::alloca(LLVM::AllocaOp op) {
  APInt count;
  if (!matchPattern(op.getArraySize(), m_ConstantInt(&count)))
    return fail(op, "of a size that is not constant");
  const std::string element = typeName(op.getElemType());
  if (element.empty()) return fail(op, "of another type than numbers");
  const std::string hint = hintOf(op.getLoc());
  const std::string name = names_.unique(hint.empty() ? "kept" : hint);
  line(element + " " + name + "[" + std::to_string(count.getSExtValue()) + "];");
  bound_[op.getResult()] = {Bound::Form::Scalar, {name}};
}

}  // namespace lathe::cuda
