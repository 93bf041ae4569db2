// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/importer.h"

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>

#include <fmt/format.h>

#include "frontend/graph_impl.h"
#include "lathe/backends/interpreter.h"
#include "runtime/foreign_line.h"

namespace lathe::onnx {
namespace {

constexpr int64_t kOldestOpset = 7, kNewestOpset = 28;
constexpr size_t kMostNodes = 200'000;    // recorded, expansions of functions included
constexpr int kMostDepth = 32;            // functions and graphs within each other
constexpr int64_t kMostFolded = 1 << 16;  // elements of an operand or result that is folded
constexpr int64_t kMostFoldedWork = 1 << 22;
constexpr int64_t kMostLiteral = 1 << 20;
constexpr int64_t kLargestRoot = 4096;

bool isKept(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// A node's name as a module path: "/model/layers.0/MatMul" is model.layers.0.MatMul.
std::string pathOf(std::string_view name) {
  std::string path;
  for (char c : name)
    if (c != '/' || (!path.empty() && path.back() != '.')) path += c == '/' ? '.' : c;
  while (path.ends_with('.')) path.pop_back();
  return path;
}

// An error's words without the line of our own that they begin with.
std::string wordsOf(const Error& e) {
  std::string text = e.what();
  const std::string prefix = e.file() + ":" + std::to_string(e.line()) + ": ";
  if (!e.file().empty() && text.starts_with(prefix)) text.erase(0, prefix.size());
  return text;
}

class FrameScope {
 public:
  FrameScope(Frame*& present, Frame& frame, int& depth)
      : present_(present), old_(present), depth_(depth) {
    present_ = &frame;
    ++depth_;
  }
  ~FrameScope() {
    present_ = old_;
    --depth_;
  }

 private:
  Frame*& present_;
  Frame* old_;
  int& depth_;
};

}  // namespace

Importer::Importer(std::shared_ptr<const OnnxFile> file, const OnnxOptions& options)
    : file_(std::move(file)),
      options_(options),
      main_("onnx", foreignLine(file_->path(), 1)),
      graph_(&main_) {}

void Importer::fail(ErrorCode code, const std::string& text) const {
  throw Error(code, file_->path() + ": " + text);
}

std::string Importer::where(const NodeMessage& node) const {
  std::string text = fmt::format("{}: node {}", file_->path(), number_);
  if (!node.name.empty()) text += fmt::format(" '{}'", node.name);
  if (frame_ && !frame_->path.empty()) text += " in " + frame_->path;
  return text + fmt::format(" ({}{}{})", node.domain, node.domain.empty() ? "" : "::", node.op);
}

int64_t Importer::opset(std::string_view domain) const {
  const auto& opsets = frame_ && frame_->opsets ? *frame_->opsets : file_->opsets();
  auto found = opsets.find(domain);
  return found == opsets.end() ? kOldestOpset : found->second;
}

// --- inputs and sizes

std::string Importer::symbolFor(std::string_view text) {
  auto [entry, isNew] = symbols_.emplace(text, "");
  if (!isNew) return entry->second;
  std::string name;
  for (char c : text) name += isKept(c) ? c : '_';
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "s" + name;
  auto taken = [&](const std::string& candidate) {
    return std::ranges::any_of(symbols_, [&](auto& s) { return s.second == candidate; }) ||
           candidate == "forward";
  };
  std::string unique = name;
  for (int i = 2; taken(unique); ++i) unique = name + "_" + std::to_string(i);
  entry->second = unique;
  main_.dim(unique, 1, options_.largest);
  return unique;
}

// A text such as "past + seq" is a polynomial where each of its symbols is the size of some axis
// itself: from there a call takes their values.
DimExpr Importer::sizeOf(const ValueMessage& input, size_t axis) {
  const ValueMessage::Size& size = (*input.shape)[axis];
  if (size.number) return *size.number;
  if (size.symbol.empty())
    return DimExpr::symbol(symbolFor(fmt::format("{}_{}", input.name, axis)));
  const auto expression = DimExpr::parse(size.symbol);
  auto isBare = [&](const std::string& s) { return std::ranges::count(bareSymbols_, s) > 0; };
  if (!expression || expression->symbols().empty() ||
      !std::ranges::all_of(expression->symbols(), isBare))
    return DimExpr::symbol(symbolFor(size.symbol));
  DimExpr sum;
  for (auto& [monomial, factor] : expression->terms()) {
    DimExpr term(factor);
    for (const std::string& symbol : monomial) term = term * DimExpr::symbol(symbolFor(symbol));
    sum = sum + term;
  }
  return sum;
}

void Importer::declareInput(const ValueMessage& input) {
  if (input.name.empty()) fail(ErrorCode::InvalidFile, "graph.input: an input without a name");
  if (auto given = options_.constants.find(input.name); given != options_.constants.end()) {
    const Array& constant = given->second;
    if (input.kind == "tensor" && input.type != elementTypeOf(constant.dtype()))
      throw Error(
          ErrorCode::InvalidArgument,
          fmt::format("{}: the constant for input '{}' is {}, expected {}", file(), input.name,
                      nameOf(elementTypeOf(constant.dtype())), nameOf(input.type)));
    frame_->values[input.name] = Value::ofNumbers(constant);
    return;
  }
  const std::string what = fmt::format("input '{}': ", input.name);
  if (input.kind != "tensor")
    fail(ErrorCode::Unsupported,
         what + "expected a tensor, got " +
             (input.kind.empty() ? "an unknown type"
                                 : "a value of type " + std::string(input.kind)));
  const auto dtype = dtypeOf(input.type);
  if (!dtype)
    fail(ErrorCode::Unsupported, what + "element type " + nameOf(input.type) + " is not supported");
  if (!input.shape) fail(ErrorCode::Unsupported, what + "a tensor of unknown rank");
  Dims shape;
  Shape fixed;
  for (size_t i = 0; i < input.shape->size(); ++i) {
    shape.push_back(sizeOf(input, i));
    if (auto n = shape.back().asConstant()) fixed.push_back(*n);
  }
  Value value(graph_->input(input.name, *dtype, shape, foreignLine(file_->path(), 1)));
  if (fixed.size() == shape.size() && countOf(fixed) <= kLargestRoot)
    value.roots = {std::string(input.name)};
  frame_->values[input.name] = std::move(value);
  inputs_.emplace_back(input.name);
}

// Initializers; large ones of the file's graph are weights.
void Importer::declare(const GraphMessage& graph) {
  if (graph.hasSparse) fail(ErrorCode::Unsupported, "a sparse initializer");
  for (const TensorMessage& tensor : graph.initializers) {
    Value value = Value::ofMessage(*file_, tensor);
    if (&graph == &file_->graph() && OnnxFile::isWeight(tensor)) value.known->weight = tensor.name;
    if (!frame_->values.emplace(tensor.name, std::move(value)).second)
      fail(ErrorCode::InvalidFile, fmt::format("initializer '{}' is there twice", tensor.name));
  }
}

OnnxModel Importer::import() {
  if (file_->opsets().empty())
    fail(ErrorCode::InvalidFile, "opset_import: expected the version of the ops, got none");
  if (const int64_t version = opset(); version < kOldestOpset || version > kNewestOpset)
    fail(ErrorCode::Unsupported, fmt::format("opset_import: expected opset {} to {}, got {}",
                                             kOldestOpset, kNewestOpset, version));
  const GraphMessage& graph = file_->graph();
  Frame frame{.opsets = &file_->opsets()};
  const FrameScope scope(frame_, frame, depth_);
  main_.entry("forward", foreignLine(file_->path(), 1));
  declare(graph);
  for (const ValueMessage& input : graph.inputs)
    if (input.shape)
      for (const ValueMessage::Size& size : *input.shape)
        if (auto e = DimExpr::parse(size.symbol);
            !size.symbol.empty() && e && e->terms().size() == 1 && e->text() == size.symbol &&
            e->symbols().size() == 1)
          bareSymbols_.push_back(e->text());
  std::set<std::string_view> names;
  for (const ValueMessage& input : graph.inputs) {
    if (!names.insert(input.name).second)
      fail(ErrorCode::InvalidFile, fmt::format("input '{}' is there twice", input.name));
    // Old files list initializers as inputs, too.
    if (!frame.values.contains(input.name)) declareInput(input);
  }
  for (auto& [name, value] : options_.constants)
    if (!names.contains(name))
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: a constant is given for '{}', which is no input", file(), name));
  nodes(graph.nodes, /*isTop=*/true);
  // Weights that no node reads are there, too: the file holds them.
  for (const OnnxFile::NamedTensor& weight : file_->weights())
    main_.weight(weight.name, *dtypeOf(weight.tensor->type), weight.tensor->dims,
                 foreignLine(file_->path(), 1));
  if (graph.outputs.empty()) fail(ErrorCode::InvalidFile, "graph.output: expected an output");
  for (const ValueMessage& output : graph.outputs) {
    const Value* value = lookUp(output.name);
    if (!value) fail(ErrorCode::InvalidFile, fmt::format("no node makes output '{}'", output.name));
    if (value->kind == Value::Kind::Sequence || value->kind == Value::Kind::Absent)
      fail(ErrorCode::Unsupported, fmt::format("output '{}' is no tensor", output.name));
    const Tensor made = recorded(*value);
    const bool isDeclared = output.kind == "tensor" && output.type != ElementType{};
    if (isDeclared && output.type != elementTypeOf(made.dtype()))
      fail(dtypeOf(output.type) ? ErrorCode::InvalidFile : ErrorCode::Unsupported,
           fmt::format("output '{}': declared {}, its node makes {}", output.name,
                       nameOf(output.type), nameOf(elementTypeOf(made.dtype()))));
    main_.output(output.name, made, foreignLine(file_->path(), unsigned(number_)));
    outputs_.emplace_back(output.name);
  }
  return {std::move(main_), inputs_, outputs_, Checkpoint::open(file_->path())};
}

// --- values

const Value* Importer::lookUp(std::string_view name) const {
  for (const Frame* frame = frame_; frame; frame = frame->parent)
    if (auto found = frame->values.find(name); found != frame->values.end()) return &found->second;
  return nullptr;
}

Tensor Importer::recorded(const Value& value) {
  switch (value.kind) {
    case Value::Kind::Recorded:
      return value.tensor;
    case Value::Kind::Numbers: {
      Value::Known& known = *value.known;
      const bool inMain = graph_ == &main_;
      if (inMain && known.recorded.defined()) return known.recorded;
      Tensor made;
      if (!known.weight.empty() && inMain) {
        made = main_.weight(known.weight, value.dtype(), known.message->dims);
      } else {
        const Array& array = value.numbers();
        if (array.size() > kMostLiteral)
          throw Error(
              ErrorCode::Unsupported,
              fmt::format("a constant of {} elements that is no initializer", array.size()));
        if (isPacked(array.dtype()))
          throw Error(ErrorCode::Unsupported,
                      fmt::format("a {} constant of at most {} elements", nameOf(array.dtype()),
                                  OnnxFile::kInline));
        // There are no literals without elements: one that is taken away again.
        Shape shape = array.shape();
        if (array.size()) {
          made = graph_->constant(array);
        } else {
          made = graph_->full(Dims(shape.begin(), shape.end()), 0, array.dtype());
        }
      }
      if (inMain) known.recorded = made;
      return made;
    }
    case Value::Kind::Sizes: {
      if (Value numbers = value.withoutSymbols(); numbers.kind == Value::Kind::Numbers)
        return recorded(numbers);
      const SizeList& list = value.sizes;
      std::vector<Tensor> parts;
      for (const DimExpr& item : list.items) {
        Tensor part;
        if (auto n = item.asConstant()) {
          Array number(DType::I64, {1});
          number.as<int64_t>()[0] = *n;
          part = graph_->constant(number);
        } else {
          // There is no op for a size: it is the sum of that many ones.
          for (auto& [monomial, factor] : item.terms()) {
            Array number(DType::I64, {1});
            number.as<int64_t>()[0] = factor;
            Tensor term = graph_->constant(number);
            for (const std::string& symbol : monomial)
              term = mul(term, reduceSum(graph_->full({DimExpr::symbol(symbol)}, 1, DType::I64),
                                         {0}, true));
            part = part.defined() ? add(part, term) : term;
          }
        }
        parts.push_back(part);
      }
      Tensor all = parts.size() == 1 ? parts[0] : concat(parts, 0);
      all = reshaped(all, Dims(list.shape.begin(), list.shape.end()));
      return as(all, list.dtype);
    }
    case Value::Kind::Absent:
      throw Error(ErrorCode::InvalidFile, "an operand that the op needs is left out");
    case Value::Kind::Sequence:
      throw Error(ErrorCode::Unsupported, "a sequence where a tensor is expected");
  }
  return {};
}

Value Importer::ofMessage(const NodeMessage& node, const TensorMessage& tensor) const {
  Value value = Value::ofMessage(*file_, tensor);
  const bool isOwn = !frame_->parent && !frame_->bound;
  if (isOwn && node.op == "Constant" && OnnxFile::isWeight(tensor))
    value.known->weight = node.outputs[0];
  return value;
}

// --- nodes

Attributes Importer::attributesOf(const NodeMessage& node) const {
  Attributes attributes;
  for (const AttributeMessage& a : node.attributes) {
    const AttributeMessage* attribute = &a;
    if (!a.reference.empty()) {
      if (!frame_->bound)
        throw Error(
            ErrorCode::InvalidFile,
            fmt::format("attribute '{}' refers to one of a function, outside of one", a.name));
      auto bound = frame_->bound->find(a.reference);
      if (bound == frame_->bound->end()) continue;
      attribute = bound->second;
    }
    if (!attributes.emplace(a.name, attribute).second)
      throw Error(ErrorCode::InvalidFile, fmt::format("attribute '{}' is there twice", a.name));
  }
  return attributes;
}

std::vector<Value> Importer::operandsOf(const NodeMessage& node) const {
  std::vector<Value> operands;
  for (std::string_view name : node.inputs) {
    const Value* value = name.empty() ? nullptr : lookUp(name);
    if (!value && !name.empty())
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("no node before it makes its input '{}'", name));
    operands.push_back(value ? *value : Value());
  }
  return operands;
}

const FunctionMessage* Importer::functionOf(const NodeMessage& node) const {
  for (const FunctionMessage& f : file_->functions())
    if (f.name == node.op && f.domain == node.domain && f.overload == node.overload) return &f;
  return nullptr;
}

void Importer::define(const NodeMessage& node, std::vector<Value> values,
                      const std::vector<Value>& operands) {
  std::vector<std::string> roots;
  for (const Value& operand : operands)
    for (const std::string& root : operand.roots)
      if (roots.size() < 8 && !std::ranges::count(roots, root)) roots.push_back(root);
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= values.size() || values[i].kind == Value::Kind::Absent) {
      // An output that nobody reads need not be there; reading it says so.
      continue;
    }
    if (values[i].kind == Value::Kind::Recorded) values[i].roots = roots;
    if (!frame_->values.try_emplace(node.outputs[i], std::move(values[i])).second)
      fail(ErrorCode::InvalidFile,
           fmt::format("'{}' is made twice: names of values are given once", node.outputs[i]));
  }
}

void Importer::nodes(const std::vector<NodeMessage>& nodes, bool isTop) {
  for (const NodeMessage& n : nodes) {
    if (isTop) ++number_;
    node(n);
  }
}

void Importer::rethrow(const Error& e, const NodeMessage& node,
                       const std::vector<Value>& operands) const {
  const std::string text = e.what();
  if (text.starts_with(file_->path() + ": ")) throw;
  // What the builder refuses of fixed shapes is the file's mistake; of symbols it may be a proof
  // that we cannot make.
  ErrorCode code = e.code();
  if (code == ErrorCode::InvalidArgument) {
    code = ErrorCode::InvalidFile;
    for (const Value& operand : operands)
      for (const DimExpr& d : operand.shape())
        if (!d.asConstant()) code = ErrorCode::Unsupported;
  }
  throw Error(code, where(node) + ": " + wordsOf(e));
}

void Importer::node(const NodeMessage& message) {
  if (++recordedNodes_ > kMostNodes)
    fail(ErrorCode::Unsupported,
         fmt::format("expected at most {} nodes, functions expanded", kMostNodes));
  std::vector<Value> operands;
  try {
    std::string path = pathOf(message.name);
    if (path.empty()) path = message.op;
    if (!frame_->path.empty()) path = frame_->path + "." + path;
    const Scope scope(graph_->recorder(), path, foreignLine(file_->path(), unsigned(number_)));
    operands = operandsOf(message);
    const Attributes attributes = attributesOf(message);
    const Lowering* lowering = findLowering(message.domain, message.op);
    if (!lowering) {
      if (const FunctionMessage* function = functionOf(message))
        return call(*function, message, attributes, operands);
      throw Error(ErrorCode::Unsupported, "there is no lowering of this op");
    }
    for (auto& [name, attribute] : attributes)
      if (!std::ranges::count(lowering->attributes, name))
        throw Error(ErrorCode::Unsupported,
                    fmt::format("the attribute '{}' is not supported", name));
    Node node(*this, message, attributes, operands);
    if (!foldIntegers(node, operands) && !foldNumbers(*lowering, node, operands))
      lowering->record(node);
    define(message, std::move(node.made()), operands);
  } catch (const OnnxConstantNeeded&) {
    throw;
  } catch (const Error& e) {
    rethrow(e, message, operands);
  } catch (const std::length_error&) {
    throw Error(ErrorCode::InvalidFile, where(message) + ": a size that no memory has");
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::OutOfMemory, where(message) + ": there is not enough memory");
  }
}

void Importer::call(const FunctionMessage& function, const NodeMessage& node,
                    const Attributes& attributes, const std::vector<Value>& operands) {
  if (depth_ >= kMostDepth)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("expected at most {} functions within each other", kMostDepth));
  Attributes bound = attributes;
  for (const AttributeMessage& a : function.attributes) bound.emplace(a.name, &a);
  for (auto& [name, attribute] : attributes)
    if (!std::ranges::count(function.attributeNames, name) &&
        !std::ranges::count(function.attributes, name, &AttributeMessage::name))
      throw Error(ErrorCode::InvalidFile, fmt::format("the function has no attribute '{}'", name));
  if (operands.size() > function.inputs.size())
    throw Error(ErrorCode::InvalidFile, fmt::format("the function takes {} inputs, got {}",
                                                    function.inputs.size(), operands.size()));
  Frame frame{.bound = &bound,
              .opsets = function.opsets.empty() ? &file_->opsets() : &function.opsets};
  std::string path = pathOf(node.name);
  if (path.empty()) path = node.op;
  frame.path = frame_->path.empty() ? path : frame_->path + "." + path;
  for (size_t i = 0; i < function.inputs.size(); ++i)
    frame.values[function.inputs[i]] = i < operands.size() ? operands[i] : Value();
  std::vector<Value> results;
  {
    const FrameScope scope(frame_, frame, depth_);
    nodes(function.nodes, false);
    for (std::string_view name : function.outputs) {
      const Value* value = lookUp(name);
      results.push_back(value ? *value : Value());
    }
  }
  define(node, std::move(results), operands);
}

std::vector<Value> Importer::run(const GraphMessage& graph, std::vector<Value> inputs) {
  if (depth_ >= kMostDepth)
    throw Error(ErrorCode::InvalidFile,
                fmt::format("expected at most {} graphs within each other", kMostDepth));
  if (inputs.size() != graph.inputs.size())
    throw Error(ErrorCode::InvalidFile, fmt::format("its graph takes {} inputs, got {}",
                                                    graph.inputs.size(), inputs.size()));
  Frame frame{
      .parent = frame_, .bound = frame_->bound, .opsets = frame_->opsets, .path = frame_->path};
  for (size_t i = 0; i < inputs.size(); ++i)
    frame.values[graph.inputs[i].name] = std::move(inputs[i]);
  const FrameScope scope(frame_, frame, depth_);
  declare(graph);
  nodes(graph.nodes, false);
  std::vector<Value> results;
  for (const ValueMessage& output : graph.outputs) {
    const Value* value = lookUp(output.name);
    if (!value)
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("no node of its graph makes output '{}'", output.name));
    results.push_back(*value);
  }
  return results;
}

// --- folding

bool Importer::foldIntegers(Node& node, const std::vector<Value>& operands) {
  if (operands.empty()) return false;
  SizeOperands o;
  for (const Value& operand : operands) {
    o.in.push_back(operand.asSizes());
    if (operand.kind != Value::Kind::Absent && !o.in.back()) return false;
  }
  o.attribute = [&](std::string_view name, int64_t otherwise) {
    return node.attribute(name, otherwise);
  };
  o.list = [&](std::string_view name) -> std::optional<std::vector<int64_t>> {
    return node.hasAttribute(name) ? std::optional(node.list(name)) : std::nullopt;
  };
  o.outputs = node.results();
  auto folded = foldSizes(node.op(), o);
  if (!folded) return false;
  for (size_t i = 0; i < folded->size(); ++i) node.set(i, std::move((*folded)[i]));
  return true;
}

// Nodes on numbers alone are computed by the reference interpreter: what an op means is written
// once, in its lowering.
bool Importer::foldNumbers(const Lowering& lowering, Node& node,
                           const std::vector<Value>& operands) {
  if (operands.empty() || graph_ != &main_) return false;
  // Graphs inside of a node see values of the graph around it.
  for (auto& [name, attribute] : node.attributes())
    if (attribute->graph) return false;
  std::vector<Value> known;
  bool any = false;
  for (const Value& operand : operands) {
    known.push_back(operand.withoutSymbols());
    if (operand.kind == Value::Kind::Absent) continue;
    const Value& value = known.back();
    if (value.kind != Value::Kind::Numbers || !value.known->weight.empty()) return false;
    Shape shape;
    for (const DimExpr& d : value.shape()) shape.push_back(d.asConstant().value_or(INT64_MAX));
    if (countOf(shape) > kMostFolded || isPacked(value.dtype())) return false;
    any = true;
  }
  if (!any) return false;
  Graph scratch("fold");
  graph_ = &scratch;
  struct Back {
    Graph*& graph;
    Graph* main;
    ~Back() { graph = main; }
  } back{graph_, &main_};
  scratch.entry("forward");
  Node own(*this, node.message(), node.attributes(), std::move(known));
  lowering.record(own);
  std::vector<size_t> places;
  for (size_t i = 0; i < own.made().size(); ++i) {
    if (own.made()[i].kind != Value::Kind::Recorded) continue;
    scratch.output(std::to_string(i), own.made()[i].tensor);
    places.push_back(i);
  }
  std::vector<Array> results;
  if (!places.empty()) {
    mlir::ModuleOp module = scratch.impl().finished();
    auto function = *module.getOps<mlir::func::FuncOp>().begin();
    int64_t work = 0;
    function.walk([&](mlir::Operation* op) {
      for (mlir::Type type : op->getResultTypes())
        if (auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type)) {
          const int64_t count =
              tensor.hasStaticShape()
                  ? countOf(Shape(tensor.getShape().begin(), tensor.getShape().end()))
                  : INT64_MAX;
          if (__builtin_add_overflow(work, count, &work)) work = INT64_MAX;
        }
    });
    if (work > kMostFoldedWork) return false;
    results = interpret(function, {}, {}, Precision::OwnDtype);
    for (const Array& result : results)
      if (result.size() > kMostFolded) return false;
  }
  for (size_t i = 0; i < places.size(); ++i)
    own.made()[places[i]] = Value::ofNumbers(std::move(results[i]));
  node.made() = std::move(own.made());
  return true;
}

}  // namespace lathe::onnx

namespace lathe {

OnnxModel loadOnnx(const std::string& path, const OnnxOptions& options) {
  if (options.largest < 1)
    throw Error(
        ErrorCode::InvalidArgument,
        "loadOnnx: expected a largest size of at least 1, got " + std::to_string(options.largest));
  return onnx::Importer(onnx::OnnxFile::open(path), options).import();
}

std::vector<std::string> onnxInputNames(const std::string& path) {
  const auto file = onnx::OnnxFile::open(path);
  std::vector<std::string> names;
  for (const onnx::ValueMessage& input : file->graph().inputs)
    if (!std::ranges::count(file->graph().initializers, input.name, &onnx::TensorMessage::name))
      names.emplace_back(input.name);
  return names;
}

Array loadOnnxTensor(const std::string& path) { return onnx::OnnxFile::readTensor(path); }

}  // namespace lathe
