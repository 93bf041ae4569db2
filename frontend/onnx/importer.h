// SPDX-License-Identifier: Apache-2.0
#pragma once
// Walks an ONNX graph in its order and records what each node lowers to.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "frontend/onnx/node.h"
#include "lathe/frontend/onnx.h"

namespace lathe::onnx {

/// Names that a graph, a graph inside of it or a function sees.
struct Frame {
  Frame* parent = nullptr;            ///< of a graph inside of another; functions see their own
  const Attributes* bound = nullptr;  ///< attributes of the function's call
  const std::map<std::string, int64_t, std::less<>>* opsets = nullptr;
  std::string path;  ///< of the function's call, for module paths
  std::unordered_map<std::string_view, Value> values = {};
};

class Importer {
 public:
  Importer(std::shared_ptr<const OnnxFile> file, const OnnxOptions& options);

  OnnxModel import();

  // For nodes.
  Graph& graph() { return *graph_; }
  int64_t opset(std::string_view domain = {}) const;
  Tensor recorded(const Value& value);
  std::vector<Value> run(const GraphMessage& graph, std::vector<Value> inputs);
  Value ofMessage(const NodeMessage& node, const TensorMessage& tensor) const;
  std::string where(const NodeMessage& node) const;
  const std::string& file() const { return file_->path(); }

 private:
  void declareInput(const ValueMessage& input);
  DimExpr sizeOf(const ValueMessage& input, size_t axis);
  std::string symbolFor(std::string_view text);
  void declare(const GraphMessage& graph);
  void nodes(const std::vector<NodeMessage>& nodes, bool isTop);
  void node(const NodeMessage& node);
  void call(const FunctionMessage& function, const NodeMessage& node, const Attributes& attributes,
            const std::vector<Value>& operands);
  const FunctionMessage* functionOf(const NodeMessage& node) const;
  Attributes attributesOf(const NodeMessage& node) const;
  std::vector<Value> operandsOf(const NodeMessage& node) const;
  const Value* lookUp(std::string_view name) const;
  void define(const NodeMessage& node, std::vector<Value> values,
              const std::vector<Value>& operands);
  bool foldIntegers(Node& node, const std::vector<Value>& operands);
  bool foldNumbers(const Lowering& lowering, Node& node, const std::vector<Value>& operands);
  [[noreturn]] void fail(ErrorCode code, const std::string& text) const;
  [[noreturn]] void rethrow(const Error& e, const NodeMessage& node,
                            const std::vector<Value>& operands) const;

  std::shared_ptr<const OnnxFile> file_;
  const OnnxOptions& options_;
  Graph main_;
  Graph* graph_;
  Frame* frame_ = nullptr;
  int depth_ = 0;             // of functions and graphs within each other
  size_t recordedNodes_ = 0;  // expansions included
  size_t number_ = 0;         // of the node of the file's graph, from 1
  std::map<std::string, std::string, std::less<>> symbols_;  // of the graph, by the file's text
  std::vector<std::string> bareSymbols_;
  std::vector<std::string> inputs_, outputs_;
};

}  // namespace lathe::onnx
