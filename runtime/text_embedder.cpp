// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/text_embedder.h"

#include <algorithm>

#include "lathe/runtime/error.h"

namespace lathe {

static constexpr const char *kIds = "input_ids", *kMask = "attention_mask",
                            *kTypes = "token_type_ids", *kEmbeddings = "embeddings";

TextEmbedder::TextEmbedder(Session& session, Tokenizer tokenizer, int64_t maxPositions,
                           int64_t padId)
    : session_(session),
      tokenizer_(std::move(tokenizer)),
      maxPositions_(maxPositions),
      padId_(padId) {
  const Program& program = session.program();
  auto refuse = [](const std::string& why) {
    throw Error(ErrorCode::Unsupported, "the model gives no embeddings of texts: " + why);
  };
  const auto entry = std::ranges::find(program.entries, "embed", &EntryPoint::name);
  if (entry == program.entries.end())
    refuse("it has no entry point 'embed', which BERT, RoBERTa and MiniLM have");
  entry_ = size_t(entry - program.entries.begin());
  bool hasIds = false, hasMask = false;
  for (const Port& port : entry->inputs) {
    const Slot& slot = entry->slots[size_t(port.slot)];
    hasIds |= port.name == kIds;
    hasMask |= port.name == kMask;
    if (slot.dtype != DType::I64 || slot.shape.size() != 2 ||
        (port.name != kIds && port.name != kMask && port.name != kTypes))
      refuse(
          "expected the inputs input_ids, attention_mask and token_type_ids, i64 [batch, seq], "
          "got '" +
          port.name + "'");
  }
  if (!hasIds || !hasMask) refuse("expected the inputs input_ids and attention_mask");
  if (entry->outputs.size() != 1 || entry->outputs[0].name != kEmbeddings)
    refuse("expected the one output embeddings");
  const Slot& out = entry->slots[size_t(entry->outputs[0].slot)];
  if (out.dtype != DType::F32 || out.shape.size() != 2 || !out.shape[1].asConstant())
    refuse("expected embeddings to be f32 [batch, hidden]");
  hidden_ = *out.shape[1].asConstant();
  const SymbolicShape& ids = entry->slots[size_t(entry->inputs[0].slot)].shape;
  for (const SymbolInfo& symbol : program.symbols) {
    if (DimExpr::symbol(symbol.name) == ids[0]) maxRows_ = symbol.hi;
    if (DimExpr::symbol(symbol.name) == ids[1]) maxPositions_ = std::min(maxPositions_, symbol.hi);
  }
}

std::vector<int> TextEmbedder::encode(const std::string& text) const {
  std::vector<int> ids = tokenizer_.encode(text);
  if (ids.empty()) throw Error(ErrorCode::InvalidArgument, "the text has no tokens");
  if (int64_t(ids.size()) > maxPositions_)
    throw Error(ErrorCode::InvalidArgument,
                "the text has " + std::to_string(ids.size()) + " tokens, the model takes at most " +
                    std::to_string(maxPositions_) + "; embed it in parts");
  return ids;
}

Array TextEmbedder::embed(std::span<const std::vector<int>> texts) {
  Array all(DType::F32, {int64_t(texts.size()), hidden_});
  const EntryPoint& entry = session_.program().entries[entry_];
  std::vector<Array> outputs;
  for (size_t begin = 0; begin < texts.size();) {
    // Batches of texts up to twice as long as their first one bound what padding costs.
    size_t end = begin, longest = 0;
    for (; end < texts.size() && int64_t(end - begin) < maxRows_; ++end) {
      if (texts[end].size() > 2 * texts[begin].size() + 16) break;
      longest = std::max(longest, texts[end].size());
    }
    const Shape shape{int64_t(end - begin), int64_t(longest)};
    std::vector<Array> inputs;
    for (const Port& port : entry.inputs) {
      Array& input = inputs.emplace_back(DType::I64, shape);
      const std::span<int64_t> values = input.as<int64_t>();
      for (size_t row = begin; row < end; ++row)
        for (size_t i = 0; i < longest; ++i) {
          const bool there = i < texts[row].size();
          int64_t& value = values[(row - begin) * longest + i];
          if (port.name == kIds) value = there ? texts[row][i] : padId_;
          if (port.name == kMask) value = there;
        }
    }
    session_.run(entry_, inputs, outputs);
    std::ranges::copy(outputs[0].as<float>(), all.as<float>().begin() + int64_t(begin) * hidden_);
    begin = end;
  }
  return all;
}

}  // namespace lathe
