// SPDX-License-Identifier: Apache-2.0
// Values of ONNX's tensors: raw bytes, typed fields, files beside the model.
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/cut_axis.h"
#include "runtime/file_piece.h"
#include "runtime/mapped_file.h"
#include "runtime/onnx_model.h"
#include "runtime/onnx_wire.h"

namespace lathe::onnx {
namespace {

struct TypeRow {
  ElementType type;
  const char* name;
  std::optional<DType> dtype;
  uint32_t field;  // where typed values lie when they are not raw
};
constexpr TypeRow kTypes[] = {{ElementType::Float, "FLOAT", DType::F32, 4},
                              {ElementType::UInt8, "UINT8", DType::U8, 5},
                              {ElementType::Int8, "INT8", DType::I8, 5},
                              {ElementType::UInt16, "UINT16", std::nullopt, 5},
                              {ElementType::Int16, "INT16", DType::I16, 5},
                              {ElementType::Int32, "INT32", DType::I32, 5},
                              {ElementType::Int64, "INT64", DType::I64, 7},
                              {ElementType::String, "STRING", std::nullopt, 6},
                              {ElementType::Bool, "BOOL", DType::Bool, 5},
                              {ElementType::Float16, "FLOAT16", DType::F16, 5},
                              {ElementType::Double, "DOUBLE", DType::F64, 10},
                              {ElementType::UInt32, "UINT32", std::nullopt, 11},
                              {ElementType::UInt64, "UINT64", std::nullopt, 11},
                              {ElementType::Complex64, "COMPLEX64", std::nullopt, 4},
                              {ElementType::Complex128, "COMPLEX128", std::nullopt, 10},
                              {ElementType::BFloat16, "BFLOAT16", DType::BF16, 5},
                              {ElementType::Float8E4M3FN, "FLOAT8E4M3FN", std::nullopt, 5},
                              {ElementType::Float8E4M3FNUZ, "FLOAT8E4M3FNUZ", std::nullopt, 5},
                              {ElementType::Float8E5M2, "FLOAT8E5M2", std::nullopt, 5},
                              {ElementType::Float8E5M2FNUZ, "FLOAT8E5M2FNUZ", std::nullopt, 5},
                              {ElementType::UInt4, "UINT4", DType::U4, 5},
                              {ElementType::Int4, "INT4", DType::I4, 5},
                              {ElementType::Float4E2M1, "FLOAT4E2M1", std::nullopt, 5},
                              {ElementType::Float8E8M0, "FLOAT8E8M0", std::nullopt, 5},
                              {ElementType::UInt2, "UINT2", std::nullopt, 5},
                              {ElementType::Int2, "INT2", std::nullopt, 5}};

const TypeRow* rowOf(ElementType type) {
  for (const TypeRow& row : kTypes)
    if (row.type == type) return &row;
  return nullptr;
}

// Errors name the tensor.
struct TensorErrors {
  const std::string& file;
  std::string_view name;
  [[noreturn]] void fail(const std::string& text, ErrorCode code = ErrorCode::InvalidFile) const {
    throw Error(code, fmt::format("{}: tensor '{}': {}", file, name, text));
  }
  uint64_t number(const char* field, std::string_view text) const {
    uint64_t value = 0;
    auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size())
      fail(fmt::format("external_data.{}: expected a whole number, got '{}'", field, text));
    return value;
  }
};

// The numbers of packed chunks, each stored by `store(index, bits)`; `width` of 0 is a varint.
template <class Store>
int64_t eachNumber(const TensorErrors& errors, const std::vector<std::string_view>& chunks,
                   size_t width, int64_t most, Store store) {
  int64_t count = 0;
  for (std::string_view chunk : chunks)
    while (!chunk.empty()) {
      uint64_t bits = 0;
      if (width) {
        if (chunk.size() < width) errors.fail("a number is cut off");
        std::memcpy(&bits, chunk.data(), width);
        chunk.remove_prefix(width);
      } else if (!takeVarint(chunk, bits)) {
        errors.fail("a number is cut off");
      }
      if (count == most) errors.fail("it has more values than its shape says");
      store(count++, bits);
    }
  return count;
}

void expectBytes(const TensorErrors& errors, DType dtype, const Shape& dims, std::string_view raw) {
  const size_t wants = bytesOf(dtype, elementCount(dims));
  if (raw.size() != wants)
    errors.fail(
        fmt::format("expected {} bytes for {}, got {}", wants, describe(dtype, dims), raw.size()));
}

Array fromRaw(const TensorErrors& errors, DType dtype, const Shape& dims, std::string_view raw,
              std::shared_ptr<void> owner) {
  expectBytes(errors, dtype, dims, raw);
  const size_t wants = raw.size();
  const size_t width = isPacked(dtype) ? 1 : sizeOf(dtype);
  // The mapping is copy-on-write, as a checkpoint's is.
  auto* data = const_cast<char*>(raw.data());
  const bool isAligned = std::bit_cast<uintptr_t>(data) % width == 0;
  // Bools must be 0 or 1, whatever the file says; the unused half of a byte must be 0.
  if (isAligned && wants && dtype != DType::Bool && !isPacked(dtype))
    return Array(dtype, dims, data, std::move(owner));
  Array copy(dtype, dims);
  if (wants) std::memcpy(copy.data(), raw.data(), wants);
  auto* bytes = static_cast<uint8_t*>(copy.data());
  if (dtype == DType::Bool)
    for (size_t i = 0; i < wants; ++i) bytes[i] = bytes[i] != 0;
  if (isPacked(dtype) && copy.size() % 2) bytes[wants - 1] &= 0x0f;
  return copy;
}

}  // namespace

std::string nameOf(ElementType type) {
  const TypeRow* row = rowOf(type);
  return row ? row->name : "element type " + std::to_string(int32_t(type));
}
std::optional<DType> dtypeOf(ElementType type) {
  const TypeRow* row = rowOf(type);
  return row ? row->dtype : std::nullopt;
}
ElementType elementTypeOf(DType dtype) {
  for (const TypeRow& row : kTypes)
    if (row.dtype == dtype) return row.type;
  throw Error(ErrorCode::InvalidArgument, "ONNX has no type for " + std::string(nameOf(dtype)));
}

bool OnnxFile::isWeight(const TensorMessage& tensor) {
  int64_t count = 1;
  for (int64_t d : tensor.dims)
    if (d < 0 || __builtin_mul_overflow(count, d, &count)) return false;
  return count > kInline && dtypeOf(tensor.type).has_value();
}

// External data stay inside of the model's folder, symbolic links included.
std::string_view OnnxFile::external(const TensorMessage& tensor,
                                    std::shared_ptr<MappedFile>& owner) const {
  namespace fs = std::filesystem;
  const TensorErrors errors{path_, tensor.name};
  const fs::path location{std::string(tensor.location)};
  if (tensor.location.empty() || location.is_absolute())
    errors.fail(fmt::format("external_data.location: expected a file beside the model, got '{}'",
                            tensor.location));
  auto& file = externals_[std::string(tensor.location)];
  if (!file) {
    std::error_code failed;
    const fs::path folder = fs::canonical(fs::absolute(path_).parent_path(), failed);
    const fs::path data = fs::weakly_canonical(folder / location, failed);
    const fs::path within = data.lexically_relative(folder);
    if (failed || within.empty() || *within.begin() == ".." || within == ".")
      errors.fail(fmt::format("external_data.location: '{}' is not inside of the model's folder",
                              tensor.location));
    file = MappedFile::open(data.string());
  }
  owner = file;
  const uint64_t size = file->size();
  const uint64_t offset =
      tensor.externalOffset.empty() ? 0 : errors.number("offset", tensor.externalOffset);
  if (offset > size)
    errors.fail(fmt::format("external_data.offset: {} is outside of '{}', which has {} bytes",
                            offset, tensor.location, size));
  const uint64_t length = tensor.externalLength.empty()
                              ? size - offset
                              : errors.number("length", tensor.externalLength);
  if (length > size - offset)
    errors.fail(
        fmt::format("external_data.length: {} bytes from {} are outside of '{}', which "
                    "has {} bytes",
                    length, offset, tensor.location, size));
  return {reinterpret_cast<const char*>(file->data()) + offset, size_t(length)};
}

Array OnnxFile::array(const TensorMessage& tensor) const {
  const TensorErrors errors{path_, tensor.name};
  for (int64_t d : tensor.dims)
    if (d < 0) errors.fail(fmt::format("dims: a negative size {}", d));
  const TypeRow* row = rowOf(tensor.type);
  if (!row) errors.fail("data_type: " + onnx::nameOf(tensor.type) + " is unknown");
  if (!row->dtype)
    errors.fail(fmt::format("data_type: {} is not supported", row->name), ErrorCode::Unsupported);
  const DType dtype = *row->dtype;
  int64_t count = 0;
  try {
    count = elementCount(tensor.dims);
  } catch (const Error& e) {
    errors.fail(std::string("dims: ") + e.what());
  }
  if (tensor.isExternal) {
    std::shared_ptr<MappedFile> owner;
    const std::string_view raw = external(tensor, owner);
    return fromRaw(errors, dtype, tensor.dims, raw, owner);
  }
  if (tensor.hasRaw) return fromRaw(errors, dtype, tensor.dims, tensor.raw, file_);

  if (tensor.numbersField && tensor.numbersField != row->field)
    errors.fail(fmt::format("its values lie in field {}, {} has them in field {}",
                            tensor.numbersField, row->name, row->field));
  // Every number takes a byte of the file at least: no allocation for values that are not there.
  size_t bytes = 0;
  for (std::string_view chunk : tensor.numbers) bytes += chunk.size();
  const int64_t numbers = isPacked(dtype) ? (count + 1) / 2 : count;
  if (uint64_t(numbers) > bytes)
    errors.fail(fmt::format("expected {} values for {}, the file has fewer", numbers,
                            describe(dtype, tensor.dims)));
  Array result(dtype, tensor.dims);
  auto* out = static_cast<char*>(result.data());
  const size_t width = isPacked(dtype) ? 1 : sizeOf(dtype);
  const size_t stored = dtype == DType::F32 ? 4 : dtype == DType::F64 ? 8 : 0;
  const int64_t got =
      eachNumber(errors, tensor.numbers, stored, numbers, [&](int64_t i, uint64_t bits) {
        if (dtype == DType::Bool) bits = bits != 0;
        std::memcpy(out + size_t(i) * width, &bits, width);
      });
  if (got != numbers)
    errors.fail(fmt::format("expected {} values for {}, got {}", numbers,
                            describe(dtype, tensor.dims), got));
  if (isPacked(dtype) && count % 2 && numbers) out[numbers - 1] &= 0x0f;
  return result;
}

bool OnnxFile::hasPieces(const TensorMessage& tensor, const AxisPiece& piece) {
  const std::optional<DType> dtype = dtypeOf(tensor.type);
  // Bools are read one by one.
  return dtype && dtype != DType::Bool && (tensor.isExternal || tensor.hasRaw) &&
         CutAxis(tensor.dims, piece).isOfBytes(*dtype);
}

Array OnnxFile::piece(const TensorMessage& tensor, const AxisPiece& piece) const {
  const DType dtype = *dtypeOf(tensor.type);
  std::shared_ptr<MappedFile> owner = file_;
  const std::string_view raw = tensor.isExternal ? external(tensor, owner) : tensor.raw;
  expectBytes({path_, tensor.name}, dtype, tensor.dims, raw);
  const size_t offset = size_t(reinterpret_cast<const std::byte*>(raw.data()) - owner->data());
  return pieceInFile(owner, offset, dtype, tensor.dims, piece);
}

}  // namespace lathe::onnx
