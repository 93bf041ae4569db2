// SPDX-License-Identifier: Apache-2.0
#include "inspect/report/line_forms.h"

#include <charconv>

#include "inspect/report/json_text.h"

namespace lathe {
namespace {

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isWord(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         c == '.' || c == '-';
}

}  // namespace

unsigned LineForms::split(std::string_view line, std::vector<std::string> types,
                          std::vector<uint32_t>& holes) {
  Form form;
  form.types = std::move(types);
  // What the characters belong to decides whether their numbers are taken out.
  enum class Within { Text, Quotes, Value, Symbol, Slots } within = Within::Text;
  // A value's own name, before any `#1` or `:2` behind it.
  bool named = false;
  size_t definitions = line.find(" = ");
  for (size_t i = 0; i < line.size();) {
    char c = line[i];
    bool isNumber = isDigit(c) && (i == 0 || !isDigit(line[i - 1]));
    if (isNumber && within != Within::Text && !(within == Within::Value && named)) {
      uint32_t number = 0;
      auto [end, failure] = std::from_chars(line.data() + i, line.data() + line.size(), number);
      size_t length = size_t(end - (line.data() + i));
      if (failure == std::errc() && (c != '0' || length == 1)) {
        bool isValue = within == Within::Value && i > 0 && line[i - 1] == '%';
        form.values.push_back(isValue);
        if (isValue && definitions != std::string_view::npos && i < definitions) ++form.results;
        holes.push_back(number);
        form.text += kHole;
        named = within == Within::Value;
        i += length;
        continue;
      }
    }
    if (within == Within::Quotes) {
      if (c == '\\' && i + 1 < line.size()) {
        // An escape is "\22", "\\" or "\n": its digits are no number.
        size_t length = std::min<size_t>(isDigit(line[i + 1]) ? 3 : 2, line.size() - i);
        form.text += line.substr(i, length);
        i += length;
        continue;
      }
      if (c == '"') within = Within::Text;
    } else if (c == '"') {
      within = Within::Quotes;
    } else if (c == '%') {
      within = Within::Value;
      named = false;
    } else if (c == '@') {
      within = Within::Symbol;
    } else if (c == '[' && form.text.ends_with("slots ")) {
      within = Within::Slots;
    } else if (within == Within::Slots ? c == ']' : within != Within::Text && !isWord(c)) {
      within = Within::Text;
    }
    form.text += c;
    ++i;
  }
  std::string key = form.text;
  for (const std::string& type : form.types) key += '\n' + type;
  auto [known, isNew] = ids_.try_emplace(std::move(key), unsigned(forms_.size()));
  if (isNew) forms_.push_back(std::move(form));
  return known->second;
}

void LineForms::write(llvm::json::OStream& out) const {
  out.attributeArray("forms", [&] {
    for (const Form& form : forms_) out.value(jsonText(form.text));
  });
  out.attributeArray("formTypes", [&] {
    for (const Form& form : forms_)
      out.array([&] {
        for (const std::string& type : form.types) out.value(jsonText(type));
      });
  });
}

}  // namespace lathe
