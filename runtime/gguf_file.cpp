// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/gguf.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/gguf_blocks.h"
#include "runtime/mapped_file.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
// Far above every model there is; they keep a hostile file from growing into gigabytes of tables.
constexpr uint64_t kMostKeys = 1 << 16, kMostTensors = 1 << 20, kMostKeyBytes = 65535,
                   kMostNameBytes = 1024, kMostAlignment = 1 << 20;
constexpr uint32_t kMostDims = 4;

// Bytes of one value; 0 for texts and arrays, which tell their length.
size_t sizeOfType(GgufType type) {
  switch (type) {
    case GgufType::U8:
    case GgufType::I8:
    case GgufType::Bool:
      return 1;
    case GgufType::U16:
    case GgufType::I16:
      return 2;
    case GgufType::U32:
    case GgufType::I32:
    case GgufType::F32:
      return 4;
    case GgufType::U64:
    case GgufType::I64:
    case GgufType::F64:
      return 8;
    case GgufType::String:
    case GgufType::Array:
      break;
  }
  return 0;
}

std::string_view nameOfType(GgufType type) {
  constexpr std::string_view names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                        "bool", "string", "array", "u64", "i64", "f64"};
  return names[size_t(type)];
}

template <class T>
T loadAs(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

bool isIntegerType(GgufType type) {
  return type != GgufType::F32 && type != GgufType::F64 && type != GgufType::Bool &&
         type != GgufType::String && type != GgufType::Array;
}
bool isNumberType(GgufType type) {
  return isIntegerType(type) || type == GgufType::F32 || type == GgufType::F64;
}

// An integer that int64 cannot hold is its largest value: no caller's range reaches so far.
int64_t integerAt(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::U8:
      return loadAs<uint8_t>(at);
    case GgufType::I8:
      return loadAs<int8_t>(at);
    case GgufType::U16:
      return loadAs<uint16_t>(at);
    case GgufType::I16:
      return loadAs<int16_t>(at);
    case GgufType::U32:
      return loadAs<uint32_t>(at);
    case GgufType::I32:
      return loadAs<int32_t>(at);
    case GgufType::I64:
      return loadAs<int64_t>(at);
    default:
      return int64_t(std::min<uint64_t>(loadAs<uint64_t>(at), INT64_MAX));
  }
}
double numberAt(GgufType type, const std::byte* at) {
  if (type == GgufType::F32) return double(loadAs<float>(at));
  if (type == GgufType::F64) return loadAs<double>(at);
  return double(integerAt(type, at));
}

}  // namespace

Error GgufValue::error(const std::string& message) const {
  return Error(ErrorCode::InvalidFile, file_ + ": " + key_ + ": " + message);
}
Error GgufValue::unsupported(const std::string& message) const {
  return Error(ErrorCode::Unsupported, file_ + ": " + key_ + ": " + message);
}

std::string GgufValue::show() const {
  if (isArray())
    return fmt::format("an array of {} values of {}", count_, nameOfType(elementType_));
  if (isString()) return inQuotes(asString());
  if (type_ == GgufType::Bool) return asBool() ? "true" : "false";
  return numberText(numberAt(type_, bytes_.data()));
}

int64_t GgufValue::asInt(int64_t low, int64_t high) const {
  const bool isInteger = isIntegerType(type_);
  const int64_t value = isInteger ? integerAt(type_, bytes_.data()) : 0;
  if (!isInteger || value < low || value > high)
    throw error(fmt::format("expected an integer from {} to {}, got {}", low, high, show()));
  return value;
}

double GgufValue::asDouble() const {
  const double value = isNumberType(type_) ? numberAt(type_, bytes_.data()) : NAN;
  if (!std::isfinite(value)) throw error("expected a finite number, got " + show());
  return value;
}

bool GgufValue::asBool() const {
  if (type_ != GgufType::Bool) throw error("expected true or false, got " + show());
  return bytes_[0] != std::byte(0);
}

std::string_view GgufValue::asString() const {
  if (!isString()) throw error("expected a text, got " + show());
  return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
}

size_t GgufValue::size() const {
  if (!isArray()) throw error("expected an array, got " + show());
  return count_;
}

void GgufValue::expectArray(bool (*fits)(GgufType), std::string_view of) const {
  if (!isArray() || !fits(elementType_))
    throw error(fmt::format("expected an array of {}, got {}", of, show()));
}

const std::byte* GgufValue::element(size_t i) const {
  return bytes_.data() + i * sizeOfType(elementType_);
}

std::vector<std::string_view> GgufValue::asStrings() const {
  expectArray([](GgufType t) { return t == GgufType::String; }, "texts");
  std::vector<std::string_view> texts;
  texts.reserve(count_);
  const std::byte* at = bytes_.data();
  for (size_t i = 0; i < count_; ++i) {
    const auto length = size_t(loadAs<uint64_t>(at));
    texts.emplace_back(reinterpret_cast<const char*>(at + 8), length);
    at += 8 + length;
  }
  return texts;
}

std::vector<int64_t> GgufValue::asInts(int64_t low, int64_t high) const {
  expectArray(isIntegerType, "integers");
  std::vector<int64_t> values;
  values.reserve(count_);
  for (size_t i = 0; i < count_; ++i) {
    values.push_back(integerAt(elementType_, element(i)));
    if (values.back() < low || values.back() > high)
      throw error(fmt::format("expected integers from {} to {}, element {} is {}", low, high, i,
                              values.back()));
  }
  return values;
}

std::vector<double> GgufValue::asDoubles() const {
  expectArray(isNumberType, "numbers");
  std::vector<double> values;
  values.reserve(count_);
  for (size_t i = 0; i < count_; ++i) {
    values.push_back(numberAt(elementType_, element(i)));
    if (!std::isfinite(values.back()))
      throw error(fmt::format("expected finite numbers, element {} is {}", i, values.back()));
  }
  return values;
}

class GgufParser {
 public:
  GgufParser(std::span<const std::byte> bytes, const std::string& file)
      : bytes_(bytes), file_(file) {}

  GgufHeader parse() {
    static_assert(std::endian::native == std::endian::little, "numbers are read in place");
    where_ = "the header";
    if (bytes_.size() < 4 || loadAs<uint32_t>(bytes_.data()) != kMagic)
      fail("expected the file to begin with GGUF; is this a GGUF file?");
    at_ = 4;
    header_.version = number<uint32_t>();
    if (header_.version && (header_.version & 0xffff) == 0)
      fail("the file is big-endian, expected little-endian", ErrorCode::Unsupported);
    if (header_.version < 2 || header_.version > 3)
      fail(fmt::format("version {}, expected 2 or 3", header_.version), ErrorCode::Unsupported);
    const uint64_t tensors = number<uint64_t>(), keys = number<uint64_t>();
    if (tensors > kMostTensors)
      fail(fmt::format("{} tensors, expected at most {}", tensors, kMostTensors));
    if (keys > kMostKeys) fail(fmt::format("{} keys, expected at most {}", keys, kMostKeys));
    for (uint64_t i = 0; i < keys; ++i) addKey(i);
    readAlignment();
    std::unordered_set<std::string> names;
    for (uint64_t i = 0; i < tensors; ++i) {
      GgufTensor tensor = readTensor(i);
      where_ = "tensor " + inQuotes(tensor.name);
      if (!names.insert(tensor.name).second) fail("given twice");
      header_.tensors.push_back(std::move(tensor));
    }
    placeTensors();
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(const std::string& message, ErrorCode code = ErrorCode::InvalidFile) {
    throw Error(code, file_ + ": " + where_ + ": " + message);
  }

  std::span<const std::byte> take(uint64_t count, std::string_view what) {
    if (count > bytes_.size() - at_)
      fail(
          fmt::format("{} of {} bytes at byte {} is past the end of a file of {}; was the download "
                      "cut short?",
                      what, count, at_, bytes_.size()));
    const auto part = bytes_.subspan(at_, size_t(count));
    at_ += size_t(count);
    return part;
  }
  template <class T>
  T number() {
    return loadAs<T>(take(sizeof(T), "a number").data());
  }
  std::string_view text(uint64_t most, std::string_view what) {
    const auto length = number<uint64_t>();
    if (length > most) fail(fmt::format("{} of {} bytes, expected at most {}", what, length, most));
    const auto part = take(length, what);
    const std::string_view read(reinterpret_cast<const char*>(part.data()), part.size());
    if (size_t bad = findInvalidUtf8(read); bad != read.npos)
      fail(fmt::format("{} holds invalid UTF-8 at its byte {}", what, bad));
    return read;
  }

  GgufType typeAt(std::string_view what) {
    const auto number = this->number<uint32_t>();
    if (number > uint32_t(GgufType::F64))
      fail(fmt::format("{} {} is none of the format's, which are 0 to 12", what, number));
    return GgufType(number);
  }

  // Moves past one value, which is checked.
  void skipValue(GgufType type) {
    constexpr uint64_t any = std::numeric_limits<uint64_t>::max();
    if (type == GgufType::String) {
      text(any, "a text");
    } else if (type == GgufType::Bool) {
      const auto byte = number<uint8_t>();
      if (byte > 1) fail(fmt::format("expected a bool of 0 or 1, got {}", byte));
    } else {
      take(sizeOfType(type), "a value");
    }
  }

  void addKey(uint64_t index) {
    where_ = fmt::format("key {} of the metadata", index);
    const std::string key(text(kMostKeyBytes, "its name"));
    if (key.empty()) fail("its name is empty");
    where_ = inQuotes(key);
    GgufValue value;
    value.file_ = file_;
    value.key_ = key;
    value.type_ = typeAt("type");
    size_t begin = at_;
    if (value.isArray()) {
      value.elementType_ = typeAt("type of elements");
      if (value.elementType_ == GgufType::Array)
        fail("arrays of arrays are not supported", ErrorCode::Unsupported);
      const auto count = number<uint64_t>();
      const uint64_t least =
          value.elementType_ == GgufType::String ? 8 : sizeOfType(value.elementType_);
      if (count > (bytes_.size() - at_) / least)
        fail(
            fmt::format("an array of {} values is past the end of a file of {} bytes; was the "
                        "download cut short?",
                        count, bytes_.size()));
      value.count_ = size_t(count);
      begin = at_;
      if (value.elementType_ == GgufType::String || value.elementType_ == GgufType::Bool)
        for (uint64_t i = 0; i < count; ++i) skipValue(value.elementType_);
      else
        take(count * least, "an array");
    } else {
      skipValue(value.type_);
      if (value.isString()) begin += 8;
    }
    value.bytes_ = bytes_.subspan(begin, at_ - begin);
    if (!header_.metadata.emplace(key, std::move(value)).second) fail("given twice");
  }

  void readAlignment() {
    auto it = header_.metadata.find("general.alignment");
    if (it == header_.metadata.end()) return;
    const int64_t value = it->second.asInt(1, int64_t(kMostAlignment));
    if (!std::has_single_bit(uint64_t(value)) || value % 8)
      throw it->second.error(fmt::format("expected a power of two of at least 8, got {}", value));
    header_.alignment = size_t(value);
  }

  GgufTensor readTensor(uint64_t index) {
    where_ = fmt::format("tensor {}", index);
    GgufTensor tensor;
    tensor.name = text(kMostNameBytes, "its name");
    if (tensor.name.empty() || tensor.name.find('\0') != tensor.name.npos)
      fail("its name is empty or holds a zero byte");
    where_ = "tensor " + inQuotes(tensor.name);
    const auto dims = number<uint32_t>();
    if (dims < 1 || dims > kMostDims)
      fail(fmt::format("expected 1 to {} dims, got {}", kMostDims, dims));
    uint64_t elements = 1;
    bool overflow = false;
    for (uint32_t i = 0; i < dims; ++i) {
      const auto dim = number<uint64_t>();
      // Zero elements are no model's; ggml takes one for every dim that is missing.
      if (dim < 1 || dim > uint64_t(INT64_MAX)) fail(fmt::format("dim {} is {}", i, dim));
      overflow |= __builtin_mul_overflow(elements, dim, &elements);
      tensor.shape.insert(tensor.shape.begin(), int64_t(dim));
    }
    const auto kind = number<uint32_t>();
    tensor.type = findGgufType(kind);
    if (!tensor.type)
      fail(fmt::format("unknown type {}, expected {}", kind, readableGgufTypes()),
           ErrorCode::Unsupported);
    if (tensor.shape.back() % tensor.type->elements)
      fail(fmt::format("rows of {} elements are no whole blocks of {}, which have {}",
                       tensor.shape.back(), tensor.type->name, tensor.type->elements));
    uint64_t size = 0;
    overflow |= __builtin_mul_overflow(elements / uint64_t(tensor.type->elements),
                                       uint64_t(tensor.type->bytes), &size);
    if (overflow || elements > uint64_t(INT64_MAX)) fail("the product of its dims overflows");
    tensor.bytes = size_t(size);
    const auto offset = number<uint64_t>();
    if (offset % header_.alignment)
      fail(fmt::format("offset {} is no multiple of the alignment {}", offset, header_.alignment));
    tensor.offset = size_t(offset);
    return tensor;
  }

  size_t aligned(size_t at) const {
    return (at + header_.alignment - 1) / header_.alignment * header_.alignment;
  }

  // Offsets count from where the table ends, which the table's own size decides.
  void placeTensors() {
    auto& tensors = header_.tensors;
    std::ranges::sort(tensors, {}, &GgufTensor::offset);
    const size_t start = aligned(at_);
    size_t end = 0;
    for (GgufTensor& tensor : tensors) {
      where_ = "tensor " + inQuotes(tensor.name);
      if (tensor.offset != aligned(end))
        fail(fmt::format("it starts at byte {} of the data, expected {}: there is {}",
                         tensor.offset, aligned(end),
                         tensor.offset < end ? "an overlap" : "a hole"));
      if (start > bytes_.size() || tensor.offset > bytes_.size() - start ||
          tensor.bytes > bytes_.size() - start - tensor.offset)
        fail(
            fmt::format("{} bytes at byte {} are past the end of a file of {} bytes; was the "
                        "download cut short?",
                        tensor.bytes, start + tensor.offset, bytes_.size()));
      end = tensor.offset + tensor.bytes;
      tensor.offset += start;
    }
    where_ = "the data";
    // Writers fill up the last tensor's bytes, too, as if another one followed.
    if (start + aligned(end) < bytes_.size())
      fail(fmt::format("its tensors end at byte {}, the file has {}", start + aligned(end),
                       bytes_.size()));
  }

  std::span<const std::byte> bytes_;
  const std::string& file_;
  size_t at_ = 0;
  std::string where_;
  GgufHeader header_;
};

GgufHeader parseGgufHeader(std::span<const std::byte> bytes, const std::string& file) {
  return GgufParser(bytes, file).parse();
}

GgufFile GgufFile::open(const std::string& path) {
  GgufFile result;
  result.file_ = MappedFile::open(path);
  auto header = std::make_shared<GgufHeader>(parseGgufHeader(result.file_->bytes(), path));
  auto index = std::make_shared<std::unordered_map<std::string, size_t>>();
  for (size_t i = 0; i < header->tensors.size(); ++i) (*index)[header->tensors[i].name] = i;
  result.header_ = std::move(header);
  result.index_ = std::move(index);
  return result;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  auto it = header_->metadata.find(key);
  return it == header_->metadata.end() ? nullptr : &it->second;
}
const GgufValue& GgufFile::at(std::string_view key) const {
  if (const GgufValue* value = find(key)) return *value;
  throw Error(ErrorCode::InvalidFile, fmt::format("{}: {}: the key is missing", path(), key));
}
const GgufTensor* GgufFile::tensor(std::string_view name) const {
  auto it = index_->find(std::string(name));
  return it == index_->end() ? nullptr : &header_->tensors[it->second];
}
std::span<const std::byte> GgufFile::bytes(const GgufTensor& tensor) const {
  return file_->bytes().subspan(tensor.offset, tensor.bytes);
}
const std::string& GgufFile::path() const { return file_->path(); }

}  // namespace lathe
