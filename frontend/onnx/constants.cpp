// SPDX-License-Identifier: Apache-2.0
// Values from nothing: constants, ranges, identity matrices, windows.
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kMostValues = 1 << 20;

void constantValue(Node& n) {
  if (n.attributes().size() != 1) n.fail("expected one attribute with the value");
  if (const AttributeMessage* a = n.find("value")) {
    if (!a->tensor) n.fail("attribute 'value': expected a tensor");
    return n.set(n.ofMessage(*a->tensor));
  }
  if (n.hasAttribute("value_int"))
    return n.set(SizeList{DType::I64, {}, {Dim(n.attribute("value_int", 0))}});
  if (n.hasAttribute("value_ints")) {
    const auto list = n.list("value_ints");
    return n.set(Value::ofNumbers(Array::fromInts(list, {int64_t(list.size())})));
  }
  std::vector<float> floats;
  const bool isList = n.hasAttribute("value_floats");
  if (isList)
    for (double f : n.reals("value_floats")) floats.push_back(float(f));
  else
    floats.push_back(float(n.real("value_float", 0)));
  n.set(Value::ofNumbers(
      Array::fromFloats(floats, isList ? Shape{int64_t(floats.size())} : Shape{})));
}

void constantOfShape(Node& n) {
  const Dims shape = n.dims(0);
  for (const Dim& d : shape)
    if (d.asConstant().value_or(0) < 0) n.fail("a negative size " + d.text());
  Tensor value = n.scalar(0, DType::F32);
  if (const AttributeMessage* a = n.find("value")) {
    if (!a->tensor) n.fail("attribute 'value': expected a tensor");
    value = n.recorded(n.ofMessage(*a->tensor));
  }
  // Small integers are known: they may be part of a shape.
  const bool isShape = value.dtype() == DType::I64 && shape.size() == 1 && shape[0].asConstant();
  if (isShape && *shape[0].asConstant() <= 64) {
    const Value number = n.find("value") ? n.ofMessage(*n.find("value")->tensor) : Value();
    if (auto list = number.asSizes(); list && list->items.size() == 1)
      return n.set(SizeList{DType::I64,
                            {*shape[0].asConstant()},
                            std::vector<DimExpr>(size_t(*shape[0].asConstant()), list->items[0])});
  }
  n.set(broadcasted(reshaped(value, {}), shape));
}

// start, start + delta, ... below limit. Whole numbers may have symbols.
void range(Node& n) {
  const DType dtype = n.value(0).dtype();
  if (!isFloat(dtype)) {
    const Dims start = n.dims(0), limit = n.dims(1);
    const int64_t delta = n.integer(2);
    if (start.size() != 1 || limit.size() != 1 || !delta) n.fail("expected numbers and a step");
    const Dim length = limit[0] - start[0];
    Dim count(0);
    if (auto number = length.asConstant()) {
      const int64_t d = delta > 0 ? delta : -delta, span = delta > 0 ? *number : -*number;
      count = span > 0 ? (span - 1) / d + 1 : 0;
    } else if (delta == 1) {
      count = length;
    } else {
      n.refuse("a step other than 1 to a symbolic end");
    }
    Tensor y = n.graph().arange(count, dtype);
    if (delta != 1) y = mul(y, like(y, double(delta)));
    if (!(start[0] == Dim(0))) y = add(y, n.sizeValue(start[0], dtype));
    return n.set(y);
  }
  const double start = n.numbers(0).at(0), limit = n.numbers(1).at(0), delta = n.numbers(2).at(0);
  const double count = std::max(std::ceil((limit - start) / delta), 0.0);
  if (!(count <= double(kMostValues))) n.refuse("more than 2^20 values");
  const DType wideType = wide(dtype);
  const Tensor steps = as(n.graph().arange(int64_t(count), DType::I64), wideType);
  n.set(as(steps * delta + start, dtype));
}

void eyeLike(Node& n) {
  const Tensor x = n.in(0);
  if (x.rank() != 2) n.fail("expected a matrix");
  const DType dtype = n.dtypeAttribute("dtype", x.dtype());
  const Tensor row = iota(x, {x.dim(0), 1}, 0), column = iota(x, {1, x.dim(1)}, 1);
  const Tensor isDiagonal = sub(column, row) == double(n.attribute("k", 0));
  n.set(as(isDiagonal, dtype));
}

void oneHotOf(Node& n) {
  const Tensor ids = n.in(0), values = n.in(2);
  const int64_t depth = int64_t(n.isKnown(1) && isFloat(n.value(1).dtype()) ? n.numbers(1).at(0)
                                                                            : double(n.integer(1)));
  if (depth < 1) n.fail("expected a depth of at least 1");
  const int64_t rank = ids.rank() + 1, axis = n.axis(n.attribute("axis", -1), rank);
  Dims along(size_t(rank), Dim(1));
  along[size_t(axis)] = depth;
  const Tensor places = iota(ids, along, axis);
  Tensor at = unsqueeze(as(ids, DType::I64), axis);
  at = select(at < 0, at + double(depth), at);
  const Tensor off = reshape(sliceAxis(values, 0, 0, 1), {}),
               on = reshape(sliceAxis(values, 0, 1, 1), {});
  n.set(select(compare(at, places, Compare::eq), on, off));
}

// a0 - a1 cos(2 pi i / N) + a2 cos(4 pi i / N); N is one less where the window is symmetric.
void window(Node& n, double a0, double a1, double a2) {
  const int64_t size = n.integer(0);
  const DType dtype = n.dtypeAttribute("output_datatype", DType::F32);
  if (size < 0 || size > kMostValues) n.refuse("a window of more than 2^20 places");
  const int64_t period = n.attribute("periodic", 1) ? size : std::max(size - 1, int64_t(1));
  Array values(DType::F64, {size});
  for (int64_t i = 0; i < size; ++i) {
    const double t = 2 * std::numbers::pi * double(i) / double(period);
    values.set(i, a0 - a1 * std::cos(t) + a2 * std::cos(2 * t));
  }
  n.set(Value::ofNumbers(values.to(dtype)));
}
void blackman(Node& n) { window(n, 0.42, 0.5, 0.08); }
void hamming(Node& n) { window(n, 25.0 / 46, 21.0 / 46, 0); }
void hann(Node& n) { window(n, 0.5, 0.5, 0); }

// Triangles between frequencies that are evenly spaced on the mel scale.
void melWeights(Node& n) {
  const int64_t bins = n.integer(0), length = n.integer(1), rate = n.integer(2);
  const double low = n.numbers(3).at(0), high = n.numbers(4).at(0);
  if (bins < 1 || bins > 4096 || length < 2 || length > kMostValues || rate < 1)
    n.fail("expected positive numbers of bins, samples and rate");
  const int64_t columns = length / 2 + 1;
  auto mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  std::vector<int64_t> edges;
  const double step = (mel(high) - mel(low)) / double(bins + 2);
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double f = 700 * (std::pow(10, (double(i) * step + mel(low)) / 2595) - 1);
    edges.push_back(int64_t(std::floor(double(length + 1) * f / double(rate))));
  }
  Array values(DType::F32, {columns, bins});
  auto put = [&](int64_t row, int64_t column, double value) {
    if (row >= 0 && row < columns) values.set(row * bins + column, value);
  };
  for (int64_t i = 0; i < bins; ++i) {
    const int64_t a = edges[size_t(i)], b = edges[size_t(i + 1)], c = edges[size_t(i + 2)];
    if (b == a) put(b, i, 1);
    for (int64_t j = a; j <= b && b != a && j < columns; ++j)
      put(j, i, double(j - a) / double(b - a));
    for (int64_t j = b; j < c && j < columns; ++j) put(j, i, double(c - j) / double(c - b));
  }
  n.set(Value::ofNumbers(values.to(n.dtypeAttribute("output_datatype", DType::F32))));
}

const Lowering kTable[] = {{"BlackmanWindow", {"output_datatype", "periodic"}, blackman},
                           {"Constant",
                            {"value", "value_int", "value_ints", "value_float", "value_floats"},
                            constantValue,
                            "texts and sparse tensors"},
                           {"ConstantOfShape", {"value"}, constantOfShape},
                           {"EyeLike", {"dtype", "k"}, eyeLike},
                           {"HammingWindow", {"output_datatype", "periodic"}, hamming},
                           {"HannWindow", {"output_datatype", "periodic"}, hann},
                           {"MelWeightMatrix", {"output_datatype"}, melWeights},
                           {"OneHot", {"axis"}, oneHotOf},
                           {"Range", {}, range, "ends that are computed from values"}};

}  // namespace

std::span<const Lowering> constantLowerings() { return kTable; }

}  // namespace lathe::onnx
