// SPDX-License-Identifier: Apache-2.0
// Parts and wholes. All rewrites are exact.
//
//   slice(slice(x))                 one slice
//   slice(concat(.., x, ..))        x, or a slice of it, if it lies inside x
//   concat(slice(x), slice(x))      x, or one slice of it, if the parts follow each other
//   concat(concat(a, b), c)         concat(a, b, c)
//   slice(reshape(x)), one index    reshape(slice(x)): a third of a merged projection is cut before
//   slice(transpose(x)), one index  transpose(slice(x))                 it is seen as heads
#include "passes/canonical/canonical.h"
#include "passes/canonical/values.h"

using namespace mlir;

namespace lathe {
namespace {

Value makeSlice(OpMaker& m, Value x, ArrayRef<StringAttr> starts, ArrayRef<StringAttr> sizes,
                ArrayRef<int64_t> strides) {
  MLIRContext* c = m.b.getContext();
  return m.make<SliceOp>(x, DimsAttr::get(c, starts), DimsAttr::get(c, sizes), strides);
}

Value sliceOfSlice(SliceOp op, OpMaker& m) {
  auto inner = op.getX().getDefiningOp<SliceOp>();
  if (!inner) return {};
  SmallVector<StringAttr> starts;
  SmallVector<int64_t> strides;
  for (auto [outerStart, start, outerStride, stride] :
       llvm::zip(op.getStarts().getDims(), inner.getStarts().getDims(), op.getStrides(),
                 inner.getStrides())) {
    starts.push_back(m.dim(exprOf(start) + exprOf(outerStart) * DimExpr(stride)));
    strides.push_back(outerStride * stride);
  }
  return makeSlice(m, inner.getX(), starts, op.getSizes().getDims(), strides);
}

Value sliceOfConcat(SliceOp op, OpMaker& m) {
  auto joined = op.getX().getDefiningOp<ConcatOp>();
  if (!joined) return {};
  size_t axis = size_t(joined.getAxis());
  SmallVector<StringAttr> starts(op.getStarts().getDims());
  DimExpr begin = exprOf(starts[axis]);
  DimExpr end =
      begin +
      (exprOf(op.getSizes().getDims()[axis]) - DimExpr(1)) * DimExpr(op.getStrides()[axis]) +
      DimExpr(1);
  DimExpr at(0);
  for (Value part : joined.getInputs()) {
    auto size = dimExprOf(tensorType(part), int64_t(axis));
    if (!size) return {};
    if ((begin - at).provablyNonNegative() && (at + *size - end).provablyNonNegative()) {
      starts[axis] = m.dim(begin - at);
      return makeSlice(m, part, starts, op.getSizes().getDims(), op.getStrides());
    }
    at = at + *size;
  }
  return {};
}

// Slices of one value that follow each other along the axis are one. All of them: a repetition
// a a b b has such neighbours too.
Value joinParts(ConcatOp op, OpMaker& m) {
  size_t axis = size_t(op.getAxis());
  auto first = op.getInputs()[0].getDefiningOp<SliceOp>();
  if (!first || op.getInputs().size() < 2 || first.getStrides()[axis] != 1) return {};
  DimExpr total(0);
  for (Value v : op.getInputs()) {
    auto part = v.getDefiningOp<SliceOp>();
    if (!part || part.getX() != first.getX() || part.getStrides() != first.getStrides()) return {};
    for (size_t i = 0; i < part.getStrides().size(); ++i) {
      DimExpr start = exprOf(first.getStarts().getDims()[i]);
      if (i == axis) start = start + total;
      if (!(start == exprOf(part.getStarts().getDims()[i]))) return {};
    }
    total = total + exprOf(part.getSizes().getDims()[axis]);
  }
  SmallVector<StringAttr> sizes(first.getSizes().getDims());
  sizes[axis] = m.dim(total);
  return makeSlice(m, first.getX(), first.getStarts().getDims(), sizes, first.getStrides());
}

// (a c - b s, b c + a s): the halves that a rotation makes. They stay together, whatever they are
// joined to.
bool isRotation(ConcatOp op) {
  auto ofProducts = [](Value v, auto kind) {
    auto sum = v.getDefiningOp<decltype(kind)>();
    return sum &&
           llvm::all_of(sum->getOperands(), [](Value x) { return x.getDefiningOp<MulOp>(); });
  };
  return op.getInputs().size() == 2 && ofProducts(op.getInputs()[0], SubOp()) &&
         ofProducts(op.getInputs()[1], AddOp());
}

Value flattenConcat(ConcatOp op, OpMaker& m) {
  if (op.getInputs().size() == 1) return op.getInputs()[0];
  SmallVector<Value> parts;
  bool changed = false;
  for (Value v : op.getInputs()) {
    auto inner = v.getDefiningOp<ConcatOp>();
    if (inner && inner.getAxis() == op.getAxis() && inner->hasOneUse() && !isRotation(inner)) {
      llvm::append_range(parts, inner.getInputs());
      changed = true;
    } else {
      parts.push_back(v);
    }
  }
  return changed ? m.make<ConcatOp>(parts, op.getAxis()) : Value();
}

// The axis of which a slice takes one index, while it takes everything of the others. Not the last:
// single elements of rows belong to rotations.
std::optional<size_t> onlyIndexed(SliceOp op) {
  auto type = tensorType(op.getX());
  std::optional<size_t> axis;
  for (size_t i = 0; i < size_t(type.getRank()); ++i) {
    if (op.getStarts().getDims()[i].getValue() == "0" &&
        op.getSizes().getDims()[i] == dimOf(type, int64_t(i)))
      continue;
    if (axis || !isOne(op.getSizes().getDims()[i])) return std::nullopt;
    axis = i;
  }
  return axis && *axis + 1 < size_t(type.getRank()) ? axis : std::nullopt;
}

Value indexBeforeTranspose(SliceOp op, OpMaker& m) {
  auto turned = op.getX().getDefiningOp<TransposeOp>();
  auto axis = turned ? onlyIndexed(op) : std::nullopt;
  if (!axis) return {};
  auto sizes = dimsOf(tensorType(turned.getX()));
  SmallVector<StringAttr> starts(sizes.size(), m.dim(0));
  SmallVector<int64_t> strides(sizes.size(), 1);
  size_t from = size_t(turned.getPermutation()[*axis]);
  starts[from] = op.getStarts().getDims()[*axis];
  sizes[from] = m.dim(1);
  return m.transpose(makeSlice(m, turned.getX(), starts, sizes, strides), turned.getPermutation());
}

// [.., n*r] seen as [.., n, r..]: index i of n is the part i*r .. i*r + r.
Value indexBeforeReshape(SliceOp op, OpMaker& m) {
  auto view = op.getX().getDefiningOp<ReshapeOp>();
  auto axis = view ? onlyIndexed(op) : std::nullopt;
  if (!axis) return {};
  auto from = dimsOf(tensorType(view.getX())), to = dimsOf(tensorType(view.getY()));
  // Equal dims in front, and from the axis on the parts of one axis of the source.
  if (from.size() <= *axis || llvm::is_contained(from, StringAttr())) return {};
  for (size_t i = 0; i < *axis; ++i)
    if (from[i] != to[i]) return {};
  DimExpr rest(1);
  size_t end = *axis + 1;
  auto whole = exprOf(from[*axis]);
  while (end < to.size() && !(exprOf(to[*axis]) * rest == whole)) rest = rest * exprOf(to[end++]);
  if (!(exprOf(to[*axis]) * rest == whole) || rest == DimExpr(1)) return {};
  SmallVector<StringAttr> starts(from.size(), m.dim(0)), sizes(from);
  SmallVector<int64_t> strides(from.size(), 1);
  starts[*axis] = m.dim(exprOf(op.getStarts().getDims()[*axis]) * rest);
  sizes[*axis] = m.dim(rest);
  return m.reshape(makeSlice(m, view.getX(), starts, sizes, strides), dimsOf(tensorType(op)));
}

}  // namespace

void addSlicePatterns(RewritePatternSet& patterns) {
  addRewrite<SliceOp>(patterns, "slice-of-slice", sliceOfSlice);
  addRewrite<SliceOp>(patterns, "slice-of-concat", sliceOfConcat);
  addRewrite<SliceOp>(patterns, "index-before-transpose", indexBeforeTranspose);
  addRewrite<SliceOp>(patterns, "index-before-reshape", indexBeforeReshape);
  addRewrite<ConcatOp>(patterns, "concat-of-parts", joinParts);
  addRewrite<ConcatOp>(patterns, "flatten-concat", flattenConcat);
}

}  // namespace lathe
