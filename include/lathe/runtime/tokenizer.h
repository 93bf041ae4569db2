// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tokenizers as Hugging Face's tokenizer.json describes them: BPE (byte-level and of
// SentencePiece's kind), Unigram, WordPiece and WordLevel.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lathe {

class JsonValue;

struct EncodeOptions {
  /// Add what the file's template adds (BOS, EOS).
  bool addSpecialTokens = true;
  /// Read the spelling of a special token ("<|eos|>") inside the text as that token. Off for text
  /// that a user typed, so that text cannot forge control tokens; on for chat templates.
  bool allowSpecialText = false;
};

/// Two texts in one sequence, as cross-encoders read them.
struct PairEncoding {
  std::vector<int> ids;
  std::vector<int> typeIds;  ///< of each id: which text it belongs to, as the file's template says
};

/// Immutable and safe to share between threads; copies share the tables.
class Tokenizer {
 public:
  /// `path` is tokenizer.json or its folder, which may have vocab.json and merges.txt, vocab.txt or
  /// SentencePiece's models instead. Throws Error(InvalidFile) for a file that contradicts itself
  /// and Error(Unsupported), by name, for a stage or a class that is not implemented.
  static Tokenizer load(const std::string& path);
  static Tokenizer parse(std::string_view json, const std::string& file);

  /// Ids of UTF-8 `text`; invalid UTF-8 is Error(InvalidArgument).
  std::vector<int> encode(std::string_view text, const EncodeOptions& options = {}) const;
  /// Ids of two texts with what the file's template for pairs adds around and between them.
  PairEncoding encodePair(std::string_view first, std::string_view second,
                          const EncodeOptions& options = {}) const;
  /// Text of `ids`, valid UTF-8: bytes that form no character become U+FFFD. An id outside
  /// [0, vocabSize) is Error(InvalidArgument).
  std::string decode(std::span<const int> ids, bool skipSpecial = true) const;

  /// Model vocabulary and added tokens together: ids run from 0 to vocabSize() - 1.
  int vocabSize() const;
  std::optional<int> tokenToId(std::string_view token) const;
  /// The token as the file spells it ("Ġthe").
  const std::string& idToToken(int id) const;
  bool isSpecial(int id) const;
  /// The bytes that a token adds to a text, special ones too: of one that is part of a character
  /// its own, for which decode() has U+FFFD. `first`: at the text's beginning, where the decoders
  /// of some kinds take a space away.
  std::string tokenBytes(int id, bool first = false) const;

 private:
  friend class StreamDecoder;
  struct Data;
  explicit Tokenizer(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  static Tokenizer read(const JsonValue& root);
  const Data& data() const;  // throws Error for a moved-from one
  std::shared_ptr<const Data> data_;
};

/// What the steps of a decoder remember of the tokens in front.
struct DecoderPlace {
  struct Step {
    bool started = false;    ///< a token has come
    bool textBegun = false;  ///< a character that is not stripped has come
    size_t count = 0;        ///< characters that were stripped at the beginning
    std::string held;        ///< what the next token may change
  };
  std::vector<Step> steps;
};

/// Decodes token by token and holds back what the next token may change: the bytes of an unfinished
/// UTF-8 sequence, a run of tokens that stand for one byte each. Each piece is valid UTF-8. The
/// pieces and finish() joined equal Tokenizer::decode of all ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skipSpecial = true);
  /// The text that has become complete with this token, often empty within a character.
  std::string push(int id);
  /// What was held back, as U+FFFD; the decoder is then as new.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skipSpecial_;
  DecoderPlace place_;
};

}  // namespace lathe
