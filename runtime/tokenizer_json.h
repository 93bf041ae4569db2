// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of a tokenizer.json that readers of other files write.
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace lathe {

/// Keys keep their order.
using TokenizerJson = nlohmann::ordered_json;

/// "▁", which stands for a space in SentencePiece's pieces.
inline constexpr std::string_view kPieceSpace = "\xe2\x96\x81";

/// Sum of the squares of the lengths of all pieces in bytes, which finding what they are merged of
/// takes. A vocabulary of 256,000 pieces has a tenth of it.
inline constexpr size_t kMostMergeBytes = size_t(1) << 28;

/// How Qwen 2 cuts words.
inline constexpr std::string_view kQwen2Words =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// Tokens as an object of ids, which are their places.
TokenizerJson vocabularyJson(std::span<const std::string_view> tokens);

/// A pre-tokenizer whose words are what the pattern matches and what lies between.
TokenizerJson splitJson(std::string_view pattern);

/// The form of one text or of two: token or "$A" or "$B", and its type.
using TemplatePieces = std::vector<std::pair<std::string, int>>;
/// A post-processor. `idOf` gives a token's id.
TokenizerJson templateJson(const TemplatePieces& single, const TemplatePieces& pair,
                           const std::function<size_t(const std::string&)>& idOf);

}  // namespace lathe
