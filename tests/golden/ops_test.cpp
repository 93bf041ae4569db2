// SPDX-License-Identifier: Apache-2.0
// Every elementary op against PyTorch: the files of tests/golden/ops on each backend.
// scripts/make_goldens.py says what a file holds.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "lathe/lathe.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/safetensors.h"
#include "tests/closeness.h"

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
  const double largest = std::max(1.0, largestValue(want));
  double absolute = relative ? (isSum(op) ? 1e-6 * largest : 1e-40) : 0;
  // AVX512-BF16 converts what is smaller than the smallest normal number to zero.
  if (got.dtype() == DType::BF16) absolute = 0x1p-126;
  for (int64_t i = 0; i < got.size(); ++i) {
    const double g = got.at(i), w = want.at(i);
    ASSERT_TRUE(isNear(g, w, absolute + relative * std::abs(w)))
        << "element " << i << " is " << g << ", want " << w;
  }
}

/// One file's op in a graph; its inputs and outputs are called as in the file, behind `prefix`.
struct Golden {
  Golden(Graph& g, const std::string& name, const std::string& prefix)
      : file(SafetensorsFile::open(LATHE_TEST_DATA "/golden/ops/" + name + ".safetensors")),
        op(file.metadata().at("op")),
        prefix(prefix) {
    const JsonValue attrs = JsonValue::parse(file.metadata().at("attrs"), name);
    std::vector<Tensor> operands;
    for (int i = 0; file.find("in." + std::to_string(i)); ++i) {
      const std::string input = "in." + std::to_string(i);
      const Array value = file.array(input);
      operands.push_back(
          g.input(prefix + input, value.dtype(), Dims(value.shape().begin(), value.shape().end())));
      inputs[prefix + input] = value;
    }
    std::vector<NamedAttr> attributes;
    for (size_t i = 0; i < attrs.size(); ++i) {
      const auto& [key, value] = attrs.member(i);
      // `limits` repeats `sizes`, and the value of a padding is its second operand.
      if (key != "limits" && key != "value") attributes.push_back({key, attributeOf(key, value)});
    }
    const Tensor first =
        g.recorder()->emit("lathe." + op, operands, attributes, std::source_location::current());
    if (file.find("out.0")) outputs = {"out.0", "out.1"};
    for (size_t i = 0; i < outputs.size(); ++i)
      g.output(prefix + outputs[i], Tensor(first.recorder(), first.id() + i));
  }

  void expectIn(const Arrays& results) const {
    for (const std::string& name : outputs) {
      SCOPED_TRACE(prefix + name);
      expectNear(results.at(prefix + name), file.array(name), op);
    }
  }

  SafetensorsFile file;
  std::string op, prefix;
  Arrays inputs;
  std::vector<std::string> outputs{"out"};
};

std::vector<std::string> fileNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(LATHE_TEST_DATA "/golden/ops"))
    if (entry.path().extension() == ".safetensors") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

TEST_P(OpGoldens, EqualsPyTorch) {
  Graph g;
  g.entry("forward");
  const Golden golden(g, GetParam().file, "");
  CompileOptions options;
  options.backend = GetParam().backend;
  golden.expectIn(Session(compile(g, options)).run("forward", golden.inputs));
}

// Kernels of the host take a compiler's run: all files are one program.
TEST(OpGoldensOnCuda, EqualPyTorch) {
  Graph g;
  g.entry("forward");
  std::vector<Golden> goldens;
  Arrays inputs;
  for (const std::string& name : fileNames()) {
    goldens.emplace_back(g, name, name + ".");
    inputs.insert(goldens.back().inputs.begin(), goldens.back().inputs.end());
  }
  EXPECT_GT(goldens.size(), 150u);
  const Arrays results =
      Session(compile(g, {.backend = "cuda"}), {.device = "host"}).run("forward", inputs);
  for (const Golden& golden : goldens) golden.expectIn(results);
}

std::vector<Parameter> parameters() {
  std::vector<Parameter> all;
  for (const std::string& name : fileNames())
    for (const char* backend : {"reference", "cpu"}) all.push_back({name, backend});
  return all;
}
INSTANTIATE_TEST_SUITE_P(PyTorch, OpGoldens, ::testing::ValuesIn(parameters()),
                         [](const auto& info) {
                           return info.param.file + "_" + info.param.backend;
                         });

}  // namespace
}  // namespace lathe
