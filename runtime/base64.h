// SPDX-License-Identifier: Apache-2.0
#pragma once
// RFC 4648, section 4.
#include <cstddef>
#include <span>
#include <string>

namespace lathe {

std::string encodeBase64(std::span<const std::byte> bytes);

}  // namespace lathe
