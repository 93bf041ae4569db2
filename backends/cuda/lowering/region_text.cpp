// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region_text.h"

#include <algorithm>
#include <iterator>

namespace lathe::cuda {
namespace {

// Words of the language, and functions and types that kernels use.
const std::set<std::string>& reservedWords() {
  static const std::set<std::string> words{
      "and",      "auto",        "bool",    "break",    "char",        "class",
      "const",    "double",      "else",    "false",    "float",       "for",
      "if",       "int",         "long",    "not",      "or",          "return",
      "short",    "signed",      "sizeof",  "static",   "struct",      "switch",
      "this",     "true",        "union",   "using",    "void",        "while",
      "exp",      "log",         "sin",     "cos",      "tanh",        "erf",
      "sqrt",     "floor",       "ceil",    "round",    "abs",         "pow",
      "min",      "max",         "vec",     "bf16",     "f16",         "i64",
      "i32",      "i16",         "i8",      "u64",      "u32",         "u16",
      "u8",       "Sum",         "Max",     "Min",      "element",     "convert",
      "status",   "j",           "k",       "new",      "delete",      "default",
      "do",       "case",        "goto",    "enum",     "xor",         "template",
      "operator", "public",      "private", "register", "shift_left",  "shift_right",
      "bit_cast", "is_nan",      "max_nan", "min_nan",  "lowest_of",   "highest_of",
      "philox",   "philox_word", "lane_id", "warp_id",  "threadIdx",   "blockIdx",
      "to_f32",   "to_bf16",     "to_f16",  "load_vec", "load_vec_nc", "store_vec",
      "store_f32"};
  return words;
}

}  // namespace

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

std::vector<Val> RegionText::laneGuards() const {
  std::vector<Val> guards;
  int lane = laneLoop();
  for (int i = lane + 1; lane >= 0 && i <= top(); ++i)
    if (scopes_[size_t(i)].guard) guards.push_back(scopes_[size_t(i)].condition);
  return guards;
}

const Val* RegionText::find(const std::string& key) const {
  for (size_t i = scopes_.size(); i-- > 0;)
    if (auto it = scopes_[i].known.find(key); it != scopes_[i].known.end()) return &it->second;
  return nullptr;
}

void RegionText::remember(const std::string& key, Val value) {
  int level = std::min(value.level, top());
  scopes_[size_t(level)].known[key] = std::move(value);
}

std::string RegionText::unique(const std::string& hint) {
  std::string name = hint;
  for (int i = 2; reservedWords().count(name) || !names_.insert(name).second; ++i)
    name = hint + std::to_string(i);
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
