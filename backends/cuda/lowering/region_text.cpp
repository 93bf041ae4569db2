// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <string_view>

#include "backends/cuda/device/headers.h"

namespace lathe::cuda {
namespace {

bool inWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Words of C++20, of CUDA and of the printers that a name would hide or break.
constexpr std::string_view kWords =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t "
    "char8_t class co_await co_return co_yield compl concept const const_cast consteval constexpr "
    "constinit continue decltype default delete do double dynamic_cast else enum explicit export "
    "extern false float for friend goto if inline int long mutable namespace new noexcept not "
    "not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "return short signed sizeof static static_assert static_cast struct switch template this "
    "thread_local throw true try typedef typeid typename typeof union unsigned using virtual void "
    "volatile wchar_t while xor xor_eq NULL assert asm linux main restrict unix warpSize "
    "threadIdx blockIdx blockDim gridDim j k status";

// What the headers of kernels define: macros and what they are given to define, types, functions.
std::set<std::string, std::less<>> definedIn(const Headers& headers) {
  std::set<std::string, std::less<>> names;
  for (const auto& [file, text] : headers) {
    auto charAt = [&text = text](size_t at) { return at < text.size() ? text[at] : '\0'; };
    std::string before;
    bool isType = false;  // in the words from "struct" or "typedef" on
    for (size_t at = 0; at < text.size();) {
      if (text.compare(at, 2, "//") == 0) at = std::min(text.find('\n', at), text.size());
      if (at >= text.size() || !inWord(text[at])) {
        ++at;
        continue;
      }
      size_t end = at;
      while (end < text.size() && inWord(text[end])) ++end;
      const std::string word = text.substr(at, end - at);
      const char next = charAt(end), ahead = charAt(end + 1);
      // "float name(": behind a type.
      const bool isFunction =
          next == '(' && at > 1 && text[at - 1] == ' ' &&
          (inWord(text[at - 2]) || std::string_view(">*&").find(text[at - 2]) != std::string::npos);
      const bool isGiven = before.rfind("LT_", 0) == 0 && at > 0 && text[at - 1] == '(';
      isType |= word == "struct" || word == "typedef";
      const bool endsType = next == ';' || (next == ' ' && (ahead == '{' || ahead == ':'));
      if (isFunction || isGiven || before == "define" || (isType && endsType)) names.insert(word);
      isType &= !endsType;
      before = word;
      at = end;
    }
  }
  return names;
}

bool isReserved(const std::string& name) {
  static const std::set<std::string, std::less<>> reserved = [] {
    auto names = definedIn(deviceHeaders());
    names.merge(definedIn(hostHeaders()));
    for (size_t at = 0; at < kWords.size();) {
      const size_t end = std::min(kWords.find(' ', at), kWords.size());
      names.emplace(kWords.substr(at, end - at));
      at = end + 1;
    }
    return names;
  }();
  return reserved.count(name) != 0;
}

}  // namespace

std::string identifierOf(std::string_view hint) {
  constexpr size_t kMost = 48;
  std::string name;
  for (char c : hint.substr(0, kMost)) {
    if (!inWord(c)) c = '_';
    // Names with two underscores, or with one in front, belong to compilers.
    if (c == '_' && (name.empty() || name.back() == '_')) continue;
    name += c;
  }
  while (!name.empty() && name.back() == '_') name.pop_back();
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "x" + name;
  return name;
}

void RegionText::line(int level, const std::string& statement) {
  scopes_[size_t(level)].text += margin(level) + statement + "\n";
}

void RegionText::open(const std::string& header, const Val* condition, bool isLaneLoop) {
  Scope s;
  s.header = header;
  s.laneLoop = isLaneLoop;
  if (condition) {
    s.guard = true;
    s.condition = *condition;
  }
  scopes_.push_back(std::move(s));
}

void RegionText::openWork(const std::string& header) {
  open(header);
  scopes_.back().work = true;
}

std::string RegionText::take() {
  Scope s = std::move(scopes_.back());
  scopes_.pop_back();
  // A header of several lines: pragmas in front of a loop.
  std::string header = s.header;
  for (size_t at = 0; (at = header.find('\n', at)) != std::string::npos; ++at)
    header.insert(at + 1, margin(top()));
  return margin(top()) + header + " {\n" + s.text + margin(top()) + "}\n";
}

std::string RegionText::aside(const Val& condition, const std::function<void()>& body) {
  open("", &condition);
  body();
  std::string text = std::move(scopes_.back().text);
  scopes_.pop_back();
  return text;
}

void RegionText::at(int level, const std::function<void()>& body) {
  std::vector<Scope> inner(std::make_move_iterator(scopes_.begin() + level + 1),
                           std::make_move_iterator(scopes_.end()));
  scopes_.resize(size_t(level) + 1);
  body();
  for (Scope& s : inner) scopes_.push_back(std::move(s));
}

int RegionText::laneLoop() const {
  for (int i = top(); i > 0; --i)
    if (scopes_[size_t(i)].laneLoop) return i;
  return -1;
}

int RegionText::barrier() const {
  int lane = laneLoop();
  for (int i = lane < 0 ? top() : lane; i > 0; --i)
    if (scopes_[size_t(i)].guard) return i;
  return 0;
}

int RegionText::floor() const {
  for (int i = top(); i > 0; --i)
    if (scopes_[size_t(i)].work) return i;
  return 0;
}

std::vector<Val> RegionText::laneGuards() const {
  std::vector<Val> guards;
  int lane = laneLoop();
  for (int i = lane + 1; lane >= 0 && i <= top(); ++i)
    if (scopes_[size_t(i)].guard) guards.push_back(scopes_[size_t(i)].condition);
  return guards;
}

int RegionText::laneGuard() const {
  const int lane = laneLoop();
  for (int i = top(); lane >= 0 && i > lane; --i)
    if (scopes_[size_t(i)].guard) return i;
  return 0;
}

const Val* RegionText::find(const std::string& key) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (auto it = scopes_[i].known.find(key); it != scopes_[i].known.end()) return &it->second;
  return nullptr;
}

void RegionText::remember(const std::string& key, Val value) {
  int level = std::min(std::max(value.level, value.guard), top());
  scopes_[size_t(level)].known[key] = std::move(value);
}

std::string RegionText::unique(const std::string& hint) {
  const std::string base = identifierOf(hint);
  std::string name = base;
  for (int i = 2; isReserved(name) || !names_.insert(name).second; ++i)
    name = base + std::to_string(i);
  return name;
}

Val RegionText::define(int level, const std::string& type, const std::string& hint,
                       const std::string& expression, const std::string& comment) {
  std::string name = unique(hint);
  line(level, "const " + type + " " + name + " = " + expression + ";" +
                  (comment.empty() ? "" : "  // " + comment));
  return {name, level};
}

const Atom* RegionText::atom(Atom atom) {
  atom.id = int(atoms_.size());
  atoms_.push_back(std::move(atom));
  return &atoms_.back();
}

}  // namespace lathe::cuda
