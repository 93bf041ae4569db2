// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/node.h"

#include <algorithm>

#include <fmt/format.h>

#include "frontend/onnx/importer.h"
#include "lathe/runtime/error.h"

namespace lathe::onnx {

Node::Node(Importer& importer, const NodeMessage& message, Attributes attributes,
           std::vector<Value> operands)
    : importer_(importer),
      message_(message),
      attributes_(std::move(attributes)),
      operands_(std::move(operands)) {}

int64_t Node::opset() const { return importer_.opset(); }
Graph& Node::graph() const { return importer_.graph(); }

void Node::refuse(const std::string& text) const {
  throw Error(ErrorCode::Unsupported, importer_.where(message_) + ": " + text);
}
void Node::fail(const std::string& text) const {
  throw Error(ErrorCode::InvalidFile, importer_.where(message_) + ": " + text);
}
void Node::expect(std::string_view attribute, int64_t value) const {
  if (const int64_t got = this->attribute(attribute, value); got != value)
    refuse(fmt::format("attribute '{}': expected {}, got {}", attribute, value, got));
}
void Node::expectOperands(size_t count) const {
  for (size_t i = 0; i < count; ++i)
    if (!has(i))
      fail(fmt::format("expected {} operands at least, operand {} is missing", count, i));
}

// --- operands

const Value& Node::value(size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  return operands_[i];
}
Tensor Node::recorded(const Value& value) const { return importer_.recorded(value); }
Tensor Node::in(size_t i) const { return recorded(value(i)); }
Tensor Node::in(size_t i, DType dtype) const { return as(in(i), dtype); }

void Node::refuseUnknown(size_t i) const {
  const Value& operand = value(i);
  const std::string name(message_.inputs[i]);
  if (!operand.roots.empty())
    throw OnnxConstantNeeded(
        fmt::format("{}: operand '{}' must be known when the graph is recorded; give the value of "
                    "input '{}' as a constant (--constant {}=SPEC, OnnxOptions::constants)",
                    importer_.where(message_), name, operand.roots[0], operand.roots[0]),
        operand.roots[0]);
  if (operand.kind == Value::Kind::Sizes)
    refuse(fmt::format("operand '{}' depends on symbolic sizes, expected numbers", name));
  refuse(
      fmt::format("operand '{}' is computed by the graph; it must be known when the graph is "
                  "recorded",
                  name));
}

Dims Node::dims(size_t i) const {
  if (auto list = value(i).asSizes()) return list->items;
  if (value(i).kind == Value::Kind::Numbers) {
    const Array& array = value(i).numbers();
    if (isFloat(array.dtype())) fail(fmt::format("operand {} has no integers", i));
    if (array.size() > 1 << 20) refuse(fmt::format("operand {} has {} elements", i, array.size()));
    Dims dims;
    for (int64_t k = 0; k < array.size(); ++k)
      dims.push_back(array.dtype() == DType::I64 ? array.as<int64_t>()[size_t(k)]
                                                 : int64_t(array.at(k)));
    return dims;
  }
  refuseUnknown(i);
}
std::vector<int64_t> Node::ints(size_t i) const {
  std::vector<int64_t> numbers;
  for (const DimExpr& d : dims(i)) {
    const auto n = d.asConstant();
    if (!n) refuseUnknown(i);
    numbers.push_back(*n);
  }
  return numbers;
}
int64_t Node::integer(size_t i) const {
  const std::vector<int64_t> numbers = ints(i);
  if (numbers.size() != 1) fail(fmt::format("operand {}: expected one number", i));
  return numbers[0];
}
Array Node::numbers(size_t i) const {
  const Value known = value(i).withoutSymbols();
  if (known.kind != Value::Kind::Numbers) refuseUnknown(i);
  return known.numbers();
}

// --- attributes

const AttributeMessage* Node::find(std::string_view name) const {
  auto found = attributes_.find(name);
  return found == attributes_.end() ? nullptr : found->second;
}
using Type = AttributeMessage::Type;
static const AttributeMessage* expectType(const Node& node, const AttributeMessage* a, Type type) {
  if (a && a->type != type)
    node.fail(
        fmt::format("attribute '{}': expected type {}, got {}", a->name, int(type), int(a->type)));
  return a;
}
int64_t Node::attribute(std::string_view name, int64_t otherwise) const {
  const AttributeMessage* a = expectType(*this, find(name), Type::Int);
  return a ? a->i : otherwise;
}
double Node::real(std::string_view name, double otherwise) const {
  const AttributeMessage* a = expectType(*this, find(name), Type::Float);
  return a ? double(a->f) : otherwise;
}
std::string Node::text(std::string_view name, std::string_view otherwise) const {
  const AttributeMessage* a = expectType(*this, find(name), Type::String);
  return std::string(a ? a->s : otherwise);
}
std::vector<int64_t> Node::list(std::string_view name) const {
  const AttributeMessage* a = expectType(*this, find(name), Type::Ints);
  return a ? a->ints : std::vector<int64_t>();
}
std::vector<double> Node::reals(std::string_view name) const {
  const AttributeMessage* a = expectType(*this, find(name), Type::Floats);
  return a ? std::vector<double>(a->floats.begin(), a->floats.end()) : std::vector<double>();
}
const GraphMessage& Node::subgraph(std::string_view name) const {
  const AttributeMessage* a = expectType(*this, find(name), Type::Graph);
  if (!a || !a->graph) fail(fmt::format("attribute '{}': expected a graph, got none", name));
  return *a->graph;
}
DType Node::dtypeAttribute(std::string_view name, DType otherwise) const {
  if (!hasAttribute(name)) return otherwise;
  const auto type = ElementType(attribute(name, 0));
  if (auto dtype = dtypeOf(type)) return *dtype;
  refuse(fmt::format("attribute '{}': element type {} is not supported", name, nameOf(type)));
}

int64_t Node::axis(int64_t axis, int64_t rank) const {
  if (axis < -rank || axis >= rank) fail(fmt::format("axis {} is outside of rank {}", axis, rank));
  return axis < 0 ? axis + rank : axis;
}
std::optional<std::vector<int64_t>> Node::axes(size_t operand, int64_t rank) const {
  std::vector<int64_t> found;
  if (has(operand))
    found = ints(operand);
  else if (hasAttribute("axes"))
    found = list("axes");
  else
    return std::nullopt;
  for (int64_t& a : found) a = axis(a, rank);
  std::vector<int64_t> sorted = found;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) != sorted.end()) fail("an axis is listed twice");
  return found;
}

// --- results and values

void Node::set(size_t i, Value value) {
  if (made_.size() <= i) made_.resize(i + 1);
  made_[i] = std::move(value);
}

Tensor Node::scalar(double value, DType dtype) const { return graph().constant(value, dtype); }
Tensor Node::constant(const Array& values) const { return recorded(Value::ofNumbers(values)); }
Value Node::ofMessage(const TensorMessage& tensor) const {
  return importer_.ofMessage(message_, tensor);
}
Tensor Node::sizeValue(const Dim& size, DType dtype) const {
  return as(recorded(Value(SizeList{DType::I64, {}, {size}})), dtype);
}
std::vector<Value> Node::run(const GraphMessage& graph, std::vector<Value> inputs) const {
  return importer_.run(graph, std::move(inputs));
}

// --- what several lowerings write

Tensor reshaped(const Tensor& x, const Dims& shape) {
  return x.shape() == shape ? x : reshape(x, shape);
}
Tensor broadcasted(const Tensor& x, const Dims& shape) {
  return x.shape() == shape ? x : broadcast(x, shape);
}
Tensor permuted(const Tensor& x, const Axes& permutation) {
  return std::ranges::is_sorted(permutation) ? x : transpose(x, permutation);
}
Dim product(const Dims& dims, size_t first, size_t last) {
  Dim all(1);
  for (size_t i = first; i < std::min(last, dims.size()); ++i) all = all * dims[i];
  return all;
}
Tensor alongChannels(const Tensor& x, int64_t rank) {
  Dims shape(size_t(rank), Dim(1));
  shape[1] = x.dim(0);
  return reshaped(x, shape);
}
Tensor zeroPadded(const Tensor& x, const Axes& low, const Axes& high, double value) {
  auto none = [](int64_t n) { return n == 0; };
  if (std::ranges::all_of(low, none) && std::ranges::all_of(high, none)) return x;
  return pad(x, scalarLike(x, value), low, high);
}

// --- the table

const std::vector<Lowering>& lowerings() {
  static const std::vector<Lowering> table = [] {
    std::vector<Lowering> all;
    for (auto list :
         {elementwiseLowerings(), functionLowerings(), shapeLowerings(), rearrangementLowerings(),
          constantLowerings(), reductionLowerings(), lossLowerings(), matmulLowerings(),
          normalizationLowerings(), convolutionLowerings(), poolingLowerings(), indexingLowerings(),
          quantizationLowerings(), attentionLowerings(), resizeLowerings(), controlLowerings()})
      all.insert(all.end(), list.begin(), list.end());
    std::ranges::sort(all, [](const Lowering& a, const Lowering& b) {
      return std::pair(a.op, a.domain) < std::pair(b.op, b.domain);
    });
    return all;
  }();
  return table;
}

const Lowering* findLowering(std::string_view domain, std::string_view op) {
  const auto& table = lowerings();
  auto at = std::ranges::lower_bound(table, op, {}, &Lowering::op);
  for (; at != table.end() && at->op == op; ++at)
    if (at->domain == domain) return &*at;
  return nullptr;
}

}  // namespace lathe::onnx
