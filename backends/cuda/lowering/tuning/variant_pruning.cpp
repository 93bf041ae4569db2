// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning/variant_pruning.h"

#include <algorithm>
#include <limits>
#include <set>

namespace lathe::cuda {
namespace {

constexpr int64_t kAnything = std::numeric_limits<int64_t>::max();

struct Bounds {
  int64_t low = 0, high = kAnything;
};

// Sums of products of sizes grow with every size.
Bounds boundsOf(const DimExpr& value, const std::vector<SymbolInfo>& symbols) {
  for (const auto& [names, factor] : value.terms())
    if (factor < 0 && !names.empty()) return {std::numeric_limits<int64_t>::min(), kAnything};
  SymbolValues least, most;
  for (const SymbolInfo& s : symbols) {
    least[s.name] = s.lo;
    most[s.name] = s.hi;
  }
  return {value.evaluate(least).value_or(0), value.evaluate(most).value_or(kAnything)};
}

}  // namespace

void pruneVariants(KernelSet& set, const std::vector<SymbolInfo>& symbols) {
  std::vector<Variant> kept;
  for (Variant& v : set.variants) {
    bool never = false;
    std::erase_if(v.when, [&](const Condition& c) {
      const Bounds b = boundsOf(c.value, symbols);
      never |= b.high < c.low || b.low > c.high;
      return c.low <= b.low && b.high <= c.high;
    });
    if (never) continue;
    kept.push_back(std::move(v));
    if (kept.back().when.empty()) break;  // the rest is never asked
  }
  set.variants = std::move(kept);
  std::set<std::string> launched;
  for (const Variant& v : set.variants)
    for (const Launch& l : v.launches) launched.insert(l.kernel);
  std::erase_if(set.kernels, [&](const KernelText& k) { return !launched.contains(k.name); });
}

}  // namespace lathe::cuda
