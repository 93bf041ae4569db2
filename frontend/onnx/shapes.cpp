// SPDX-License-Identifier: Apache-2.0
// Shapes and views: what moves no element relative to its neighbours, and pieces of tensors.
#include <algorithm>

#include <fmt/format.h>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

void shapeOf(Node& n) {
  const Dims shape = n.value(0).shape();
  const int64_t rank = int64_t(shape.size());
  auto place = [&](int64_t i) { return std::clamp(i < 0 ? i + rank : i, int64_t(0), rank); };
  const int64_t start = place(n.attribute("start", 0)), end = place(n.attribute("end", rank));
  SizeList list{DType::I64, {std::max(end - start, int64_t(0))}, {}};
  for (int64_t i = start; i < end; ++i) list.items.push_back(shape[size_t(i)]);
  n.set(list);
}
void sizeOf(Node& n) { n.set(SizeList{DType::I64, {}, {product(n.value(0).shape())}}); }

// Sizes of 0 are the operand's; one of -1 is what the others leave.
void reshapeTo(Node& n) {
  const Tensor x = n.in(0);
  Dims shape = n.dims(1);
  const Dims from = x.shape();
  const bool allowZero = n.attribute("allowzero", 0);
  int64_t open = -1;
  Dim known(1);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == Dim(0) && !allowZero) {
      if (i >= from.size())
        n.fail(fmt::format("size {} of the shape is 0, the operand has no such axis", i));
      shape[i] = from[i];
    }
    if (shape[i] == Dim(-1)) {
      if (open >= 0) n.fail("the shape leaves two sizes open");
      open = int64_t(i);
    } else {
      known = known * shape[i];
    }
  }
  if (open >= 0) {
    const Dim all = product(from);
    if (auto rest = all.dividedBy(known)) {
      shape[size_t(open)] = *rest;
    } else if (known == Dim(0) && all == Dim(0)) {
      shape[size_t(open)] = 0;
    } else {
      n.refuse(fmt::format("{} elements are not divided evenly by {}", all.text(), known.text()));
    }
  }
  n.set(reshaped(x, shape));
}

void flattened(Node& n) {
  const Tensor x = n.in(0);
  const Dims shape = x.shape();
  const int64_t rank = x.rank(), axis = n.attribute("axis", 1);
  if (axis < -rank || axis > rank) n.fail(fmt::format("axis {} is outside of rank {}", axis, rank));
  const size_t at = size_t(axis < 0 ? axis + rank : axis);
  n.set(reshaped(x, {product(shape, 0, at), product(shape, at)}));
}

void squeezed(Node& n) {
  const Tensor x = n.in(0);
  const Dims shape = x.shape();
  const auto axes = n.axes(1, x.rank());
  Dims left;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool isListed = axes && std::ranges::count(*axes, int64_t(i));
    if (isListed && !(shape[i] == Dim(1)))
      n.fail(fmt::format("axis {} has the size {}, expected 1", i, shape[i].text()));
    if (axes ? !isListed : !(shape[i] == Dim(1))) left.push_back(shape[i]);
  }
  n.set(reshaped(x, left));
}

void unsqueezed(Node& n) {
  const Tensor x = n.in(0);
  const size_t listed = n.has(1) ? n.ints(1).size() : n.list("axes").size();
  const int64_t rank = x.rank() + int64_t(listed);
  const auto axes = n.axes(1, rank);
  if (!axes) n.fail("expected axes");
  Dims shape(size_t(rank), Dim(1));
  const Dims from = x.shape();
  auto next = from.begin();
  for (size_t i = 0; i < shape.size(); ++i)
    if (!std::ranges::count(*axes, int64_t(i))) shape[i] = *next++;
  n.set(reshaped(x, shape));
}

// The shape of both together: sizes of 1 stretch on either side.
Dims stretched(Node& n, const Dims& a, const Dims& b) {
  Dims shape(std::max(a.size(), b.size()), Dim(1));
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t back = shape.size() - i;
    const Dim x = back <= a.size() ? a[a.size() - back] : Dim(1);
    const Dim y = back <= b.size() ? b[b.size() - back] : Dim(1);
    if (!(x == y) && !(x == Dim(1)) && !(y == Dim(1)))
      n.fail(fmt::format("the sizes {} and {} do not stretch to each other", x.text(), y.text()));
    shape[i] = x == Dim(1) ? y : x;
  }
  return shape;
}
void expandTo(Node& n) {
  const Tensor x = n.in(0);
  n.set(broadcasted(x, stretched(n, x.shape(), n.dims(1))));
}

void transposed(Node& n) {
  const Tensor x = n.in(0);
  Axes order = n.list("perm");
  if (!n.hasAttribute("perm"))
    for (int64_t i = x.rank(); i-- > 0;) order.push_back(i);
  // The builder takes the order that changes nothing for a slip: files have it.
  bool changesNothing = int64_t(order.size()) == x.rank();
  for (size_t i = 0; i < order.size(); ++i) changesNothing &= order[i] == int64_t(i);
  n.set(changesNothing ? x : transpose(x, order));
}

void concatenated(Node& n) {
  n.expectOperands(1);
  const int64_t axis = n.axis(n.attribute("axis", 0), n.in(0).rank());
  std::vector<Tensor> parts;
  for (size_t i = 0; i < n.operands(); ++i) parts.push_back(n.in(i));
  n.set(parts.size() == 1 ? parts[0] : concat(parts, axis));
}

std::vector<Tensor> pieces(Node& n, const Tensor& x, int64_t axis, const Dims& sizes) {
  std::vector<Tensor> parts;
  Dim at(0);
  for (const Dim& size : sizes) {
    parts.push_back(sliceAxis(x, axis, at, size));
    at = at + size;
  }
  if (!(at == x.dim(axis)))
    n.fail(
        fmt::format("the pieces are {} together, the axis is {}", at.text(), x.dim(axis).text()));
  return parts;
}
Dims pieceSizes(Node& n, const Tensor& x, int64_t axis) {
  if (n.has(1)) return n.dims(1);
  if (n.hasAttribute("split")) {
    const auto sizes = n.list("split");
    return Dims(sizes.begin(), sizes.end());
  }
  const int64_t count = n.attribute("num_outputs", int64_t(n.results()));
  if (count < 1 || count > 4096) n.fail(fmt::format("expected 1 to 4096 pieces, got {}", count));
  const auto size = x.dim(axis).asConstant();
  if (!size) {
    if (auto part = x.dim(axis).dividedBy(Dim(count))) return Dims(size_t(count), *part);
    n.refuse("the axis has a symbolic size that its pieces do not divide");
  }
  const int64_t part = (*size + count - 1) / count;
  Dims sizes;
  sizes.assign(size_t(count), Dim(part));
  sizes.back() = *size - part * (count - 1);
  if (!sizes.back().provablyNonNegative())
    n.fail(fmt::format("{} pieces of {} elements each are more than the axis's {}", count, part,
                       *size));
  return sizes;
}
void splitUp(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = n.axis(n.attribute("axis", 0), x.rank());
  const std::vector<Tensor> parts = pieces(n, x, axis, pieceSizes(n, x, axis));
  for (size_t i = 0; i < parts.size(); ++i) n.set(i, parts[i]);
}

// --- slices

constexpr int64_t kFar = int64_t(1) << 31;  // ends beyond this mean "to the end"

// A place of an axis as Python's slices have it, for an axis of symbolic size.
Dim symbolicPlace(const Dim& place, const Dim& size) {
  const auto number = place.asConstant();
  if (number && *number >= kFar - 1) return size;
  if (number && *number <= -kFar) return Dim(0);
  const bool isNegative =
      number ? *number < 0 : !place.provablyNonNegative() && (Dim(0) - place).provablyNonNegative();
  return isNegative ? size + place : place;
}

Tensor slicedAlong(Node& n, const Tensor& x, int64_t axis, const Dim& start, const Dim& end,
                   int64_t step) {
  if (step == 0) n.fail("a step of 0");
  const Dim size = x.dim(axis);
  const auto length = size.asConstant(), first = start.asConstant(), last = end.asConstant();
  if (!length || !first || !last) {
    if (step != 1) {
      const bool whole = step == -1 && first && last && *first == -1 && *last <= -kFar;
      if (whole) return reverse(x, {axis});
      n.refuse("a slice with a step along an axis of symbolic size");
    }
    const Dim from = symbolicPlace(start, size);
    Dim to = symbolicPlace(end, size);
    // An end beyond the axis is its end.
    if ((to - size).provablyNonNegative()) to = size;
    // Up to a symbol that may pass the axis's end for all that is known: a run that does is an
    // error.
    if (length && !(size - to).provablyNonNegative() && (to - from).provablyNonNegative()) {
      Tensor places = n.graph().arange(to - from);
      if (!(from == Dim(0))) places = add(places, n.sizeValue(from));
      return gather(x, places, axis);
    }
    return sliceAxis(x, axis, from, to - from);
  }
  const int64_t d = *length;
  auto place = [&](int64_t at) {
    if (at < 0) at = at < -d ? -1 - d : at;
    if (at < 0) at += d;
    return step > 0 ? std::clamp(at, int64_t(0), d) : std::clamp(at, int64_t(-1), d - 1);
  };
  const int64_t from = place(*first), to = place(*last);
  const int64_t count =
      step > 0 ? (to > from ? (to - from - 1) / step + 1 : 0)
               : (from > to ? (from - to - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1 : 0);
  if (!count) return sliceAxis(x, axis, 0, 0);
  if (step > 0) return sliceAxis(x, axis, from, count, count == 1 ? 1 : step);
  return sliceAxis(reverse(x, {axis}), axis, d - 1 - from, count, count == 1 ? 1 : -step);
}

void sliced(Node& n) {
  Tensor x = n.in(0);
  auto dims = [](const std::vector<int64_t>& list) { return Dims(list.begin(), list.end()); };
  const bool isOld = n.hasAttribute("starts");
  const Dims starts = isOld ? dims(n.list("starts")) : n.dims(1);
  const Dims ends = isOld ? dims(n.list("ends")) : n.dims(2);
  if (starts.size() != ends.size()) n.fail("expected as many ends as starts");
  auto axes = n.axes(3, x.rank());
  if (!axes) {
    axes.emplace();
    for (size_t i = 0; i < starts.size(); ++i) axes->push_back(n.axis(int64_t(i), x.rank()));
  }
  const std::vector<int64_t> steps = n.has(4) ? n.ints(4) : std::vector<int64_t>(starts.size(), 1);
  if (axes->size() != starts.size() || steps.size() != starts.size())
    n.fail("expected an axis and a step for each start");
  for (size_t i = 0; i < starts.size(); ++i)
    x = slicedAlong(n, x, (*axes)[i], starts[i], ends[i], steps[i]);
  n.set(x);
}

// --- sequences that are known while the graph is recorded

void splitToSequence(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = n.axis(n.attribute("axis", 0), x.rank());
  const auto length = x.dim(axis).asConstant();
  Dims sizes;
  const bool isScalar = n.has(1) && n.value(1).shape().empty();
  bool squeezes = false;
  if (n.has(1) && !isScalar) {
    sizes = n.dims(1);
  } else {
    const int64_t part = isScalar ? n.integer(1) : 1;
    squeezes = !n.has(1) && !n.attribute("keepdims", 1);
    if (!length || part < 1 || *length / part > 4096) n.refuse("pieces of a symbolic or huge axis");
    for (int64_t at = 0; at < *length; at += part) sizes.push_back(std::min(part, *length - at));
  }
  std::vector<Value> items;
  for (const Tensor& part : pieces(n, x, axis, sizes))
    items.emplace_back(squeezes ? squeeze(part, axis) : part);
  n.set(Value::ofSequence(std::move(items)));
}
const std::vector<Value>& sequence(Node& n, size_t i) {
  if (n.value(i).kind != Value::Kind::Sequence) n.fail("expected a sequence");
  return n.value(i).sequence;
}
void sequenceConstruct(Node& n) {
  std::vector<Value> items;
  for (size_t i = 0; i < n.operands(); ++i) items.push_back(n.value(i));
  n.set(Value::ofSequence(std::move(items)));
}
void sequenceEmpty(Node& n) { n.set(Value::ofSequence({})); }
void sequenceInsert(Node& n) {
  std::vector<Value> items = sequence(n, 0);
  const int64_t size = int64_t(items.size());
  int64_t at = n.has(2) ? n.integer(2) : size;
  if (at < -size || at > size) n.fail("a place outside of the sequence");
  items.insert(items.begin() + (at < 0 ? at + size : at), n.value(1));
  n.set(Value::ofSequence(std::move(items)));
}
void sequenceAt(Node& n) {
  const auto& items = sequence(n, 0);
  n.set(items[size_t(n.axis(n.integer(1), int64_t(items.size())))]);
}
void sequenceLength(Node& n) {
  n.set(SizeList{DType::I64, {}, {Dim(int64_t(sequence(n, 0).size()))}});
}
void concatFromSequence(Node& n) {
  std::vector<Tensor> parts;
  for (const Value& item : sequence(n, 0)) parts.push_back(n.recorded(item));
  if (parts.empty()) n.fail("an empty sequence");
  const int64_t axis = n.attribute("axis", 0);
  n.set(n.attribute("new_axis", 0) ? stack(parts, axis) : concat(parts, axis));
}

const Lowering kTable[] = {
    {"Concat", {"axis"}, concatenated},
    {"ConcatFromSequence", {"axis", "new_axis"}, concatFromSequence},
    {"Expand", {}, expandTo, "a shape that is not known"},
    {"Flatten", {"axis"}, flattened},
    {"Reshape", {"allowzero"}, reshapeTo, "a shape that is not known"},
    {"SequenceAt", {}, sequenceAt},
    {"SequenceConstruct", {}, sequenceConstruct, "sequences as inputs or outputs of the model"},
    {"SequenceEmpty", {"dtype"}, sequenceEmpty},
    {"SequenceInsert", {}, sequenceInsert},
    {"SequenceLength", {}, sequenceLength},
    {"Shape", {"start", "end"}, shapeOf},
    {"Size", {}, sizeOf},
    {"Slice",
     {"axes", "starts", "ends"},
     sliced,
     "steps along an axis of symbolic size, and ends that may lie beyond it (x[:, :5] of a length "
     "that may be 3)"},
    {"Split", {"axis", "split", "num_outputs"}, splitUp},
    {"SplitToSequence", {"axis", "keepdims"}, splitToSequence},
    {"Squeeze", {"axes"}, squeezed},
    {"Transpose", {"perm"}, transposed},
    {"Unsqueeze", {"axes"}, unsqueezed}};

}  // namespace

std::span<const Lowering> shapeLowerings() { return kTable; }

}  // namespace lathe::onnx
