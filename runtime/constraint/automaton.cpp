// SPDX-License-Identifier: Apache-2.0
#include "runtime/constraint/automaton.h"

#include <algorithm>
#include <set>
#include <string>

#include "lathe/runtime/constraint.h"
#include "lathe/runtime/error.h"

namespace lathe::constraint {

Automaton::Automaton(Grammar grammar) : grammar_(std::move(grammar)) { forget(); }

void Automaton::forget() {
  places_.clear();
  byHash_.clear();
  frames_.assign(1, {});
  frameOf_.clear();
  bytes_ = 0;
  const Grammar::Node start = grammar_.rule(0).start;
  if (grammar_.nodes()[start].need == Grammar::kNever) return void(places_.push_back(nullptr));
  settle({{start, 0}});
}

uint32_t Automaton::push(uint32_t returnTo, uint32_t parent) {
  const uint64_t key = uint64_t(returnTo) << 32 | parent;
  auto [it, added] = frameOf_.try_emplace(key, uint32_t(frames_.size()));
  if (added) {
    frames_.push_back({returnTo, parent, frames_[parent].depth + 1});
    bytes_ += 64;
  }
  return it->second;
}

// A place from which the end cannot be reached within the nesting is not entered.
bool Automaton::mayEnter(uint32_t node, uint32_t depth) const {
  const uint32_t need = grammar_.nodes()[node].need;
  return need != Grammar::kNever && depth + need <= uint32_t(Constraint::kMaxNesting);
}

uint32_t Automaton::settle(std::vector<At> from) {
  auto place = std::make_unique<Place>();
  std::set<At> seen(from.begin(), from.end());
  auto visit = [&](At at) {
    if (!seen.insert(at).second) return;
    if (int64_t(seen.size()) > Constraint::kMaxAlternatives)
      throw Error(ErrorCode::Unsupported, "the constraint leaves more than " +
                                              std::to_string(Constraint::kMaxAlternatives) +
                                              " alternatives open at once; make it simpler");
    from.push_back(at);
  };
  while (!from.empty()) {
    const At at = from.back();
    from.pop_back();
    const Grammar::NodeData& node = grammar_.nodes()[at.node];
    const uint32_t depth = frames_[at.stack].depth;
    if (!node.edges.empty()) place->at.push_back(at);
    if (node.isEnd) {
      if (at.stack == 0)
        place->accepts = true;
      else
        visit({frames_[at.stack].returnTo, frames_[at.stack].parent});
    }
    for (Grammar::Node to : node.jumps)
      if (mayEnter(to, depth)) visit({to, at.stack});
    if (node.call == Grammar::kNever) continue;
    const Grammar::Node inner = grammar_.rule(node.call).start;
    if (mayEnter(inner, depth + 1) && mayEnter(node.after, depth))
      visit({inner, push(node.after, at.stack)});
  }
  std::ranges::sort(place->at);
  // Nodes with edges that all lead nowhere are no way on.
  for (const At& at : place->at)
    for (const Grammar::Edge& edge : grammar_.nodes()[at.node].edges)
      place->goesOn |= mayEnter(edge.to, frames_[at.stack].depth);
  if (!place->goesOn && !place->accepts) return kDead;

  uint64_t hash = place->accepts;
  for (const At& at : place->at)
    hash = (hash ^ (uint64_t(at.node) << 32 | at.stack)) * 0x9e3779b97f4a7c15u + 1;
  for (auto [it, end] = byHash_.equal_range(hash); it != end; ++it)
    if (const Place& other = *places_[it->second];
        other.at == place->at && other.accepts == place->accepts)
      return it->second;
  bytes_ += int64_t(sizeof(Place) + place->at.size() * sizeof(At) + 64);
  if (bytes_ > 4 * Constraint::kMaxCacheBytes)
    throw Error(ErrorCode::Unsupported, "the constraint takes more than " +
                                            std::to_string(Constraint::kMaxCacheBytes >> 18) +
                                            " MiB for one token; make it simpler");
  place->next.fill(kUnknown);
  places_.push_back(std::move(place));
  byHash_.emplace(hash, uint32_t(places_.size() - 1));
  return uint32_t(places_.size() - 1);
}

uint32_t Automaton::next(uint32_t place, uint8_t byte) {
  if (const uint32_t known = places_[place]->next[byte]; known != kUnknown) return known;
  std::vector<At> reached;
  for (const At& at : places_[place]->at)
    for (const Grammar::Edge& edge : grammar_.nodes()[at.node].edges)
      if (edge.low <= byte && byte <= edge.high && mayEnter(edge.to, frames_[at.stack].depth))
        reached.push_back({edge.to, at.stack});
  std::ranges::sort(reached);
  reached.erase(std::ranges::unique(reached).begin(), reached.end());
  const uint32_t to = reached.empty() ? kDead : settle(std::move(reached));
  return places_[place]->next[byte] = to;
}

}  // namespace lathe::constraint
