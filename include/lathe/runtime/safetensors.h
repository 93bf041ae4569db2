// SPDX-License-Identifier: Apache-2.0
#pragma once
// The safetensors format: 8-byte little-endian header length, JSON header, tensor bytes.
// https://github.com/huggingface/safetensors#format
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
#include "lathe/runtime/axis_piece.h"

namespace lathe {

class MappedFile;

struct SafetensorsEntry {
  std::string name;
  std::string dtypeName;       ///< as the file spells it: "F32", "F8_E4M3", ...
  std::optional<DType> dtype;  ///< nothing for a dtype of the format that Array cannot hold
  Shape shape;
  size_t offset = 0;  ///< of the first byte, counted from the start of the file
  size_t bytes = 0;
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> tensors;  ///< in the order of their bytes
  std::map<std::string, std::string> metadata;
  size_t dataStart = 0;  ///< 8 + length of the JSON header
};

/// Checks every rule of the format on the bytes of a whole file: length, UTF-8, first byte, no
/// duplicate keys, known dtypes, sizes by overflow-checked arithmetic, no hole, no overlap, nothing
/// after the last tensor. Throws Error(InvalidFile), one message per rule; `file` is the name used.
SafetensorsHeader parseSafetensorsHeader(std::span<const std::byte> bytes, const std::string& file);

/// An open, checked and memory-mapped file. Copies share the mapping; arrays keep it alive.
class SafetensorsFile {
 public:
  /// Throws Error(Io) or Error(InvalidFile).
  static SafetensorsFile open(const std::string& path);

  const std::vector<SafetensorsEntry>& tensors() const { return header_.tensors; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }
  /// Null if there is none of that name.
  const SafetensorsEntry* find(std::string_view name) const;
  /// A view of the mapping, or a copy where the bytes are not aligned for the dtype. Throws
  /// Error(InvalidArgument) for an unknown name and Error(Unsupported) for a dtype that Array
  /// cannot hold (F8_E4M3, U32, ...).
  Array array(std::string_view name) const;
  /// A piece of a tensor: a view of the mapping where it lies together, else a copy of what was
  /// read of the file, without what lies between. Throws as array() does, and
  /// Error(InvalidArgument) for a piece that the tensor does not have.
  Array piece(std::string_view name, const AxisPiece& piece) const;
  /// The same of a tensor of one byte an element, whatever its dtype, as U8.
  Array bytesOfPiece(std::string_view name, const AxisPiece& piece) const;
  /// The tensor's bytes as they are, whatever its dtype.
  std::span<const std::byte> bytes(std::string_view name) const;
  const std::string& path() const;
  /// Bytes before the data: 8 + length of the JSON header.
  size_t headerBytes() const { return header_.dataStart; }

 private:
  const SafetensorsEntry& get(std::string_view name) const;
  const SafetensorsEntry& getReadable(std::string_view name) const;
  void expectPiece(const SafetensorsEntry& entry, const AxisPiece& p) const;

  std::shared_ptr<MappedFile> file_;
  SafetensorsHeader header_;
  std::unordered_map<std::string, size_t> index_;
};

/// The bytes of a safetensors file that come before the data: length and padded JSON header.
/// `entries` need name, dtypeName, shape and bytes; they are stored in the order given, the data
/// starts at a multiple of 64.
std::string makeSafetensorsHeader(const std::vector<SafetensorsEntry>& entries,
                                  const std::map<std::string, std::string>& metadata);

/// Writes the tensors, widest elements first so that each is aligned for its dtype; atomic.
void saveSafetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                     const std::map<std::string, std::string>& metadata = {});

}  // namespace lathe
