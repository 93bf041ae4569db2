// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a node of an ONNX file, or some, give on one input.
#include <fstream>
#include <string>
#include <vector>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/onnx.h"
#include "lathe/runtime/session.h"
#include "tests/onnx/onnx_wire.h"
#include "tests/unit/test_files.h"

namespace lathe::test {

/// Results "y" of the nodes on "x", f32 each, of a file with these literals.
inline Array run(const std::string& nodes, const Array& x, int64_t opset,
                 const std::vector<int64_t>& result, const std::string& literals = {},
                 const std::string& input = {}) {
  using namespace onnx_wire;
  const TemporaryFolder folder;
  const std::string path = folder / "m.onnx";
  const std::string given =
      input.empty() ? valueInfo("x", 1, {x.shape().begin(), x.shape().end()}) : input;
  std::ofstream(path, std::ios::binary)
      << model(nodes + literals + bytes(11, given) + bytes(12, valueInfo("y", 1, result)), opset);
  const OnnxModel loaded = loadOnnx(path);
  Session session(compile(loaded.graph, {.backend = "reference"}));
  session.bindWeights(loaded.weights);
  return session.run("forward", {{"x", x}}).at("y");
}

/// A node whose results others read.
inline std::string inner(const std::string& op, const std::vector<std::string>& operands,
                         const std::vector<std::string>& results,
                         const std::string& attributes = {}) {
  using namespace onnx_wire;
  std::string text;
  for (const std::string& name : operands) text += bytes(1, name);
  for (const std::string& name : results) text += bytes(2, name);
  return bytes(1, text + bytes(4, op) + attributes);
}

inline Array someNumbers(const std::vector<int64_t>& shape) {
  Array x(DType::F32, {shape.begin(), shape.end()});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i * 7 % 5) - 0.25 * double(i % 3));
  return x;
}

inline std::vector<double> numbersOf(const Array& a) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < a.size(); ++i) numbers.push_back(a.at(i));
  return numbers;
}

}  // namespace lathe::test
