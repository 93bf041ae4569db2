// SPDX-License-Identifier: Apache-2.0
// Which field of which message is what. Numbers of fields are those of ONNX's specification.
#include "runtime/onnx_model.h"

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"
#include "runtime/onnx_wire.h"

namespace lathe::onnx {
namespace {

void read(WireReader r, GraphMessage& graph);

void readEntry(WireReader r, std::string_view& key, std::string_view& value) {
  while (r.next()) {
    if (r.field() == 1) key = r.text("key");
    if (r.field() == 2) value = r.text("value");
  }
}

void read(WireReader r, TensorMessage& tensor) {
  auto numbers = [&](const char* name) {
    if (tensor.numbersField && tensor.numbersField != r.field())
      r.fail(name, "the tensor has values in two fields");
    tensor.numbersField = r.field();
    r.packed(name, tensor.numbers);
  };
  while (r.next()) switch (r.field()) {
      case 1:
        r.integers("dims", tensor.dims);
        break;
      case 2:
        tensor.type = ElementType(r.integer("data_type"));
        break;
      case 3:
        r.fail("segment", "a tensor in segments is not supported");
      case 4:
        numbers("float_data");
        break;
      case 5:
        numbers("int32_data");
        break;
      case 7:
        numbers("int64_data");
        break;
      case 10:
        numbers("double_data");
        break;
      case 11:
        numbers("uint64_data");
        break;
      case 8:
        tensor.name = r.text("name");
        break;
      case 9:
        tensor.hasRaw = true;
        tensor.raw = r.bytes("raw_data");
        break;
      case 13: {
        std::string_view key, value;
        readEntry(r.message("external_data"), key, value);
        if (key == "location") tensor.location = value;
        if (key == "offset") tensor.externalOffset = value;
        if (key == "length") tensor.externalLength = value;
        break;
      }
      case 14:
        tensor.isExternal = r.integer("data_location") == 1;
        break;
    }
  if (tensor.dims.size() > 64) r.fail("dims", "expected at most 64 axes");
}

void read(WireReader r, AttributeMessage& a) {
  using Type = AttributeMessage::Type;
  bool hasType = false;
  auto is = [&](Type type) {
    if (!hasType) a.type = type;
  };
  while (r.next()) switch (r.field()) {
      case 1:
        a.name = r.text("name");
        break;
      case 2:
        a.f = r.real("f");
        is(Type::Float);
        break;
      case 3:
        a.i = r.integer("i");
        is(Type::Int);
        break;
      case 4:
        a.s = r.bytes("s");
        is(Type::String);
        break;
      case 5:
        a.tensor = std::make_shared<TensorMessage>();
        read(r.message("t"), *a.tensor);
        is(Type::Tensor);
        break;
      case 6:
        a.graph = std::make_shared<GraphMessage>();
        read(r.message("g"), *a.graph);
        is(Type::Graph);
        break;
      case 7:
        r.reals("floats", a.floats);
        is(Type::Floats);
        break;
      case 8:
        r.integers("ints", a.ints);
        is(Type::Ints);
        break;
      case 9:
        a.strings.push_back(r.bytes("strings"));
        is(Type::Strings);
        break;
      case 10:
        is(Type::Tensors);
        break;
      case 11:
        is(Type::Graphs);
        break;
      case 14:
        is(Type::TypeProto);
        break;
      case 20:
        a.type = Type(r.integer("type"));
        hasType = true;
        break;
      case 21:
        a.reference = r.text("ref_attr_name");
        break;
      case 22:
        is(Type::SparseTensor);
        break;
    }
  if (a.name.empty()) r.fail("name", "an attribute without a name");
  if ((a.type == Type::Tensor && !a.tensor && a.reference.empty()) ||
      (a.type == Type::Graph && !a.graph && a.reference.empty()))
    r.fail("type", "the attribute's type says that it has a value, and it has none");
}

void read(WireReader r, NodeMessage& node) {
  while (r.next()) switch (r.field()) {
      case 1:
        node.inputs.push_back(r.text("input"));
        break;
      case 2:
        node.outputs.push_back(r.text("output"));
        break;
      case 3:
        node.name = r.text("name");
        break;
      case 4:
        node.op = r.text("op_type");
        break;
      case 5:
        read(r.message("attribute"), node.attributes.emplace_back());
        break;
      case 7:
        node.domain = r.text("domain");
        break;
      case 8:
        node.overload = r.text("overload");
        break;
    }
  if (node.op.empty()) r.fail("op_type", "a node without an op");
  if (node.domain == "ai.onnx") node.domain = {};
}

void readShape(WireReader r, std::vector<ValueMessage::Size>& shape) {
  while (r.next()) {
    if (r.field() != 1) continue;
    ValueMessage::Size& size = shape.emplace_back();
    WireReader dim = r.message("dim");
    while (dim.next()) {
      if (dim.field() == 1) size.number = dim.integer("dim_value");
      if (dim.field() == 2) size.symbol = dim.text("dim_param");
    }
    if (size.number && *size.number < 0) dim.fail("dim_value", "a negative size");
  }
  if (shape.size() > 64) r.fail("dim", "expected at most 64 axes");
}

void read(WireReader r, ValueMessage& value) {
  while (r.next()) switch (r.field()) {
      case 1:
        value.name = r.text("name");
        break;
      case 2: {
        WireReader type = r.message("type");
        while (type.next()) switch (type.field()) {
            case 1: {
              value.kind = "tensor";
              WireReader tensor = type.message("tensor_type");
              while (tensor.next()) {
                if (tensor.field() == 1) value.type = ElementType(tensor.integer("elem_type"));
                if (tensor.field() == 2) readShape(tensor.message("shape"), value.shape.emplace());
              }
              break;
            }
            case 4:
              value.kind = "sequence";
              break;
            case 5:
              value.kind = "map";
              break;
            case 8:
              value.kind = "sparse tensor";
              break;
            case 9:
              value.kind = "optional";
              break;
          }
        break;
      }
    }
}

void read(WireReader r, GraphMessage& graph) {
  while (r.next()) switch (r.field()) {
      case 1:
        read(r.message("node"), graph.nodes.emplace_back());
        break;
      case 2:
        graph.name = r.text("name");
        break;
      case 5:
        read(r.message("initializer"), graph.initializers.emplace_back());
        break;
      case 11:
        read(r.message("input"), graph.inputs.emplace_back());
        break;
      case 12:
        read(r.message("output"), graph.outputs.emplace_back());
        break;
      case 15:
        graph.hasSparse = true;
        break;
    }
}

void readOpset(WireReader r, std::map<std::string, int64_t, std::less<>>& opsets) {
  std::string_view domain;
  int64_t version = 0;
  while (r.next()) {
    if (r.field() == 1) domain = r.text("domain");
    if (r.field() == 2) version = r.integer("version");
  }
  opsets[std::string(domain == "ai.onnx" ? std::string_view() : domain)] = version;
}

void read(WireReader r, FunctionMessage& function) {
  while (r.next()) switch (r.field()) {
      case 1:
        function.name = r.text("name");
        break;
      case 4:
        function.inputs.push_back(r.text("input"));
        break;
      case 5:
        function.outputs.push_back(r.text("output"));
        break;
      case 6:
        function.attributeNames.push_back(r.text("attribute"));
        break;
      case 7:
        read(r.message("node"), function.nodes.emplace_back());
        break;
      case 9:
        readOpset(r.message("opset_import"), function.opsets);
        break;
      case 10:
        function.domain = r.text("domain");
        break;
      case 11:
        read(r.message("attribute_proto"), function.attributes.emplace_back());
        break;
      case 13:
        function.overload = r.text("overload");
        break;
    }
  if (function.domain == "ai.onnx") function.domain = {};
}

}  // namespace

std::shared_ptr<const OnnxFile> OnnxFile::open(const std::string& path) {
  auto onnx = std::make_shared<OnnxFile>();
  onnx->path_ = path;
  onnx->file_ = MappedFile::open(path);
  const std::string_view bytes(reinterpret_cast<const char*>(onnx->file_->data()),
                               onnx->file_->size());
  WireLimits limits{.file = path, .start = bytes.data()};
  WireReader r(bytes, limits, "model");
  bool hasGraph = false;
  while (r.next()) switch (r.field()) {
      case 7:
        if (hasGraph) r.fail("graph", "the model has two graphs");
        hasGraph = true;
        read(r.message("graph"), onnx->graph_);
        break;
      case 8:
        readOpset(r.message("opset_import"), onnx->opsets_);
        break;
      case 25:
        read(r.message("functions"), onnx->functions_.emplace_back());
        break;
    }
  if (!hasGraph) r.fail("graph", "expected an ONNX model, found no graph in the file");
  return onnx;
}

Array OnnxFile::readTensor(const std::string& path) {
  OnnxFile onnx;
  onnx.path_ = path;
  onnx.file_ = MappedFile::open(path);
  const std::string_view bytes(reinterpret_cast<const char*>(onnx.file_->data()),
                               onnx.file_->size());
  WireLimits limits{.file = path, .start = bytes.data()};
  TensorMessage tensor;
  read(WireReader(bytes, limits, "tensor"), tensor);
  return onnx.array(tensor).clone();
}

std::vector<OnnxFile::NamedTensor> OnnxFile::weights() const {
  std::vector<NamedTensor> found;
  for (const TensorMessage& t : graph_.initializers)
    if (!t.name.empty() && isWeight(t)) found.push_back({t.name, &t});
  for (const NodeMessage& node : graph_.nodes)
    if (node.op == "Constant" && node.domain.empty() && node.outputs.size() == 1 &&
        !node.outputs[0].empty())
      for (const AttributeMessage& a : node.attributes)
        if (a.name == "value" && a.tensor && isWeight(*a.tensor))
          found.push_back({node.outputs[0], a.tensor.get()});
  return found;
}

}  // namespace lathe::onnx
