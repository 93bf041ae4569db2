// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include "backends/reference/interpreter_ops.h"

using namespace mlir;

namespace lathe::reference {
namespace {

// Where each element of x goes, and the shape of the result.
struct Plan {
  Shape shape;
  std::vector<int64_t> target;
  int64_t count = 1;  // elements per result

  Plan(const Dense& x, ArrayRef<int64_t> axes, bool keepDims) {
    Shape kept = x.shape;
    for (int64_t axis : axes) {
      count *= kept[size_t(axis)];
      kept[size_t(axis)] = 1;
    }
    Shape strides = stridesOf(kept);
    for (int64_t axis : axes) strides[size_t(axis)] = 0;
    target = stridedIndices(x.shape, strides);
    for (int64_t i = 0; i < x.rank(); ++i)
      if (keepDims || !llvm::is_contained(axes, i)) shape.push_back(kept[size_t(i)]);
  }
};

template <class T, class F>
std::vector<T> fold(const Plan& plan, const std::vector<T>& x, T start, F combine) {
  std::vector<T> y(size_t(elementCount(plan.shape)), start);
  for (size_t i = 0; i < x.size(); ++i) {
    T& total = y[size_t(plan.target[i])];
    total = combine(total, x[i]);
  }
  return y;
}

template <class Op>
Plan planOf(Op op, const Dense& x) {
  return Plan(x, op.getAxes(), op.getKeepDims());
}

template <class F, class G>
Dense reduce(const Context& cx, const Plan& plan, const Dense& x, double realStart, F reals,
             int64_t integerStart, G integers) {
  if (x.isReal()) return cx.reals(x.dtype, plan.shape, fold(plan, *x.reals, realStart, reals));
  return cx.integers(x.dtype, plan.shape, fold(plan, *x.integers, integerStart, integers));
}

std::vector<double> sumsOfSquares(const Plan& plan, const std::vector<double>& x) {
  return fold(plan, x, 0.0, [](double sum, double v) { return sum + v * v; });
}

Dense sum(const Context& cx, const Plan& plan, const Dense& x) {
  if (!x.isReal())
    return cx.integers(x.dtype, plan.shape, fold(plan, *x.integers, int64_t(0), wrappingAdd));
  return cx.sums(x.dtype, plan.shape, fold(plan, *x.reals, 0.0, std::plus<>()), plan.count,
                 [&] { return sumsOfSquares(plan, *x.reals); });
}

Dense mean(const Context& cx, const Plan& plan, const Dense& x) {
  const double count = double(plan.count);
  auto y = fold(plan, *x.reals, 0.0, std::plus<>());
  for (double& v : y) v /= count;
  return cx.sums(x.dtype, plan.shape, std::move(y), plan.count, [&] {
    auto squares = sumsOfSquares(plan, *x.reals);
    for (double& v : squares) v /= count * count;
    return squares;
  });
}

// The first index of the best element along each line, 0 without elements; `better(a, b)`: a beats
// b.
template <class T, class F>
std::vector<int64_t> bestIndices(const Lines& lines, const std::vector<T>& x, F better) {
  std::vector<int64_t> y;
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t j = 0; j < lines.inner; ++j) {
      int64_t best = 0;
      for (int64_t i = 1; i < lines.length; ++i) {
        T a = x[size_t(lines.at(o, i, j))], b = x[size_t(lines.at(o, best, j))];
        if (!isNan(b) && (isNan(a) || better(a, b))) best = i;
      }
      y.push_back(best);
    }
  return y;
}

template <class F>
Dense argBest(const Dense& x, int64_t axis, F better) {
  Shape shape = x.shape;
  shape.erase(shape.begin() + axis);
  Lines lines(x.shape, axis);
  auto y =
      x.isReal() ? bestIndices(lines, *x.reals, better) : bestIndices(lines, *x.integers, better);
  return makeIntegers(DType::I64, std::move(shape), std::move(y));
}

template <class T, class F>
std::vector<T> running(const Lines& lines, std::vector<T> x, F add) {
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t i = 1; i < lines.length; ++i)
      for (int64_t j = 0; j < lines.inner; ++j) {
        T& y = x[size_t(lines.at(o, i, j))];
        y = add(x[size_t(lines.at(o, i - 1, j))], y);
      }
  return x;
}

Dense cumSum(const Context& cx, const Dense& x, int64_t axis) {
  Lines lines(x.shape, axis);
  if (x.isReal())
    return cx.sums(x.dtype, x.shape, running(lines, *x.reals, std::plus<>()), lines.length, [&] {
      std::vector<double> squares = *x.reals;
      for (double& v : squares) v *= v;
      return running(lines, std::move(squares), std::plus<>());
    });
  return cx.integers(x.dtype, x.shape, running(lines, *x.integers, wrappingAdd));
}

// Positions in x of the k largest of each row.
template <class T>
std::vector<int64_t> largest(const std::vector<T>& x, int64_t row, int64_t k) {
  std::vector<int64_t> picked, order(static_cast<size_t>(row));
  for (size_t begin = 0; begin < x.size(); begin += size_t(row)) {
    std::iota(order.begin(), order.end(), int64_t(begin));
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t i, int64_t j) {
      T a = x[size_t(i)], b = x[size_t(j)];
      if (isNan(a) != isNan(b)) return isNan(a);
      return isNan(a) || a == b ? i < j : a > b;
    });
    picked.insert(picked.end(), order.begin(), order.begin() + k);
  }
  return picked;
}

}  // namespace

std::vector<Dense> evalTopK(TopKOp op, const Dense& x) {
  int64_t k = int64_t(op.getK()), row = x.shape.back();
  if (k > row)
    fail(op, ErrorCode::InvalidArgument,
         "expected at least k = " + std::to_string(k) + " elements along axis " +
             std::to_string(x.rank() - 1) + ", got size " + std::to_string(row));
  auto from = x.isReal() ? largest(*x.reals, row, k) : largest(*x.integers, row, k);
  Shape shape = x.shape;
  shape.back() = k;
  Dense values = pick({&x, 1}, shape, from);
  for (int64_t& i : from) i %= row;
  return {values, makeIntegers(DType::I64, shape, std::move(from))};
}

std::optional<Dense> evalReduce(const Context& cx, Operation* op, Operands o) {
  auto max = [](auto a, auto b) { return larger(a, b); };
  auto min = [](auto a, auto b) { return smaller(a, b); };
  return llvm::TypeSwitch<Operation*, std::optional<Dense>>(op)
      .Case([&](ReduceSumOp r) { return sum(cx, planOf(r, o[0]), o[0]); })
      .Case([&](ReduceMeanOp r) { return mean(cx, planOf(r, o[0]), o[0]); })
      // The lowest float is -inf: the neutral element in every float type alike.
      .Case([&](ReduceMaxOp r) {
        return reduce(cx, planOf(r, o[0]), o[0], -INFINITY, max, lowestInteger(o[0].dtype), max);
      })
      .Case([&](ReduceMinOp r) {
        return reduce(cx, planOf(r, o[0]), o[0], INFINITY, min, highestInteger(o[0].dtype), min);
      })
      .Case([&](ReduceProdOp r) {
        return reduce(cx, planOf(r, o[0]), o[0], 1, std::multiplies<>(), 1, wrappingMul);
      })
      .Case([&](ReduceAnyOp r) { return reduce(cx, planOf(r, o[0]), o[0], 0, max, 0, max); })
      .Case([&](ReduceAllOp r) { return reduce(cx, planOf(r, o[0]), o[0], 1, min, 1, min); })
      .Case([&](ArgMaxOp r) {
        return argBest(o[0], int64_t(r.getAxis()), [](auto a, auto b) { return a > b; });
      })
      .Case([&](ArgMinOp r) {
        return argBest(o[0], int64_t(r.getAxis()), [](auto a, auto b) { return a < b; });
      })
      .Case([&](CumSumOp c) { return cumSum(cx, o[0], int64_t(c.getAxis())); })
      .Default([](Operation*) -> std::optional<Dense> { return std::nullopt; });
}

}  // namespace lathe::reference
