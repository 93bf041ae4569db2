// SPDX-License-Identifier: Apache-2.0
#include "backends/common/loops/evaluator.h"

#include "lathe/backends/region_plan.h"
#include "llvm/ADT/SetOperations.h"

using namespace mlir;

namespace lathe::loops {

Evaluator::Evaluator(LoopBuilder& builder, func::FuncOp region, bool flat)
    : k(builder), m(builder), region_(region), flat_(flat) {}

SmallVector<DimExpr> Evaluator::dims(Value tensor) const {
  if (!flat_) return dimExprs(tensor);
  DimExpr count = *elementCountOf(tensorType(tensor));
  if (count == DimExpr(1)) return {};
  return {count};
}

Coord Evaluator::size(const DimExpr& dim) {
  if (auto number = dim.asConstant()) return *number;
  // One for equal sizes: their texts are canonical.
  const void* text = StringAttr::get(k.b.getContext(), dim.text()).getAsOpaquePointer();
  return m.of(k.shared(0, keyOf("size", text), [&] { return makeSize(dim); }), divisorOf(dim));
}

Value Evaluator::pointerTo(unsigned number) {
  return k.shared(0, keyOf("pointer", int64_t(number)), [&] { return makePointer(number); });
}

Value Evaluator::tensorAt(unsigned number) {
  const unsigned operands = region_.getNumArguments();
  if (number < operands) return region_.getArgument(number);
  return resultsOf(region_)[number - operands];
}

void Evaluator::storeResults(ArrayRef<unsigned> which, const Index& index, const Coord& position) {
  storedPosition = position;
  storedLevel = k.top();
  Values values;
  for (unsigned r : which) values.push_back(eval(tensorAt(region_.getNumArguments() + r), index));
  for (auto [r, v] : llvm::zip(which, values)) storeResult(r, v, position, index);
  storedPosition.reset();
}

Type Evaluator::typeAt(Type element, const Index& index) {
  Type type = computedType(element);
  return index.uniform() ? type : VectorType::get({index.width}, type);
}

Value Evaluator::spread(Value value, const Index& index) {
  if (index.uniform() || isa<VectorType>(value.getType())) return value;
  return k.splat(value, index.width);
}

Index Evaluator::broadcastIndex(Value operand, const Index& index) {
  auto shape = dims(operand);
  size_t skip = index.coords.size() - shape.size();
  SmallVector<Coord, 4> coords(index.coords.begin() + skip, index.coords.end());
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == DimExpr(1)) coords[i] = 0;
  return index.with(std::move(coords));
}

Value Evaluator::operand(Operation* op, unsigned number, const Index& index) {
  Value v = op->getOperand(number);
  return spread(eval(v, broadcastIndex(v, index)), index);
}

Key Evaluator::keyAt(Value tensor, const Index& index) const {
  Key key = keyOf("element", tensor, ArrayRef<Coord>(index.coords));
  if (!index.uniform()) append(key, index.mask), append(key, index.width);
  return key;
}

Value Evaluator::eval(Value tensor, const Index& index) {
  size_t level = k.barrier();
  for (const Coord& c : index.coords) level = std::max(level, m.levelOf(c));
  if (index.mask && !index.uniform()) level = std::max(level, k.levelOf(index.mask));
  Value value =
      k.shared(level, keyAt(tensor, index), [&] { return spread(evalHere(tensor, index), index); });
  if (kept_.contains(tensor)) keep(tensor, value, index);
  return value;
}

Value Evaluator::evalHere(Value tensor, const Index& outer) {
  if (Value value = kept(tensor, outer)) return value;
  // No element of an empty tensor is ever read: its coordinates have no meaning.
  if (isEmpty(tensor)) return k.none(computedType(tensorType(tensor).getElementType()));
  Index index = outer;
  auto shape = dims(tensor);
  for (size_t i = 0; i < shape.size(); ++i)
    index.coords[i] = m.clip(index.coords[i], 0, lastOf(shape[i]));
  Operation* op = tensor.getDefiningOp();
  Location outside = k.loc;
  k.loc = op ? locationOf(op) : tensor.getLoc();
  Value value = op ? ownWay(op, index) : argument(cast<BlockArgument>(tensor), index);
  if (!value) {
    if (auto literal = dyn_cast<ConstantOp>(op))
      value = constant(literal, index);
    else if (isMovement(op))
      value = movement(op, index);
    else
      value = isReduction(op) ? reduce(op, index) : elementwise(op, index);
  }
  k.loc = outside;
  return value;
}

Value Evaluator::elementwise(Operation* op, const Index& index) {
  Values operands;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) operands.push_back(operand(op, i, index));
  return cast<ScalarOp>(op).emit(k, operands);
}

SmallVector<Coord, 4> Evaluator::split(const Coord& at, ArrayRef<DimExpr> box, int64_t width) {
  SmallVector<Coord, 4> coords(box.size(), Coord(0));
  Coord rest = at;
  size_t outermost = 0;
  while (outermost < box.size() && box[outermost] == DimExpr(1)) ++outermost;
  for (size_t i = box.size(); i-- > outermost;) {
    if (i == outermost) {
      coords[i] = rest;
      break;
    }
    if (box[i] == DimExpr(1)) continue;
    auto [quotient, remainder] = m.divide(rest, size(box[i]), width);
    coords[i] = remainder;
    rest = quotient;
  }
  return coords;
}

Coord Evaluator::linear(ArrayRef<DimExpr> box, const Index& index) {
  Coord at = 0;
  size_t first = 0;
  // A tensor whose leading dims are the rows' has the row's number as its leading index. Where all
  // of them are 1 nothing in the index ties it to the loop over rows: it may be emitted in front.
  if (rowNumber && box.size() >= row.size()) {
    bool same = llvm::any_of(rowDims, [](const DimExpr& d) { return !(d == DimExpr(1)); });
    for (size_t i = 0; i < row.size() && same; ++i)
      same = box[i] == rowDims[i] && index.coords[i].sameAs(row[i]);
    if (same) {
      at = *rowNumber;
      first = row.size();
    }
  }
  for (size_t i = first; i < box.size(); ++i)
    at = m.join(at, size(box[i]), index.coords[i], index.width);
  return at;
}

Index Evaluator::inRow(const Coord& lane, int64_t width, Value mask) const {
  Index index{row, width, mask};
  index.coords.push_back(lane);
  return index;
}

bool Evaluator::inOwnRow(const Index& index) const {
  if (index.coords.size() != row.size() + 1) return false;
  for (auto [c, own] : llvm::zip(index.coords, row))
    if (!c.sameAs(own)) return false;
  return true;
}

int64_t lastOf(const DimExpr& size) { return size.asConstant().value_or(Coord::kUnbounded) - 1; }

llvm::DenseMap<Operation*, int> depthsOf(func::FuncOp region) {
  llvm::DenseMap<Operation*, int> depths;
  llvm::DenseMap<Value, int> waits;
  for (Operation& op : region.getBody().front()) {
    int depth = 0;
    for (Value v : op.getOperands()) depth = std::max(depth, waits.lookup(v));
    if (isReduction(&op)) depths[&op] = ++depth;
    for (Value v : op.getResults()) waits[v] = depth;
  }
  return depths;
}

void Evaluator::plan() {
  depth_ = depthsOf(region_);
  SmallVector<std::pair<Value, int>> passes;
  for (Operation& op : region_.getBody().front()) {
    if (isReduction(&op)) passes.push_back({op.getOperand(0), depthOf(&op)});
    if (op.hasTrait<OpTrait::IsTerminator>())
      for (Value v : op.getOperands()) passes.push_back({v, INT_MAX});
  }
  // What two passes over a row reach and is worth it is kept after the first; of two such values,
  // one inside the other, the outer one is enough, but where it is made.
  for (bool stop : {false, true}) {
    DenseMap<Value, int> seenIn;
    DenseSet<Value> shared;
    for (auto [root, pass] : passes) {
      SmallVector<Value> work{root};
      DenseSet<Value> visited;
      while (!work.empty()) {
        Value v = work.pop_back_val();
        Operation* op = v.getDefiningOp();
        if ((op && isReduction(op)) || !visited.insert(v).second) continue;
        bool isFilled = false;  // in this pass
        if (isWorthKeeping(v)) {
          auto [it, first] = seenIn.try_emplace(v, pass);
          if (!first && it->second != pass) shared.insert(v);
          isFilled = first && keepsInner();
        }
        if (op && (!stop || isFilled || !kept_.contains(v)))
          work.append(op->operand_begin(), op->operand_end());
      }
    }
    if (stop)
      llvm::set_intersect(kept_, shared);
    else
      kept_ = shared;
  }
}

}  // namespace lathe::loops
