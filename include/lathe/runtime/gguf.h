// SPDX-License-Identifier: Apache-2.0
#pragma once
// The GGUF format: a header, typed metadata, a table of tensors, and their bytes.
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lathe/runtime/array.h"

namespace lathe {

class MappedFile;
class Error;
struct GgufTensorType;

/// The types of metadata, with the numbers that the format gives them.
enum class GgufType : uint32_t {
  U8,
  I8,
  U16,
  I16,
  U32,
  I32,
  F32,
  Bool,
  String,
  Array,
  U64,
  I64,
  F64
};

/// A place in the metadata: bytes that were checked when the header was read. Every accessor throws
/// Error(InvalidFile) "FILE: KEY: expected ..., got ..." for a value of another kind.
class GgufValue {
 public:
  GgufType type() const { return type_; }
  bool isString() const { return type_ == GgufType::String; }
  bool isArray() const { return type_ == GgufType::Array; }
  const std::string& key() const { return key_; }

  /// An integer of any width within [low, high].
  int64_t asInt(int64_t low, int64_t high) const;
  /// A finite number, an integer included.
  double asDouble() const;
  bool asBool() const;
  /// Valid UTF-8.
  std::string_view asString() const;

  /// Elements of an array.
  size_t size() const;
  std::vector<std::string_view> asStrings() const;
  std::vector<int64_t> asInts(int64_t low, int64_t high) const;
  std::vector<double> asDoubles() const;

  /// "u32", "array of 3 strings": what errors call it.
  std::string show() const;
  /// "FILE: KEY: MESSAGE" (InvalidFile).
  Error error(const std::string& message) const;
  /// The same with the code Unsupported.
  Error unsupported(const std::string& message) const;

 private:
  friend class GgufParser;
  const std::byte* element(size_t i) const;
  void expectArray(bool (*fits)(GgufType), std::string_view of) const;

  std::string file_, key_;
  GgufType type_ = GgufType::U8, elementType_ = GgufType::U8;
  size_t count_ = 1;
  std::span<const std::byte> bytes_;  // of the value, or of an array's elements
};

struct GgufTensor {
  std::string name;
  const GgufTensorType* type = nullptr;  ///< runtime/gguf_blocks.h
  Shape shape;                           ///< row-major: the file's dims from the last to the first
  size_t offset = 0;                     ///< of the first byte, from the start of the file
  size_t bytes = 0;
};

struct GgufHeader {
  uint32_t version = 0;
  std::map<std::string, GgufValue, std::less<>> metadata;
  std::vector<GgufTensor> tensors;  ///< in the order of their bytes
  size_t alignment = 32;
};

/// Checks every rule of the format on the bytes of a whole file: magic, version, counts, lengths,
/// types, nesting, UTF-8, names given twice, dims without overflow, whole blocks, aligned offsets,
/// no hole but padding, no overlap, nothing past the end. Nothing but its padding is behind the
/// last tensor. Throws Error(InvalidFile), and Error(Unsupported) for versions, byte orders and
/// types of tensors that are not known. Values are views of `bytes`; `file` is the name used in
/// errors.
GgufHeader parseGgufHeader(std::span<const std::byte> bytes, const std::string& file);

/// An open, checked and memory-mapped file. Copies share the mapping.
class GgufFile {
 public:
  /// Throws Error(Io), Error(InvalidFile) or Error(Unsupported).
  static GgufFile open(const std::string& path);

  const GgufHeader& header() const { return *header_; }
  /// Null if there is none of that key, or of that name.
  const GgufValue* find(std::string_view key) const;
  const GgufTensor* tensor(std::string_view name) const;
  /// A missing key is Error(InvalidFile).
  const GgufValue& at(std::string_view key) const;
  /// The tensor's bytes as they are.
  std::span<const std::byte> bytes(const GgufTensor& tensor) const;
  const std::shared_ptr<MappedFile>& mapping() const { return file_; }
  const std::string& path() const;

 private:
  std::shared_ptr<MappedFile> file_;
  std::shared_ptr<const GgufHeader> header_;
  std::shared_ptr<const std::unordered_map<std::string, size_t>> index_;
};

}  // namespace lathe
