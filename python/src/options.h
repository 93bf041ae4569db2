// SPDX-License-Identifier: Apache-2.0
#pragma once
// Structs of options as classes whose fields are keywords.
#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <utility>

#include "lathe/runtime/error.h"
#include "python/src/dtypes.h"

namespace lathe::python {

/// The values of an enumeration that the dialect does not know, as words; specialised for each.
template <class Enum>
struct Words;

template <class Enum>
std::string wordOf(Enum value) {
  for (const auto& [word, other] : Words<Enum>::all)
    if (other == value) return word;
  return "?";
}
/// Throws Error (InvalidArgument) naming the words.
template <class Enum>
Enum wordFrom(nb::handle object) {
  std::string words;
  for (const auto& [word, value] : Words<Enum>::all) {
    if (nb::isinstance<nb::str>(object) && nb::cast<std::string>(object) == word) return value;
    words += (words.empty() ? "" : ", ") + std::string(word);
  }
  throw Error(ErrorCode::InvalidArgument,
              "expected one of " + words + ", got " + nb::repr(object).c_str());
}

/// Sets a field by name. Throws Error (InvalidArgument) naming those that there are.
void setOption(nb::handle options, nb::handle name, nb::handle value);

/// Options with these fields; the keyword `options` gives others to start from.
template <class Options>
Options optionsFrom(const nb::kwargs& keywords) {
  nb::object options = nb::cast(Options());
  if (keywords.contains("options")) options = nb::cast(nb::cast<Options>(keywords["options"]));
  for (auto [name, value] : keywords)
    if (nb::cast<std::string>(name) != "options") setOption(options, name, value);
  return nb::cast<Options>(options);
}

}  // namespace lathe::python
