// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a name of an ONNX graph stands for while the graph is recorded. Shapes are computed by ops
// there, so a value may be known already: as numbers, or as sizes with symbols.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/frontend/graph.h"
#include "runtime/onnx_model.h"

namespace lathe::onnx {

/// Integers (or bools) that may hold symbols: [batch, 2*seq, 64].
struct SizeList {
  DType dtype = DType::I64;
  Shape shape;
  std::vector<DimExpr> items;
};

struct Value {
  enum class Kind { Absent, Recorded, Numbers, Sizes, Sequence };

  /// Numbers that are known; of a weight they are read when they are asked for.
  struct Known {
    const OnnxFile* file = nullptr;
    const TensorMessage* message = nullptr;
    Array array;
    std::string weight;  ///< its name if it is one
    Tensor recorded;     ///< in the model's graph, once it was needed there
  };

  Kind kind = Kind::Absent;
  Tensor tensor;
  std::shared_ptr<Known> known;
  SizeList sizes;
  std::vector<Value> sequence;
  /// Small inputs of the graph that a recorded value depends on.
  std::vector<std::string> roots;

  Value() = default;
  Value(const Tensor& tensor) : kind(Kind::Recorded), tensor(tensor) {}
  Value(SizeList list) : kind(Kind::Sizes), sizes(std::move(list)) {}
  static Value ofNumbers(Array array);
  static Value ofMessage(const OnnxFile& file, const TensorMessage& message);
  static Value ofSequence(std::vector<Value> items);

  bool isKnown() const { return kind == Kind::Numbers || kind == Kind::Sizes; }
  DType dtype() const;
  Dims shape() const;
  /// Of Kind::Numbers.
  const Array& numbers() const;
  /// Numbers where sizes hold no symbol; else the value itself.
  Value withoutSymbols() const;
  /// Small integers and bools, known; nothing for other values.
  std::optional<SizeList> asSizes() const;
};

/// The number of elements; saturates.
int64_t countOf(const Shape& shape);

/// Evaluates an op on known integers, such as those of a chain that computes a shape. Nothing where
/// it cannot, for example a quotient of sizes that is no polynomial. `attribute` gives an integer
/// attribute or its default, `axes` a list of them.
struct SizeOperands {
  std::vector<std::optional<SizeList>> in;
  std::function<int64_t(std::string_view name, int64_t otherwise)> attribute;
  std::function<std::optional<std::vector<int64_t>>(std::string_view name)> list;
  size_t outputs = 1;
};
std::optional<std::vector<SizeList>> foldSizes(std::string_view op, const SizeOperands& operands);

}  // namespace lathe::onnx
