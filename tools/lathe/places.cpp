// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/places.h"

namespace lathe::cli {

std::string placeOf(const std::string& origin) {
  std::string place;
  for (char c : origin.substr(0, origin.find(' '))) {
    bool digit = c >= '0' && c <= '9';
    if (!digit) place += c;
    if (digit && (place.empty() || place.back() != '*')) place += '*';
  }
  return place;
}

std::string kindOf(std::string kernel) {
  size_t end = kernel.find_last_not_of("0123456789");
  return end == std::string::npos ? kernel : kernel.substr(0, end + (kernel[end] != '_'));
}

}  // namespace lathe::cli
