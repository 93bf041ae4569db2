// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attention calls with random data, and what they give in float64 by the definition.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/device/attention.h"
#include "tests/closeness.h"
#include "tests/conformance/tolerance.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {

inline constexpr double kInf = std::numeric_limits<double>::infinity();

/// A case: its arguments, and the tensors they point into, as stored and as doubles.
struct AttentionCase {
  AttentionArgs args;
  std::vector<double> q, k, v, mask;
  std::vector<float> f32[4];
  std::vector<uint16_t> bf16[4];
  std::vector<int64_t> positions;
  std::vector<uint8_t> boolMask;
  std::vector<float> f32Mask;
  std::vector<uint16_t> bf16Mask;
  int threads = 2;
  /// Scores are so large that what their rounding to f32 leaves over decides.
  bool roundedScores = false;

  /// Tensor `index` (q, k, v, out) becomes `values`, which are rounded to the dtype.
  void store(int index, std::vector<double>& values) {
    f32[index].clear();
    bf16[index].clear();
    for (double& x : values) {
      if (args.dtype == DType::F32) {
        f32[index].push_back(float(x));
        x = f32[index].back();
      } else {
        bf16[index].push_back(floatToBf16(float(x)));
        x = bf16ToFloat(bf16[index].back());
      }
    }
  }
  void* tensor(int index) {
    return args.dtype == DType::F32 ? static_cast<void*>(f32[index].data()) : bf16[index].data();
  }
  double output(int64_t at) const {
    return args.dtype == DType::F32 ? f32[3][size_t(at)] : bf16ToFloat(bf16[3][size_t(at)]);
  }
};

struct Sizes {
  int64_t batch = 1, qHeads = 1, kvHeads = 1, qLen = 1, kLen = 1, headDim = 64, valueDim = 64;
};

inline AttentionStrides headMajor(int64_t heads, int64_t length, int64_t dim) {
  return {heads * length * dim, length * dim, dim};
}
inline AttentionStrides tokenMajor(int64_t heads, int64_t length, int64_t dim) {
  return {heads * length * dim, dim, heads * dim};
}

inline AttentionCase makeCase(DType dtype, const Sizes& s, bool tokensFirst = false) {
  AttentionCase c;
  AttentionArgs& a = c.args;
  a.dtype = dtype;
  a.batch = s.batch;
  a.qHeads = s.qHeads;
  a.kvHeads = s.kvHeads;
  a.qLen = s.qLen;
  a.kLen = s.kLen;
  a.headDim = s.headDim;
  a.valueDim = s.valueDim;
  a.scale = float(1 / std::sqrt(double(s.headDim)));
  auto strides = tokensFirst ? tokenMajor : headMajor;
  a.qStrides = strides(s.qHeads, s.qLen, s.headDim);
  a.kStrides = strides(s.kvHeads, s.kLen, s.headDim);
  a.vStrides = strides(s.kvHeads, s.kLen, s.valueDim);
  a.outStrides = strides(s.qHeads, s.qLen, s.valueDim);
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  auto fill = [&](std::vector<double>& values, int64_t count) {
    for (int64_t i = 0; i < count; ++i) values.push_back(normal(random));
  };
  fill(c.q, s.batch * s.qHeads * s.qLen * s.headDim);
  fill(c.k, s.batch * s.kvHeads * s.kLen * s.headDim);
  fill(c.v, s.batch * s.kvHeads * s.kLen * s.valueDim);
  c.store(0, c.q);
  c.store(1, c.k);
  c.store(2, c.v);
  std::vector<double> out(size_t(s.batch * s.qHeads * s.qLen * s.valueDim), -77.0);
  c.store(3, out);
  return c;
}

// Adds a mask of `values` with dims [batch, heads, qLen, kLen], those of size 1 broadcast.
inline void addMask(AttentionCase& c, MaskKind kind, const std::vector<double>& values,
                    int64_t batch, int64_t heads, int64_t queries) {
  const int64_t keys = c.args.kLen;
  c.mask = values;
  for (double& x : c.mask) {
    c.boolMask.push_back(x == 0);
    c.f32Mask.push_back(float(x));
    c.bf16Mask.push_back(floatToBf16(float(x)));
    if (kind == MaskKind::AdditiveBf16) x = bf16ToFloat(c.bf16Mask.back());
  }
  c.args.maskKind = kind;
  c.args.maskStrides = {batch == 1 ? 0 : heads * queries * keys, heads == 1 ? 0 : queries * keys,
                        queries == 1 ? 0 : keys, 1};
}

inline void point(AttentionCase& c) {
  c.args.q = c.tensor(0);
  c.args.k = c.tensor(1);
  c.args.v = c.tensor(2);
  c.args.out = c.tensor(3);
  if (!c.positions.empty()) c.args.positions = c.positions.data();
  if (c.args.maskKind == MaskKind::Bool) c.args.mask = c.boolMask.data();
  if (c.args.maskKind == MaskKind::AdditiveF32) c.args.mask = c.f32Mask.data();
  if (c.args.maskKind == MaskKind::AdditiveBf16) c.args.mask = c.bf16Mask.data();
}

// One output row in float64 by the definition.
inline std::vector<double> expectedRow(const AttentionCase& c, int64_t b, int64_t h, int64_t i) {
  const AttentionArgs& a = c.args;
  const int64_t kv = h / (a.qHeads / a.kvHeads);
  const int64_t offset = a.positions ? a.positions[b] : a.causalOffset;
  std::vector<double> p(static_cast<size_t>(a.kLen));
  double best = -kInf, sum = 0;
  for (int64_t j = 0; j < a.kLen; ++j) {
    double s = 0;
    for (int64_t d = 0; d < a.headDim; ++d)
      s += c.q[size_t(b * a.qStrides.batch + h * a.qStrides.head + i * a.qStrides.token + d)] *
           c.k[size_t(b * a.kStrides.batch + kv * a.kStrides.head + j * a.kStrides.token + d)];
    auto rounded = [&](double x) { return c.roundedScores ? double(float(x)) : x; };
    s = rounded(s * a.scale);
    if (a.softcap != 0) s = a.softcap * std::tanh(s / a.softcap);
    if (a.maskKind != MaskKind::None) {
      double m = c.mask[size_t(b * a.maskStrides[0] + h * a.maskStrides[1] + i * a.maskStrides[2] +
                               j * a.maskStrides[3])];
      if (a.maskKind == MaskKind::Bool)
        s = m == 0 ? s : -kInf;
      else
        s = rounded(s + m);
    }
    if (a.causal && j > i + offset) s = -kInf;
    if (a.window > 0 && j <= i + offset - a.window) s = -kInf;
    p[size_t(j)] = s;
    if (s > best) best = s;
  }
  for (double& s : p) {
    s = best == -kInf && s == -kInf ? 0 : std::exp(s - (best == -kInf ? 0 : best));
    sum += s;
  }
  std::vector<double> out(size_t(a.valueDim), 0.0);
  for (int64_t d = 0; d < a.valueDim; ++d) {
    for (int64_t j = 0; j < a.kLen; ++j) {
      double value =
          c.v[size_t(b * a.vStrides.batch + kv * a.vStrides.head + j * a.vStrides.token + d)];
      // Hidden keys are not read, or weigh 0: a finite value either way.
      out[size_t(d)] += sum == 0 ? value / double(a.kLen) : (p[size_t(j)] / sum) * value;
    }
    if (sum == 0 && a.maskedRow == MaskedRow::zero) out[size_t(d)] = 0;
    if (sum == 0 && a.maskedRow == MaskedRow::nan) out[size_t(d)] = std::nan("");
  }
  return out;
}

/// Runs a case whose arguments point where they should.
inline void runPointed(AttentionCase& c, KernelIsa isa) {
  ThreadPool pool(c.threads);
  size_t bytes = attentionScratchBytes(c.args, c.threads, isa);
  // NaN of every float, as what another kernel has left may be: times a zero of the padding they
  // would reach a result.
  constexpr char kFill = char(0xff);
  std::vector<char> memory(bytes + 192, kFill);
  char* start = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  attention(c.args, pool, {start, bytes}, isa);
  for (char* p = start + bytes; p < memory.data() + memory.size(); ++p)
    ASSERT_EQ(*p, kFill) << "wrote past the scratch";
}
inline void runCase(AttentionCase& c, KernelIsa isa) {
  point(c);
  runPointed(c, isa);
}

/// Every output of a case that has run, against expectedRow.
inline void expectOutput(const AttentionCase& c, KernelIsa isa) {
  const AttentionArgs& a = c.args;
  SCOPED_TRACE(std::string(nameOf(isa.tier)) + (isa.bf16 ? "+bf16 " : " ") +
               std::string(nameOf(a.dtype)) + " q " + std::to_string(a.qLen) + " k " +
               std::to_string(a.kLen) + " heads " + std::to_string(a.qHeads) + "/" +
               std::to_string(a.kvHeads) + " dims " + std::to_string(a.headDim) + "/" +
               std::to_string(a.valueDim));
  conformance::Tolerance tolerance = conformance::toleranceOf("attention", a.dtype, false);
  // Without bf16 dot products nothing is rounded to bf16 but the result.
  if (!isa.bf16 && !c.roundedScores)
    tolerance.absolute = conformance::toleranceOf("attention", DType::F32, false).absolute;
  const std::string what = "cpu attention " + label(isa) + " " + std::string(nameOf(a.dtype));
  int wrong = 0;
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.qHeads; ++h)
      for (int64_t i = 0; i < a.qLen; ++i) {
        std::vector<double> expected = expectedRow(c, b, h, i);
        for (int64_t d = 0; d < a.valueDim; ++d) {
          double got =
              c.output(b * a.outStrides.batch + h * a.outStrides.head + i * a.outStrides.token + d);
          double want = expected[size_t(d)];
          const double bound = conformance::boundOf(want, tolerance);
          conformance::noteError(what, got, want, tolerance);
          if (!isNear(got, want, bound) && ++wrong < 4)
            ADD_FAILURE() << b << " " << h << " " << i << " " << d << ": expected " << want
                          << ", got " << got;
        }
      }
  EXPECT_EQ(wrong, 0);
}

inline void check(AttentionCase& c, KernelIsa isa) {
  runCase(c, isa);
  expectOutput(c, isa);
}

inline void checkAll(const AttentionCase& prototype) {
  for (KernelIsa isa : tiers()) {
    AttentionCase c = prototype;
    check(c, isa);
  }
}

}  // namespace lathe::cpu
