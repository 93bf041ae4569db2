// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/value.h"

#include "lathe/runtime/error.h"

namespace lathe::onnx {

namespace {
constexpr int64_t kMostSizes = 1024;
}

int64_t countOf(const Shape& shape) {
  int64_t count = 1;
  for (int64_t d : shape)
    if (__builtin_mul_overflow(count, d, &count)) return INT64_MAX;
  return count;
}

Value Value::ofNumbers(Array array) {
  Value value;
  value.kind = Kind::Numbers;
  value.known = std::make_shared<Known>();
  value.known->array = std::move(array);
  return value;
}
Value Value::ofMessage(const OnnxFile& file, const TensorMessage& message) {
  Value value = ofNumbers({});
  value.known->file = &file;
  value.known->message = &message;
  return value;
}
Value Value::ofSequence(std::vector<Value> items) {
  Value value;
  value.kind = Kind::Sequence;
  value.sequence = std::move(items);
  return value;
}

const Array& Value::numbers() const {
  if (!known->array.defined() && known->message) known->array = known->file->array(*known->message);
  return known->array;
}

DType Value::dtype() const {
  switch (kind) {
    case Kind::Recorded:
      return tensor.dtype();
    case Kind::Numbers:
      if (known->message && !known->array.defined())
        if (auto dtype = dtypeOf(known->message->type)) return *dtype;
      return numbers().dtype();
    case Kind::Sizes:
      return sizes.dtype;
    default:
      return DType::F32;
  }
}

Dims Value::shape() const {
  if (kind == Kind::Recorded) return tensor.shape();
  const Shape* shape = &sizes.shape;
  if (kind == Kind::Numbers) shape = known->message ? &known->message->dims : &numbers().shape();
  return Dims(shape->begin(), shape->end());
}

Value Value::withoutSymbols() const {
  if (kind != Kind::Sizes) return *this;
  Array array(sizes.dtype, sizes.shape);
  for (size_t i = 0; i < sizes.items.size(); ++i) {
    const auto number = sizes.items[i].asConstant();
    if (!number) return *this;
    if (sizes.dtype == DType::I64)
      array.as<int64_t>()[i] = *number;
    else
      array.set(int64_t(i), double(*number));
  }
  return ofNumbers(std::move(array));
}

std::optional<SizeList> Value::asSizes() const {
  if (kind == Kind::Sizes) return sizes;
  if (kind != Kind::Numbers) return std::nullopt;
  const DType type = dtype();
  if (type != DType::I64 && type != DType::I32 && type != DType::Bool) return std::nullopt;
  if (known->message && countOf(known->message->dims) > kMostSizes) return std::nullopt;
  const Array& array = numbers();
  if (array.size() > kMostSizes) return std::nullopt;
  SizeList list{type, array.shape(), {}};
  for (int64_t i = 0; i < array.size(); ++i)
    list.items.push_back(
        DimExpr(type == DType::I64 ? array.as<int64_t>()[size_t(i)] : int64_t(array.at(i))));
  return list;
}

}  // namespace lathe::onnx
