// SPDX-License-Identifier: Apache-2.0
// Attention that is left to a library, and the lengths that it wants where keys lie in a cache.
#include <fmt/format.h>

#include <algorithm>

#include "backends/cuda/lowering/attention/attention_blocks.h"

namespace lathe::cuda {
namespace {

constexpr int kLengthThreads = 128;

std::string lengthsName(const AttentionKernel& a) { return a.name + "_lengths"; }

// The keys of every batch, those in front of the last query's and its own, and the queries.
KernelText lengthsText(const AttentionKernel& a, KernelParameters& p) {
  p.input(elementType(a.positions), "positions", 3);
  p.scratch("i32", "lengths", 0);
  const std::string batches = p.size("batches", a.batch), queries = p.size("queries", a.queries),
                    keys = p.size("keys", a.keys);
  const std::string body = fmt::format(
      "  grid_dep_launch();\n  grid_dep_wait();\n"
      "  for (i64 b = (i64)blockIdx.x * {0} + threadIdx.x; b < {1}; b += (i64)gridDim.x * {0}) {{\n"
      "    // A position that is out of range is told where the cache is written.\n"
      "    const i64 position = (i64)positions[b], most = {3} - {2};\n"
      "    lengths[b] = (i32)((position < 0 ? 0 : position < most ? position : most) + {2});\n"
      "    lengths[{1} + b] = (i32){2};\n"
      "  }}\n",
      kLengthThreads, batches, queries, keys);
  return {lengthsName(a), "#include \"lathe_device.cuh\"\n\n" +
                              kernelFunction(lengthsName(a), kLengthThreads, p, body)};
}

}  // namespace

std::optional<PlainAttention> plainAttentionOf(const AttentionKernel& a) {
  const bool fits =
      a.causal == Causal::none || a.causal == Causal::top_left || a.causal == Causal::positions;
  if (!whyNotTensorCores(a).empty() || a.mask || a.softcap != 0 || a.window || a.blockKeys || !fits)
    return std::nullopt;
  const bool hasLengths = a.causal == Causal::positions;
  auto view = [](int buffer, const AttentionView& v) {
    return PlainAttention::View{
        {Argument::Kind::Buffer, buffer, 0}, v.offset, v.batch, v.head, v.token};
  };
  PlainAttention plain{.dtype = a.dtype,
                       .batch = a.batch,
                       .queries = a.queries,
                       .keys = a.keys,
                       .queryHeads = a.queryHeads,
                       .keyHeads = a.keyHeads,
                       .depth = a.depth,
                       .valueDepth = a.valueDepth,
                       .q = view(0, a.q),
                       .k = view(1, a.k),
                       .v = view(2, a.v),
                       .y = view(hasLengths ? 4 : 3, a.y),
                       .scale = a.scale,
                       .causal = a.causal != Causal::none};
  if (hasLengths) plain.lengths = Argument{Argument::Kind::Scratch, 0, 0};
  return plain;
}

void addLibrary(const AttentionKernel& a, KernelSet& set) {
  Variant& variant = set.variants.back();
  variant.what = "library, else " + variant.what;
  variant.launches.back().attention = plainAttentionOf(a);
  if (!variant.launches.back().attention->lengths) return;
  KernelParameters p;
  KernelText text = lengthsText(a, p);
  Launch lengths;
  lengths.kernel = text.name;
  lengths.grid[0] = {a.batch, kLengthThreads, 1024};
  lengths.threads = kLengthThreads;
  lengths.waits = true;
  lengths.arguments = p.arguments();
  variant.scratchBytes = a.batch * DimExpr(int64_t(2 * sizeof(int32_t)));
  variant.launches.insert(variant.launches.begin(), std::move(lengths));
  auto isPrinted = [&](const KernelText& k) { return k.name == text.name; };
  if (std::ranges::none_of(set.kernels, isPrinted)) set.kernels.push_back(std::move(text));
}

}  // namespace lathe::cuda
