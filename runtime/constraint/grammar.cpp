// SPDX-License-Identifier: Apache-2.0
#include "runtime/constraint/grammar.h"

#include <algorithm>
#include <string>

#include "lathe/runtime/constraint.h"
#include "lathe/runtime/error.h"
#include "runtime/utf8.h"

namespace lathe::constraint {
namespace {

constexpr char32_t kLast = 0x10ffff, kFirstSurrogate = 0xd800, kLastSurrogate = 0xdfff;

// The escape of a character that must have one within a JSON text; empty for the others.
std::string jsonEscape(char32_t c) {
  switch (c) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  if (c >= 0x20) return "";
  constexpr const char* digits = "0123456789abcdef";
  return std::string("\\u00") + digits[c >> 4] + digits[c & 15];
}

}  // namespace

CodeSet normalized(CodeSet set) {
  std::ranges::sort(set, {}, &CodeRange::low);
  CodeSet merged;
  for (const CodeRange& range : set) {
    if (range.low > range.high) continue;
    if (!merged.empty() && range.low <= merged.back().high + 1)
      merged.back().high = std::max(merged.back().high, range.high);
    else
      merged.push_back(range);
  }
  CodeSet out;
  for (const CodeRange& range : merged) {
    if (range.low < kFirstSurrogate)
      out.push_back({range.low, std::min<char32_t>(range.high, kFirstSurrogate - 1)});
    if (range.high > kLastSurrogate)
      out.push_back({std::max<char32_t>(range.low, kLastSurrogate + 1), range.high});
  }
  return out;
}

CodeSet complement(const CodeSet& set) {
  CodeSet out;
  char32_t next = 0;
  for (const CodeRange& range : set) {
    if (range.low > next) out.push_back({next, range.low - 1});
    next = range.high + 1;
  }
  if (next <= kLast) out.push_back({next, kLast});
  return normalized(out);
}

Grammar::Node Grammar::add() {
  if (int64_t(nodes_.size()) >= Constraint::kMaxNodes)
    throw Error(ErrorCode::Unsupported, "the constraint needs more than " +
                                            std::to_string(Constraint::kMaxNodes) +
                                            " nodes; use smaller repetitions and lengths");
  nodes_.emplace_back();
  return Node(nodes_.size() - 1);
}

Grammar::RuleId Grammar::addRule() {
  Rule rule;
  rule.start = add();
  rule.end = add();
  nodes_[rule.end].isEnd = true;
  rules_.push_back(rule);
  return RuleId(rules_.size() - 1);
}

Grammar::Node Grammar::literal(Node from, std::string_view bytes) {
  for (char c : bytes) {
    const Node to = add();
    byte(from, uint8_t(c), uint8_t(c), to);
    from = to;
  }
  return from;
}

Grammar::Node Grammar::call(Node from, RuleId rule) {
  // A node of its own: `from` may have other ways.
  const Node caller = add(), after = add();
  jump(from, caller);
  nodes_[caller].call = rule;
  nodes_[caller].after = after;
  return after;
}

// Splits until all of a range have encodings of one length whose bytes vary independently.
void Grammar::codeRange(Node from, char32_t low, char32_t high, Node to) {
  for (char32_t most : {0x7fu, 0x7ffu, 0xffffu})
    if (low <= most && most < high) {
      codeRange(from, low, most, to);
      return codeRange(from, char32_t(most + 1), high, to);
    }
  if (high > 0x7f)
    for (int bits = 6; bits <= 18; bits += 6) {
      const char32_t mask = (char32_t(1) << bits) - 1;
      if ((low & ~mask) == (high & ~mask)) continue;
      if (low & mask) {
        codeRange(from, low, low | mask, to);
        return codeRange(from, (low | mask) + 1, high, to);
      }
      if ((high & mask) != mask) {
        codeRange(from, low, (high & ~mask) - 1, to);
        return codeRange(from, high & ~mask, high, to);
      }
    }
  std::string first, last;
  appendCodePoint(first, low);
  appendCodePoint(last, high);
  for (size_t i = 0; i < first.size(); ++i) {
    const Node next = i + 1 == first.size() ? to : add();
    byte(from, uint8_t(first[i]), uint8_t(last[i]), next);
    from = next;
  }
}

Grammar::Node Grammar::character(Node from, const CodeSet& set, Spelling spelling) {
  const Node to = add();
  for (CodeRange range : set) {
    if (spelling == Spelling::JsonString) {
      auto escaped = [&](char32_t c) {
        if (c >= range.low && c <= range.high) jump(literal(from, jsonEscape(c)), to);
      };
      for (char32_t c = 0; c < 0x20; ++c) escaped(c);
      range.low = std::max<char32_t>(range.low, 0x20);
      for (char32_t c : {U'"', U'\\'}) {
        if (c < range.low || c > range.high) continue;
        escaped(c);
        if (range.low < c) codeRange(from, range.low, c - 1, to);
        range.low = c + 1;
      }
    }
    if (range.low <= range.high) codeRange(from, range.low, range.high, to);
  }
  return to;
}

void Grammar::finish(const std::vector<bool>& spelled) {
  for (NodeData& node : nodes_) {
    std::vector<Edge> edges;
    for (const Edge& edge : node.edges)
      for (int b = edge.low; b <= edge.high; ++b) {
        if (!spelled[size_t(b)]) continue;
        if (!edges.empty() && edges.back().to == edge.to && edges.back().high + 1 == b)
          edges.back().high = uint8_t(b);
        else
          edges.push_back({uint8_t(b), uint8_t(b), edge.to});
      }
    node.edges = std::move(edges);
    node.need = node.isEnd ? 0 : kNever;
  }
  // Nodes were made in the order of the text: from the last to the first, few rounds are enough.
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = nodes_.size(); i-- > 0;) {
      NodeData& node = nodes_[i];
      uint32_t need = node.need;
      for (const Edge& edge : node.edges) need = std::min(need, nodes_[edge.to].need);
      for (Node to : node.jumps) need = std::min(need, nodes_[to].need);
      if (node.call != kNever) {
        const uint32_t inner = nodes_[rules_[node.call].start].need,
                       after = nodes_[node.after].need;
        if (inner != kNever && after != kNever) need = std::min(need, std::max(inner + 1, after));
      }
      changed |= need != node.need;
      node.need = need;
    }
  }
}

}  // namespace lathe::constraint
