// SPDX-License-Identifier: Apache-2.0
// Attention and its candidates as text: what tuning records are found by.
#include <fmt/format.h>

#include "backends/cuda/lowering/attention/attention_kernels.h"

namespace lathe::cuda {

std::string textOf(const AttentionChoice& c) {
  switch (c.method) {
    case AttentionMethod::Decode:
    case AttentionMethod::Simt:
      return fmt::format("{} warps={} least-keys={} splits={}",
                         c.method == AttentionMethod::Decode ? "decode" : "simt", c.warps,
                         c.leastKeys, c.mostSplits);
    case AttentionMethod::Tiled:
      return fmt::format("tiled warps={} row-tiles={} keys={}{}", c.warps, c.rowTiles, c.keys,
                         c.packsHeads ? " packed" : "");
    case AttentionMethod::Library:
      return "library";
  }
  return {};
}

TuningQuestion questionOf(const AttentionKernel& a, const AttentionSizes& sizes,
                          const std::vector<AttentionChoice>& candidates, const std::string& kernel,
                          std::vector<Condition> when) {
  std::string mask = !a.mask ? "none" : *a.mask == DType::Bool ? "bool" : "added";
  TuningQuestion q;
  q.problem = fmt::format(
      "attention {} batch={} queries={} keys={} heads={}/{} depth={}/{} causal={} mask={}{}{}{}",
      lathe::nameOf(a.dtype), sizeBucket(sizes.batch), sizeBucket(sizes.queries),
      sizeBucket(sizes.keys), a.queryHeads, a.keyHeads, a.depth, a.valueDepth,
      lathe::nameOf(a.causal), mask, a.window ? fmt::format(" window={}", a.window) : "",
      a.softcap ? " softcap" : "", a.blockKeys ? fmt::format(" block={}", a.blockKeys) : "");
  q.version = kAttentionVersion;
  q.kernel = kernel;
  for (const AttentionChoice& c : candidates) {
    if (c.method == AttentionMethod::Library) q.withoutText.insert(q.candidates.size());
    q.candidates.push_back(textOf(c));
    q.seconds.push_back(attentionSeconds(a, sizes, c));
  }
  q.sizes = std::move(when);
  // A model whose sizes do not reach these is not what the answer is about.
  q.sizes.push_back({a.batch, sizes.batch / 2 + 1, sizes.batch});
  q.sizes.push_back({a.queries, sizes.queries / 2 + 1, sizes.queries});
  q.sizes.push_back({a.keys, sizes.keys / 2 + 1, sizes.keys});
  // The last query sees every key.
  q.integers = a.keys - a.queries;
  return q;
}

}  // namespace lathe::cuda
