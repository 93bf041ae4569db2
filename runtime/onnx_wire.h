// SPDX-License-Identifier: Apache-2.0
#pragma once
// The wire format of Protocol Buffers (https://protobuf.dev/programming-guides/encoding), read in
// place: texts and bytes are views of the file, so weights are not copied. What a message means is
// in model.cpp. Groups, which ONNX does not have, are refused.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::onnx {

/// What the messages of one file may cost, whatever its bytes say.
struct WireLimits {
  std::string file;             ///< what errors name
  const char* start = nullptr;  ///< of the file's bytes
  size_t messagesLeft = 2'000'000;
};

/// One message: `while (r.next()) switch (r.field())`. A field that is not asked for is passed
/// over. Everything throws Error(InvalidFile) that names the file, the byte and the field.
class WireReader {
 public:
  static constexpr int kMaxDepth = 64;

  WireReader(std::string_view bytes, WireLimits& limits, const char* name,
             const WireReader* parent = nullptr);

  /// Goes to the next field; false at the end of the message.
  bool next();
  uint32_t field() const { return field_; }

  /// The present field as what its message says that it is; `name` is for errors.
  int64_t integer(const char* name);
  float real(const char* name);
  std::string_view bytes(const char* name);
  std::string_view text(const char* name);  ///< valid UTF-8
  WireReader message(const char* name);
  /// Appends one or, packed, many.
  void integers(const char* name, std::vector<int64_t>& values);
  void reals(const char* name, std::vector<float>& values);
  /// Appends the bytes of one number or of many packed ones without reading them.
  void packed(const char* name, std::vector<std::string_view>& chunks);

  [[noreturn]] void fail(const char* name, const std::string& text) const;

 private:
  enum class Type : uint8_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

  void expect(const char* name, Type type) const;
  uint64_t varint(const char* name);
  std::string_view take(const char* name, size_t count);
  std::string path(const char* name) const;

  WireLimits& limits_;
  const char* name_;
  const WireReader* parent_;
  int depth_ = 0;
  const char* at_;
  const char* end_;
  uint32_t field_ = 0;
  Type type_ = Type::Varint;
  std::string_view value_;  // of the present field, without its tag and length
};

/// The next varint of packed bytes; moves `bytes` on. False at the end or for one that is cut off.
bool takeVarint(std::string_view& bytes, uint64_t& value);

}  // namespace lathe::onnx
