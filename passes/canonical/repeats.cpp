// SPDX-License-Identifier: Apache-2.0
// Repeated elements of an axis in the order a a b b, as grouped heads need their keys and values:
//
//   reshape [.., g, ..] to [.., g, 1, ..] ── broadcast [.., g, n, ..] ── reshape [.., g*n, ..]
//
// from a gather by 0 0 1 1 .. and from a concat of slices 0 0 1 1 .. . The order a b a b is another
// value and stays. A transpose that moves the axis comes before the repetition. Attention takes the
// heads before they are repeated. All are exact.
#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

Value makeRepeat(OpMaker& m, Value x, size_t axis, int64_t copies) {
  auto dims = dimsOf(tensorType(x));
  auto one = dims, many = dims, merged = dims;
  one.insert(one.begin() + int64_t(axis) + 1, m.dim(1));
  many.insert(many.begin() + int64_t(axis) + 1, m.dim(copies));
  merged[axis] = m.dim(exprOf(dims[axis]) * DimExpr(copies));
  return m.reshape(m.broadcast(m.reshape(x, one), many), merged);
}

// The number of copies if `indices` is 0 0 1 1 .. over all of `size`, else nothing.
std::optional<int64_t> copiesOf(ArrayRef<int64_t> indices, int64_t size) {
  if (size < 1 || indices.size() % size_t(size) != 0) return std::nullopt;
  int64_t copies = int64_t(indices.size()) / size;
  if (copies < 2) return std::nullopt;
  for (size_t i = 0; i < indices.size(); ++i)
    if (indices[i] != int64_t(i) / copies) return std::nullopt;
  return copies;
}

// The elements of an index vector that is spelled with small constants or a ramp over a number.
std::optional<SmallVector<int64_t>> indicesOf(Value v) {
  auto type = tensorType(v);
  if (type.getRank() != 1 || type.isDynamicDim(0) || type.getDimSize(0) > 4096) return std::nullopt;
  SmallVector<int64_t> numbers;
  Operation* def = v.getDefiningOp();
  if (auto constant = dyn_cast_or_null<ConstantOp>(def)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements) return std::nullopt;
    for (const APInt& n : elements.getValues<APInt>()) numbers.push_back(n.getSExtValue());
    return numbers;
  }
  if (isa_and_nonnull<IotaOp>(def)) {
    for (int64_t i = 0; i < type.getDimSize(0); ++i) numbers.push_back(i);
    return numbers;
  }
  if (auto cast = dyn_cast_or_null<CastOp>(def)) {
    bool integers = !isFloat(cast.getX()) && cast.getDtype().getIntOrFloatBitWidth() >= 32;
    return integers ? indicesOf(cast.getX()) : std::nullopt;
  }
  auto quotient = dyn_cast_or_null<DivOp>(def);
  auto divisor = quotient ? constantOf(quotient.getB()) : std::nullopt;
  if (!divisor || *divisor < 1 || isFloat(v) || quotient.getA().getType() != v.getType())
    return std::nullopt;
  auto inner = indicesOf(quotient.getA());
  if (!inner) return std::nullopt;
  for (int64_t i : *inner) numbers.push_back(i / int64_t(*divisor));
  return numbers;
}

Value fromGather(GatherOp op, OpMaker& m) {
  auto type = tensorType(op.getX());
  int64_t axis = int64_t(op.getAxis());
  if (type.isDynamicDim(axis)) return {};
  auto indices = indicesOf(op.getIndices());
  auto copies = indices ? copiesOf(*indices, type.getDimSize(axis)) : std::nullopt;
  return copies ? makeRepeat(m, op.getX(), size_t(axis), *copies) : Value();
}

Value fromConcat(ConcatOp op, OpMaker& m) {
  int64_t axis = int64_t(op.getAxis());
  Value x;
  SmallVector<int64_t> indices;
  for (Value v : op.getInputs()) {
    auto part = v.getDefiningOp<SliceOp>();
    if (!part || (x && part.getX() != x)) return {};
    x = part.getX();
    auto type = tensorType(x);
    for (int64_t i = 0; i < type.getRank(); ++i) {
      StringAttr start = part.getStarts().getDims()[size_t(i)];
      StringAttr size = part.getSizes().getDims()[size_t(i)];
      bool whole = start.getValue() == "0" && size == dimOf(type, i);
      int64_t at;
      if (i != axis && !whole) return {};
      if (i != axis) continue;
      if (!isOne(size) || start.getValue().getAsInteger(10, at)) return {};
      indices.push_back(at);
    }
  }
  if (tensorType(x).isDynamicDim(axis)) return {};
  auto copies = copiesOf(indices, tensorType(x).getDimSize(axis));
  return copies ? makeRepeat(m, x, size_t(axis), *copies) : Value();
}

struct Repeat {
  Value source;
  size_t axis;
  int64_t copies;
};
std::optional<Repeat> readRepeat(Value v) {
  auto merge = v.getDefiningOp<ReshapeOp>();
  auto stretch = merge ? merge.getX().getDefiningOp<BroadcastOp>() : BroadcastOp();
  auto split = stretch ? stretch.getX().getDefiningOp<ReshapeOp>() : ReshapeOp();
  if (!split || !merge->hasOneUse() || !stretch->hasOneUse()) return std::nullopt;
  auto from = dimsOf(tensorType(split.getX())), many = dimsOf(tensorType(stretch));
  auto to = dimsOf(tensorType(v));
  for (size_t axis = 0; axis < from.size(); ++axis) {
    auto one = from, wide = from, merged = from;
    one.insert(one.begin() + int64_t(axis) + 1, StringAttr::get(v.getContext(), "1"));
    if (dimsOf(tensorType(split)) != one || many.size() != one.size()) continue;
    int64_t copies;
    if (!many[axis + 1] || many[axis + 1].getValue().getAsInteger(10, copies)) continue;
    wide.insert(wide.begin() + int64_t(axis) + 1, many[axis + 1]);
    if (!from[axis]) continue;
    merged[axis] = dimAttr(v.getContext(), exprOf(from[axis]) * DimExpr(copies));
    if (many == wide && to == merged) return Repeat{split.getX(), axis, copies};
  }
  return std::nullopt;
}

Value transposeFirst(TransposeOp op, OpMaker& m) {
  auto repeat = readRepeat(op.getX());
  if (!repeat) return {};
  SmallVector<int64_t> permutation(op.getPermutation()), swap;
  size_t rank = permutation.size(),
         axis = size_t(llvm::find(permutation, int64_t(repeat->axis)) - permutation.begin());
  if (axis == repeat->axis) return {};
  // In front of a product's right side the last transpose swaps its last two axes: the keys' own.
  auto* user = op->hasOneUse() ? *op->user_begin() : nullptr;
  bool swaps =
      isa_and_nonnull<MatmulOp>(user) && user->getOperand(1) == op.getY() && axis + 2 < rank;
  if (swaps) std::swap(permutation[rank - 1], permutation[rank - 2]);
  Value x = makeRepeat(m, m.transpose(repeat->source, permutation), axis, repeat->copies);
  return swaps ? m.swapLastTwo(x) : x;
}

// The heads [b, g, 1, t, d] of which [b, g n, t, d] has each n times in a row; null if it has not.
Value copiedHeads(Value v) {
  auto merge = v.getDefiningOp<ReshapeOp>();
  auto stretch = merge ? merge.getX().getDefiningOp<BroadcastOp>() : BroadcastOp();
  if (!stretch || tensorType(v).getRank() != 4 || tensorType(stretch.getX()).getRank() != 5)
    return {};
  auto one = dimsOf(tensorType(stretch.getX())), many = dimsOf(tensorType(stretch));
  if (!isOne(one[2]) || isOne(many[2]) || !many[1] || !many[2]) return {};
  one[2] = many[2];
  auto merged = many;
  merged.erase(merged.begin() + 2);
  merged[1] = dimAttr(v.getContext(), exprOf(many[1]) * exprOf(many[2]));
  return one == many && merged == dimsOf(tensorType(v)) ? stretch.getX() : Value();
}

// A query head of attention finds its key head itself.
Value headsOfAttention(AttentionOp op, OpMaker& m) {
  Value k = copiedHeads(op.getK()), v = copiedHeads(op.getV());
  if (!k || !v || dimOf(tensorType(k), 1) != dimOf(tensorType(v), 1)) return {};
  auto heads = [&](Value copied) {
    auto dims = dimsOf(tensorType(copied));
    dims.erase(dims.begin() + 2);
    return m.reshape(copied, dims);
  };
  Value key = heads(k), value = heads(v);
  auto grouped = cast<AttentionOp>(m.b.clone(*op));
  grouped.getKMutable().assign(key);
  grouped.getVMutable().assign(value);
  return grouped.getY();
}

}  // namespace

void addRepeatPatterns(RewritePatternSet& patterns) {
  addRewrite<GatherOp>(patterns, "repeat-from-gather", fromGather);
  addRewrite<ConcatOp>(patterns, "repeat-from-concat", fromConcat);
  addRewrite<TransposeOp>(patterns, "transpose-before-repeat", transposeFirst);
  addRewrite<AttentionOp>(patterns, "heads-of-attention", headsOfAttention);
}

}  // namespace lathe
