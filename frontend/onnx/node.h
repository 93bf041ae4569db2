// SPDX-License-Identifier: Apache-2.0
#pragma once
// One node of an ONNX graph, as the function that lowers its op sees it.
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/onnx/value.h"
#include "lathe/ir/ops.h"

namespace lathe::onnx {

class Importer;

/// Attributes of a node by name, those of the surrounding function put in.
using Attributes = std::map<std::string_view, const AttributeMessage*>;

class Node {
 public:
  Node(Importer& importer, const NodeMessage& message, Attributes attributes,
       std::vector<Value> operands);

  const NodeMessage& message() const { return message_; }
  std::string_view op() const { return message_.op; }
  int64_t opset() const;
  Graph& graph() const;

  // --- operands; `i` counts those of the op's page, absent ones included
  size_t operands() const { return operands_.size(); }
  bool has(size_t i) const {
    return i < operands_.size() && operands_[i].kind != Value::Kind::Absent;
  }
  const Value& value(size_t i) const;
  Tensor in(size_t i) const;
  Tensor in(size_t i, DType dtype) const;
  /// An empty handle where the operand is left out.
  Tensor maybe(size_t i) const { return has(i) ? in(i) : Tensor(); }
  Tensor recorded(const Value& value) const;
  /// What must be known while the graph is recorded. Throws OnnxConstantNeeded, or Unsupported
  /// where it depends on no small input.
  std::vector<int64_t> ints(size_t i) const;
  Dims dims(size_t i) const;
  Array numbers(size_t i) const;
  int64_t integer(size_t i) const;
  bool isKnown(size_t i) const { return has(i) && operands_[i].isKnown(); }

  // --- attributes
  bool hasAttribute(std::string_view name) const { return attributes_.contains(name); }
  int64_t attribute(std::string_view name, int64_t otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  std::vector<int64_t> list(std::string_view name) const;
  std::vector<double> reals(std::string_view name) const;
  const AttributeMessage* find(std::string_view name) const;
  const GraphMessage& subgraph(std::string_view name) const;
  DType dtypeAttribute(std::string_view name, DType otherwise) const;
  const Attributes& attributes() const { return attributes_; }
  /// An axis from the front. Throws for one outside of the rank.
  int64_t axis(int64_t axis, int64_t rank) const;
  /// Axes of an operand or, in older opsets, of the attribute "axes"; nothing where there is none.
  std::optional<std::vector<int64_t>> axes(size_t operand, int64_t rank) const;

  // --- results
  size_t results() const { return message_.outputs.size(); }
  bool wants(size_t i) const { return i < results() && !message_.outputs[i].empty(); }
  void set(Value value) { set(0, std::move(value)); }
  void set(size_t i, Value value);
  std::vector<Value>& made() { return made_; }

  // --- values
  Tensor scalar(double value, DType dtype) const;
  Tensor constant(const Array& values) const;
  /// A tensor of an attribute; a weight if it is a large constant of the file's graph.
  Value ofMessage(const TensorMessage& tensor) const;
  /// A size as a rank-0 value.
  Tensor sizeValue(const Dim& size, DType dtype = DType::I64) const;
  /// Runs a graph of an attribute with values for its inputs.
  std::vector<Value> run(const GraphMessage& graph, std::vector<Value> inputs) const;

  /// Throws Unsupported, InvalidFile: "FILE: node 12 'NAME' (OP): TEXT".
  [[noreturn]] void refuse(const std::string& text) const;
  [[noreturn]] void fail(const std::string& text) const;
  /// Throws Unsupported for an attribute with another value than this.
  void expect(std::string_view attribute, int64_t value) const;
  /// Throws InvalidFile unless there are so many operands at least.
  void expectOperands(size_t count) const;

 private:
  [[noreturn]] void refuseUnknown(size_t i) const;
  Importer& importer_;
  const NodeMessage& message_;
  Attributes attributes_;
  std::vector<Value> operands_, made_;
};

/// How an op becomes ops of the dialect: the table that docs/onnx.md shows.
struct Lowering {
  std::string_view op;
  /// The attributes that `record` looks at. Others are refused: a later opset gives them meanings.
  std::vector<std::string_view> attributes;
  void (*record)(Node&);
  std::string_view limits = {};  ///< what of the op is refused, for the page
  std::string_view domain = {};
};

// The table, one list per kind of op.
std::span<const Lowering> elementwiseLowerings();
std::span<const Lowering> functionLowerings();
std::span<const Lowering> shapeLowerings();
std::span<const Lowering> rearrangementLowerings();
std::span<const Lowering> constantLowerings();
std::span<const Lowering> reductionLowerings();
std::span<const Lowering> lossLowerings();
std::span<const Lowering> matmulLowerings();
std::span<const Lowering> normalizationLowerings();
std::span<const Lowering> convolutionLowerings();
std::span<const Lowering> poolingLowerings();
std::span<const Lowering> indexingLowerings();
std::span<const Lowering> quantizationLowerings();
std::span<const Lowering> attentionLowerings();
std::span<const Lowering> controlLowerings();
std::span<const Lowering> resizeLowerings();
/// All of them, sorted by op.
const std::vector<Lowering>& lowerings();
/// Null where there is none.
const Lowering* findLowering(std::string_view domain, std::string_view op);

// --- what several lowerings write
inline Tensor as(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : cast(x, dtype); }
inline Tensor like(const Tensor& x, double value) { return scalarLike(x, value); }
/// The dtype that sums are made in: f64 for f64, f32 for other floats.
inline DType wide(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }
Tensor reshaped(const Tensor& x, const Dims& shape);
Tensor broadcasted(const Tensor& x, const Dims& shape);
Tensor permuted(const Tensor& x, const Axes& permutation);
Dim product(const Dims& dims, size_t first = 0, size_t last = SIZE_MAX);
/// x [c] as [1, c, 1, ..., 1] of a rank.
Tensor alongChannels(const Tensor& x, int64_t rank);
/// NumPy's shape of several operands together.
Tensor zeroPadded(const Tensor& x, const Axes& low, const Axes& high, double value = 0);

}  // namespace lathe::onnx
