// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/cut_axis.h"
#include "runtime/file_piece.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
// Enough for any tensor; it keeps a hostile header from growing into gigabytes of dims.
constexpr size_t kMostDims = 64;

struct FormatDType {
  std::string_view name;
  unsigned bits;
  std::optional<DType> dtype;
};

// The dtypes of the format; the ones without a DType can be listed but not read.
constexpr auto kDTypes = std::to_array<FormatDType>({
    {"BOOL", 8, DType::Bool},
    {"U8", 8, DType::U8},
    {"I8", 8, DType::I8},
    {"I16", 16, DType::I16},
    {"I32", 32, DType::I32},
    {"I64", 64, DType::I64},
    {"F16", 16, DType::F16},
    {"BF16", 16, DType::BF16},
    {"F32", 32, DType::F32},
    {"F64", 64, DType::F64},
    {"U16", 16, std::nullopt},
    {"U32", 32, std::nullopt},
    {"U64", 64, std::nullopt},
    {"C64", 64, std::nullopt},
    {"F8_E5M2", 8, std::nullopt},
    {"F8_E4M3", 8, std::nullopt},
    {"F8_E4M3FNUZ", 8, std::nullopt},
    {"F8_E8M0", 8, std::nullopt},
    {"F6_E2M3", 6, std::nullopt},
    {"F6_E3M2", 6, std::nullopt},
    {"F4", 4, std::nullopt},
});

[[noreturn]] void fail(const std::string& file, const std::string& message) {
  throw Error(ErrorCode::InvalidFile, file + ": " + message);
}

// Product of the dims times the bits of one element, in bytes.
size_t byteSize(const JsonValue& shape, const FormatDType& format, const Shape& dims) {
  uint64_t bits = format.bits;
  bool overflow = false, zero = false;
  for (int64_t d : dims) {
    zero |= d == 0;
    if (!overflow) overflow = __builtin_mul_overflow(bits, uint64_t(d), &bits);
  }
  if (zero) return 0;
  if (overflow)
    throw shape.error(fmt::format("the product of the dims and {} bits overflows", format.bits));
  if (bits % 8 != 0)
    throw shape.error(fmt::format("{} elements of {} do not fill whole bytes: {} bits",
                                  bits / format.bits, format.name, bits));
  return bits / 8;
}

SafetensorsEntry parseEntry(const std::string& name, const JsonValue& value, size_t dataBytes) {
  if (!value.isObject())
    throw value.error("expected a tensor's dtype, shape and data_offsets, got " + value.show());
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string& key = value.member(i).first;
    if (key != "dtype" && key != "shape" && key != "data_offsets")
      throw value.error(
          fmt::format("unknown field {}, expected dtype, shape and data_offsets", inQuotes(key)));
  }
  SafetensorsEntry entry;
  entry.name = name;
  entry.dtypeName = value.at("dtype").asString();
  auto format = std::ranges::find(kDTypes, entry.dtypeName, &FormatDType::name);
  if (format == kDTypes.end())
    throw value.at("dtype").error("unknown dtype " + inQuotes(entry.dtypeName));
  entry.dtype = format->dtype;

  JsonValue shape = value.at("shape");
  if (!shape.isArray()) throw shape.error("expected an array of dims, got " + shape.show());
  if (shape.size() > kMostDims)
    throw shape.error(fmt::format("expected at most {} dims, got {}", kMostDims, shape.size()));
  for (size_t i = 0; i < shape.size(); ++i)
    entry.shape.push_back(shape.at(i).asInt(0, std::numeric_limits<int64_t>::max()));
  entry.bytes = byteSize(shape, *format, entry.shape);

  JsonValue offsets = value.at("data_offsets");
  if (!offsets.isArray() || offsets.size() != 2)
    throw offsets.error(
        "expected [begin, end], got " +
        (offsets.isArray() ? fmt::format("{} elements", offsets.size()) : offsets.show()));
  uint64_t begin = offsets.at(0).asUint(), end = offsets.at(1).asUint();
  if (begin > end) throw offsets.error(fmt::format("begin {} is after end {}", begin, end));
  if (end > dataBytes)
    throw offsets.error(
        fmt::format("end {} is past the {} bytes of data in the file", end, dataBytes));
  if (end - begin != entry.bytes)
    throw offsets.error(fmt::format("{} of shape [{}] needs {} bytes, the offsets span {}",
                                    entry.dtypeName, fmt::join(entry.shape, ", "), entry.bytes,
                                    end - begin));
  entry.offset = begin;
  return entry;
}

}  // namespace

SafetensorsHeader parseSafetensorsHeader(std::span<const std::byte> bytes,
                                         const std::string& file) {
  static_assert(std::endian::native == std::endian::little, "file offsets are read in place");
  if (bytes.size() < 8)
    fail(file,
         fmt::format("expected at least 8 bytes of header length, got a file of {}", bytes.size()));
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeaderBytes)
    fail(file, fmt::format("header length {} is above the format's limit of {}; is this a "
                           "safetensors file?",
                           length, kMaxHeaderBytes));
  if (length > bytes.size() - 8)
    fail(file, fmt::format("header length {} is past the end of a file of {} bytes; was the "
                           "download cut short?",
                           length, bytes.size()));
  if (length == 0) fail(file, "the header is empty, expected a JSON object");
  std::string_view text(reinterpret_cast<const char*>(bytes.data()) + 8, length);
  if (text.front() != '{')
    fail(file,
         fmt::format("the header starts with byte 0x{:02x}, expected '{{'", uint8_t(text.front())));
  JsonValue root = JsonValue::parse(text, file);

  SafetensorsHeader header;
  header.dataStart = 8 + length;
  const size_t dataBytes = bytes.size() - header.dataStart;
  header.tensors.reserve(root.size());
  for (size_t i = 0; i < root.size(); ++i) {
    auto [name, value] = root.member(i);
    if (name != "__metadata__") {
      if (name.find('\0') != std::string::npos)
        throw value.error("a tensor's name contains a NUL character");
      header.tensors.push_back(parseEntry(name, value, dataBytes));
      continue;
    }
    if (!value.isObject()) throw value.error("expected an object of strings, got " + value.show());
    for (size_t k = 0; k < value.size(); ++k) {
      auto [key, text] = value.member(k);
      header.metadata[key] = text.asString();
    }
  }

  // The position in the header settles the order of empty tensors at the same offset.
  std::vector<std::array<size_t, 3>> order;
  for (size_t i = 0; i < header.tensors.size(); ++i) {
    const SafetensorsEntry& e = header.tensors[i];
    order.push_back({e.offset, e.offset + e.bytes, i});
  }
  std::ranges::sort(order);
  std::vector<SafetensorsEntry> sorted;
  sorted.reserve(order.size());
  for (auto& key : order) sorted.push_back(std::move(header.tensors[key[2]]));
  header.tensors = std::move(sorted);
  size_t end = 0;
  std::string_view previous = "the header";
  for (SafetensorsEntry& e : header.tensors) {
    if (e.offset < end)
      fail(file, fmt::format("tensors {} and {} overlap: the second starts at byte {} of the data, "
                             "the first ends at {}",
                             inQuotes(previous), inQuotes(e.name), e.offset, end));
    if (e.offset > end)
      fail(file, fmt::format("a hole of {} bytes before tensor {}: it starts at byte {} of the "
                             "data, expected {}",
                             e.offset - end, inQuotes(e.name), e.offset, end));
    end += e.bytes;
    e.offset += header.dataStart;
    previous = e.name;
  }
  if (end != dataBytes)
    fail(file, fmt::format("{} bytes after the last tensor, expected the file to end there",
                           dataBytes - end));
  return header;
}

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  SafetensorsFile result;
  result.file_ = MappedFile::open(path);
  // The header alone: what comes behind it may be another's to read.
  if (uint64_t length = 0; result.file_->size() >= sizeof length) {
    result.file_->fetch(0, sizeof length);
    std::memcpy(&length, result.file_->data(), sizeof length);
    result.file_->fetch(0, sizeof length + std::min<uint64_t>(length, result.file_->size()));
  }
  result.header_ = parseSafetensorsHeader(result.file_->bytes(), path);
  auto& tensors = result.header_.tensors;
  result.index_.reserve(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) result.index_[tensors[i].name] = i;
  return result;
}

const std::string& SafetensorsFile::path() const { return file_->path(); }

const SafetensorsEntry* SafetensorsFile::find(std::string_view name) const {
  auto it = index_.find(std::string(name));
  return it == index_.end() ? nullptr : &header_.tensors[it->second];
}

const SafetensorsEntry& SafetensorsFile::get(std::string_view name) const {
  if (const SafetensorsEntry* entry = find(name)) return *entry;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: no tensor named {}", path(), inQuotes(name)));
}

std::span<const std::byte> SafetensorsFile::bytes(std::string_view name) const {
  const SafetensorsEntry& entry = get(name);
  return file_->bytes().subspan(entry.offset, entry.bytes);
}

const SafetensorsEntry& SafetensorsFile::getReadable(std::string_view name) const {
  const SafetensorsEntry& entry = get(name);
  if (!entry.dtype)
    throw Error(ErrorCode::Unsupported,
                fmt::format("{}: tensor {} has dtype {}, expected BOOL, U8, I8, I16, I32, I64, "
                            "F16, BF16, F32 or F64; convert it first",
                            path(), inQuotes(name), entry.dtypeName));
  return entry;
}

Array SafetensorsFile::piece(std::string_view name, const AxisPiece& piece) const {
  const SafetensorsEntry& entry = getReadable(name);
  expectPiece(entry, piece);
  return pieceInFile(file_, entry.offset, *entry.dtype, entry.shape, piece);
}

Array SafetensorsFile::bytesOfPiece(std::string_view name, const AxisPiece& piece) const {
  const SafetensorsEntry& entry = get(name);
  expectPiece(entry, piece);
  if (entry.bytes != size_t(elementCount(entry.shape)))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("{}: tensor {} of {} has not one byte an element", path(),
                            inQuotes(name), entry.dtypeName));
  return pieceInFile(file_, entry.offset, DType::U8, entry.shape, piece);
}

void SafetensorsFile::expectPiece(const SafetensorsEntry& entry, const AxisPiece& p) const {
  if (hasPiece(entry.shape, p)) return;
  throw Error(ErrorCode::InvalidArgument,
              fmt::format("{}: tensor {} [{}] has no elements {} to {} of {} groups along axis {}",
                          path(), inQuotes(entry.name), fmt::join(entry.shape, ", "), p.begin,
                          p.begin + p.size, p.groups, p.axis));
}

Array SafetensorsFile::array(std::string_view name) const {
  const SafetensorsEntry& entry = getReadable(name);
  std::byte* data = file_->data() + entry.offset;
  if (entry.bytes > 0 && reinterpret_cast<uintptr_t>(data) % sizeOf(*entry.dtype) == 0)
    return Array(*entry.dtype, entry.shape, data, file_);
  Array copy(*entry.dtype, entry.shape);
  if (entry.bytes > 0) std::memcpy(copy.data(), data, entry.bytes);
  return copy;
}

std::string makeSafetensorsHeader(const std::vector<SafetensorsEntry>& entries,
                                  const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  auto separate = [&] { text += text.size() > 1 ? "," : ""; };
  if (!metadata.empty()) {
    std::string members;
    for (auto& [key, value] : metadata)
      members += (members.empty() ? "" : ",") + jsonString(key) + ":" + jsonString(value);
    text += "\"__metadata__\":{" + members + "}";
  }
  uint64_t offset = 0;
  for (const SafetensorsEntry& e : entries) {
    if (e.name == "__metadata__")
      throw Error(ErrorCode::InvalidArgument, "the name __metadata__ is reserved by the format");
    separate();
    text += fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        jsonString(e.name), e.dtypeName, fmt::join(e.shape, ","), offset,
                        offset + e.bytes);
    offset += e.bytes;
  }
  text += "}";
  text.resize((text.size() + 8 + 63) / 64 * 64 - 8, ' ');
  uint64_t length = text.size();
  std::string result(8, '\0');
  std::memcpy(result.data(), &length, 8);
  return result + text;
}

void saveSafetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                     const std::map<std::string, std::string>& metadata) {
  std::vector<std::pair<SafetensorsEntry, const Array*>> order;
  for (auto& [name, array] : tensors) {
    if (!array.defined())
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("cannot save {}: the array {} is undefined", path, inQuotes(name)));
    auto format = std::ranges::find(kDTypes, std::optional(array.dtype()), &FormatDType::dtype);
    if (format == kDTypes.end())
      throw Error(ErrorCode::Unsupported,
                  fmt::format("cannot save {}: the format has no dtype for {} of the array {}; "
                              "convert it to i8 or u8 first",
                              path, nameOf(array.dtype()), inQuotes(name)));
    order.push_back(
        {{name, std::string(format->name), array.dtype(), array.shape(), 0, array.bytes()},
         &array});
  }
  std::ranges::sort(order, {}, [](auto& e) {
    return std::pair(-int(sizeOf(e.second->dtype())), std::string_view(e.first.name));
  });
  std::vector<SafetensorsEntry> entries;
  std::vector<std::span<const std::byte>> chunks(1);
  for (auto& [entry, array] : order) {
    entries.push_back(entry);
    chunks.push_back({static_cast<const std::byte*>(array->data()), array->bytes()});
  }
  std::string header = makeSafetensorsHeader(entries, metadata);
  chunks[0] = asBytes(header);
  writeFileAtomically(path, chunks);
}

}  // namespace lathe
