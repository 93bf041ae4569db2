// SPDX-License-Identifier: Apache-2.0
#pragma once
// A grammar as it is walked byte by byte: places are sets of nodes with the calls that lead to
// them, made when they are first reached.
#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "runtime/constraint/grammar.h"

namespace lathe::constraint {

class Automaton {
 public:
  static constexpr uint32_t kDead = 0xffffffff;

  explicit Automaton(Grammar grammar);

  uint32_t start() const { return 0; }
  /// The place behind a byte, or kDead. Throws Error(Unsupported) where a text may be in more
  /// places at once than Constraint::kMaxAlternatives, or the places take more than four times
  /// Constraint::kMaxCacheBytes.
  uint32_t next(uint32_t place, uint8_t byte);
  /// Whether the text may end there, and whether it may go on.
  bool accepts(uint32_t place) const { return places_[place]->accepts; }
  bool goesOn(uint32_t place) const { return places_[place]->goesOn; }

  /// Tokens that were found to be allowed at a place; empty until they are.
  std::vector<uint64_t>& mask(uint32_t place, bool first) {
    return places_[place]->masks[first ? 1 : 0];
  }
  /// Memory of places, in bytes.
  int64_t bytes() const { return bytes_; }
  void noteBytes(int64_t bytes) { bytes_ += bytes; }
  /// Forgets all places but the start. Their numbers mean nothing from then on.
  void forget();

 private:
  struct At {
    uint32_t node, stack;
    auto operator<=>(const At&) const = default;
  };
  struct Frame {
    uint32_t returnTo = 0, parent = 0, depth = 0;
  };
  struct Place {
    std::vector<At> at;  // nodes with edges, sorted
    bool accepts = false, goesOn = false;
    std::array<uint32_t, 256> next;
    std::array<std::vector<uint64_t>, 2> masks;
  };
  static constexpr uint32_t kUnknown = 0xfffffffe;

  uint32_t push(uint32_t returnTo, uint32_t parent);
  // Where the nodes lead without a byte.
  uint32_t settle(std::vector<At> from);
  bool mayEnter(uint32_t node, uint32_t depth) const;

  Grammar grammar_;
  std::vector<std::unique_ptr<Place>> places_;
  std::unordered_multimap<uint64_t, uint32_t> byHash_;
  std::vector<Frame> frames_;
  std::unordered_map<uint64_t, uint32_t> frameOf_;
  int64_t bytes_ = 0;
};

}  // namespace lathe::constraint
