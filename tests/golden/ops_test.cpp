// SPDX-License-Identifier: Apache-2.0
// Every elementary op against PyTorch: the files of tests/golden/ops on each backend.
// scripts/make_goldens.py says what a file holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "lathe/lathe.h"
#include "runtime/json_reader.h"
#include "runtime/safetensors.h"

namespace lathe {
namespace {

std::vector<int64_t> numbersOf(const JsonValue& list) {
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < list.size(); ++i) {
    // Paddings come as [[top, bottom], [left, right]].
    if (list.at(i).isArray()) {
      for (int64_t n : numbersOf(list.at(i))) numbers.push_back(n);
    } else {
      numbers.push_back(list.at(i).asInt());
    }
  }
  return numbers;
}

AttrValue attributeOf(const std::string& name, const JsonValue& value) {
  if (name == "predicate") return Keyword{"predicate", value.asString()};
  if (name == "dtype") return parseDType(value.asString()).value();
  if (name == "keep_dims") return value.asBool();
  if (!value.isArray()) return value.asInt();
  const std::vector<int64_t> numbers = numbersOf(value);
  if (name == "shape" || name == "starts" || name == "sizes")
    return Dims(numbers.begin(), numbers.end());
  return numbers;
}

struct Parameter {
  std::string file, backend;
};
void PrintTo(const Parameter& p, std::ostream* os) { *os << p.file << " on " << p.backend; }

class OpGoldens : public ::testing::TestWithParam<Parameter> {};

// Sums round on the way: what cancels is lost at the scale of the largest result.
bool isSum(const std::string& op) {
  return std::set<std::string>{"matmul", "convolution", "reduce_sum", "reduce_mean", "cumsum"}
      .count(op);
}

void expectNear(const Array& got, const Array& want, const std::string& op) {
  ASSERT_EQ(describe(got.dtype(), got.shape()), describe(want.dtype(), want.shape()));
  const double relative = got.dtype() == DType::F32 ? 1e-5 : 0;
  double largest = 1;
  for (int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.at(i))) largest = std::max(largest, std::abs(want.at(i)));
  double absolute = relative ? (isSum(op) ? 1e-6 * largest : 1e-40) : 0;
  // AVX512-BF16 converts what is smaller than the smallest normal number to zero.
  if (got.dtype() == DType::BF16) absolute = 0x1p-126;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double g = got.at(i), w = want.at(i);
    if (std::isnan(w) ? std::isnan(g) : g == w) continue;
    ASSERT_LE(std::abs(g - w), absolute + relative * std::abs(w)) << "element " << i << " is " << g;
  }
}

TEST_P(OpGoldens, EqualsPyTorch) {
  const SafetensorsFile file =
      SafetensorsFile::open(LATHE_TEST_DATA "/golden/ops/" + GetParam().file + ".safetensors");
  const std::string op = file.metadata().at("op");
  const JsonValue attrs = JsonValue::parse(file.metadata().at("attrs"), GetParam().file);
  Graph g;
  g.entry("forward");
  std::vector<Tensor> operands;
  Arrays inputs;
  for (int i = 0; file.find("in." + std::to_string(i)); ++i) {
    const std::string name = "in." + std::to_string(i);
    const Array value = file.array(name);
    operands.push_back(
        g.input(name, value.dtype(), Dims(value.shape().begin(), value.shape().end())));
    inputs[name] = value;
  }
  std::vector<NamedAttr> attributes;
  for (size_t i = 0; i < attrs.size(); ++i) {
    const auto& [name, value] = attrs.member(i);
    // `limits` repeats `sizes`, and the value of a padding is its second operand.
    if (name != "limits" && name != "value") attributes.push_back({name, attributeOf(name, value)});
  }
  const Tensor first =
      g.recorder()->emit("lathe." + op, operands, attributes, std::source_location::current());
  std::vector<std::string> outputs{"out"};
  if (file.find("out.0")) outputs = {"out.0", "out.1"};
  for (size_t i = 0; i < outputs.size(); ++i)
    g.output(outputs[i], Tensor(first.recorder(), first.id() + i));
  CompileOptions options;
  options.backend = GetParam().backend;
  const Arrays results = Session(compile(g, options)).run("forward", inputs);
  for (const std::string& name : outputs) {
    SCOPED_TRACE(name);
    expectNear(results.at(name), file.array(name), op);
  }
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const auto& entry : std::filesystem::directory_iterator(LATHE_TEST_DATA "/golden/ops"))
    for (const char* backend : {"reference", "cpu"})
      if (entry.path().extension() == ".safetensors")
        all.push_back({entry.path().stem().string(), backend});
  return all;
}
INSTANTIATE_TEST_SUITE_P(PyTorch, OpGoldens, ::testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return info.param.file + "_" + info.param.backend;
                         });

}  // namespace
}  // namespace lathe
