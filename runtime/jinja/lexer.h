// SPDX-License-Identifier: Apache-2.0
#pragma once
// A template's text as tokens, with the white space of tags as Hugging Face's libraries set it:
// trim_blocks and lstrip_blocks.
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/error.h"

namespace lathe::jinja {

struct Token {
  enum class Kind {
    Data,           // text between tags
    BlockBegin,     // {%
    BlockEnd,       // %}
    VariableBegin,  // {{
    VariableEnd,    // }}
    Name,
    Text,  // "..." or '...', without quotes and escapes
    Integer,
    Float,
    Operator,
    End,
  };
  Kind kind = Kind::End;
  std::string text = {};
  int line = 0;

  bool is(Kind k, std::string_view t) const { return kind == k && text == t; }
};

/// What stands in front of every message about a template: "FILE line N: ".
Error errorAt(const std::string& file, int line, const std::string& message, ErrorCode code);

/// Throws Error(InvalidFile) for a tag or a string that does not end and for characters that no
/// expression has. `source` is valid UTF-8.
std::vector<Token> tokenize(std::string_view source, const std::string& file);

}  // namespace lathe::jinja
