// SPDX-License-Identifier: Apache-2.0
#pragma once
// GGUF files by hand.
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "lathe/runtime/gguf.h"
#include "tests/unit/test_files.h"

namespace lathe::test {

// A file of keys and tensors, byte for byte.
class GgufWriter {
 public:
  template <class T>
  GgufWriter& number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  GgufWriter& text(std::string_view text) {
    number<uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  GgufWriter& begin(uint64_t tensors, uint64_t keys, uint32_t version = 3) {
    bytes_ = "GGUF";
    return number(version).number(tensors).number(keys);
  }
  GgufWriter& key(std::string_view name, GgufType type) {
    return text(name).number(uint32_t(type));
  }
  GgufWriter& tensor(std::string_view name, std::initializer_list<uint64_t> dims, uint32_t type,
                     uint64_t offset) {
    text(name).number(uint32_t(dims.size()));
    for (uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }
  GgufWriter& data(size_t size) {
    bytes_.resize((bytes_.size() + 31) / 32 * 32 + size);
    return *this;
  }
  GgufHeader parse() const {
    return parseGgufHeader(std::as_bytes(std::span(bytes_.data(), bytes_.size())), "x.gguf");
  }
  const std::string& bytes() const { return bytes_; }
  void refused(const std::string& text, ErrorCode code = ErrorCode::InvalidFile) const {
    expectError(code, "x.gguf: " + text, [&] { parse(); });
  }

 private:
  std::string bytes_;
};

}  // namespace lathe::test
