// SPDX-License-Identifier: Apache-2.0
#include "runtime/constraint/pattern.h"

#include <string>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/utf8.h"

namespace lathe::constraint {
namespace {

constexpr int64_t kMaxRepetitions = 10'000;
constexpr int kMaxPatternDepth = 64;
constexpr char32_t kNone = 0xffffffff;

const CodeSet kDigits{{'0', '9'}};
const CodeSet kWord{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
const CodeSet kSpace{{'\t', '\r'}, {' ', ' '}};
const CodeSet kLine{{'\n', '\n'}};

}  // namespace

class PatternParser {
 public:
  using Item = Pattern::Item;
  using Kind = Item::Kind;

  explicit PatternParser(std::string_view text) : text_(text) {
    if (findInvalidUtf8(text) != text.npos)
      throw Error(ErrorCode::InvalidArgument, "the pattern is not valid UTF-8");
    for (size_t i = 0; i < text.size();) chars_.push_back(nextCodePoint(text, i));
  }

  std::vector<Pattern::Branch> parse() {
    std::vector<Pattern::Branch> branches;
    do {
      Pattern::Branch branch;
      branch.fromStart = take('^');
      branch.item = sequence(0);
      branch.toEnd = take('$');
      if (peek() != kNone && peek() != '|') {
        if (peek() == ')') throw mistake("a ) without its (");
        throw mistake("a $ that is not at the end");
      }
      branches.push_back(std::move(branch));
    } while (take('|'));
    return branches;
  }

 private:
  char32_t peek(size_t ahead = 0) const {
    return at_ + ahead < chars_.size() ? chars_[at_ + ahead] : kNone;
  }
  bool take(char32_t c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  Error mistake(const std::string& what, ErrorCode code = ErrorCode::InvalidArgument) const {
    return Error(code,
                 "pattern " + inQuotes(text_) + ": character " + std::to_string(at_) + ": " + what);
  }
  Error unsupported(const std::string& what) const {
    return mistake(what + " is not supported: no automaton does it", ErrorCode::Unsupported);
  }

  Item choice(int depth) {
    if (depth > kMaxPatternDepth)
      throw mistake("more than " + std::to_string(kMaxPatternDepth) + " groups within each other");
    Item item{.kind = Kind::Choice};
    do item.parts.push_back(sequence(depth));
    while (take('|'));
    return item;
  }

  Item sequence(int depth) {
    Item item{.kind = Kind::Sequence};
    while (true) {
      const char32_t c = peek();
      if (c == kNone || c == '|' || c == ')') return item;
      if (c == '$') {
        if (depth == 0) return item;
        throw unsupported("a $ within a group");
      }
      if (c == '^') throw unsupported("a ^ that is not at the beginning");
      item.parts.push_back(quantified(atom(depth)));
    }
  }

  Item atom(int depth) {
    const char32_t c = peek();
    if (c == '*' || c == '+' || c == '?') throw mistake("a quantifier with nothing in front of it");
    ++at_;
    if (c == '(') {
      group();
      Item item = choice(depth + 1);
      if (!take(')')) throw mistake("expected a ) to end the group");
      return item;
    }
    if (c == '[') return {.kind = Kind::Set, .set = set()};
    if (c == '.') return {.kind = Kind::Set, .set = complement(kLine)};
    if (c == '\\') return {.kind = Kind::Set, .set = escape(false)};
    return {.kind = Kind::Set, .set = {{c, c}}};
  }

  // What follows "(": groups that only count or have a name are groups.
  void group() {
    if (!take('?')) return;
    if (take(':')) return;
    if (peek() == '=' || peek() == '!') throw unsupported("looking ahead (?=");
    if (peek() == '<' && (peek(1) == '=' || peek(1) == '!'))
      throw unsupported("looking behind (?<=");
    take('P');
    if (!take('<')) throw unsupported("a group with (?");
    while (peek() != kNone && peek() != '>') ++at_;
    if (!take('>')) throw mistake("expected a > to end the group's name");
  }

  Item quantified(Item item) {
    while (true) {
      int64_t least = 0, most = -1;
      if (take('*')) {
      } else if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (peek() == '{') {
        // As other engines read it: a { that begins no quantifier is a character.
        size_t digits = 1;
        while (peek(digits) >= '0' && peek(digits) <= '9') ++digits;
        if (digits == 1 && peek(1) != ',')
          throw mistake("a { that begins no quantifier; write \\{");
        ++at_;
        least = digits == 1 ? 0 : number();
        most = least;
        if (take(',')) most = peek() == '}' ? -1 : number();
        if (!take('}')) throw mistake("expected a } to end the quantifier");
        if (most >= 0 && most < least) throw mistake("a quantifier whose end is below its start");
      } else {
        return item;
      }
      take('?');  // lazy: the set of texts is the same
      if (peek() == '+') throw unsupported("a possessive quantifier");
      Item repeat{.kind = Kind::Repeat, .least = least, .most = most};
      repeat.parts.push_back(std::move(item));
      item = std::move(repeat);
    }
  }

  int64_t number() {
    if (peek() < '0' || peek() > '9') throw mistake("expected a number");
    int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = value * 10 + int64_t(chars_[at_++] - '0');
      if (value > kMaxRepetitions)
        throw mistake("expected at most " + std::to_string(kMaxRepetitions) + " repetitions");
    }
    return value;
  }

  char32_t hex(size_t digits) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i) {
      const char32_t c = peek();
      const int digit = c >= '0' && c <= '9'   ? int(c - '0')
                        : c >= 'a' && c <= 'f' ? int(c - 'a' + 10)
                        : c >= 'A' && c <= 'F' ? int(c - 'A' + 10)
                                               : -1;
      if (digit < 0) throw mistake("expected " + std::to_string(digits) + " hexadecimal digits");
      value = value * 16 + char32_t(digit);
      ++at_;
    }
    if (value >= 0xd800 && value <= 0xdfff) throw mistake("half of a surrogate pair");
    return value;
  }

  CodeSet escape(bool inSet) {
    const char32_t c = peek();
    if (c == kNone) throw mistake("a \\ at the end");
    ++at_;
    auto one = [](char32_t code) { return CodeSet{{code, code}}; };
    switch (c) {
      case 'd':
        return kDigits;
      case 'D':
        return complement(kDigits);
      case 'w':
        return kWord;
      case 'W':
        return complement(kWord);
      case 's':
        return kSpace;
      case 'S':
        return complement(kSpace);
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case 'x':
        return one(hex(2));
      case 'u':
        return one(hex(4));
      case 'b':
        if (inSet) return one('\b');
        break;
      default:
        break;
    }
    const bool isWord = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (isWord) {
      std::string spelled = "\\";
      appendCodePoint(spelled, c);
      throw unsupported(spelled);
    }
    return one(c);
  }

  CodeSet set() {
    const bool negated = take('^');
    CodeSet members;
    for (bool first = true; first || peek() != ']'; first = false) {
      if (peek() == kNone) throw mistake("expected a ] to end the class");
      CodeSet low = member();
      const bool isRange = peek() == '-' && peek(1) != ']' && peek(1) != kNone;
      if (!isRange) {
        members.insert(members.end(), low.begin(), low.end());
        continue;
      }
      ++at_;
      const CodeSet high = member();
      auto isOne = [](const CodeSet& s) { return s.size() == 1 && s[0].low == s[0].high; };
      if (!isOne(low) || !isOne(high) || low[0].low > high[0].low)
        throw mistake("expected a range of two characters in their order");
      members.push_back({low[0].low, high[0].low});
    }
    ++at_;
    members = normalized(std::move(members));
    if (negated) members = complement(members);
    if (members.empty()) throw mistake("a class of no character");
    return members;
  }

  CodeSet member() {
    const char32_t c = chars_[at_++];
    if (c == '[' && (peek() == ':' || peek() == '=' || peek() == '.'))
      throw unsupported("a named class [[:");
    if (c == '\\') return escape(true);
    return {{c, c}};
  }

  std::string_view text_;
  std::u32string chars_;
  size_t at_ = 0;
};

Pattern Pattern::parse(std::string_view text) {
  Pattern pattern;
  pattern.branches_ = PatternParser(text).parse();
  return pattern;
}

Grammar::Node Pattern::append(Grammar& grammar, Grammar::Node from, Spelling spelling,
                              const Item& item) {
  switch (item.kind) {
    case Item::Kind::Set:
      return grammar.character(from, item.set, spelling);
    case Item::Kind::Sequence:
      for (const Item& part : item.parts) from = append(grammar, from, spelling, part);
      return from;
    case Item::Kind::Choice: {
      const Grammar::Node to = grammar.add();
      for (const Item& part : item.parts) {
        const Grammar::Node begin = grammar.add();
        grammar.jump(from, begin);
        grammar.jump(append(grammar, begin, spelling, part), to);
      }
      return to;
    }
    case Item::Kind::Repeat: {
      const Item& part = item.parts[0];
      for (int64_t i = 0; i < item.least; ++i) from = append(grammar, from, spelling, part);
      const Grammar::Node to = grammar.add();
      if (item.most < 0) {
        const Grammar::Node again = grammar.add();
        grammar.jump(from, again);
        grammar.jump(append(grammar, again, spelling, part), again);
        grammar.jump(again, to);
        return to;
      }
      for (int64_t i = item.least; i < item.most; ++i) {
        grammar.jump(from, to);
        const Grammar::Node begin = grammar.add();
        grammar.jump(from, begin);
        from = append(grammar, begin, spelling, part);
      }
      grammar.jump(from, to);
      return to;
    }
  }
  return from;
}

Grammar::Node Pattern::append(Grammar& grammar, Grammar::Node from, Spelling spelling,
                              bool whole) const {
  const Grammar::Node to = grammar.add();
  auto anything = [&](Grammar::Node at) {
    const Grammar::Node loop = grammar.add();
    grammar.jump(at, loop);
    grammar.jump(grammar.character(loop, complement({}), spelling), loop);
    return loop;
  };
  for (const Branch& branch : branches_) {
    Grammar::Node at = grammar.add();
    grammar.jump(from, at);
    if (!whole && !branch.fromStart) at = anything(at);
    at = append(grammar, at, spelling, branch.item);
    if (!whole && !branch.toEnd) at = anything(at);
    grammar.jump(at, to);
  }
  return to;
}

}  // namespace lathe::constraint
