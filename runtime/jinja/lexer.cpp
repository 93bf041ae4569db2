// SPDX-License-Identifier: Apache-2.0
#include "runtime/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "runtime/jinja/value.h"
#include "runtime/utf8.h"

namespace lathe::jinja {
namespace {

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

// Line ends as \n, and one at the end of the text is left out.
std::string withPlainLineEnds(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
      continue;
    }
    text += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Lexer {
 public:
  Lexer(std::string_view source, const std::string& file)
      : text_(withPlainLineEnds(source)), file_(file) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) {
      const size_t tag = findTag(at_);
      if (tag == text_.npos) {
        pushData(text_.substr(at_));
        advance(text_.size());
        break;
      }
      readTag(tag);
    }
    push(Token::Kind::End, "");
    return std::move(tokens_);
  }

 private:
  Error fail(const std::string& message) const {
    return errorAt(file_, line_, message, ErrorCode::InvalidFile);
  }
  bool here(std::string_view what) const {
    return std::string_view(text_).substr(at_).starts_with(what);
  }
  char charAt(size_t i) const { return i < text_.size() ? text_[i] : '\0'; }
  void advance(size_t to) {
    line_ += int(std::count(text_.begin() + ptrdiff_t(at_), text_.begin() + ptrdiff_t(to), '\n'));
    at_ = to;
  }
  void push(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), line_});
  }
  void pushData(std::string text) {
    if (!text.empty()) push(Token::Kind::Data, std::move(text));
  }
  size_t findTag(size_t from) const {
    for (size_t at = from; (at = text_.find('{', at)) != text_.npos; ++at)
      if (char next = charAt(at + 1); next == '{' || next == '%' || next == '#') return at;
    return text_.npos;
  }

  // The text in front of a tag, as the tag's sign leaves it.
  void pushDataBefore(size_t tag, char sign, bool isVariable) {
    std::string data = text_.substr(at_, tag - at_);
    if (sign == '-') {
      data = strip(data, false, true);
    } else if (sign != '+' && !isVariable) {
      const size_t lineBegin = data.rfind('\n') + 1;  // 0 where there is none
      if ((lineBegin > 0 || lineStarts_) && lineBegin < data.size() &&
          strip(std::string_view(data).substr(lineBegin), true, false).empty())
        data.resize(lineBegin);
    }
    pushData(std::move(data));
    advance(tag);
  }

  void readTag(size_t tag) {
    const char kind = text_[tag + 1], sign = charAt(tag + 2);
    pushDataBefore(tag, sign, kind == '{');
    advance(tag + (sign == '-' || sign == '+' ? 3 : 2));
    if (kind == '#') return readComment();
    if (kind == '{') {
      push(Token::Kind::VariableBegin, "{{");
      return readExpression("}}", Token::Kind::VariableEnd);
    }
    const size_t block = tokens_.size();
    push(Token::Kind::BlockBegin, "{%");
    readExpression("%}", Token::Kind::BlockEnd);
    if (tokens_.size() == block + 3 && tokens_[block + 1].is(Token::Kind::Name, "raw")) {
      tokens_.resize(block);
      // As in Jinja, the end of the line behind "{% raw %}" is text.
      if (text_.substr(at_ - 2, 2) == "}\n" && text_[at_ - 4] != '-') {
        --at_;
        --line_;
        lineStarts_ = false;
      }
      readRaw();
    }
  }

  // Behind a tag: "-" takes all white space, and without "+" a tag that is no variable takes the
  // line's end.
  void endTag(char sign, size_t end, bool isVariable) {
    size_t next = end;
    if (sign == '-') {
      const std::string_view rest = std::string_view(text_).substr(end);
      next = end + rest.size() - strip(rest, true, false).size();
    } else if (sign != '+' && !isVariable && charAt(end) == '\n') {
      ++next;
    }
    lineStarts_ = next > 0 && text_[next - 1] == '\n';
    advance(next);
  }

  void readComment() {
    const size_t end = text_.find("#}", at_);
    if (end == text_.npos) throw fail("expected #} at the end of the comment");
    const char sign = end > at_ ? text_[end - 1] : '\0';
    advance(end);
    endTag(sign, end + 2, false);
  }

  void readRaw() {
    for (size_t from = at_; (from = text_.find("{%", from)) != text_.npos; from += 2) {
      size_t i = from + 2;
      const char sign = charAt(i);
      if (sign == '-' || sign == '+') ++i;
      while (isSpace(char32_t(uint8_t(charAt(i))))) ++i;
      if (!std::string_view(text_).substr(i).starts_with("endraw")) continue;
      const size_t end = text_.find("%}", i);
      if (end == text_.npos) break;
      pushDataBefore(from, sign, false);
      endTag(text_[end - 1], end + 2, false);
      return;
    }
    throw fail("expected {% endraw %}");
  }

  void readExpression(std::string_view close, Token::Kind kind) {
    for (std::string open; at_ < text_.size();) {
      const char c = text_[at_];
      if (c == ' ' || (c >= 9 && c <= 13)) {
        advance(at_ + 1);
        continue;
      }
      const bool signedEnd =
          (c == '-' || c == '+') && std::string_view(text_).substr(at_ + 1).starts_with(close);
      if (open.empty() && (here(close) || (signedEnd && (c == '-' || close == "%}")))) {
        push(kind, std::string(close));
        return endTag(c, at_ + close.size() + (signedEnd ? 1 : 0), close == "}}");
      }
      if (isLetter(c))
        readName();
      else if (isDigit(c))
        readNumber();
      else if (c == '"' || c == '\'')
        readText(c);
      else
        readOperator(open);
    }
    throw fail("expected " + std::string(close) + " at the end of the tag");
  }

  void readName() {
    size_t end = at_;
    while (isLetter(charAt(end)) || isDigit(charAt(end))) ++end;
    push(Token::Kind::Name, text_.substr(at_, end - at_));
    advance(end);
  }

  void readNumber() {
    auto digits = [&](size_t i) {
      while (isDigit(charAt(i)) || (charAt(i) == '_' && isDigit(charAt(i + 1)))) ++i;
      return i;
    };
    size_t end = digits(at_);
    bool isFloat = false;
    if (charAt(end) == '.' && isDigit(charAt(end + 1))) end = digits(end + 1), isFloat = true;
    if (charAt(end) == 'e' || charAt(end) == 'E') {
      const size_t first = end + (charAt(end + 1) == '-' || charAt(end + 1) == '+' ? 2 : 1);
      if (isDigit(charAt(first))) end = digits(first), isFloat = true;
    }
    if (isLetter(charAt(end))) throw fail("expected a number in decimal digits");
    std::string number = text_.substr(at_, end - at_);
    std::erase(number, '_');
    push(isFloat ? Token::Kind::Float : Token::Kind::Integer, std::move(number));
    advance(end);
  }

  void readText(char quote) {
    std::string value;
    size_t i = at_ + 1;
    while (i < text_.size() && text_[i] != quote) {
      if (text_[i] != '\\') {
        value += text_[i++];
        continue;
      }
      i = readEscape(i + 1, value);
    }
    if (i >= text_.size()) throw fail("expected the end of the text in quotes");
    push(Token::Kind::Text, std::move(value));
    advance(i + 1);
  }

  size_t readEscape(size_t i, std::string& value) const {
    const char c = charAt(i);
    static constexpr std::string_view kNames = "ntr\\'\"abfv0",
                                      kValues = std::string_view("\n\t\r\\'\"\a\b\f\v\0", 11);
    if (c == '\n') return i + 1;
    const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
      uint32_t point = 0;
      for (int k = 1; k <= digits; ++k) {
        const char d = charAt(i + size_t(k));
        const int value16 = isDigit(d)             ? d - '0'
                            : d >= 'a' && d <= 'f' ? d - 'a' + 10
                            : d >= 'A' && d <= 'F' ? d - 'A' + 10
                                                   : -1;
        if (value16 < 0)
          throw fail(fmt::format("expected {} hexadecimal digits after \\{}", digits, c));
        point = point << 4 | uint32_t(value16);
      }
      if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        throw fail(fmt::format("the escape \\{} names no character", c));
      appendCodePoint(value, point);
      return i + 1 + size_t(digits);
    }
    const size_t at = kNames.find(c);
    if (at == kNames.npos || c == '\0') {
      value += '\\';
      return i;
    }
    value += kValues[at];
    return i + 1;
  }

  void readOperator(std::string& open) {
    static constexpr std::array<std::string_view, 6> kLong = {"==", "!=", "<=", ">=", "//", "**"};
    for (std::string_view op : kLong)
      if (here(op)) {
        push(Token::Kind::Operator, std::string(op));
        return advance(at_ + 2);
      }
    const char c = text_[at_];
    if (std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos)
      throw fail("expected an expression, got " +
                 inQuotes(std::string_view(text_).substr(at_).substr(0, 12)));
    if (c == '(' || c == '[' || c == '{') open += c;
    if (c == ')' || c == ']' || c == '}') {
      const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (!open.ends_with(opening)) throw fail(fmt::format("unexpected {}", c));
      open.pop_back();
    }
    push(Token::Kind::Operator, std::string(1, c));
    advance(at_ + 1);
  }

  const std::string text_;
  const std::string& file_;
  size_t at_ = 0;
  int line_ = 1;
  bool lineStarts_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

Error errorAt(const std::string& file, int line, const std::string& message, ErrorCode code) {
  return Error(code, fmt::format("{} line {}: {}", file, line, message));
}

std::vector<Token> tokenize(std::string_view source, const std::string& file) {
  return Lexer(source, file).run();
}

}  // namespace lathe::jinja
