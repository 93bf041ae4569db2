// SPDX-License-Identifier: Apache-2.0
// Ops that only move elements: each is a rule for where an element of the result comes from.
#include <algorithm>

#include "backends/reference/interpreter_ops.h"
#include "backends/reference/strided.h"

using namespace mlir;

namespace lathe::reference {
namespace {

Dense transpose(const Dense& x, ArrayRef<int64_t> permutation) {
  Shape from = stridesIn(x), shape, strides;
  for (int64_t p : permutation) {
    shape.push_back(x.shape[size_t(p)]);
    strides.push_back(from[size_t(p)]);
  }
  return strided(x, std::move(shape), std::move(strides));
}

Dense slice(const Context& cx, SliceOp op, const Dense& x) {
  Shape starts = cx.sizes(op, op.getStarts()), sizes = cx.sizes(op, op.getSizes());
  Shape strides = stridesIn(x);
  int64_t offset = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t step = op.getStrides()[i], last = starts[i] + (sizes[i] - 1) * step;
    // The proof in the IR takes symbols to be at least 1.
    if (sizes[i] > 0 && last >= x.shape[i])
      fail(op, ErrorCode::InvalidArgument,
           "expected the slice inside axis " + std::to_string(i) + " of size " +
               std::to_string(x.shape[i]) + ", got start " + std::to_string(starts[i]) + ", size " +
               std::to_string(sizes[i]) + ", stride " + std::to_string(step));
    offset += starts[i] * strides[i];
    strides[i] *= step;
  }
  return strided(x, std::move(sizes), std::move(strides), offset);
}

template <class T>
std::vector<T> joined(Operands o, const Lines& whole, int64_t axis,
                      std::shared_ptr<const std::vector<T>> Dense::* elements) {
  std::vector<T> y(size_t(whole.outer * whole.length * whole.inner));
  int64_t begin = 0;
  for (auto& x : o) {
    Lines part(x.shape, axis);
    const int64_t run = part.length * part.inner;
    for (int64_t a = 0; a < part.outer; ++a)
      std::copy_n((x.*elements)->begin() + a * run, run, y.begin() + whole.at(a, begin, 0));
    begin += part.length;
  }
  return y;
}

Dense concat(Operands o, int64_t axis) {
  Shape shape = o[0].shape;
  shape[size_t(axis)] = 0;
  for (auto& x : o) shape[size_t(axis)] += x.shape[size_t(axis)];
  Lines whole(shape, axis);
  if (o[0].isReal())
    return makeReals(o[0].dtype, std::move(shape), joined(o, whole, axis, &Dense::reals));
  return makeIntegers(o[0].dtype, std::move(shape), joined(o, whole, axis, &Dense::integers));
}

Dense pad(PadOp op, Operands o) {
  const Dense& x = o[0];
  Shape shape = x.shape;
  for (size_t i = 0; i < shape.size(); ++i) shape[i] += op.getLow()[i] + op.getHigh()[i];
  Shape strides = stridesOf(shape);
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) offset += op.getLow()[i] * strides[i];
  // The value is the one element after those of x.
  std::vector<int64_t> from(size_t(elementCount(shape)), x.size());
  std::vector<int64_t> inside = stridedIndices(x.shape, strides, offset);
  for (size_t i = 0; i < inside.size(); ++i) from[size_t(inside[i])] = int64_t(i);
  return pick(o, shape, from);
}

Dense reverse(const Dense& x, ArrayRef<int64_t> axes) {
  Shape strides = stridesOf(x.shape);
  int64_t offset = 0;
  for (int64_t axis : axes) {
    offset += (x.shape[size_t(axis)] - 1) * strides[size_t(axis)];
    strides[size_t(axis)] = -strides[size_t(axis)];
  }
  return strided(x, x.shape, std::move(strides), offset);
}

Dense reshape(const Dense& x, Shape shape) {
  Dense y = x;
  y.shape = std::move(shape);
  return y;
}

}  // namespace

std::optional<Dense> evalShape(const Context& cx, Operation* op, Operands o) {
  return llvm::TypeSwitch<Operation*, std::optional<Dense>>(op)
      .Case([&](TransposeOp t) { return transpose(o[0], t.getPermutation()); })
      .Case([&](ReshapeOp r) { return reshape(o[0], cx.sizes(op, r.getShape())); })
      .Case([&](BroadcastOp b) { return stretch(o[0], cx.sizes(op, b.getShape())); })
      .Case([&](SliceOp s) { return slice(cx, s, o[0]); })
      .Case([&](ConcatOp c) { return concat(o, int64_t(c.getAxis())); })
      .Case([&](PadOp p) { return pad(p, o); })
      .Case([&](ReverseOp r) { return reverse(o[0], r.getAxes()); })
      // Packing is a matter of bytes: here a packed weight is its logical [n, k] matrix.
      .Case([&](PackOp p) {
        if (p.getSource() != WeightLayout::in_out) return o[0];
        return o[0].rank() == 3 ? transpose(o[0], {0, 2, 1}) : transpose(o[0], {1, 0});
      })
      .Default([](Operation*) -> std::optional<Dense> { return std::nullopt; });
}

}  // namespace lathe::reference
