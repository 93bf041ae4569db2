// SPDX-License-Identifier: Apache-2.0
#pragma once
// GPT-2's spelling of bytes as printable characters: "Ġ" is the byte 0x20. Printable Latin-1 bytes
// stand for themselves, the other 68 are U+0100 and up in order.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lathe {

/// UTF-8 spelling of each byte.
const std::array<std::string, 256>& byteSpellings();
/// The byte that a character spells; nothing for a character outside the alphabet.
std::optional<uint8_t> spelledByte(char32_t c);

std::string spellBytes(std::string_view bytes);
/// The bytes that `token` spells. A token with any character outside the alphabet (an added token)
/// stands for its own UTF-8 bytes.
std::string unspellBytes(std::string_view token);

}  // namespace lathe
