// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/cases_build.h"

namespace lathe::conformance {
namespace {

using Unary = Tensor (*)(const Tensor&, std::source_location);
using Binary = Tensor (*)(const Tensor&, const Tensor&, std::source_location);
const std::source_location kHere = std::source_location::current();

OpRow unary(const char* op, Unary f, std::vector<DType> dtypes, Fill fill = Fill::Normal) {
  return {op, false, dtypes, [=](DType d) {
            Record record = one([=](Ts t) { return f(t[0], kHere); });
            return std::vector<Sample>{
                {"matrix", {{d, matrix(), fill}}, record},
                {"scalar", {{d, {}, fill}}, record},
                {"rank4", {{d, {2, 1, 3, 5}, fill}}, record},
                {"integers", {{d, {33}, Fill::Integers}}, record},
                {"special", {{d, {64}, Fill::Special}}, record},
            };
          }};
}

// `right` is the second operand's fill: a divisor or a shift is not any number.
OpRow binary(const char* op, Binary f, std::vector<DType> dtypes, Fill left = Fill::Normal,
             Fill right = Fill::Normal, bool exactOnIntegers = false) {
  return {op, false, dtypes, [=](DType d) {
            Record record = one([=](Ts t) { return f(t[0], t[1], kHere); });
            auto pair = [&](const char* name, Dims a, Dims b) {
              return Sample{name, {{d, a, left}, {d, b, right}}, record};
            };
            std::vector<Sample> samples{
                pair("same", matrix(), matrix()),
                pair("row", matrix(), {cols()}),
                pair("column_by_row", {rows(), 1}, {cols()}),
                pair("scalar_left", {}, matrix()),
                pair("scalar_right", matrix(), {}),
                pair("ranks", {2, 1, 5}, {3, 1}),
                {"special", {{d, {96}, Fill::Special}, {d, {96}, Fill::Special}}, record},
            };
            if (exactOnIntegers)
              samples.push_back({"exact",
                                 {{d, matrix(), Fill::Integers}, {d, matrix(), Fill::Integers}},
                                 record,
                                 true});
            return samples;
          }};
}

std::vector<Sample> compareSamples(DType d) {
  std::vector<Sample> samples;
  for (Compare predicate : valuesOf<Compare>()) {
    Record record = one([=](Ts t) { return compare(t[0], t[1], predicate); });
    const std::string p(nameOf(predicate));
    samples.push_back({p, {{d, matrix(), Fill::Integers}, {d, matrix(), Fill::Integers}}, record});
    samples.push_back({p + "_broadcast",
                       {{d, {rows(), 1}, Fill::Integers}, {d, {cols()}, Fill::Integers}},
                       record});
    samples.push_back(
        {p + "_special", {{d, {96}, Fill::Special}, {d, {96}, Fill::Special}}, record});
  }
  return samples;
}

std::vector<Sample> selectSamples(DType d) {
  Record record = one([](Ts t) { return select(t[0], t[1], t[2]); });
  const DType b = DType::Bool;
  return {
      {"same", {{b, matrix()}, {d, matrix()}, {d, matrix()}}, record},
      {"broadcast", {{b, {rows(), 1}}, {d, {cols()}}, {d, {}}}, record},
      {"scalar_condition", {{b, {}}, {d, matrix()}, {d, {rows(), 1}}}, record},
      {"special", {{b, {64}}, {d, {64}, Fill::Special}, {d, {64}, Fill::Special}}, record},
  };
}

// A row is named by the dtype that it casts from.
std::vector<Sample> castSamples(DType from) {
  std::vector<Sample> samples;
  for (DType to : everything()) {
    Record record = one([=](Ts t) { return cast(t[0], to); });
    const std::string name(nameOf(to));
    // u8 has no negative values, and a float outside the range of an integer is undefined.
    Fill fill = to == DType::U8 ? Fill::Positive : Fill::Normal;
    samples.push_back({name, {{from, matrix(), fill}}, record});
    samples.push_back({name + "_scalar", {{from, {}, fill}}, record});
    if (!isFloat(from) || isFloat(to) || to == DType::Bool)
      samples.push_back({name + "_special", {{from, {96}, Fill::Special}}, record});
  }
  return samples;
}

std::vector<Sample> bitcastSamples(DType from) {
  std::vector<Sample> samples;
  for (DType to : numbers())
    if (sizeOf(to) == sizeOf(from))
      samples.push_back({std::string(nameOf(to)), {{from, matrix()}}, one([=](Ts t) {
                           return bitcast(t[0], to);
                         })});
  return samples;
}

}  // namespace

void addElementwise(Rows& table) {
  const std::vector<DType> f = floats(), n = numbers(), i = integers(), b{DType::Bool};
  table.push_back(unary("lathe.neg", neg, n));
  table.push_back(unary("lathe.abs", abs, n));
  table.push_back(unary("lathe.sign", sign, n));
  table.push_back(unary("lathe.exp", exp, f));
  table.push_back(unary("lathe.log", log, f, Fill::Positive));
  table.push_back(unary("lathe.sqrt", sqrt, f, Fill::Positive));
  table.push_back(unary("lathe.rsqrt", rsqrt, f, Fill::Positive));
  table.push_back(unary("lathe.reciprocal", reciprocal, f, Fill::Positive));
  table.push_back(unary("lathe.sin", sin, f));
  table.push_back(unary("lathe.cos", cos, f));
  table.push_back(unary("lathe.tanh", tanh, f));
  table.push_back(unary("lathe.erf", erf, f));
  table.push_back(unary("lathe.sigmoid", sigmoid, f));
  table.push_back(unary("lathe.floor", floor, f));
  table.push_back(unary("lathe.ceil", ceil, f));
  table.push_back(unary("lathe.round", round, f));
  table.push_back(unary("lathe.logical_not", logicalNot, b));
  table.push_back(unary("lathe.is_nan", isNan, f));

  table.push_back(binary("lathe.add", add, n, Fill::Normal, Fill::Normal, true));
  table.push_back(binary("lathe.sub", sub, n, Fill::Normal, Fill::Normal, true));
  table.push_back(binary("lathe.mul", mul, n, Fill::Normal, Fill::Normal, true));
  table.push_back(binary("lathe.div", div, n, Fill::Normal, Fill::Positive));
  table.push_back(binary("lathe.max", max, n, Fill::Normal, Fill::Normal, true));
  table.push_back(binary("lathe.min", min, n, Fill::Normal, Fill::Normal, true));
  table.push_back(binary("lathe.pow", pow, f, Fill::Positive, Fill::Normal));
  table.push_back(binary("lathe.mod", mod, n, Fill::Normal, Fill::Positive));
  table.push_back(binary("lathe.logical_and", logicalAnd, b));
  table.push_back(binary("lathe.logical_or", logicalOr, b));
  table.push_back(binary("lathe.bitwise_and", bitwiseAnd, i));
  table.push_back(binary("lathe.bitwise_or", bitwiseOr, i));
  table.push_back(binary("lathe.bitwise_xor", bitwiseXor, i));
  table.push_back(binary("lathe.shift_left", shiftLeft, i, Fill::Normal, Fill::Positive));
  table.push_back(binary("lathe.shift_right", shiftRight, i, Fill::Normal, Fill::Positive));

  table.push_back({"lathe.compare", false, everything(), compareSamples});
  table.push_back({"lathe.select", false, everything(), selectSamples});
  table.push_back({"lathe.cast", false, everything(), castSamples});
  table.push_back({"lathe.bitcast", false, numbers(), bitcastSamples});
}

}  // namespace lathe::conformance
