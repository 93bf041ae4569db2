// SPDX-License-Identifier: Apache-2.0
#pragma once
// The "decoder" stage of tokenizer.json: tokens back to text, one after the other.
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/tokenizer.h"
#include "runtime/text_normalizer.h"

namespace lathe {

/// A chain of steps. Each takes the tokens of the one before it as they come, gives on what no
/// later token can change, and holds back the rest.
class TokenDecoder {
 public:
  /// Of a file without the stage: tokens as they are, a space between two.
  TokenDecoder();
  /// Every stage of Hugging Face's tokenizers 0.23; another is Error(Unsupported), and so are
  /// stages that need single tokens behind ByteLevel or Fuse, which make one token of all.
  explicit TokenDecoder(const JsonValue& json);

  /// What a token is to the first step that depends on where it stands.
  std::string spell(const std::string& token, TextBudget& budget) const;

  /// Appends to `out`, which stays valid UTF-8, what is certain once a token that was spelled
  /// `text` is there.
  void push(const std::string& text, DecoderPlace& place, std::string& out) const;
  /// Appends what the end makes certain; `place` is then as new.
  void finish(DecoderPlace& place, std::string& out) const;

 private:
  struct Step {
    enum class Kind {
      Spaces,        // between tokens
      Replace,       // in each token, or in the one that was fused
      Bytes,         // ByteLevel
      ByteFallback,  // "<0x0A>"
      Fuse,
      Metaspace,
      WordPiece,
      Suffix,  // BPEDecoder
      Ctc,
      Strip
    } kind;
    bool fused = false;  // what comes are pieces of one token
    std::string where = {};
    std::optional<TextNormalizer> replace = {};
    std::string text = {};     // what is looked for
    std::string content = {};  // what it becomes
    size_t start = 0, stop = 0;
    bool flag = false;  // Metaspace: the first token's goes; WordPiece, CTC: tidy up
  };
  using State = DecoderPlace::Step;

  void add(const JsonValue& json);
  void addStrip(const JsonValue& json);
  bool readKind(const std::string& type, const JsonValue& json, Step& step) const;
  void addStep(Step step, const JsonValue& json);
  bool isFused() const;

  void feed(size_t step, std::string piece, DecoderPlace& place, std::string& out) const;
  // Gives on what a step holds.
  void end(size_t step, DecoderPlace& place, std::string& out) const;
  static std::string replaceFused(const Step& step, std::string piece, State& state);
  static std::string stripFused(const Step& step, std::string piece, State& state);

  std::vector<Step> steps_;
  size_t spelled_ = 0;  // steps at the beginning that `spell` has done
};

}  // namespace lathe
