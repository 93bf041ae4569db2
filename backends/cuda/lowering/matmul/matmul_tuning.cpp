// SPDX-License-Identifier: Apache-2.0
// Products and their candidates as text: what tuning records are found by.
#include <fmt/format.h>

#include <regex>

#include "backends/cuda/lowering/matmul/gemm_kernels.h"

namespace lathe::cuda {
namespace {

// Of the text that the templates call, which names no buffer numbers. Its comments name the lines
// of a model's source, which are no matter of the kernel's.
std::string epilogueHash(const MatmulHooks& hooks) {
  const std::string& text = hooks.epilogue.empty() ? hooks.definition : hooks.epilogue;
  return shortHash(std::regex_replace(text, std::regex(" *//[^\n]*"), ""));
}

}  // namespace

std::string textOf(const MatmulChoice& c) {
  switch (c.method) {
    case MatmulMethod::GemvDot:
      return fmt::format("gemv-dot warps={}x{} splits={} columns={} steps={}", c.warpsN, c.warpsK,
                         c.splits, c.columns, c.steps);
    case MatmulMethod::GemvMma:
      return fmt::format("gemv-mma warps={}x{} splits={} steps={}", c.warpsN, c.warpsK, c.splits,
                         c.steps);
    case MatmulMethod::Gemm:
      return fmt::format("gemm tile={}x{} stages={} warps={}x{} splits={}", c.tileM, c.tileN,
                         c.stages, c.warpsM, c.warpsN, c.splits);
    case MatmulMethod::Simt:
      return fmt::format("simt tile={}x{}", c.tileM, c.tileN);
    case MatmulMethod::Library:
      return c.rank ? fmt::format("library rank={}", c.rank) : "library";
  }
  return {};
}

TuningQuestion questionOf(const MatmulKernel& p, const MatmulSizes& sizes,
                          const std::vector<MatmulChoice>& candidates, const std::string& kernel,
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
  q.version = kMatmulVersion;
  q.kernel = kernel;
  for (const MatmulChoice& c : candidates) {
    if (c.method == MatmulMethod::Library) q.withoutText.insert(q.candidates.size());
    q.candidates.push_back(textOf(c));
    q.seconds.push_back(matmulSeconds(p, sizes, c));
  }
  q.sizes = {{p.m, low, std::min(high, sizes.rows)}};
  return q;
}

}  // namespace lathe::cuda
