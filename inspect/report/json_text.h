// SPDX-License-Identifier: Apache-2.0
#pragma once
// Text from checkpoints and sources as JSON strings.
#include <string>
#include <string_view>

#include "llvm/Support/JSON.h"

namespace lathe {

/// Bytes that are no UTF-8 become U+FFFD: JSON has no others.
inline std::string jsonText(std::string_view text) {
  return llvm::json::isUTF8(text) ? std::string(text) : llvm::json::fixUTF8(text);
}

}  // namespace lathe
