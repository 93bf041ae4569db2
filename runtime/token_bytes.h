// SPDX-License-Identifier: Apache-2.0
#pragma once
// What single tokens are in a text.
#include <optional>
#include <string>

#include "lathe/runtime/tokenizer.h"

namespace lathe {

/// The bytes of `token`, which decodes to `text`: where it is a part of a character, the text is
/// U+FFFD and the bytes are in the spelling.
std::string ownBytes(const std::string& token, std::string text);

/// A token that decodes to one letter wherever it stands; nothing where there is none.
std::optional<int> findLetterToken(const Tokenizer& tokenizer);

}  // namespace lathe
