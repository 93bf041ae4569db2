// SPDX-License-Identifier: Apache-2.0
// Elements by index. Negative indices count from the back.
#include <fmt/format.h>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

Tensor fromFront(Node& n, const Tensor& indices, const Dim& size) {
  const Tensor moved = add(indices, n.sizeValue(size, indices.dtype()));
  return select(indices < 0, moved, indices);
}
Tensor indicesOf(Node& n, size_t i, const Dim& size) {
  const Value& value = n.value(i);
  // Known ones that are inside already stay as they are.
  if (auto list = value.asSizes()) {
    bool isInside = true;
    for (const DimExpr& item : list->items)
      isInside &= item.asConstant() && *item.asConstant() >= 0;
    if (isInside) return n.in(i);
  }
  return fromFront(n, n.in(i), size);
}

void gathered(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = n.axis(n.attribute("axis", 0), x.rank());
  // One known place, or a range of them, is a slice.
  if (auto list = n.value(1).asSizes(); list && list->shape.empty())
    if (const auto place = list->items[0].asConstant()) {
      const Dim start = *place < 0 ? x.dim(axis) + *place : Dim(*place);
      return n.set(squeeze(sliceAxis(x, axis, start, 1), axis));
    }
  n.set(gather(x, indicesOf(n, 1, x.dim(axis)), axis));
}

// x where the other axes are as long as those of the indices.
Tensor boxOf(Node& n, const Tensor& x, const Dims& sizes, int64_t axis) {
  Tensor box = x;
  if (x.rank() != int64_t(sizes.size())) n.fail("indices of another rank");
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && !(x.dim(i) == sizes[size_t(i)])) box = sliceAxis(box, i, 0, sizes[size_t(i)]);
  return box;
}

void gatheredElements(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = n.axis(n.attribute("axis", 0), x.rank());
  const Tensor indices = indicesOf(n, 1, x.dim(axis));
  n.set(takeAlongAxis(boxOf(n, x, indices.shape(), axis), as(indices, DType::I64), axis));
}

// Tuples of indices [..., k] into axes first .. first + k - 1 as places of these axes as one.
Tensor linearPlaces(Node& n, const Tensor& tuples, const Dims& shape, size_t first, int64_t k) {
  Tensor linear;
  for (int64_t i = 0; i < k; ++i) {
    const Dim size = shape[first + size_t(i)];
    Tensor part = fromFront(n, squeeze(sliceAxis(tuples, -1, i, 1), -1), size);
    // One outside of its own axis may lie inside of all axes as one: a gather tells.
    if (k > 1) part = gather(iota(part, {size}, 0), part, 0);
    linear = linear.defined() ? add(mul(linear, n.sizeValue(size)), part) : part;
  }
  return linear;
}
int64_t tupleLength(Node& n, const Tensor& indices, int64_t rank) {
  const auto k = indices.rank() ? indices.dim(-1).asConstant() : std::nullopt;
  if (!k || *k < 1 || *k > rank)
    n.fail("expected tuples of 1 to as many indices as there are axes");
  return *k;
}

void gatheredTuples(Node& n) {
  const Tensor x = n.in(0), indices = n.in(1, DType::I64);
  const int64_t batch = n.attribute("batch_dims", 0);
  const Dims shape = x.shape(), places = indices.shape();
  if (batch < 0 || batch >= indices.rank() || batch >= x.rank())
    n.fail("batch_dims is out of range");
  const int64_t k = tupleLength(n, indices, x.rank() - batch);
  const size_t first = size_t(batch), last = first + size_t(k);
  Tensor linear = linearPlaces(n, indices, shape, first, k);
  if (batch) {
    // Batches lie behind each other.
    Dims along(places.begin(), places.end() - 1);
    Dims starts(along.size(), Dim(1));
    for (size_t i = 0; i < first; ++i) starts[i] = along[i];
    const Dim batches = product(shape, 0, first), size = product(shape, first, last);
    const Tensor begin = mul(reshape(iota(x, {batches}, 0), starts), n.sizeValue(size));
    linear = add(linear, begin);
  }
  Dims flat{product(shape, 0, last)};
  flat.insert(flat.end(), shape.begin() + int64_t(last), shape.end());
  n.set(gather(reshape(x, flat), linear, 0));
}

// --- scatters

// Several values for one place are combined with each other and with the place's own.
Tensor scattered(Node& n, const Tensor& x, const Tensor& indices, const Tensor& values,
                 int64_t axis) {
  const std::string reduction = n.text("reduction", "none");
  if (reduction == "none") return scatter(x, indices, values, axis);
  if (reduction == "add") return scatterAdd(x, indices, values, axis);
  if (reduction != "mul" && reduction != "max" && reduction != "min")
    n.refuse("attribute 'reduction': expected none, add, mul, max or min, got " + reduction);
  const int64_t last = x.rank();
  auto back = [&](const Tensor& t) { return axis == last - 1 ? t : swapAxes(t, axis, -1); };
  const Tensor own = back(x), places = back(indices), given = back(values);
  // [..., places, values]
  const Tensor hit = compare(unsqueeze(places, -2), iota(x, {own.dim(-1), 1}, 0), Compare::eq);
  const Tensor each = unsqueeze(given, -2);
  if (reduction == "mul")
    return back(mul(own, reduceProd(select(hit, each, like(given, 1)), {-1})));
  // A place's own value is among those that are compared: it stands for the ones that miss it.
  const Tensor parts = select(hit, each, unsqueeze(own, -1));
  return back(reduction == "max" ? max(own, reduceMax(parts, {-1}))
                                 : min(own, reduceMin(parts, {-1})));
}

void scatteredElements(Node& n) {
  const Tensor x = n.in(0), values = n.in(2);
  const int64_t axis = n.axis(n.attribute("axis", 0), x.rank());
  const Tensor indices = as(indicesOf(n, 1, x.dim(axis)), DType::I64);
  const Dims sizes = indices.shape();
  Tensor y = scattered(n, boxOf(n, x, sizes, axis), indices, values, axis);
  // What the indices do not reach is put around it, axis by axis.
  Tensor rest = x;
  std::vector<int64_t> shorter;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && !(x.dim(i) == sizes[size_t(i)])) shorter.push_back(i);
  for (size_t k = 0; k < shorter.size(); ++k) {
    Tensor around = x;
    for (size_t later = k + 1; later < shorter.size(); ++later)
      around = sliceAxis(around, shorter[later], 0, sizes[size_t(shorter[later])]);
    const int64_t a = shorter[k];
    around = sliceAxis(around, a, sizes[size_t(a)], x.dim(a) - sizes[size_t(a)]);
    y = concat({y, around}, a);
  }
  n.set(y);
}

void scatteredTuples(Node& n) {
  const Tensor x = n.in(0), indices = n.in(1, DType::I64), values = n.in(2);
  const Dims shape = x.shape();
  const int64_t k = tupleLength(n, indices, x.rank());
  const Dim places = product(shape, 0, size_t(k)), rest = product(shape, size_t(k));
  const Dims tuples = indices.shape();
  const Dim count = product(tuples, 0, tuples.size() - 1);
  const Tensor linear = reshape(linearPlaces(n, indices, shape, 0, k), {count, 1});
  const Tensor y = scattered(n, reshape(x, {places, rest}), broadcasted(linear, {count, rest}),
                             reshape(values, {count, rest}), 0);
  n.set(reshape(y, shape));
}

// A cache with new rows at a place for each batch, around its end if it is circular.
void updatedCache(Node& n) {
  const Tensor cache = n.in(0), rows = n.in(1);
  const int64_t axis = n.axis(n.attribute("axis", -2), cache.rank());
  if (axis == 0) n.fail("axis 0 is the batch");
  const std::string mode = n.text("mode", "linear");
  if (mode != "linear" && mode != "circular") n.refuse("attribute 'mode': got " + mode);
  Tensor start =
      n.has(2) ? n.in(2, DType::I64) : broadcasted(n.scalar(0, DType::I64), {cache.dim(0)});
  if (mode == "linear") return n.set(update(cache, rows, start, axis));
  Dims perBatch(size_t(cache.rank()), Dim(1)), perPlace = perBatch;
  perBatch[0] = cache.dim(0);
  perPlace[size_t(axis)] = cache.dim(axis);
  const Tensor size = n.sizeValue(cache.dim(axis)), length = n.sizeValue(rows.dim(axis));
  const Tensor row = mod(sub(iota(cache, perPlace, axis), reshape(start, perBatch)), size);
  const Tensor isNew = compare(row, length, Compare::lt);
  const Tensor chosen = select(isNew, row, like(row, 0));
  const Tensor taken = takeAlongAxis(rows, broadcasted(chosen, cache.shape()), axis);
  n.set(select(isNew, taken, cache));
}

// Places where a known condition holds.
void compressed(Node& n) {
  Tensor x = n.in(0);
  if (!n.hasAttribute("axis")) x = reshaped(x, {product(x.shape())});
  const int64_t axis = n.axis(n.attribute("axis", 0), x.rank());
  const Array condition = n.numbers(1);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < condition.size(); ++i)
    if (condition.at(i)) places.push_back(i);
  if (places.empty()) return n.set(sliceAxis(x, axis, 0, 0));
  n.set(gather(x, n.constant(Array::fromInts(places, {int64_t(places.size())})), axis));
}

void extracted(Node& n) {
  const Tensor x = n.in(0);
  const Tensor y = gather(x, reshaped(n.in(1), {product(n.in(1).shape())}), x.rank() - 1);
  n.set(y.rank() == 1 ? unsqueeze(y, 0) : y);
}

const Lowering kTable[] = {{"ArrayFeatureExtractor", {}, extracted, {}, "ai.onnx.ml"},
                           {"Compress", {"axis"}, compressed, "a condition that is not known"},
                           {"Gather", {"axis"}, gathered},
                           {"GatherElements", {"axis"}, gatheredElements},
                           {"GatherND", {"batch_dims"}, gatheredTuples},
                           {"Scatter", {"axis"}, scatteredElements},
                           {"ScatterElements", {"axis", "reduction"}, scatteredElements},
                           {"ScatterND", {"reduction"}, scatteredTuples},
                           {"TensorScatter", {"axis", "mode"}, updatedCache}};

}  // namespace

std::span<const Lowering> indexingLowerings() { return kTable; }

}  // namespace lathe::onnx
