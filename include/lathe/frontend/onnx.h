// SPDX-License-Identifier: Apache-2.0
#pragma once
// ONNX files as graphs. docs/onnx.md lists what is read.
#include <cstdint>
#include <string>
#include <vector>

#include "lathe/frontend/graph.h"
#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/session.h"

namespace lathe {

struct OnnxOptions {
  /// Values of inputs that shapes depend on. They are part of the graph then and no inputs of it.
  Arrays constants = {};
  /// The upper end of the range of sizes that the file leaves open; the lower one is 1.
  int64_t largest = 4096;
};

/// A graph with the one entry point "forward".
struct OnnxModel {
  Graph graph;
  std::vector<std::string> inputs, outputs;  ///< in the order of the file
  /// The initializers that are weights of the graph, by name: for Session::bindWeights.
  Checkpoint weights;
};

/// A shape of the graph depends on the values of an input: give them in OnnxOptions::constants.
class OnnxConstantNeeded : public Error {
 public:
  OnnxConstantNeeded(const std::string& message, std::string input)
      : Error(ErrorCode::Unsupported, message), input_(std::move(input)) {}
  const std::string& input() const { return input_; }

 private:
  std::string input_;
};

/// Records the graph of an ONNX file. Named sizes (dim_param) become symbols of those names.
/// Throws Error: Io; InvalidFile for what breaks the format, with the file, the byte or the node;
/// Unsupported for an op, an attribute, an element type or a use of them that there is no lowering
/// for, with the file, the node's number and name, and the op.
OnnxModel loadOnnx(const std::string& path, const OnnxOptions& options = {});

/// The names of a file's inputs in its order, those that are initializers left out. Throws Error
/// (InvalidFile, Io).
std::vector<std::string> onnxInputNames(const std::string& path);
/// One tensor of ONNX's own test data (a TensorProto in a file). Throws Error (InvalidFile, Io).
Array loadOnnxTensor(const std::string& path);

}  // namespace lathe
