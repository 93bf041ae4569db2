// SPDX-License-Identifier: Apache-2.0
#include "runtime/folder_tokens.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include <fmt/format.h>

namespace lathe {
namespace {

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kMap = "special_tokens_map.json";
constexpr const char* kAdded = "added_tokens.json";
constexpr size_t kMostTokens = size_t(1) << 24;

// In the order in which transformers adds them.
constexpr std::string_view kFields[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                        "pad_token", "cls_token", "mask_token"};

size_t idOfKey(const std::string& key, const JsonValue& value) {
  size_t id = 0;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id >= kMostTokens)
    throw value.error("expected an id as key, got " + inQuotes(key));
  return id;
}

}  // namespace

std::string FolderFiles::path(const std::string& name) const {
  return (std::filesystem::path(folder) / name).string();
}

JsonValue FolderFiles::object(const std::string& name) const {
  const auto text = texts.find(name);
  JsonValue value = JsonValue::parse(text == texts.end() ? "{}" : text->second, path(name));
  if (!value.isObject()) throw value.error("expected an object, got " + value.show());
  return value;
}

FolderTokens::FolderTokens(const FolderFiles& files, const SpecialKind& kind,
                           std::unordered_map<std::string, size_t> vocabulary, size_t size)
    : files_(files),
      kind_(kind),
      config_(files.object(kConfig)),
      map_(config_.has("added_tokens_decoder") ? JsonValue::parse("{}", files.path(kMap))
                                               : files.object(kMap)),
      ids_(std::move(vocabulary)),
      size_(size) {
  readAdded();
  for (std::string_view field : kFields) {
    const JsonValue* source = map_.has(field) ? &map_ : config_.has(field) ? &config_ : nullptr;
    if (!source) {
      for (const SpecialDefault& d : kind.defaults)
        if (d.field == field)
          specials_.emplace_back(field, FolderToken{.content = std::string(d.content),
                                                    .lstrip = d.lstrip,
                                                    .normalized = kind.normalized && !d.lstrip});
    } else if (const auto value = source->find(field)) {
      FolderToken token = tokenOf(*value, true);
      for (const SpecialDefault& d : kind.defaults)
        if (d.field == field && d.lstrip && value->isString())
          token.lstrip = true, token.normalized = false;
      specials_.emplace_back(field, std::move(token));
    }
  }
  for (const JsonValue* source : {&config_, &map_})
    if (const auto list = source->find("additional_special_tokens"))
      for (const JsonValue& item : list->elements()) {
        FolderToken token = tokenOf(item, true);
        if (item.isString()) token.normalized = false;
        additional_.push_back(std::move(token));
      }
}

FolderToken FolderTokens::tokenOf(const JsonValue& value, bool special) const {
  FolderToken token{.special = special};
  if (value.isString()) {
    token.content = value.asString();
    token.normalized = kind_.normalized;
  } else {
    auto flag = [&](std::string_view key, bool otherwise) {
      const auto found = value.find(key);
      return found ? found->asBool() : otherwise;
    };
    token.content = value.at("content").asString();
    token.singleWord = flag("single_word", false);
    token.lstrip = flag("lstrip", false);
    token.rstrip = flag("rstrip", false);
    token.special = special || flag("special", false);
    token.normalized = flag("normalized", !token.special);
  }
  if (token.content.empty()) throw value.error("expected a token, got empty text");
  return token;
}

void FolderTokens::readAdded() {
  if (const auto list = config_.find("added_tokens_decoder")) {
    for (size_t i = 0; i < list->size(); ++i) {
      const auto [key, value] = list->member(i);
      added_[idOfKey(key, value)] = tokenOf(value, false);
    }
    return;
  }
  const JsonValue list = files_.object(kAdded);
  for (size_t i = 0; i < list.size(); ++i) {
    const auto [token, id] = list.member(i);
    if (token.empty()) throw id.error("expected a token, got empty text");
    added_[size_t(id.asInt(0, int64_t(kMostTokens) - 1))] = {
        .content = token, .normalized = true, .special = false};
  }
}

bool FolderTokens::flag(std::string_view key, bool otherwise) const {
  const auto value = config_.find(key);
  return value ? value->asBool() : otherwise;
}

std::optional<std::string> FolderTokens::special(std::string_view field) const {
  for (const auto& [name, token] : specials_)
    if (name == field && !token.content.empty()) return token.content;
  return std::nullopt;
}

std::string FolderTokens::require(std::string_view field) const {
  if (auto token = special(field)) return *token;
  throw config_.error(fmt::format("expected {}, which the tokenizer needs", field));
}

bool FolderTokens::hasAdditional(std::string_view beginning) const {
  return std::ranges::any_of(
      additional_, [&](const FolderToken& token) { return token.content.starts_with(beginning); });
}

size_t FolderTokens::idOf(const std::string& token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end())
    throw config_.error("the token " + inQuotes(token) +
                        " is neither in the vocabulary nor among the added tokens");
  return found->second;
}

void FolderTokens::add(const FolderToken& token, std::optional<size_t> id) {
  const auto [found, isNew] = ids_.emplace(token.content, size_);
  if (isNew) ++size_;
  if (id && *id != found->second)
    throw config_.error(fmt::format("the added token {} has id {}, expected {}, {}",
                                    inQuotes(token.content), *id, found->second,
                                    isNew ? "the next one" : "as in the vocabulary"));
  tokens_[found->second] = token;
}

void FolderTokens::addAll(const std::vector<std::string>& more) {
  std::vector<FolderToken> specials;
  std::set<std::string> seen;
  auto addSpecial = [&](const FolderToken& token) {
    if (!token.content.empty() && seen.insert(token.content).second) specials.push_back(token);
  };
  for (const auto& [field, token] : specials_) addSpecial(token);
  for (const FolderToken& token : additional_) addSpecial(token);
  for (const std::string& content : more) addSpecial({.content = content});
  for (auto [id, token] : added_) {
    if (seen.contains(token.content)) {
      // What added_tokens.json lists says no more of a special token than its id.
      if (!config_.has("added_tokens_decoder")) token.normalized = false;
      token.special = true;
    }
    add(token, id);
  }
  for (const FolderToken& token : specials) {
    const auto known = ids_.find(token.content);
    if (known == ids_.end() || !tokens_.contains(known->second)) add(token);
  }
}

TokenizerJson FolderTokens::json() const {
  TokenizerJson list = TokenizerJson::array();
  for (const auto& [id, token] : tokens_)
    list.push_back({{"id", id},
                    {"content", token.content},
                    {"single_word", token.singleWord},
                    {"lstrip", token.lstrip},
                    {"rstrip", token.rstrip},
                    {"normalized", token.normalized},
                    {"special", token.special}});
  return list;
}

}  // namespace lathe
