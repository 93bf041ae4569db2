// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning_problems.h"

#include <fmt/format.h>

#include <span>

#include "runtime/sha256.h"

namespace lathe::cuda {
namespace {

// Of the text that the templates call, which names no buffer numbers.
std::string epilogueHash(const ProductHooks& hooks) {
  return shortHash(hooks.definitionFor ? hooks.definitionFor(256) : hooks.definition);
}

template <class Choice>
std::vector<std::string> textsOf(const std::vector<Choice>& choices) {
  std::vector<std::string> texts;
  for (const Choice& c : choices) texts.push_back(textOf(c));
  return texts;
}

}  // namespace

std::string shortHash(std::string_view text) {
  return sha256Hex(std::as_bytes(std::span(text.data(), text.size()))).substr(0, 8);
}

std::string textOf(const ProductChoice& c) {
  switch (c.method) {
    case ProductMethod::GemvDot:
      return fmt::format("gemv-dot warps={}x{} splits={} columns={} steps={}", c.warpsN, c.warpsK,
                         c.splits, c.columns, c.steps);
    case ProductMethod::GemvMma:
      return fmt::format("gemv-mma warps={}x{} splits={} steps={}", c.warpsN, c.warpsK, c.splits,
                         c.steps);
    case ProductMethod::Gemm:
      return fmt::format("gemm tile={}x{} stages={} warps={}x{} splits={}", c.tileM, c.tileN,
                         c.stages, c.warpsM, c.warpsN, c.splits);
    case ProductMethod::Simt:
      return fmt::format("simt tile={}x{}", c.tileM, c.tileN);
    case ProductMethod::Library:
      return "library";
  }
  return {};
}

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
  }
  return {};
}

TuningQuestion questionOf(const ProductKernel& p, const ProductSizes& sizes,
                          const std::vector<ProductChoice>& candidates, const std::string& kernel,
                          int64_t low, int64_t high) {
  std::string layout = p.transposedB ? "kn" : "nk";
  if (p.hooks.pairs) layout += "+pairs";
  if (p.hooks.sumPairs) layout += "+sums";
  if (p.hooks.staged) layout += "+staged";
  if (!p.constantB) layout += "+computed";
  std::string batch = p.batch.empty() ? "" : fmt::format(" batch={}", sizeBucket(sizes.batch));
  TuningQuestion q;
  q.problem =
      fmt::format("product {} m={} n={} k={}{} layout={} epilogue={}", lathe::nameOf(p.dtype),
                  sizeBucket(sizes.rows), sizes.n, sizes.k, batch, layout, epilogueHash(p.hooks));
  q.version = kProductVersion;
  q.kernel = kernel;
  q.candidates = textsOf(candidates);
  for (const ProductChoice& c : candidates) q.seconds.push_back(productSeconds(p, sizes, c));
  q.sizes = {{p.m, low, std::min(high, sizes.rows)}};
  return q;
}

TuningQuestion questionOf(const AttentionKernel& a, const AttentionSizes& sizes,
                          const std::vector<AttentionChoice>& candidates, const std::string& kernel,
                          std::vector<Condition> when) {
  std::string mask = !a.mask ? "none" : *a.mask == DType::Bool ? "bool" : "added";
  TuningQuestion q;
  q.problem = fmt::format(
      "attention {} batch={} queries={} keys={} heads={}/{} depth={}/{} causal={} mask={}{}{}",
      lathe::nameOf(a.dtype), sizeBucket(sizes.batch), sizeBucket(sizes.queries),
      sizeBucket(sizes.keys), a.queryHeads, a.keyHeads, a.depth, a.valueDepth,
      lathe::nameOf(a.causal), mask, a.window ? fmt::format(" window={}", a.window) : "",
      a.softcap ? " softcap" : "");
  q.version = kAttentionVersion;
  q.kernel = kernel;
  q.candidates = textsOf(candidates);
  for (const AttentionChoice& c : candidates) q.seconds.push_back(attentionSeconds(a, sizes, c));
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
