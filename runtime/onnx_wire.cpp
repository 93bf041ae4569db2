// SPDX-License-Identifier: Apache-2.0
#include "runtime/onnx_wire.h"

#include <cstring>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/utf8.h"

namespace lathe::onnx {

bool takeVarint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (size_t i = 0; i < bytes.size() && i < 10; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    value |= uint64_t(byte & 0x7f) << (7 * i);
    if (byte & 0x80) continue;
    bytes.remove_prefix(i + 1);
    return true;
  }
  return false;
}

WireReader::WireReader(std::string_view bytes, WireLimits& limits, const char* name,
                       const WireReader* parent)
    : limits_(limits),
      name_(name),
      parent_(parent),
      depth_(parent ? parent->depth_ + 1 : 0),
      at_(bytes.data()),
      end_(bytes.data() + bytes.size()) {
  if (depth_ > kMaxDepth)
    fail(nullptr, fmt::format("expected at most {} messages within each other", kMaxDepth));
  if (!limits_.messagesLeft) fail(nullptr, "the file holds too many messages");
  --limits_.messagesLeft;
}

std::string WireReader::path(const char* name) const {
  std::string text = parent_ ? parent_->path(name_) : std::string(name_);
  if (name) text += std::string(".") + name;
  return text;
}

void WireReader::fail(const char* name, const std::string& text) const {
  throw Error(ErrorCode::InvalidFile, fmt::format("{}: byte {}: {}: {}", limits_.file,
                                                  at_ - limits_.start, path(name), text));
}

uint64_t WireReader::varint(const char* name) {
  std::string_view rest(at_, size_t(end_ - at_));
  uint64_t value;
  if (!takeVarint(rest, value)) fail(name, "expected a number of at most 10 bytes");
  at_ = rest.data();
  return value;
}

std::string_view WireReader::take(const char* name, size_t count) {
  if (count > size_t(end_ - at_))
    fail(name, fmt::format("expected {} bytes, the message has {} left", count, end_ - at_));
  std::string_view bytes(at_, count);
  at_ += count;
  return bytes;
}

bool WireReader::next() {
  if (at_ == end_) return false;
  const uint64_t tag = varint(nullptr);
  if (tag >> 3 == 0 || tag >> 32 != 0) fail(nullptr, fmt::format("{} is no field's tag", tag));
  field_ = uint32_t(tag >> 3);
  type_ = Type(tag & 7);
  switch (type_) {
    case Type::Varint: {
      const char* first = at_;
      varint(nullptr);
      value_ = {first, size_t(at_ - first)};
      return true;
    }
    case Type::Fixed64:
      value_ = take(nullptr, 8);
      return true;
    case Type::Fixed32:
      value_ = take(nullptr, 4);
      return true;
    case Type::Bytes:
      value_ = take(nullptr, varint(nullptr));
      return true;
  }
  fail(nullptr, fmt::format("field {} has the unknown wire type {}", field_, tag & 7));
}

void WireReader::expect(const char* name, Type type) const {
  if (type_ != type)
    fail(name, fmt::format("expected wire type {}, got {}", int(type), int(type_)));
}

int64_t WireReader::integer(const char* name) {
  expect(name, Type::Varint);
  std::string_view bytes = value_;
  uint64_t value = 0;
  takeVarint(bytes, value);
  return int64_t(value);
}

float WireReader::real(const char* name) {
  expect(name, Type::Fixed32);
  float value;
  std::memcpy(&value, value_.data(), sizeof value);
  return value;
}

std::string_view WireReader::bytes(const char* name) {
  expect(name, Type::Bytes);
  return value_;
}

std::string_view WireReader::text(const char* name) {
  std::string_view value = bytes(name);
  if (findInvalidUtf8(value) != value.npos || value.find('\0') != value.npos)
    fail(name, "expected a text in UTF-8 without zero bytes");
  return value;
}

WireReader WireReader::message(const char* name) {
  return WireReader(bytes(name), limits_, name, this);
}

void WireReader::integers(const char* name, std::vector<int64_t>& values) {
  if (type_ == Type::Varint) return values.push_back(integer(name));
  std::string_view rest = bytes(name);
  while (!rest.empty()) {
    uint64_t value;
    if (!takeVarint(rest, value)) fail(name, "expected numbers of at most 10 bytes");
    values.push_back(int64_t(value));
  }
}

void WireReader::reals(const char* name, std::vector<float>& values) {
  if (type_ == Type::Fixed32) return values.push_back(real(name));
  std::string_view rest = bytes(name);
  if (rest.size() % sizeof(float)) fail(name, "expected whole numbers of 4 bytes");
  const size_t old = values.size();
  values.resize(old + rest.size() / sizeof(float));
  if (!rest.empty()) std::memcpy(values.data() + old, rest.data(), rest.size());
}

void WireReader::packed(const char* name, std::vector<std::string_view>& chunks) {
  (void)name;
  chunks.push_back(value_);
}

}  // namespace lathe::onnx
