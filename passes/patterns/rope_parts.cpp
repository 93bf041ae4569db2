// SPDX-License-Identifier: Apache-2.0
#include "passes/patterns/rope_parts.h"

#include "passes/patterns/forms.h"

using namespace mlir;

namespace lathe {
namespace {

// Elements start, start + stride, ... (size of them) of the last axis of x, all of the other axes.
struct Part {
  Value x;
  int64_t start = 0, stride = 1, size = 0;
  SmallVector<Operation*, 3> ops;
};

std::optional<int64_t> number(StringAttr dim) { return exprOf(dim).asConstant(); }

std::optional<Part> readSlice(SliceOp op, int64_t axis) {
  if (!op || !isWholeBut(op, axis)) return std::nullopt;
  auto start = number(op.getStarts().getDims()[axis]), size = number(op.getSizes().getDims()[axis]);
  if (!start || !size) return std::nullopt;
  return Part{op.getX(), *start, op.getStrides()[axis], *size, {op}};
}

std::optional<Part> readPart(Value v) {
  auto type = tensorType(v);
  int64_t last = type.getRank() - 1;
  if (last < 0 || type.isDynamicDim(last)) return std::nullopt;
  if (auto slice = v.getDefiningOp<SliceOp>()) return readSlice(slice, last);
  // [.., d] as [.., d/2, 2] or [.., 2, d/2], one of the two, without the axis of one.
  auto flat = v.getDefiningOp<ReshapeOp>();
  auto slice = flat ? flat.getX().getDefiningOp<SliceOp>() : SliceOp();
  auto split = slice ? slice.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split) return std::nullopt;
  auto from = dimsOf(tensorType(split.getX())), pairs = dimsOf(tensorType(split.getY()));
  auto to = dimsOf(type);
  size_t rank = to.size();
  if (from.size() != rank || pairs.size() != rank + 1) return std::nullopt;
  for (size_t i = 0; i + 1 < rank; ++i)
    if (!from[i] || from[i] != pairs[i] || from[i] != to[i]) return std::nullopt;
  for (int64_t axis : {last + 1, last}) {  // neighbours, halves
    auto half = readSlice(slice, axis);
    bool two = half && half->size == 1 && half->stride == 1 && pairs[axis].getValue() == "2" &&
               pairs[axis == last ? last + 1 : last] == to[last];
    if (!two) continue;
    int64_t size = type.getDimSize(last);
    bool neighbours = axis == last + 1;
    return Part{split.getX(),
                neighbours ? half->start : half->start * size,
                neighbours ? 2 : 1,
                size,
                {flat, slice, split}};
  }
  return std::nullopt;
}

// A value as a run of its source's last axis.
Part readRun(Value v) {
  auto type = tensorType(v);
  int64_t last = type.getRank() - 1;
  if (auto part = readPart(v); part && part->stride == 1) return *part;
  return Part{v, 0, 1, type.getDimSize(last), {}};
}

// t of [t0, t0, t1, t1, ..]: stretched or joined along a new last axis, which a reshape folds in.
Value withoutNeighbours(Match& m, Value table) {
  auto fold = table.getDefiningOp<ReshapeOp>();
  Operation* twice = fold ? fold.getX().getDefiningOp() : nullptr;
  if (!isa_and_nonnull<BroadcastOp, ConcatOp>(twice)) return {};
  auto pairs = dimsOf(tensorType(fold.getX())), flat = dimsOf(tensorType(table));
  Value once = twice->getOperand(0);
  auto from = dimsOf(tensorType(once));
  const size_t rank = flat.size();
  if (pairs.size() != rank + 1 || pairs.back().getValue() != "2" || from.size() != pairs.size() ||
      !isOne(from.back()))
    return {};
  for (size_t i = 0; i < rank; ++i)
    if (!pairs[i] || from[i] != pairs[i] || (i + 1 < rank && flat[i] != pairs[i])) return {};
  if (isa<ConcatOp>(twice) && (twice->getNumOperands() != 2 || twice->getOperand(1) != once))
    return {};
  m.consume(fold);
  m.consume(twice);
  return reshaped(m, once, ArrayRef(from).drop_back());
}

}  // namespace

Value joinedParts(Match& m, Value a, Value b, Pairing pairing) {
  auto first = readPart(a), second = readPart(b);
  if (!first || !second || first->x != second->x || first->size != second->size) return {};
  bool fits =
      pairing == Pairing::half
          ? first->stride == 1 && second->stride == 1 && second->start == first->start + first->size
          : first->stride == 2 && second->stride == 2 && second->start == first->start + 1;
  if (!fits) return {};
  for (const Part& part : {*first, *second})
    for (Operation* op : part.ops) m.consume(op);
  auto type = tensorType(first->x);
  int64_t last = type.getRank() - 1, size = 2 * first->size;
  if (type.getDimSize(last) == size) return first->x;
  Dims starts, sizes;
  for (int64_t i = 0; i < last; ++i) {
    auto dim = dimExprOf(type, i);
    if (!dim) return {};
    starts.push_back(0);
    sizes.push_back(*dim);
  }
  starts.push_back(first->start);
  sizes.push_back(size);
  return m.make(
      "lathe.slice", {first->x},
      {{"starts", starts}, {"sizes", sizes}, {"strides", std::vector<int64_t>(last + 1, 1)}});
}

Value headAndRest(Match& m, Value head, Value rest) {
  auto first = readPart(head), second = readPart(rest);
  bool fits = first && second && first->x == second->x && first->stride == 1 &&
              second->stride == 1 && first->start == 0 && second->start == first->size;
  if (!fits) return {};
  auto type = tensorType(first->x);
  if (type.getDimSize(type.getRank() - 1) != first->size + second->size) return {};
  for (const Part& part : {*first, *second})
    for (Operation* op : part.ops) m.consume(op);
  return first->x;
}

bool isSamePart(Value whole, Value a, Value b) {
  auto first = readPart(a), second = readPart(b);
  if (!first || !second) return false;
  auto is = [&](const Part& run) {
    return run.x == first->x && run.start == first->start && run.size == first->size + second->size;
  };
  // The whole value itself, or a run of what the parts are runs of.
  return is(Part{whole, 0, 1, tensorType(whole).getDimSize(tensorType(whole).getRank() - 1), {}}) ||
         is(readRun(whole));
}

Value halfOfTable(Match& m, Value table, Pairing pairing) {
  if (pairing == Pairing::interleaved)
    if (Value half = withoutNeighbours(m, table)) return half;
  Operation* op = table.getDefiningOp();
  auto type = tensorType(table);
  int64_t last = type.getRank() - 1;
  if (!op || last < 0 || type.isDynamicDim(last) || type.getDimSize(last) % 2) return {};
  StringAttr half = StringAttr::get(op->getContext(), std::to_string(type.getDimSize(last) / 2));
  auto whole = dimOf(type, last);
  if (auto joined = dyn_cast<ConcatOp>(op)) {
    auto in = joined.getInputs();
    bool twice = pairing == Pairing::half && in.size() == 2 && in[0] == in[1] &&
                 int64_t(joined.getAxis()) == last;
    if (!twice) return {};
    m.consume(op);
    return in[0];
  }
  auto dimsAttr = [&](ArrayRef<StringAttr> from) {
    SmallVector<StringAttr> dims(from);
    dims.back() = half;
    return DimsAttr::get(op->getContext(), dims);
  };
  SmallVector<NamedAttribute> attributes(op->getAttrs());
  auto set = [&](StringRef name, Attribute value) {
    for (NamedAttribute& a : attributes)
      if (a.getName().getValue() == name) a.setValue(value);
  };
  SmallVector<Value> operands(op->getOperands());
  size_t doubled = 0;
  if (isa<ReshapeOp, BroadcastOp>(op)) {
    auto from = tensorType(op->getOperand(0));
    if (from.getRank() < 1 || dimOf(from, from.getRank() - 1) != whole) return {};
    set("shape", dimsAttr(dimsOf(type)));
  } else if (auto slice = dyn_cast<SliceOp>(op)) {
    bool rows = slice.getStarts().getDims().back().getValue() == "0" &&
                slice.getStrides().back() == 1 && dimOf(tensorType(slice.getX()), last) == whole;
    if (!rows) return {};
    set("sizes", dimsAttr(slice.getSizes().getDims()));
  } else if (auto gather = dyn_cast<GatherOp>(op)) {
    if (int64_t(gather.getAxis()) == tensorType(gather.getX()).getRank() - 1) return {};
  } else if (isa<MulOp>(op)) {
    // A factor on the whole table (long-context scaling).
    if (splatValue(operands[0]) && !splatValue(operands[1])) doubled = 1;
    if (!splatValue(operands[1 - doubled]) || tensorType(operands[1 - doubled]).getRank())
      return {};
  } else if (!isa<CosOp, SinOp, CastOp>(op)) {
    return {};
  }
  operands[doubled] = halfOfTable(m, operands[doubled], pairing);
  if (!operands[doubled]) return {};
  m.consume(op);
  return m.makeWith(std::string_view(op->getName().getStringRef()), operands, attributes);
}

}  // namespace lathe
