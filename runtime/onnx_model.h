// SPDX-License-Identifier: Apache-2.0
#pragma once
// The messages of an ONNX file, as far as Lathe reads them
// (https://github.com/onnx/onnx/blob/main/docs/IR.md). Views point into the mapped file, which the
// OnnxFile keeps alive.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/array.h"
#include "lathe/runtime/axis_piece.h"

namespace lathe {
class MappedFile;
}

namespace lathe::onnx {

/// TensorProto.DataType.
enum class ElementType : int32_t {
  Float = 1,
  UInt8,
  Int8,
  UInt16,
  Int16,
  Int32,
  Int64,
  String,
  Bool,
  Float16,
  Double,
  UInt32,
  UInt64,
  Complex64,
  Complex128,
  BFloat16,
  Float8E4M3FN,
  Float8E4M3FNUZ,
  Float8E5M2,
  Float8E5M2FNUZ,
  UInt4,
  Int4,
  Float4E2M1,
  Float8E8M0,
  UInt2,
  Int2
};
/// "UINT16", or the number where it is no known type.
std::string nameOf(ElementType type);
/// What an Array holds it as; nothing where there is no dtype of ours.
std::optional<DType> dtypeOf(ElementType type);
ElementType elementTypeOf(DType dtype);

struct TensorMessage {
  std::string_view name;
  Shape dims;
  ElementType type{};
  bool hasRaw = false;
  std::string_view raw;                   ///< little endian, row-major
  std::vector<std::string_view> numbers;  ///< of the typed field, packed or one by one
  uint32_t numbersField = 0;              ///< which one it is: 4 float_data ... 11 uint64_data
  bool isExternal = false;
  std::string_view location;  ///< of external data: a path from the model's folder
  std::string_view externalOffset, externalLength;  ///< decimal; empty: from 0, to the end
};

struct GraphMessage;

struct AttributeMessage {
  /// AttributeProto.AttributeType.
  enum class Type : int32_t {
    Undefined,
    Float,
    Int,
    String,
    Tensor,
    Graph,
    Floats,
    Ints,
    Strings,
    Tensors,
    Graphs,
    SparseTensor,
    SparseTensors,
    TypeProto,
    TypeProtos
  };
  std::string_view name, reference;  ///< `reference`: the function's attribute that it stands for
  Type type = Type::Undefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::shared_ptr<TensorMessage> tensor;
  std::shared_ptr<GraphMessage> graph;
};

struct NodeMessage {
  std::vector<std::string_view> inputs, outputs;
  std::string_view name, op, domain, overload;
  std::vector<AttributeMessage> attributes;
};

struct ValueMessage {
  struct Size {
    std::optional<int64_t> number;
    std::string_view symbol;
  };
  std::string_view name;
  std::string_view kind;  ///< "tensor", "sequence", "optional", "map", "sparse tensor" or empty
  ElementType type{};
  std::optional<std::vector<Size>> shape;
};

struct GraphMessage {
  std::string_view name;
  std::vector<NodeMessage> nodes;
  std::vector<TensorMessage> initializers;
  std::vector<ValueMessage> inputs, outputs;
  bool hasSparse = false;
};

struct FunctionMessage {
  std::string_view name, domain, overload;
  std::vector<std::string_view> inputs, outputs, attributeNames;
  std::vector<AttributeMessage> attributes;  ///< those with a default
  std::vector<NodeMessage> nodes;
  std::map<std::string, int64_t, std::less<>> opsets;
};

/// Attributes and names are read and checked when the file is opened; values of tensors when they
/// are asked for.
class OnnxFile {
 public:
  /// Throws Error: Io, or InvalidFile that names the file, the byte and the field.
  static std::shared_ptr<const OnnxFile> open(const std::string& path);
  /// One TensorProto, as ONNX's own test data has them in .pb files.
  static Array readTensor(const std::string& path);

  const std::string& path() const { return path_; }
  const GraphMessage& graph() const { return graph_; }
  const std::vector<FunctionMessage>& functions() const { return functions_; }
  /// Version by domain; "" is ONNX's own.
  const std::map<std::string, int64_t, std::less<>>& opsets() const { return opsets_; }

  /// The values: a view of the file where it can be one. Throws Error (InvalidFile) for data that
  /// do not fit the shape or lie outside of their file, Unsupported for types without a dtype.
  Array array(const TensorMessage& tensor) const;

  /// A piece of them, of which nothing else is read. Throws as array() does.
  Array piece(const TensorMessage& tensor, const AxisPiece& piece) const;
  /// Whether there are such pieces: of raw bytes, here or in a file of their own.
  static bool hasPieces(const TensorMessage& tensor, const AxisPiece& piece);

  /// Tensors that are weights of the model: initializers, and constants among the graph's nodes, of
  /// more than kInline elements and of a dtype of ours. Smaller ones are literals of its IR.
  static constexpr int64_t kInline = 64;
  static bool isWeight(const TensorMessage& tensor);
  struct NamedTensor {
    std::string_view name;
    const TensorMessage* tensor;
  };
  std::vector<NamedTensor> weights() const;

 private:
  std::string_view external(const TensorMessage& tensor, std::shared_ptr<MappedFile>& owner) const;

  std::string path_;
  std::shared_ptr<MappedFile> file_;
  GraphMessage graph_;
  std::vector<FunctionMessage> functions_;
  std::map<std::string, int64_t, std::less<>> opsets_;
  mutable std::map<std::string, std::shared_ptr<MappedFile>, std::less<>> externals_;
};

}  // namespace lathe::onnx
