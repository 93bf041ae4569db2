// SPDX-License-Identifier: Apache-2.0
#pragma once
// Texts by their bytes: finds those that begin at a place of a longer text.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace lathe {

class ByteTrie {
 public:
  /// What vocabularies allow a token of theirs: a search may take so many steps at each place.
  static constexpr size_t kMaxTokenBytes = 1024;

  /// Maps `text`, which is not empty, to `value` >= 0; a text that is there already gets the new
  /// value.
  void add(std::string_view text, int value) {
    uint32_t node = 0;
    for (char byte : text) {
      if (2 * (used_ + 1) > edges_.size()) grow();
      Edge& edge = edges_[place(keyOf(node, byte))];
      if (edge.child == 0) {
        edge = {keyOf(node, byte), uint32_t(values_.size())};
        ++used_;
        values_.push_back(-1);
      }
      node = edge.child;
    }
    values_[node] = value;
  }

  /// Calls `found(end, value)` for each text that `text` has at `position`, shortest first; `end`
  /// is the position behind it. Costs a step for each byte of the longest.
  template <class Found>
  void match(std::string_view text, size_t position, Found&& found) const {
    if (used_ == 0) return;
    uint32_t node = 0;
    for (size_t i = position; i < text.size(); ++i) {
      node = edges_[place(keyOf(node, text[i]))].child;
      if (node == 0) return;
      if (values_[node] >= 0) found(i + 1, values_[node]);
    }
  }

  bool empty() const { return used_ == 0; }

 private:
  struct Edge {
    uint64_t key = 0;
    uint32_t child = 0;  // 0: none, as nothing leads to the root
  };
  static uint64_t keyOf(uint32_t node, char byte) { return uint64_t(node) << 8 | uint8_t(byte); }

  // Where the key is or would be. There is always a free place: half of the table at least.
  size_t place(uint64_t key) const {
    const size_t mask = edges_.size() - 1;
    size_t at = size_t((key * 0x9e3779b97f4a7c15u) >> 20) & mask;
    while (edges_[at].child != 0 && edges_[at].key != key) at = (at + 1) & mask;
    return at;
  }
  void grow() {
    std::vector<Edge> old(std::max<size_t>(64, 2 * edges_.size()));
    std::swap(old, edges_);
    for (const Edge& edge : old)
      if (edge.child != 0) edges_[place(edge.key)] = edge;
  }

  std::vector<Edge> edges_;  // open addressing, a power of two
  size_t used_ = 0;
  std::vector<int> values_ = {-1};  // by node
};

}  // namespace lathe
