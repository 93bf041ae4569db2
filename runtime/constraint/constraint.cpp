// SPDX-License-Identifier: Apache-2.0
// The tokens that an automaton allows, by a walk over those of the tokenizer.
#include "lathe/runtime/constraint.h"

#include <deque>
#include <mutex>
#include <utility>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/constraint/automaton.h"
#include "runtime/constraint/pattern.h"
#include "runtime/constraint/schema.h"
#include "runtime/constraint/token_trie.h"

namespace lathe {
namespace {

using namespace constraint;

struct Vocabulary {
  explicit Vocabulary(const Tokenizer& tokenizer) : Vocabulary(TokenTexts(tokenizer)) {}
  explicit Vocabulary(TokenTexts made)
      : texts(std::move(made)), first(texts.first), later(texts.later) {
    for (const std::string& text : texts.later)
      if (text.size() == 1) spelled[uint8_t(text[0])] = true;
  }
  TokenTexts texts;
  TokenTrie first, later;
  std::vector<bool> spelled = std::vector<bool>(256);  // bytes that are a token
};

// Of the tokenizers that were used last: making one takes as long as decoding every token.
std::shared_ptr<const Vocabulary> vocabularyOf(const Tokenizer& tokenizer) {
  struct Known {
    Tokenizer tokenizer;
    std::shared_ptr<const Vocabulary> vocabulary;
  };
  static std::mutex mutex;
  static std::deque<Known> known;
  constexpr size_t kMostKnown = 4;
  std::lock_guard lock(mutex);
  // Copies of a tokenizer share the spellings of its tokens.
  for (const Known& k : known)
    if (&k.tokenizer.idToToken(0) == &tokenizer.idToToken(0)) return k.vocabulary;
  known.push_front({tokenizer, std::make_shared<const Vocabulary>(tokenizer)});
  if (known.size() > kMostKnown) known.pop_back();
  return known.front().vocabulary;
}

}  // namespace

struct Constraint::Impl {
  Impl(Grammar grammar, std::shared_ptr<const Vocabulary> words)
      : vocabulary(std::move(words)), automaton(finished(std::move(grammar), *vocabulary)) {}

  static Grammar finished(Grammar grammar, const Vocabulary& vocabulary) {
    grammar.finish(vocabulary.spelled);
    const uint32_t need = grammar.nodes()[grammar.rule(0).start].need;
    if (need == Grammar::kNever || need > kMaxNesting)
      throw Error(ErrorCode::InvalidArgument,
                  "the constraint allows no text that the tokenizer can spell and that ends" +
                      std::string(need == Grammar::kNever
                                      ? ""
                                      : " within " + std::to_string(kMaxNesting) + " nestings"));
    return grammar;
  }

  const std::vector<uint64_t>& maskOf(uint32_t place, bool first) {
    std::vector<uint64_t>& known = automaton.mask(place, first);
    if (!known.empty()) return known;
    const TokenTrie& trie = first ? vocabulary->first : vocabulary->later;
    std::vector<uint64_t> mask((vocabulary->texts.later.size() + 63) / 64);
    std::vector<uint32_t> path{place};
    const std::vector<TokenTrie::Node>& nodes = trie.nodes();
    for (size_t i = 0; i < nodes.size();) {
      const TokenTrie::Node& node = nodes[i];
      const uint32_t to = automaton.next(path[node.depth - 1], node.byte);
      if (to == Automaton::kDead) {
        i = node.end;
        continue;
      }
      path.resize(node.depth);
      path.push_back(to);
      for (uint32_t t = node.firstToken; t < node.lastToken; ++t) {
        const size_t id = size_t(trie.tokens()[t]);
        mask[id / 64] |= uint64_t(1) << (id % 64);
      }
      ++i;
    }
    automaton.noteBytes(int64_t(mask.size() * sizeof(uint64_t)));
    return automaton.mask(place, first) = std::move(mask);
  }

  std::shared_ptr<const Vocabulary> vocabulary;
  Automaton automaton;
  uint64_t generation = 1;  // of the places' numbers
};

Constraint::Constraint(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  if (!impl_->automaton.goesOn(impl_->automaton.start()))
    throw Error(ErrorCode::InvalidArgument, "the constraint allows the empty text alone");
  for (uint64_t word : impl_->maskOf(impl_->automaton.start(), true))
    if (word) return;
  throw Error(ErrorCode::Unsupported, "no token of the tokenizer begins a text of the constraint");
}
Constraint::~Constraint() = default;

std::shared_ptr<Constraint> Constraint::regex(std::string_view pattern,
                                              const Tokenizer& tokenizer) {
  Grammar grammar;
  grammar.addRule();
  const Pattern parsed = Pattern::parse(pattern);
  grammar.jump(parsed.append(grammar, grammar.rule(0).start, Spelling::Plain, /*whole=*/true),
               grammar.rule(0).end);
  return std::shared_ptr<Constraint>(
      new Constraint(std::make_unique<Impl>(std::move(grammar), vocabularyOf(tokenizer))));
}

std::shared_ptr<Constraint> Constraint::jsonSchema(std::string_view schema, const std::string& file,
                                                   const Tokenizer& tokenizer) {
  return std::shared_ptr<Constraint>(new Constraint(std::make_unique<Impl>(
      schemaGrammar(JsonValue::parse(schema, file)), vocabularyOf(tokenizer))));
}

std::shared_ptr<Constraint> Constraint::jsonObject(const Tokenizer& tokenizer) {
  return jsonSchema(R"({"type": "object"})", "json_object", tokenizer);
}

ConstraintState::ConstraintState(std::shared_ptr<Constraint> constraint)
    : constraint_(std::move(constraint)) {
  generation_ = constraint_->impl_->generation;
}

static void forgetWhereFull(Automaton& automaton, uint64_t& generation) {
  if (automaton.bytes() <= Constraint::kMaxCacheBytes) return;
  automaton.forget();
  ++generation;
}

std::span<const uint64_t> ConstraintState::allowed() {
  Constraint::Impl& c = *constraint_->impl_;
  forgetWhereFull(c.automaton, c.generation);
  isComplete();  // finds the place again
  return c.maskOf(place_, first_);
}

bool ConstraintState::isComplete() {
  Constraint::Impl& c = *constraint_->impl_;
  if (generation_ != c.generation) {
    place_ = c.automaton.start();
    for (char byte : text_) place_ = c.automaton.next(place_, uint8_t(byte));
    generation_ = c.generation;
  }
  return c.automaton.accepts(place_);
}

bool ConstraintState::canGoOn() {
  isComplete();
  return constraint_->impl_->automaton.goesOn(place_);
}

void ConstraintState::accept(int id) {
  Constraint::Impl& c = *constraint_->impl_;
  isComplete();
  const auto& texts = first_ ? c.vocabulary->texts.first : c.vocabulary->texts.later;
  uint32_t place = place_;
  const bool isToken = id >= 0 && size_t(id) < texts.size() && !texts[size_t(id)].empty();
  if (isToken)
    for (char byte : texts[size_t(id)])
      if (place != Automaton::kDead) place = c.automaton.next(place, uint8_t(byte));
  if (!isToken || place == Automaton::kDead)
    throw Error(ErrorCode::InvalidArgument,
                "the constraint does not allow the token " + std::to_string(id) + " here");
  text_ += texts[size_t(id)];
  place_ = place;
  first_ = false;
}

}  // namespace lathe
