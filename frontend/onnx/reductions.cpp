// SPDX-License-Identifier: Apache-2.0
// Reductions, running sums and products, softmaxes, orders.
#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

// The axes of a reduction; nothing where it leaves its operand as it is.
std::optional<Axes> reducedAxes(Node& n, const Tensor& x) {
  auto axes = n.axes(1, x.rank());
  if (!axes || axes->empty()) {
    if (n.attribute("noop_with_empty_axes", 0)) return std::nullopt;
    axes.emplace(size_t(x.rank()));
    std::iota(axes->begin(), axes->end(), 0);
  }
  std::ranges::sort(*axes);
  return axes;
}
bool keeps(Node& n) { return n.attribute("keepdims", 1); }

enum class Prepare { None, Magnitude, Square };
using Reduction = Tensor (*)(const Tensor&, Axes, bool, std::source_location);

// Sums of integers and f64 are in their dtype; those of 16-bit floats in f32, rounded once.
enum class Finish { None, Root, Logarithm };
template <Reduction reduction, Prepare prepare = Prepare::None, Finish finish = Finish::None>
void reduce(Node& n) {
  const Tensor x = n.in(0);
  const auto axes = reducedAxes(n, x);
  const bool isReal = isFloat(x.dtype()),
             isPlain = prepare == Prepare::None && finish == Finish::None;
  Tensor y = x;
  if (isReal && !isPlain) y = as(y, wide(x.dtype()));
  if (!isReal && finish != Finish::None) y = as(y, DType::F64);
  if (prepare == Prepare::Magnitude && y.dtype() != DType::U8) y = abs(y);
  if (prepare == Prepare::Square) y = mul(y, y);
  if (axes && !axes->empty()) y = reduction(y, *axes, keeps(n), std::source_location::current());
  if (finish == Finish::Root) y = sqrt(y);
  if (finish == Finish::Logarithm) y = log(y);
  n.set(as(y, x.dtype()));
}

void mean(Node& n) {
  const Tensor x = n.in(0);
  const auto axes = reducedAxes(n, x);
  if (!axes || axes->empty()) return n.set(x);
  const Tensor y = isFloat(x.dtype()) ? x : as(x, DType::F64);
  n.set(as(reduceMean(y, *axes, keeps(n)), x.dtype()));
}

// Extremes of floats over an empty axis are infinite, as the dialect's are.
template <Reduction reduction, Reduction ofBools>
void extreme(Node& n) {
  const Tensor x = n.in(0);
  const auto axes = reducedAxes(n, x);
  if (!axes || axes->empty()) return n.set(x);
  const Reduction reduced = x.dtype() == DType::Bool ? ofBools : reduction;
  n.set(reduced(x, *axes, keeps(n), std::source_location::current()));
}

void logSumExp(Node& n) {
  const Tensor x = n.in(0);
  const Tensor real = isFloat(x.dtype()) ? x : as(x, DType::F64);
  const auto axes = reducedAxes(n, x);
  if (!axes || axes->empty()) return n.set(x);
  bool isEmpty = false;
  for (int64_t a : *axes) isEmpty |= x.dim(a) == Dim(0);
  if (isEmpty) return n.set(as(log(reduceSum(real, *axes, keeps(n))), x.dtype()));
  n.set(as(logsumexp(real, *axes, keeps(n)), x.dtype()));
}

// Index of an extreme; of equal ones the first or the last.
template <bool isMax>
void argument(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = n.axis(n.attribute("axis", 0), x.rank());
  const bool last = n.attribute("select_last_index", 0);
  const Tensor given = last ? reverse(x, {axis}) : x;
  Tensor y = isMax ? argmax(given, axis) : argmin(given, axis);
  if (last) y = sub(sub(n.sizeValue(x.dim(axis)), like(y, 1)), y);
  n.set(keeps(n) ? unsqueeze(y, axis) : y);
}

// Values one place later, with a start in front: what a running sum or product excludes.
Tensor shifted(const Tensor& x, int64_t axis, double start) {
  const Tensor rest = sliceAxis(x, axis, 0, x.dim(axis) - Dim(1));
  Axes low(size_t(x.rank()), 0), high = low;
  low[size_t(axis)] = 1;
  return pad(rest, like(x, start), low, high);
}
int64_t runningAxis(Node& n, const Tensor& x) { return n.axis(n.integer(1), x.rank()); }

void runningSum(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = runningAxis(n, x);
  const bool back = n.attribute("reverse", 0);
  Tensor y = back ? reverse(x, {axis}) : x;
  if (n.attribute("exclusive", 0) && !(x.dim(axis) == Dim(0))) y = shifted(y, axis, 0);
  y = cumsum(y, axis);
  n.set(back ? reverse(y, {axis}) : y);
}

// By doubling: after step k every element holds the product of 2^k up to it.
void runningProduct(Node& n) {
  const Tensor x = n.in(0);
  const int64_t axis = runningAxis(n, x);
  const auto size = x.dim(axis).asConstant();
  if (!size) n.refuse("an axis of symbolic size");
  const bool back = n.attribute("reverse", 0);
  Tensor y = back ? reverse(x, {axis}) : x;
  if (n.attribute("exclusive", 0) && *size) y = shifted(y, axis, 1);
  for (int64_t step = 1; step < *size; step *= 2) {
    Axes low(size_t(x.rank()), 0), high = low;
    low[size_t(axis)] = step;
    const Tensor before = sliceAxis(y, axis, 0, *size - step);
    y = mul(y, pad(before, like(y, 1), low, high));
  }
  n.set(back ? reverse(y, {axis}) : y);
}

// Before opset 13 all axes from one on were one.
template <Tensor (*function)(const Tensor& x, int64_t axis)>
void overAxis(Node& n) {
  const Tensor x = n.in(0);
  const Dims shape = x.shape();
  const bool isOld = n.opset() < 13;
  const int64_t axis = n.axis(n.attribute("axis", isOld ? 1 : -1), x.rank());
  if (!isOld || axis == x.rank() - 1) return n.set(function(x, axis));
  const Tensor flat = reshaped(x, {product(shape, 0, size_t(axis)), product(shape, size_t(axis))});
  n.set(reshaped(function(flat, 1), shape));
}
Tensor softmaxOf(const Tensor& x, int64_t axis) { return fused::softmax(x, axis); }
Tensor logSoftmaxOf(const Tensor& x, int64_t axis) {
  const Tensor y = as(x, wide(x.dtype()));
  const Tensor d = sub(y, reduceMax(y, {axis}, true));
  return as(sub(d, log(reduceSum(exp(d), {axis}, true))), x.dtype());
}
Tensor hardmaxOf(const Tensor& x, int64_t axis) {
  Dims along(size_t(x.rank()), Dim(1));
  along[size_t(axis)] = x.dim(axis);
  const Tensor best = unsqueeze(argmax(x, axis), axis);
  return as(compare(iota(x, along, axis), best, Compare::eq), x.dtype());
}

// --- orders

void topOf(Node& n) {
  const Tensor given = n.in(0);
  const int64_t k = n.has(1) ? n.integer(1) : n.attribute("k", 0);
  const int64_t axis = n.axis(n.attribute("axis", -1), given.rank());
  const bool largest = n.attribute("largest", 1);
  const Tensor x = axis == given.rank() - 1 ? given : swapAxes(given, axis, -1);
  Tensor values, indices;
  if (largest) {
    std::tie(values, indices) = topK(x, k);
  } else {
    if (!x.dim(-1).asConstant()) n.refuse("the smallest of an axis of symbolic size");
    std::tie(values, indices) = sort(x, -1);
    values = sliceAxis(values, -1, 0, k);
    indices = sliceAxis(indices, -1, 0, k);
  }
  const bool isLast = axis == given.rank() - 1;
  n.set(0, isLast ? values : swapAxes(values, axis, -1));
  n.set(1, isLast ? indices : swapAxes(indices, axis, -1));
}

using Names = std::vector<std::string_view>;
const Names kReduce{"axes", "keepdims", "noop_with_empty_axes"};

const Lowering kTable[] = {
    {"ArgMax", {"axis", "keepdims", "select_last_index"}, argument<true>},
    {"ArgMin", {"axis", "keepdims", "select_last_index"}, argument<false>},
    {"CumProd", {"exclusive", "reverse"}, runningProduct, "an axis of symbolic size"},
    {"CumSum", {"exclusive", "reverse"}, runningSum},
    {"Hardmax", {"axis"}, overAxis<hardmaxOf>},
    {"LogSoftmax", {"axis"}, overAxis<logSoftmaxOf>},
    {"ReduceL1", kReduce, reduce<reduceSum, Prepare::Magnitude>},
    {"ReduceL2", kReduce, reduce<reduceSum, Prepare::Square, Finish::Root>},
    {"ReduceLogSum", kReduce, reduce<reduceSum, Prepare::None, Finish::Logarithm>},
    {"ReduceLogSumExp", kReduce, logSumExp},
    {"ReduceMax", kReduce, extreme<reduceMax, reduceAny>},
    {"ReduceMean", kReduce, mean},
    {"ReduceMin", kReduce, extreme<reduceMin, reduceAll>},
    {"ReduceProd", kReduce, reduce<reduceProd>},
    {"ReduceSum", kReduce, reduce<reduceSum>},
    {"ReduceSumSquare", kReduce, reduce<reduceSum, Prepare::Square>},
    {"Softmax", {"axis"}, overAxis<softmaxOf>},
    {"TopK",
     {"axis", "k", "largest", "sorted"},
     topOf,
     "the smallest of an axis of symbolic size"}};

}  // namespace

std::span<const Lowering> reductionLowerings() { return kTable; }

}  // namespace lathe::onnx
