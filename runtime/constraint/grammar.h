// SPDX-License-Identifier: Apache-2.0
#pragma once
// An automaton over bytes whose rules call each other: what regular expressions and schemas are
// compiled to. It is built from its beginning on: each function appends to a node and gives the
// node behind.
#include <cstdint>
#include <string_view>
#include <vector>

namespace lathe::constraint {

/// Inclusive.
struct CodeRange {
  char32_t low = 0, high = 0;
};
/// Sorted, disjoint, without surrogates.
using CodeSet = std::vector<CodeRange>;
CodeSet normalized(CodeSet set);
CodeSet complement(const CodeSet& set);

/// How the characters of a text are spelled.
enum class Spelling {
  Plain,
  JsonString  ///< as within the quotes of a JSON text: with escapes where they must be
};

class Grammar {
 public:
  using Node = uint32_t;
  using RuleId = uint32_t;
  static constexpr uint32_t kNever = 0xffffffff;

  struct Edge {
    uint8_t low, high;
    Node to;
  };
  struct NodeData {
    std::vector<Edge> edges;
    std::vector<Node> jumps;  // that consume nothing
    RuleId call = kNever;     // a call, after which `after` comes
    Node after = kNever;
    bool isEnd = false;  // of its rule
    /// Rules that must be called within each other, at least, to come to the end of the rule from
    /// here; kNever: there is no way.
    uint32_t need = kNever;
  };
  struct Rule {
    Node start = 0, end = 0;
  };

  /// Throws Error(Unsupported) beyond Constraint::kMaxNodes.
  Node add();
  /// A rule with a beginning and an end between which nothing is yet. The first is the whole text.
  RuleId addRule();
  const Rule& rule(RuleId id) const { return rules_[id]; }

  void jump(Node from, Node to) { nodes_[from].jumps.push_back(to); }
  void byte(Node from, uint8_t low, uint8_t high, Node to) {
    nodes_[from].edges.push_back({low, high, to});
  }
  Node literal(Node from, std::string_view bytes);
  /// One character of the set.
  Node character(Node from, const CodeSet& set, Spelling spelling);
  Node call(Node from, RuleId rule);

  /// Takes out what needs bytes that are not in `spelled`, and computes NodeData::need.
  void finish(const std::vector<bool>& spelled);

  const std::vector<NodeData>& nodes() const { return nodes_; }

 private:
  void codeRange(Node from, char32_t low, char32_t high, Node to);

  std::vector<NodeData> nodes_;
  std::vector<Rule> rules_;
};

}  // namespace lathe::constraint
