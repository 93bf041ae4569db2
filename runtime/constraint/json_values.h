// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values of a schema as a document spells them.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/json_reader.h"

namespace lathe::constraint {

/// In quotes, with the escapes that Grammar::character writes.
std::string compactText(std::string_view text);
/// The value without spaces.
std::string compactJson(const JsonValue& value);
/// Whether a value is of one of the schema's types.
bool isOfTypes(const JsonValue& value, const std::vector<std::string>& types);
/// A pattern of the decimal integers from `low` to `high`.
std::string integerPattern(int64_t low, int64_t high);

}  // namespace lathe::constraint
