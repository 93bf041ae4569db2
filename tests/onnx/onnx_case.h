// SPDX-License-Identifier: Apache-2.0
#pragma once
// One model with inputs and expected outputs, in the layout of ONNX's own test data.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/onnx.h"

namespace lathe {

struct OnnxOutcome {
  std::string what;                    ///< "right", "refused", "wrong"
  std::string words;                   ///< of the refusal, or what differs
  std::vector<std::string> constants;  ///< inputs whose values had to be known
};

/// ONNX's own tolerance is relative, 1e-3: some expected values have four digits. Sums that cancel
/// have an absolute one, and so have 16-bit floats, which are rounded at other places.
inline std::string differenceOf(const Array& got, const Array& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape())
    return fmt::format("{} for {}", describe(got.dtype(), got.shape()),
                       describe(want.dtype(), want.shape()));
  const bool isShort = want.dtype() == DType::F16 || want.dtype() == DType::BF16;
  const double relative = want.dtype() == DType::BF16 ? 1.6e-2 : isShort ? 2e-3 : 1e-3;
  const double absolute = want.dtype() == DType::BF16 ? 1e-2 : isShort ? 2e-3 : 2e-6;
  for (int64_t i = 0; i < want.size(); ++i) {
    const double a = got.at(i), b = want.at(i);
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b) continue;
    const bool close =
        isFloat(want.dtype()) && std::abs(a - b) <= absolute + relative * std::abs(b);
    if (!close) return fmt::format("element {} is {}, expected {}", i, a, b);
  }
  return {};
}

inline OnnxOutcome runOnnxCase(const std::string& folder, const std::string& backend) {
  const std::filesystem::path path(folder);
  OnnxOutcome outcome;
  try {
    std::vector<Array> inputs, outputs;
    auto read = [&](const char* kind, std::vector<Array>& arrays) {
      for (int i = 0;; ++i) {
        const auto file = path / fmt::format("{}_{}.pb", kind, i);
        if (!std::filesystem::exists(file)) return;
        arrays.push_back(loadOnnxTensor(file.string()));
      }
    };
    OnnxOptions options;
    std::vector<std::string> names;
    for (;;) {
      try {
        OnnxModel model = loadOnnx((path / "model.onnx").string(), options);
        read("input", inputs);
        read("output", outputs);
        CompileOptions compileOptions;
        compileOptions.backend = backend;
        Session session(compile(model.graph, compileOptions), {.threads = 1});
        session.bindWeights(model.weights);
        Arrays given;
        size_t next = 0;
        // Inputs that became constants are no inputs of the graph.
        for (const std::string& name : onnxInputNames((path / "model.onnx").string())) {
          if (next >= inputs.size()) break;
          const Array& array = inputs[next++];
          if (!options.constants.contains(name)) given.emplace(name, array);
        }
        const Arrays got = session.run("forward", given);
        for (size_t i = 0; i < outputs.size(); ++i) {
          const std::string difference = differenceOf(got.at(model.outputs[i]), outputs[i]);
          if (difference.empty()) continue;
          outcome.what = "wrong";
          outcome.words = fmt::format("{}: {}", model.outputs[i], difference);
          return outcome;
        }
        outcome.what = "right";
        return outcome;
      } catch (const OnnxConstantNeeded& needed) {
        const auto all = onnxInputNames((path / "model.onnx").string());
        const auto at = std::find(all.begin(), all.end(), needed.input());
        const auto file = path / fmt::format("input_{}.pb", at - all.begin());
        if (options.constants.contains(needed.input())) throw;
        options.constants.emplace(needed.input(), loadOnnxTensor(file.string()));
        outcome.constants.push_back(needed.input());
      }
    }
  } catch (const Error& e) {
    outcome.what = "refused";
    outcome.words = e.what();
  }
  return outcome;
}

}  // namespace lathe
