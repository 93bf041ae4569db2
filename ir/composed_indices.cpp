// SPDX-License-Identifier: Apache-2.0
// Orders, and elements by index.
#include "ir/composing.h"
#include "ir/operand_checks.h"
#include "lathe/ir/ops.h"

namespace lathe {
namespace {

// Indices along the last axis, as i64. Reading them through a table of 0..n - 1 makes one that is
// outside an error of the run.
Tensor checkedIndices(const Tensor& indices, const Dim& size, std::source_location at) {
  return gather(iota(indices, {size}, 0, DType::I64, at), indices, 0, at);
}

// Throws Error unless the shapes differ along the axis at most, which may count from the back.
void expectSameBut(const char* function, const Tensor& x, const Tensor& indices, int64_t axis,
                   std::source_location at) {
  Dims mine = x.shape(at), others = indices.shape(at);
  if (mine.size() == others.size()) {
    const size_t i = size_t(axis < 0 ? axis + int64_t(mine.size()) : axis);
    mine[i] = others[i];
    if (mine == others) return;
  }
  failIn(function,
         "expected indices of x's shape but for axis " + std::to_string(axis) + ", got x " +
             typeTextOf(x) + " and indices " + typeTextOf(indices) + "; broadcast them",
         at);
}

Tensor lastAxis(const Tensor& x, int64_t axis, std::source_location at) {
  return axis == x.rank(at) - 1 ? x : swapAxes(x, axis, -1, at);
}

// x [rows, n] at i64 indices [rows, m] that are known to be inside.
Tensor takeRows(const Tensor& x, const Tensor& indices, std::source_location at) {
  const Dim rows = x.dim(0), n = x.dim(1);
  Tensor places = reshape(iota(x, {rows * n}, 0, DType::I64, at), {rows, n}, at);
  Tensor starts = sliceAxis(places, 1, 0, 1, 1, at);
  return gather(reshape(x, {rows * n}, at), add(indices, starts, at), 0, at);
}

Dim rowsOf(const Tensor& x) {
  Dim rows(1);
  for (int64_t i = 0; i + 1 < x.rank(); ++i) rows = rows * x.dim(i);
  return rows;
}

struct Scattered {
  Tensor x, indices, values;  // [rows, n], [rows, 1, m], [rows, 1, m]
  Tensor hits;                // bool [rows, n, m]: where index j is place i
  Dims shape;                 // of x with the axis last
};

Scattered prepare(const char* function, const Tensor& x, const Tensor& indices,
                  const Tensor& values, int64_t& axis, std::source_location at) {
  const int64_t named = axis;
  axis = axisIn(function, x, axis, at);
  expectWholeNumbers(function, indices, at);
  expectTensor(function, values, at);
  expectSameBut(function, x, indices, named, at);
  if (values.shape(at) != indices.shape(at) || values.dtype(at) != x.dtype(at))
    failIn(function,
           "expected values of x's dtype and of the indices' shape, got x " + typeTextOf(x) +
               ", indices " + typeTextOf(indices) + " and values " + typeTextOf(values),
           at);
  Tensor last = lastAxis(x, axis, at);
  const Dim rows = rowsOf(last), n = last.dim(-1), m = indices.dim(axis);
  Scattered s;
  s.shape = last.shape(at);
  s.x = reshape(last, {rows, n}, at);
  s.indices = reshape(checkedIndices(lastAxis(indices, axis, at), n, at), {rows, 1, m}, at);
  s.values = reshape(lastAxis(values, axis, at), {rows, 1, m}, at);
  s.hits = compare(s.indices, iota(x, {n, 1}, 0, DType::I64, at), Compare::eq, at);
  return s;
}

}  // namespace

std::pair<Tensor, Tensor> sort(const Tensor& x, int64_t axis, bool descending,
                               std::source_location at) {
  const Composing composing("sort");
  const int64_t i = axisIn("sort", x, axis, at);
  if (x.dtype(at) == DType::Bool)
    failIn("sort", "expected numbers, got " + typeTextOf(x) + "; cast them first", at);
  const int64_t size =
      fixedSize("sort", x, axis, "the number of places is fixed when the graph is recorded", at);
  if (size == 0)
    failIn("sort",
           "expected an axis " + std::to_string(axis) + " with elements, got " + typeTextOf(x), at);
  Tensor last = lastAxis(x, i, at);
  // Ascending is descending of the turned row, turned back: ties keep their order, NaN comes last.
  if (!descending) last = reverse(last, {-1}, at);
  auto [values, indices] = topK(last, size, at);
  if (!descending) {
    values = reverse(values, {-1}, at);
    indices = sub(scalarLike(indices, double(size - 1), at), reverse(indices, {-1}, at), at);
  }
  return {lastAxis(values, i, at), lastAxis(indices, i, at)};
}

Tensor argsort(const Tensor& x, int64_t axis, bool descending, std::source_location at) {
  const Composing composing("argsort");
  return sort(x, axis, descending, at).second;
}

Tensor takeAlongAxis(const Tensor& x, const Tensor& indices, int64_t axis,
                     std::source_location at) {
  const Composing composing("takeAlongAxis");
  const int64_t i = axisIn("takeAlongAxis", x, axis, at);
  expectWholeNumbers("takeAlongAxis", indices, at);
  expectSameBut("takeAlongAxis", x, indices, axis, at);
  Tensor last = lastAxis(x, i, at), chosen = lastAxis(indices, i, at);
  const Dim rows = rowsOf(last), n = last.dim(-1), m = chosen.dim(-1);
  Tensor inside = reshape(checkedIndices(chosen, n, at), {rows, m}, at);
  Tensor y = takeRows(reshape(last, {rows, n}, at), inside, at);
  return lastAxis(reshape(y, chosen.shape(at), at), i, at);
}

Tensor scatter(const Tensor& x, const Tensor& indices, const Tensor& values, int64_t axis,
               std::source_location at) {
  const Composing composing("scatter");
  const Scattered s = prepare("scatter", x, indices, values, axis, at);
  const Dim m = s.indices.dim(2);
  if (m == Dim(0)) return x;  // there is no value to take for the places that none names
  // The last index that names a place; -1 for none.
  Tensor order = iota(x, {m}, 0, DType::I64, at);
  Tensor last = select(s.hits, order, scalarLike(order, -1, at), at);
  last = reduceMax(last, {2}, false, at);
  Tensor none = scalarLike(last, 0, at);
  Tensor taken = takeRows(reshape(s.values, {s.x.dim(0), m}, at), max(last, none, at), at);
  Tensor y = select(compare(last, none, Compare::ge, at), taken, s.x, at);
  return lastAxis(reshape(y, s.shape, at), axis, at);
}

Tensor scatterAdd(const Tensor& x, const Tensor& indices, const Tensor& values, int64_t axis,
                  std::source_location at) {
  const Composing composing("scatterAdd");
  expectTensor("scatterAdd", x, at);
  if (x.dtype(at) == DType::Bool)
    failIn("scatterAdd", "expected numbers, got " + typeTextOf(x) + "; cast them first", at);
  const Scattered s = prepare("scatterAdd", x, indices, values, axis, at);
  Tensor parts = select(s.hits, s.values, scalarLike(s.values, 0, at), at);
  Tensor y = add(s.x, reduceSum(parts, {2}, false, at), at);
  return lastAxis(reshape(y, s.shape, at), axis, at);
}

}  // namespace lathe
