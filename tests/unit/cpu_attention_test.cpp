// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/device/attention_pack.h"
#include "runtime/error.h"
#include "tests/unit/kernel_tiers.h"

namespace lathe::cpu {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A case: its arguments, and the tensors they point into, as stored and as doubles.
struct Case {
  AttentionArgs args;
  std::vector<double> q, k, v, mask;
  std::vector<float> f32[4];
  std::vector<uint16_t> bf16[4];
  std::vector<int64_t> positions;
  std::vector<uint8_t> boolMask;
  std::vector<float> f32Mask;
  std::vector<uint16_t> bf16Mask;
  int threads = 2;

  void store(int index, std::vector<double>& values) {
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

AttentionStrides headMajor(int64_t heads, int64_t length, int64_t dim) {
  return {heads * length * dim, length * dim, dim};
}
AttentionStrides tokenMajor(int64_t heads, int64_t length, int64_t dim) {
  return {heads * length * dim, dim, heads * dim};
}

Case makeCase(DType dtype, const Sizes& s, bool tokensFirst = false) {
  Case c;
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
void addMask(Case& c, MaskKind kind, const std::vector<double>& values, int64_t batch,
             int64_t heads, int64_t queries) {
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

void point(Case& c) {
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
std::vector<double> expectedRow(const Case& c, int64_t b, int64_t h, int64_t i) {
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
    s *= a.scale;
    if (a.softcap != 0) s = a.softcap * std::tanh(s / a.softcap);
    if (a.maskKind != MaskKind::None) {
      double m = c.mask[size_t(b * a.maskStrides[0] + h * a.maskStrides[1] + i * a.maskStrides[2] +
                               j * a.maskStrides[3])];
      if (a.maskKind == MaskKind::Bool)
        s = m == 0 ? s : -kInf;
      else
        s += m;
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
    if (sum == 0 && a.maskedRow == MaskedRow::Zero) out[size_t(d)] = 0;
    if (sum == 0 && a.maskedRow == MaskedRow::Nan) out[size_t(d)] = std::nan("");
  }
  return out;
}

void runCase(Case& c, KernelIsa isa) {
  point(c);
  ThreadPool pool(c.threads);
  size_t bytes = attentionScratchBytes(c.args, c.threads, isa);
  std::vector<char> memory(bytes + 192, char(0x7f));  // 0x7f7f... is a large f32: misuse shows
  char* start = memory.data() + (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
  attention(c.args, pool, {start, bytes}, isa);
  for (char* p = start + bytes; p < memory.data() + memory.size(); ++p)
    ASSERT_EQ(*p, 0x7f) << "wrote past the scratch";
}

void check(Case& c, KernelIsa isa) {
  const AttentionArgs& a = c.args;
  SCOPED_TRACE(std::string(nameOf(isa.tier)) + (isa.bf16 ? "+bf16 " : " ") +
               std::string(nameOf(a.dtype)) + " q " + std::to_string(a.qLen) + " k " +
               std::to_string(a.kLen) + " heads " + std::to_string(a.qHeads) + "/" +
               std::to_string(a.kvHeads) + " dims " + std::to_string(a.headDim) + "/" +
               std::to_string(a.valueDim));
  runCase(c, isa);
  int wrong = 0;
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.qHeads; ++h)
      for (int64_t i = 0; i < a.qLen; ++i) {
        std::vector<double> expected = expectedRow(c, b, h, i);
        for (int64_t d = 0; d < a.valueDim; ++d) {
          double got =
              c.output(b * a.outStrides.batch + h * a.outStrides.head + i * a.outStrides.token + d);
          double want = expected[size_t(d)];
          double limit =
              a.dtype == DType::F32 ? 1e-5 + 1e-5 * std::abs(want) : 1e-2 + 1e-2 * std::abs(want);
          bool same = std::isnan(want) ? std::isnan(got) : std::abs(got - want) <= limit;
          if (!same && ++wrong < 4)
            ADD_FAILURE() << b << " " << h << " " << i << " " << d << ": expected " << want
                          << ", got " << got;
        }
      }
  EXPECT_EQ(wrong, 0);
}

void checkAll(const Case& prototype) {
  for (KernelIsa isa : tiers()) {
    Case c = prototype;
    check(c, isa);
  }
}

TEST(Attention, AwkwardLengths) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t q : {1, 31, 33, 257})
      for (int64_t k : {1, 31, 129, 257}) checkAll(makeCase(dtype, {1, 2, 1, q, k, 64, 64}));
}

TEST(Attention, AwkwardHeadDims) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t head : {1, 31, 33, 80, 128})
      for (int64_t value : {1, 33, 80}) checkAll(makeCase(dtype, {1, 2, 2, 40, 70, head, value}));
}

TEST(Attention, TokenMajorLayout) {
  for (DType dtype : {DType::F32, DType::BF16})
    checkAll(makeCase(dtype, {2, 6, 3, 50, 140, 32, 48}, true));
}

TEST(Attention, CausalAlignments) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t offset : {0, 100, -20, 500}) {
      Case c = makeCase(dtype, {1, 4, 2, 150, 250, 32, 32});
      c.args.causal = true;
      c.args.causalOffset = offset;
      checkAll(c);
    }
}

TEST(Attention, PositionsPerBatch) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t q : {1, 40}) {
      Case c = makeCase(dtype, {3, 4, 2, q, 300, 32, 32});
      c.args.causal = true;
      c.positions = {0, 130, 299};
      checkAll(c);
    }
}

TEST(Attention, CacheBeyondThePositionIsNotRead) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t q : {1, 40}) {
      Case c = makeCase(dtype, {1, 2, 2, q, 300, 32, 32});
      c.args.causal = true;
      c.positions = {100};
      Case dirty = c;
      for (int64_t h = 0; h < 2; ++h)
        for (int64_t j = 100 + q; j < 300; ++j)
          for (int64_t d = 0; d < 32; ++d)
            for (int tensor : {1, 2}) {
              size_t at = size_t((h * 300 + j) * 32 + d);
              if (dtype == DType::F32)
                dirty.f32[tensor][at] = std::numeric_limits<float>::quiet_NaN();
              else
                dirty.bf16[tensor][at] = 0x7fc0;
            }
      checkAll(dirty);
    }
}

TEST(Attention, SlidingWindow) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (bool causal : {true, false})
      for (int64_t window : {1, 20, 200}) {
        Case c = makeCase(dtype, {1, 2, 1, 200, 260, 32, 32});
        c.args.causal = causal;
        c.args.causalOffset = 60;
        c.args.window = window;
        checkAll(c);
      }
}

TEST(Attention, Softcap) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    Case c = makeCase(dtype, {1, 2, 1, 33, 65, 32, 32});
    c.args.softcap = 1.5f;
    checkAll(c);
  }
}

TEST(Attention, BoolMasksAndMaskedRows) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (MaskedRow policy : {MaskedRow::Zero, MaskedRow::Nan, MaskedRow::Uniform})
      for (int64_t heads : {1, 4}) {
        Case c = makeCase(dtype, {2, 4, 2, 35, 150, 32, 40});
        std::mt19937 random(3);
        std::vector<double> mask;
        for (int64_t row = 0; row < 2 * heads * 35; ++row)
          for (int64_t j = 0; j < 150; ++j) mask.push_back(row % 5 == 0 || random() % 3 ? 1 : 0);
        addMask(c, MaskKind::Bool, mask, 2, heads, 35);
        c.args.maskedRow = policy;
        checkAll(c);
      }
}

TEST(Attention, MaskedRowsInDecode) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int threads : {1, 5})
      for (MaskedRow policy : {MaskedRow::Zero, MaskedRow::Nan, MaskedRow::Uniform}) {
        Case c = makeCase(dtype, {2, 2, 1, 1, 400, 32, 32});
        std::vector<double> mask(2 * 400, 1.0);  // all hidden but two keys of the first sequence
        mask[3] = mask[390] = 0;
        addMask(c, MaskKind::Bool, mask, 2, 1, 1);
        c.args.maskedRow = policy;
        c.threads = threads;
        checkAll(c);
      }
}

TEST(Attention, AdditiveMasks) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (MaskKind kind : {MaskKind::AdditiveF32, MaskKind::AdditiveBf16}) {
      Case c = makeCase(dtype, {1, 4, 4, 40, 140, 32, 32});
      std::mt19937 random(4);
      std::vector<double> mask;
      for (int64_t i = 0; i < 40; ++i)
        for (int64_t j = 0; j < 140; ++j)
          mask.push_back(i == 7 || random() % 4 == 0 ? -kInf : double(random() % 3));
      addMask(c, kind, mask, 1, 1, 40);
      checkAll(c);
    }
}

TEST(Attention, FiniteMinimumMaskIsANumber) {
  Case c = makeCase(DType::F32, {1, 2, 2, 34, 130, 32, 32});
  // Rows hidden everywhere by the lowest float: softmax of equal scores, not the masked policy.
  std::vector<double> mask(34 * 130, 0.0);
  for (int64_t j = 0; j < 130; ++j)
    mask[size_t(5 * 130 + j)] = std::numeric_limits<float>::lowest();
  addMask(c, MaskKind::AdditiveF32, mask, 1, 1, 34);
  for (KernelIsa isa : tiers()) {
    Case copy = c;
    runCase(copy, isa);
    for (int64_t d = 0; d < 32; ++d) {
      double mean = 0;
      for (int64_t j = 0; j < 130; ++j) mean += c.v[size_t(j * 32 + d)] / 130;
      EXPECT_NEAR(copy.output(5 * 32 + d), mean, 1e-5);
    }
  }
}

TEST(Attention, LargeScoresDoNotOverflow) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    Case c = makeCase(dtype, {1, 1, 1, 33, 140, 16, 16});
    c.args.scale = 200.0f;
    // Scores in the hundreds leave one key with nearly all weight: bf16 sums differ in its choice
    // only where two scores nearly tie, so check that everything is finite and bounded by V.
    for (KernelIsa isa : tiers()) {
      Case copy = c;
      runCase(copy, isa);
      for (int64_t i = 0; i < 33 * 16; ++i) {
        ASSERT_TRUE(std::isfinite(copy.output(i)));
        ASSERT_LT(std::abs(copy.output(i)), 6.0);
      }
    }
  }
}

TEST(Attention, NanQueryStaysInItsRow) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (KernelIsa isa : tiers()) {
      Case c = makeCase(dtype, {1, 1, 1, 40, 140, 32, 32});
      size_t at = 3 * 32 + 1;
      if (dtype == DType::F32)
        c.f32[0][at] = std::numeric_limits<float>::quiet_NaN();
      else
        c.bf16[0][at] = 0x7fc0;
      runCase(c, isa);
      for (int64_t i = 0; i < 40; ++i)
        for (int64_t d = 0; d < 32; ++d)
          ASSERT_EQ(std::isnan(c.output(i * 32 + d)), i == 3) << nameOf(isa.tier) << " row " << i;
    }
}

TEST(Attention, NanKeyReachesOnlyRowsThatSeeIt) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (KernelIsa isa : tiers()) {
      Case c = makeCase(dtype, {1, 1, 1, 40, 40, 32, 32});
      c.args.causal = true;
      size_t at = 20 * 32 + 1;
      if (dtype == DType::F32)
        c.f32[1][at] = std::numeric_limits<float>::quiet_NaN();
      else
        c.bf16[1][at] = 0x7fc0;
      runCase(c, isa);
      for (int64_t i = 0; i < 40; ++i)
        ASSERT_EQ(std::isnan(c.output(i * 32)), i >= 20) << nameOf(isa.tier) << " row " << i;
    }
}

TEST(Attention, DecodeSplitsOverKeys) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int threads : {1, 2, 3, 8})
      for (int64_t k : {1, 127, 129, 1000}) {
        Case c = makeCase(dtype, {1, 14, 2, 1, k, 64, 64});
        c.threads = threads;
        checkAll(c);
      }
}

TEST(Attention, DecodeOfSeveralTokens) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    Case c = makeCase(dtype, {2, 4, 2, 4, 300, 64, 64});
    c.args.causal = true;
    c.positions = {5, 296};
    c.threads = 3;
    checkAll(c);
  }
}

TEST(Attention, ThreadsDoNotChangePrefill) {
  for (KernelIsa isa : tiers()) {
    Case one = makeCase(DType::BF16, {1, 4, 2, 100, 200, 64, 64}), many = one;
    one.threads = 1;
    many.threads = 3;
    runCase(one, isa);
    runCase(many, isa);
    EXPECT_EQ(one.bf16[3], many.bf16[3]);
  }
}

// A sum of nothing, whatever the policy for rows that are masked.
TEST(Attention, NoKeysGiveZeros) {
  for (MaskedRow policy : {MaskedRow::Zero, MaskedRow::Nan, MaskedRow::Uniform})
    for (int64_t q : {1, 40})
      for (KernelIsa isa : tiers()) {
        Case c = makeCase(DType::F32, {1, 1, 1, q, 0, 8, 8});
        c.args.maskedRow = policy;
        runCase(c, isa);
        for (int64_t i = 0; i < q * 8; ++i) ASSERT_EQ(c.output(i), 0);
      }
}

TEST(Attention, ScratchGrowsWithKeysNotWithTheirProduct) {
  Sizes small{1, 2, 2, 1024, 1024, 64, 64}, large{1, 2, 2, 4096, 4096, 64, 64};
  Case a = makeCase(DType::F32, {1, 2, 2, 1, 1, 64, 64}), b = a;
  a.args.qLen = small.qLen;
  a.args.kLen = small.kLen;
  b.args.qLen = large.qLen;
  b.args.kLen = large.kLen;
  EXPECT_LE(attentionScratchBytes(b.args, 2), 4 * attentionScratchBytes(a.args, 2));
}

TEST(AttentionPack, KeysAreTransposedOnEveryTier) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (KernelIsa isa : tiers())
      for (int64_t dim : {1, 15, 33, 64, 80, 130})
        for (int64_t count : {1, 15, 16, 17, 100, 128}) {
          Case c = makeCase(dtype, {1, 1, 1, 1, kTileKeys, dim + 3, 1});  // 3 elements of stride
          c.args.headDim = dim;
          AttentionPack pack(c.args, attentionKernels(dtype == DType::BF16, isa));
          std::vector<char> tile(pack.keyBytes(), char(0x5a));
          pack.keys(c.tensor(1), dim + 3, count, tile.data());
          for (int64_t j = 0; j < kTileKeys; ++j)
            for (int64_t d = 0; d < pack.innerDim; ++d) {
              double got = pack.bf16 ? bf16ToFloat(reinterpret_cast<uint16_t*>(
                                           tile.data())[(d / 2 * kTileKeys + j) * 2 + d % 2])
                                     : reinterpret_cast<float*>(tile.data())[d * kTileKeys + j];
              bool inside = j < count && d < dim;
              ASSERT_EQ(got, inside ? c.k[size_t(j * (dim + 3) + d)] : 0.0)
                  << nameOf(isa.tier) << " " << nameOf(dtype) << " dim " << dim << " of " << count
                  << " keys: key " << j << " element " << d;
            }
        }
}

TEST(Attention, DecodeOfEveryTailOfATile) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t dim : {63, 64, 80})
      for (int64_t k : {15, 16, 17, 136, 143, 145}) {
        Case c = makeCase(dtype, {1, 4, 2, 2, k, dim, dim}, true);
        c.args.causal = true;
        c.args.causalOffset = k - 2;
        checkAll(c);
      }
}

TEST(Attention, ErrorsSayWhatWasExpected) {
  ThreadPool pool(1);
  auto message = [&](const AttentionArgs& args) -> std::string {
    try {
      attention(args, pool, {});
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing thrown";
  };
  Case c = makeCase(DType::F32, {1, 3, 2, 2, 2, 8, 8});
  point(c);
  EXPECT_EQ(message(c.args),
            "expected the query heads to be a multiple of the key heads, got 3 and 2");
  c = makeCase(DType::F32, {1, 2, 2, 2, 2, 8, 8});
  point(c);
  EXPECT_NE(message(c.args).find("bytes of scratch for attention, got 0"), std::string::npos);
  c.args.maskKind = MaskKind::Bool;
  EXPECT_EQ(message(c.args), "expected an attention mask exactly when a mask kind is given");
  c.args.maskKind = MaskKind::None;
  c.args.dtype = DType::F16;
  EXPECT_EQ(message(c.args), "expected attention on f32 or bf16, got f16; cast q, k and v");
}

}  // namespace
}  // namespace lathe::cpu
