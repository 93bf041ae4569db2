// SPDX-License-Identifier: Apache-2.0
#include "runtime/byte_level.h"

#include "runtime/utf8.h"

namespace lathe {
namespace {

bool isPrintable(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

struct Tables {
  std::array<std::string, 256> spelling;
  std::array<int16_t, 0x100 + 68> byte;

  Tables() {
    byte.fill(-1);
    char32_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      char32_t c = isPrintable(b) ? b : next++;
      appendCodePoint(spelling[b], c);
      byte[c] = int16_t(b);
    }
  }
};

const Tables& tables() {
  static const Tables instance;
  return instance;
}

}  // namespace

const std::array<std::string, 256>& byteSpellings() { return tables().spelling; }

std::optional<uint8_t> spelledByte(char32_t c) {
  auto& byte = tables().byte;
  if (c >= byte.size() || byte[c] < 0) return std::nullopt;
  return uint8_t(byte[c]);
}

std::string spellBytes(std::string_view bytes) {
  auto& spelling = byteSpellings();
  std::string result;
  result.reserve(bytes.size() * 2);
  for (char b : bytes) result += spelling[uint8_t(b)];
  return result;
}

std::string unspellBytes(std::string_view token) {
  std::string result;
  for (size_t i = 0; i < token.size();) {
    auto byte = spelledByte(nextCodePoint(token, i));
    if (!byte) return std::string(token);
    result += char(*byte);
  }
  return result;
}

}  // namespace lathe
