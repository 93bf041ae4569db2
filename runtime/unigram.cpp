// SPDX-License-Identifier: Apache-2.0
#include "runtime/unigram.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include <fmt/format.h>

#include "runtime/text_normalizer.h"
#include "runtime/utf8.h"

namespace lathe {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

Unigram::Unigram(const JsonValue& json) {
  refuseUnknownKeys(json, {"type", "unk_id", "vocab", "pieces", "byte_fallback"});
  const JsonValue vocab = json.at("vocab");
  const auto pieces = json.find("pieces");
  if (pieces) readVocabulary(vocab, ByteTrie::kMaxTokenBytes);
  readPieces(pieces ? *pieces : vocab, pieces.has_value());
  const int64_t most = int64_t(vocab.size()) - 1;
  if (auto id = json.find("unk_id")) unknown_ = int(id->asInt(0, most));
  if (pieces) {
    for (int& id : ids_)
      if (id < 0 && !unknown_) throw pieces->error("a piece has no id, and there is no unk_id");
    if (unknown_) std::ranges::replace(ids_, -1, *unknown_);
  } else if (unknown_) {
    unknownPiece_ = *unknown_;
  }
  if (auto flag = json.find("byte_fallback"); flag && flag->asBool()) bytes_ = byteTokens();
}

void Unigram::readPieces(const JsonValue& list, bool haveIds) {
  if (!list.isArray() || list.size() == 0)
    throw list.error("expected an array of tokens and scores, got " + list.show());
  double lowest = std::numeric_limits<double>::infinity();
  scores_.reserve(list.size());
  if (!haveIds) vocabulary_.reserve(list.size());
  std::unordered_map<std::string_view, size_t> places;
  places.reserve(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    const JsonValue entry = list.at(i);
    if (!entry.isArray() || entry.size() != 2)
      throw entry.error("expected a token and its score, got " + entry.show());
    const std::string& token = entry.at(0).asString();
    checkToken(token, list, ByteTrie::kMaxTokenBytes);
    auto [known, isNew] = places.emplace(token, i);
    if (!isNew)
      throw list.error(fmt::format("the token {} is there twice, as {} and {}", inQuotes(token),
                                   known->second, i));
    if (!haveIds) vocabulary_.emplace(token, int(i));
    pieces_.add(token, int(i));
    ids_.push_back(haveIds ? find(token).value_or(-1) : int(i));
    scores_.push_back(entry.at(1).asDouble());
    lowest = std::min(lowest, scores_.back());
  }
  unknownScore_ = lowest - kUnknownPenalty;
}

// The unknown text, which is no token, or a token.
void Unigram::appendText(std::string_view text, std::vector<int>& ids) const {
  if (auto id = find(text)) return ids.push_back(*id);
  if (bytes_ && appendByteTokens(*bytes_, text, ids)) return;
  ids.push_back(*unknown_);
}

void Unigram::encode(std::string_view word, std::vector<int>& ids) const {
  struct Node {
    double score = 0;
    size_t begin = std::string_view::npos;  // where the last token of the best way begins
    int piece = -1;                         // unknown
  };
  std::vector<Node> best(word.size() + 1);  // of the ways to write the text in front of a position
  auto offer = [&](size_t begin, size_t end, double score, int piece) {
    Node& node = best[end];
    if (node.begin != std::string_view::npos && score <= node.score) return;
    node = {score, begin, piece};
  };
  for (size_t at = 0; at < word.size();) {
    size_t next = at;
    nextCodePoint(word, next);
    const double score = best[at].score;
    bool hasCharacter = false;
    pieces_.match(word, at, [&](size_t end, int piece) {
      offer(at, end, scores_[size_t(piece)] + score, piece);
      hasCharacter |= end == next;
    });
    if (!hasCharacter) {
      if (!unknown_) failWithoutToken("character", word.substr(at, next - at));
      offer(at, next, unknownScore_ + score, -1);
    }
    at = next;
  }
  std::vector<size_t> ends;  // of tokens, from the last to the first
  for (size_t end = word.size(); end > 0; end = best[end].begin) ends.push_back(end);
  size_t unknownBegin = std::string_view::npos;
  for (size_t i = ends.size(); i-- > 0;) {
    const Node& node = best[ends[i]];
    if (node.piece < 0 || node.piece == unknownPiece_) {
      if (unknownBegin == std::string_view::npos) unknownBegin = node.begin;
      continue;
    }
    if (unknownBegin != std::string_view::npos) {
      appendText(word.substr(unknownBegin, node.begin - unknownBegin), ids);
      unknownBegin = std::string_view::npos;
    }
    ids.push_back(ids_[size_t(node.piece)]);
  }
  if (unknownBegin != std::string_view::npos) appendText(word.substr(unknownBegin), ids);
}

}  // namespace lathe
