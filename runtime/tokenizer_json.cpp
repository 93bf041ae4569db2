// SPDX-License-Identifier: Apache-2.0
#include "runtime/tokenizer_json.h"

namespace lathe {

TokenizerJson vocabularyJson(std::span<const std::string_view> tokens) {
  TokenizerJson vocab = TokenizerJson::object();
  // By the members' own list: looking each up in an ordered object would be quadratic.
  auto& members = vocab.get_ref<TokenizerJson::object_t&>();
  members.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i)
    static_cast<std::vector<std::pair<const std::string, TokenizerJson>>&>(members).emplace_back(
        std::string(tokens[i]), i);
  return vocab;
}

TokenizerJson splitJson(std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{"Regex", pattern}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

TokenizerJson templateJson(const TemplatePieces& single, const TemplatePieces& pair,
                           const std::function<size_t(const std::string&)>& idOf) {
  TokenizerJson special = TokenizerJson::object();
  auto steps = [&](const TemplatePieces& pieces) {
    TokenizerJson list = TokenizerJson::array();
    for (const auto& [text, type] : pieces) {
      if (text == "$A" || text == "$B") {
        list.push_back({{"Sequence", {{"id", text.substr(1)}, {"type_id", type}}}});
        continue;
      }
      list.push_back({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
      special[text] = {{"id", text}, {"ids", {idOf(text)}}, {"tokens", {text}}};
    }
    return list;
  };
  const TokenizerJson one = steps(single), two = steps(pair);
  return {
      {"type", "TemplateProcessing"}, {"single", one}, {"pair", two}, {"special_tokens", special}};
}

}  // namespace lathe
