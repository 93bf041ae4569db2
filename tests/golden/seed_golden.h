// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the tests against the courses' PyTorch classes share: a golden file becomes a graph, runs on
// a backend and is held to PyTorch's numbers. scripts/make_goldens.py says what a file holds.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "tests/closeness.h"

namespace lathe::seeds {

/// A module's graph under construction, with the file's inputs by name.
struct Case {
  Graph& g;
  std::map<std::string, Tensor> inputs;
  DType dtype;
  const Tensor& in(const std::string& name) const { return inputs.at(name); }
  const Tensor& x() const { return in("x"); }
  /// An input that only some cases of a class have.
  Tensor maybe(const std::string& name) const { return inputs.count(name) ? in(name) : Tensor(); }
};
using Record = std::function<Tensor(const Case&)>;

struct Golden {
  std::string name, backend;
};

/// Every file of tests/golden/<folder>: a file that no record belongs to fails. The cuda backend,
/// whose kernels are compiled for this CPU, runs the models and blocks that hold the smaller
/// modules.
inline std::vector<Golden> goldensIn(const std::string& folder) {
  std::vector<Golden> all;
  for (const auto& entry :
       std::filesystem::directory_iterator(LATHE_TEST_DATA "/golden/" + folder)) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::string name = entry.path().stem().string();
    for (const char* backend : {"reference", "cpu"}) all.push_back({name, backend});
    for (const char* whole : {"lm_", "model", "block"})
      if (name.starts_with(whole)) all.push_back({name, "cuda"});
  }
  return all;
}
inline std::string testName(const ::testing::TestParamInfo<Golden>& info) {
  return info.param.name + "_" + info.param.backend;
}

inline Array runOn(const std::string& backend, const SafetensorsFile& file, const Record& record,
                   DType dtype) {
  auto narrow = [&](const Array& a) { return isFloat(a.dtype()) ? a.to(dtype) : a; };
  Graph g;
  Case c{g, {}, dtype};
  Arrays inputs, weights;
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (entry.name.starts_with("w."))
      weights[entry.name.substr(2)] = narrow(file.array(entry.name));
    if (!entry.name.starts_with("in.")) continue;
    const std::string input = entry.name.substr(3);
    const Array value = narrow(file.array(entry.name));
    c.inputs[input] =
        g.input(input, value.dtype(), Dims(value.shape().begin(), value.shape().end()));
    inputs[input] = value;
  }
  g.output("out", record(c));
  CompileOptions options;
  options.backend = backend;
  Session session(compile(g, options), {.device = "host"});
  session.bindWeights([&](const std::string& weight) { return weights.at(weight); });
  return session.run("forward", inputs).at("out");
}

inline void expectF32EqualsPyTorch(const std::string& folder, const Golden& golden,
                                   const Record& record) {
  const auto file = SafetensorsFile::open(LATHE_TEST_DATA "/golden/" + folder + "/" + golden.name +
                                          ".safetensors");
  const Array expected = file.array("out");
  const Array got = runOn(golden.backend, file, record, DType::F32);
  EXPECT_LE(largestError(got, expected), 1e-5 * largestValue(expected));
}

/// As near to the float64 result on the same bf16 numbers as PyTorch's own bf16 is.
inline void expectBf16IsAsExactAsPyTorch(const std::string& folder, const Golden& golden,
                                         const Record& record) {
  const auto file = SafetensorsFile::open(LATHE_TEST_DATA "/golden/" + folder + "/" + golden.name +
                                          ".safetensors");
  const Array truth = file.array("out.f64_of_bf16");
  const Array got = runOn(golden.backend, file, record, DType::BF16);
  const Array theirs = file.array("out.bf16");
  const double floor = 1e-6 * largestValue(truth);
  EXPECT_LE(typicalError(got, truth), 1.5 * typicalError(theirs, truth) + floor);
  EXPECT_LE(largestError(got, truth), 2.5 * largestError(theirs, truth) + floor);
}

}  // namespace lathe::seeds
