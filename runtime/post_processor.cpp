// SPDX-License-Identifier: Apache-2.0
#include "runtime/post_processor.h"

#include <algorithm>
#include <limits>

#include "runtime/text_normalizer.h"

namespace lathe {

PostProcessor::PostProcessor()
    : single_{{.text = 0}}, pair_{{.text = 0}, {.text = 1, .typeId = 1}} {}

PostProcessor::PostProcessor(const JsonValue& json, int64_t vocabSize) : PostProcessor() {
  vocabSize_ = vocabSize;
  add(json);
}

// ["[SEP]", 102]
int PostProcessor::readToken(const JsonValue& pair) const {
  if (!pair.isArray() || pair.size() != 2)
    throw pair.error("expected a token and its id, got " + pair.show());
  return int(pair.at(1).asInt(0, vocabSize_ - 1));
}

std::vector<PostProcessor::Piece> PostProcessor::readPieces(const JsonValue& list,
                                                            const JsonValue& tokens,
                                                            int texts) const {
  std::vector<Piece> pieces;
  int seen[2] = {0, 0};
  for (const JsonValue& item : list.elements()) {
    const auto sequence = item.find("Sequence");
    const JsonValue piece = sequence ? *sequence : item.at("SpecialToken");
    const std::string& name = piece.at("id").asString();
    const auto type = piece.find("type_id");
    const int typeId = type ? int(type->asInt(0, std::numeric_limits<int>::max())) : 0;
    if (sequence) {
      const int text = name == "A" ? 0 : name == "B" ? 1 : -1;
      if (text < 0 || text >= texts)
        throw piece.at("id").error("expected the sequence A" +
                                   std::string(texts > 1 ? " or B" : "") + ", got " +
                                   inQuotes(name));
      ++seen[text];
      pieces.push_back({.text = text, .typeId = typeId});
      continue;
    }
    const auto entry = tokens.find(name);
    if (!entry)
      throw item.error("special token " + inQuotes(name) + " is not listed in special_tokens");
    const JsonValue ids = entry->at("ids");
    for (size_t k = 0; k < ids.size(); ++k)
      pieces.push_back({.id = int(ids.at(k).asInt(0, vocabSize_ - 1)), .typeId = typeId});
  }
  if (seen[0] != 1 || seen[1] != texts - 1)
    throw list.error(texts > 1 ? "expected the sequences A and B exactly once"
                               : "expected the sequence A exactly once");
  return pieces;
}

void PostProcessor::readTemplate(const JsonValue& json) {
  refuseUnknownKeys(json, {"type", "single", "pair", "special_tokens"});
  const JsonValue tokens = json.at("special_tokens");
  single_ = readPieces(json.at("single"), tokens, 1);
  if (auto pair = json.find("pair")) pair_ = readPieces(*pair, tokens, 2);
}

void PostProcessor::add(const JsonValue& json) {
  const std::string& type = json.at("type").asString();
  // Of character offsets, which are not computed here.
  if (type == "ByteLevel")
    return refuseUnknownKeys(json, {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  if (type == "Sequence") {
    refuseUnknownKeys(json, {"type", "processors"});
    for (const JsonValue& item : json.at("processors").elements()) add(item);
    return;
  }
  const bool isRoberta = type == "RobertaProcessing";
  if (!isRoberta && type != "BertProcessing" && type != "TemplateProcessing")
    throw json.at("type").error("post-processor " + inQuotes(type) +
                                    " is not supported, expected BertProcessing, ByteLevel, "
                                    "RobertaProcessing, Sequence or TemplateProcessing",
                                ErrorCode::Unsupported);
  if (wraps_)
    throw json.error("a second post-processor that adds tokens is not supported",
                     ErrorCode::Unsupported);
  wraps_ = true;
  if (type == "TemplateProcessing") return readTemplate(json);
  refuseUnknownKeys(json, {"type", "sep", "cls", "trim_offsets", "add_prefix_space"});
  const Piece cls{.id = readToken(json.at("cls"))}, sep{.id = readToken(json.at("sep"))};
  const Piece first{.text = 0};
  single_ = {cls, first, sep};
  if (isRoberta)
    pair_ = {cls, first, sep, sep, {.text = 1}, sep};
  else
    pair_ = {cls, first, sep, {.text = 1, .typeId = 1}, {.id = sep.id, .typeId = 1}};
}

std::vector<int> PostProcessor::wrap(const std::vector<int>& ids) const {
  std::vector<int> result;
  result.reserve(ids.size() + single_.size());
  for (const Piece& piece : single_)
    if (piece.text == 0)
      result.insert(result.end(), ids.begin(), ids.end());
    else
      result.push_back(piece.id);
  return result;
}

PairEncoding PostProcessor::wrapPair(const std::vector<int>& first,
                                     const std::vector<int>& second) const {
  PairEncoding result;
  for (const Piece& piece : pair_) {
    if (piece.text < 0) {
      result.ids.push_back(piece.id);
    } else {
      const std::vector<int>& ids = piece.text == 0 ? first : second;
      result.ids.insert(result.ids.end(), ids.begin(), ids.end());
    }
    result.typeIds.resize(result.ids.size(), piece.typeId);
  }
  return result;
}

}  // namespace lathe
