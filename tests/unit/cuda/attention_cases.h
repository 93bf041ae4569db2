// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention kernels against float64 loops over lathe.attention's definition.
#include <cmath>
#include <random>

#include "backends/cuda/lowering/attention/attention_kernels.h"
#include "tests/closeness.h"
#include "tests/conformance/tolerance.h"
#include "tests/unit/cuda/element_bytes.h"
#include "tests/unit/cuda/kernel_set_run.h"

namespace lathe::cuda {

/// Sizes and operands of one run; values are what the kernel's dtype can hold.
struct AttentionCase {
  AttentionKernel kernel;
  int64_t batch = 1, queries = 1, keys = 1;
  std::vector<double> q, k, v, mask;
  std::vector<int64_t> positions;
  std::vector<int64_t> maskDims;  ///< [batch, heads, queries, keys], each 1 or whole
};

inline std::vector<double> rounded(const std::vector<double>& values, DType dtype) {
  return decoded(encoded(values, dtype), dtype);
}

/// A case of random operands; the kernel's views become dense, its sizes the symbols b, s and t.
inline AttentionCase attentionCase(AttentionKernel kernel, int64_t batch, int64_t queries,
                                   int64_t keys, unsigned seed = 1) {
  AttentionCase c;
  c.batch = batch;
  c.queries = queries;
  c.keys = keys;
  const DimExpr s = DimExpr::symbol("s"), t = DimExpr::symbol("t");
  kernel.name = "attention";
  kernel.batch = DimExpr::symbol("b");
  kernel.queries = s;
  kernel.keys = t;
  kernel.q = AttentionView::dense(kernel.queryHeads, s, kernel.depth);
  kernel.k = AttentionView::dense(kernel.keyHeads, t, kernel.depth);
  kernel.v = AttentionView::dense(kernel.keyHeads, t, kernel.valueDepth);
  kernel.y = AttentionView::dense(kernel.queryHeads, s, kernel.valueDepth);
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  auto fill = [&](std::vector<double>& x, int64_t n) {
    x.resize(size_t(n));
    for (double& e : x) e = normal(random);
    x = rounded(x, kernel.dtype);
  };
  fill(c.q, batch * kernel.queryHeads * queries * kernel.depth);
  fill(c.k, batch * kernel.keyHeads * keys * kernel.depth);
  fill(c.v, batch * kernel.keyHeads * keys * kernel.valueDepth);
  c.kernel = std::move(kernel);
  return c;
}

/// Gives the case a mask of [batch, heads, queries, keys], 1 broadcasts.
inline void addMask(AttentionCase& c, DType dtype, std::vector<int64_t> dims,
                    std::vector<double> values) {
  c.kernel.mask = dtype;
  c.maskDims = dims;
  int64_t stride = 1;
  for (size_t i = 4; i-- > 0;) {
    c.kernel.maskStrides[i] = dims[i] == 1 ? 0 : stride;
    stride *= dims[i];
  }
  c.mask = rounded(values, dtype);
}

inline std::vector<double> expectedAttention(const AttentionCase& c) {
  const AttentionKernel& a = c.kernel;
  const int64_t heads = a.queryHeads, group = heads / a.keyHeads;
  std::vector<double> y(size_t(c.batch * heads * c.queries * a.valueDepth));
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < c.queries; ++i) {
        const double* q = &c.q[size_t(((b * heads + h) * c.queries + i) * a.depth)];
        const int64_t head = b * a.keyHeads + h / group;
        int64_t last = i;
        if (a.causal == Causal::bottom_right) last += c.keys - c.queries;
        if (a.causal == Causal::positions) last += c.positions[size_t(b)];
        std::vector<double> score(size_t(c.keys));
        double top = -INFINITY, sum = 0;
        for (int64_t j = 0; j < c.keys; ++j) {
          double& x = score[size_t(j)] = 0;
          for (int64_t d = 0; d < a.depth; ++d)
            x += q[d] * c.k[size_t((head * c.keys + j) * a.depth + d)];
          x *= a.scale;
          if (a.softcap > 0) x = a.softcap * std::tanh(x / a.softcap);
          if (a.causal != Causal::none && (j > last || (a.window && j <= last - a.window)))
            x = -INFINITY;
          if (a.mask) {
            int64_t index[] = {b, h, i, j}, at = 0;
            for (size_t n = 0; n < 4; ++n)
              at = at * c.maskDims[n] + (c.maskDims[n] == 1 ? 0 : index[n]);
            const double m = c.mask[size_t(at)];
            if (*a.mask != DType::Bool)
              x += m;
            else if (m == 0)
              x = -INFINITY;
          }
          top = std::isnan(x) || x > top ? x : top;
        }
        const bool isEmpty = top == -INFINITY;
        for (double& x : score) {
          x = isEmpty && a.maskedRow == MaskedRow::uniform ? 1
              : isEmpty && a.maskedRow == MaskedRow::zero  ? 0
                                                           : std::exp(x - top);
          sum += x;
        }
        if (sum == 0) sum = 1;
        for (int64_t d = 0; d < a.valueDepth; ++d) {
          double& out = y[size_t(((b * heads + h) * c.queries + i) * a.valueDepth + d)] = 0;
          for (int64_t j = 0; j < c.keys; ++j)
            out += score[size_t(j)] / sum * c.v[size_t((head * c.keys + j) * a.valueDepth + d)];
        }
      }
  return y;
}

inline AttentionKernel groupedAttention(DType dtype, int64_t keyHeads, int64_t group, int64_t depth,
                                        int64_t valueDepth) {
  AttentionKernel a;
  a.dtype = dtype;
  a.keyHeads = keyHeads;
  a.queryHeads = keyHeads * group;
  a.depth = depth;
  a.valueDepth = valueDepth;
  a.scale = 1 / std::sqrt(double(depth));
  return a;
}

/// A choice with splits of at least a tile of 16 keys for each warp.
inline AttentionChoice splitInto(AttentionMethod method, int splits, const AttentionCase& c,
                                 int warps = 4) {
  AttentionChoice choice;
  choice.method = method;
  choice.warps = warps;
  choice.leastKeys = 16 * warps;
  choice.mostSplits = splits;
  choice.mostTiles = c.batch * c.kernel.queryHeads * c.queries;
  return choice;
}

/// Schedules under which a kernel must give the same.
inline std::vector<host::Options> schedules() {
  std::vector<host::Options> all(3);
  all[1].async = host::Async::Eager;
  all[1].order = host::Order::Reverse;
  all[2].async = host::Async::Random;
  all[2].order = host::Order::Random;
  all[2].seed = 5;
  all[2].preemptEvery = 97;
  return all;
}

/// `most`: blocks along the grid's second axis; 0: as many as there are.
inline void expectAttention(const AttentionCase& c, const AttentionChoice& choice,
                            host::Mode mode = host::Mode::Fast, int64_t most = 0) {
  const AttentionKernel& a = c.kernel;
  KernelSet set;
  addAttention(a, choice, a.name, {}, set);
  if (most) set.variants[0].launches[0].grid[1].most = most;
  const std::vector<double> want = expectedAttention(c);
  KernelSetRun run(set, mode);
  const conformance::Tolerance tolerance = conformance::toleranceOf("attention", a.dtype, false);
  for (const host::Options& options : schedules()) {
    std::vector<RunBuffer> buffers{
        {encoded(c.q, a.dtype)}, {encoded(c.k, a.dtype)}, {encoded(c.v, a.dtype)}};
    if (a.mask) buffers.push_back({encoded(c.mask, *a.mask)});
    if (a.causal == Causal::positions) {
      std::vector<double> positions(c.positions.begin(), c.positions.end());
      buffers.push_back({encoded(positions, a.positions)});
    }
    buffers.push_back({std::vector<std::byte>(want.size() * sizeOf(a.dtype)), true});
    run.run(buffers, {{"b", c.batch}, {"s", c.queries}, {"t", c.keys}}, options);
    const std::vector<double> got = decoded(buffers.back().bytes, a.dtype);
    for (size_t i = 0; i < want.size(); ++i) {
      const double bound = conformance::boundOf(want[i], tolerance);
      conformance::noteError("cuda attention " + std::string(nameOf(a.dtype)), got[i], want[i],
                             tolerance);
      if (isNear(got[i], want[i], bound)) continue;
      ADD_FAILURE() << run.what() << ": element " << i << " of " << want.size() << ": expected "
                    << want[i] << ", got " << got[i];
      return;
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace lathe::cuda
