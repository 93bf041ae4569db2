// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region_text.h"

#include <algorithm>
#include <iterator>

namespace lathe::cuda {

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

Val RegionText::define(int level, const std::string& type, const std::string& hint,
                       const std::string& expression, const std::string& comment) {
  std::string name = names_.unique(hint);
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
