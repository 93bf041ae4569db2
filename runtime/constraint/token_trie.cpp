// SPDX-License-Identifier: Apache-2.0
#include "runtime/constraint/token_trie.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "lathe/runtime/error.h"
#include "runtime/token_bytes.h"
#include "runtime/utf8.h"

namespace lathe::constraint {
namespace {

int findAnchor(const Tokenizer& tokenizer) {
  if (const std::optional<int> id = findLetterToken(tokenizer)) return *id;
  throw Error(ErrorCode::Unsupported,
              "constraints need a tokenizer that has letters among its tokens");
}

}  // namespace

TokenTrie::TokenTrie(const std::vector<std::string>& texts) {
  tokens_.resize(texts.size());
  std::iota(tokens_.begin(), tokens_.end(), 0);
  std::erase_if(tokens_, [&](int id) { return texts[size_t(id)].empty(); });
  std::ranges::sort(tokens_, [&](int a, int b) {
    return std::tie(texts[size_t(a)], a) < std::tie(texts[size_t(b)], b);
  });
  std::vector<uint32_t> path;  // nodes of the bytes so far
  std::string last;
  auto close = [&](size_t depth) {
    for (; path.size() > depth; path.pop_back()) nodes_[path.back()].end = uint32_t(nodes_.size());
  };
  for (size_t i = 0; i < tokens_.size(); ++i) {
    const std::string& text = texts[size_t(tokens_[i])];
    const size_t common = size_t(std::ranges::mismatch(last, text).in1 - last.begin());
    close(common);
    for (size_t depth = common; depth < text.size(); ++depth) {
      path.push_back(uint32_t(nodes_.size()));
      nodes_.push_back({uint8_t(text[depth]), uint32_t(depth + 1), 0, uint32_t(i), uint32_t(i)});
    }
    nodes_[path.back()].lastToken = uint32_t(i + 1);
    last = text;
  }
  close(0);
}

TokenTexts::TokenTexts(const Tokenizer& tokenizer) {
  const int anchor = findAnchor(tokenizer), count = tokenizer.vocabSize();
  const std::string before = tokenizer.decode(std::vector<int>{anchor});
  auto refuse = [] {
    return Error(ErrorCode::Unsupported,
                 "constraints need a tokenizer whose tokens add text and change none; this one's "
                 "decoder looks at their neighbours");
  };
  for (int id = 0; id < count; ++id) {
    if (tokenizer.isSpecial(id)) {
      first.emplace_back();
      later.emplace_back();
      continue;
    }
    const std::string& token = tokenizer.idToToken(id);
    first.push_back(ownBytes(token, tokenizer.decode(std::vector<int>{id})));
    const std::string both = tokenizer.decode(std::vector<int>{anchor, id});
    if (!both.starts_with(before)) throw refuse();
    later.push_back(ownBytes(token, both.substr(before.size())));
  }
  // Tokens side by side, in an order that has nothing to do with the vocabulary's.
  std::vector<int> ids;
  std::string text;
  const auto isWhole = [](const std::string& s) { return findInvalidUtf8(s) == s.npos; };
  for (uint64_t i = 0, state = 1; i < 4096; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const int id = int((state >> 33) % uint64_t(count));
    const std::string& added = ids.empty() ? first[size_t(id)] : later[size_t(id)];
    if (tokenizer.isSpecial(id) || added.empty() || !isWhole(added)) continue;
    ids.push_back(id);
    text += added;
    if (ids.size() < 16) continue;
    if (tokenizer.decode(ids) != text) throw refuse();
    ids.clear();
    text.clear();
  }
}

}  // namespace lathe::constraint
