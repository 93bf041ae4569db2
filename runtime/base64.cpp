// SPDX-License-Identifier: Apache-2.0
#include "runtime/base64.h"

#include <algorithm>
#include <cstdint>

namespace lathe {

std::string encodeBase64(std::span<const std::byte> bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? uint32_t(bytes[i + k]) : 0);
    for (size_t k = 0; k < 4; ++k) out += k <= count ? digits[group >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

}  // namespace lathe
