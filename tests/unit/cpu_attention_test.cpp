// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/attention.h"

#include <cstring>

#include "backends/cpu/device/attention_kernels.h"
#include "backends/cpu/device/attention_pack.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cpu_attention_case.h"
#include "tests/unit/cpu_matmul_values.h"

namespace lathe::cpu {
namespace {

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
      AttentionCase c = makeCase(dtype, {1, 4, 2, 150, 250, 32, 32});
      c.args.causal = true;
      c.args.causalOffset = offset;
      checkAll(c);
    }
}

// A tile of rows begins with any of the heads that share a key head.
TEST(Attention, HeadsThatDoNotDivideATile) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t heads : {3, 7}) {
      AttentionCase c = makeCase(dtype, {1, 2 * heads, 2, 30, 150, 32, 32});
      c.args.causal = true;
      c.args.causalOffset = 120;
      checkAll(c);
    }
}

TEST(Attention, PositionsPerBatch) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t q : {1, 40}) {
      AttentionCase c = makeCase(dtype, {3, 4, 2, q, 300, 32, 32});
      c.args.causal = true;
      c.positions = {0, 130, 299};
      checkAll(c);
    }
}

TEST(Attention, CacheBeyondThePositionIsNotRead) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t q : {1, 40}) {
      AttentionCase c = makeCase(dtype, {1, 2, 2, q, 300, 32, 32});
      c.args.causal = true;
      c.positions = {100};
      AttentionCase dirty = c;
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
        AttentionCase c = makeCase(dtype, {1, 2, 1, 200, 260, 32, 32});
        c.args.causal = causal;
        c.args.causalOffset = 60;
        c.args.window = window;
        checkAll(c);
      }
}

TEST(Attention, Softcap) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    AttentionCase c = makeCase(dtype, {1, 2, 1, 33, 65, 32, 32});
    c.args.softcap = 1.5f;
    checkAll(c);
  }
}

TEST(Attention, BoolMasksAndMaskedRows) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (MaskedRow policy : {MaskedRow::zero, MaskedRow::nan, MaskedRow::uniform})
      for (int64_t heads : {1, 4}) {
        AttentionCase c = makeCase(dtype, {2, 4, 2, 35, 150, 32, 40});
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
      for (MaskedRow policy : {MaskedRow::zero, MaskedRow::nan, MaskedRow::uniform}) {
        AttentionCase c = makeCase(dtype, {2, 2, 1, 1, 400, 32, 32});
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
      AttentionCase c = makeCase(dtype, {1, 4, 4, 40, 140, 32, 32});
      std::mt19937 random(4);
      std::vector<double> mask;
      for (int64_t i = 0; i < 40; ++i)
        for (int64_t j = 0; j < 140; ++j)
          mask.push_back(i == 7 || random() % 4 == 0 ? -kInf : double(random() % 3));
      addMask(c, kind, mask, 1, 1, 40);
      checkAll(c);
    }
}

TEST(Attention, MasksOfOneElementPerQuery) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (MaskKind kind : {MaskKind::Bool, MaskKind::AdditiveF32, MaskKind::AdditiveBf16})
      for (int64_t queries : {1, 40}) {
        AttentionCase c = makeCase(dtype, {2, 4, 2, queries, 140, 32, 32});
        // Neighbours of the element are other queries' and mostly hide: reading them shows.
        std::vector<double> mask(size_t(2 * queries), -kInf);
        for (size_t i = 0; i < mask.size(); i += 3) mask[i] = 0;
        addMask(c, kind, mask, 2, 1, queries);
        c.args.maskStrides = {queries, 0, 1, 0};
        checkAll(c);
      }
}

// Elements of a mask that belong to others lie between those of its rows.
TEST(Attention, MasksOfEverySecondElement) {
  for (MaskKind kind : {MaskKind::Bool, MaskKind::AdditiveF32})
    for (int64_t queries : {1, 40}) {
      AttentionCase c = makeCase(DType::F32, {1, 2, 1, queries, 140, 32, 32});
      std::vector<double> mask(280, 0.0);
      for (size_t j : {99u, 120u, 135u}) mask[2 * j] = -kInf;
      addMask(c, kind, mask, 1, 1, 1);
      c.args.maskStrides = {0, 0, 0, 2};
      checkAll(c);
    }
}

TEST(Attention, RowsOfAMaskThatHideNothingBesideOthers) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (double softcap : {0.0, 20.0}) {
      AttentionCase c = makeCase(dtype, {2, 4, 2, 40, 300, 32, 32});
      c.args.softcap = float(softcap);
      std::mt19937 random(5);
      // Heads share rows; some hide nothing, some all of one tile of keys, some all keys.
      std::vector<double> mask;
      for (int64_t i = 0; i < 80; ++i)
        for (int64_t j = 0; j < 300; ++j) {
          const bool hides[] = {false, random() % 3 == 0, j >= 128 && j < 256, i == 7 || j < 128};
          mask.push_back(hides[i % 4] ? -kInf : 0.0);
        }
      addMask(c, MaskKind::Bool, mask, 2, 1, 40);
      checkAll(c);
    }
}

TEST(Attention, HiddenKeysMayHoldAnything) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (float strange : {NAN, INFINITY, -INFINITY})
      for (int64_t queries : {1, 40}) {
        AttentionCase c = makeCase(dtype, {1, 4, 2, queries, 300, 32, 32});
        std::vector<double> mask(300, 0.0);
        for (size_t j : {0u, 77u, 140u, 299u}) {
          mask[j] = 1;
          for (size_t head : {0u, 1u}) c.k[(head * 300 + j) * 32 + 5] = strange;
        }
        c.store(1, c.k);
        addMask(c, MaskKind::Bool, mask, 1, 1, 1);
        checkAll(c);
      }
}

// What is added to a NaN leaves one, as the sum of an infinity and its negative is one.
TEST(Attention, AnAddedInfinityHidesNoNan) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (float strange : {NAN, INFINITY})
      for (int64_t queries : {1, 40})
        for (KernelIsa isa : tiers()) {
          AttentionCase c = makeCase(dtype, {1, 1, 1, queries, 140, 32, 32});
          for (int64_t d = 0; d < 32; ++d) c.k[size_t(20 * 32 + d)] = 0;
          c.k[20 * 32 + 5] = strange;
          c.store(1, c.k);
          for (int64_t i = 0; i < queries; ++i) c.q[size_t(i * 32 + 5)] = 1;
          c.store(0, c.q);
          std::vector<double> mask(140, 0.0);
          mask[20] = -INFINITY;
          addMask(c, MaskKind::AdditiveF32, mask, 1, 1, 1);
          runCase(c, isa);
          for (int64_t i = 0; i < queries; ++i)
            ASSERT_TRUE(std::isnan(c.output(i * 32))) << nameOf(isa.tier) << " row " << i;
        }
}

TEST(Attention, FiniteMinimumMaskIsANumber) {
  AttentionCase c = makeCase(DType::F32, {1, 2, 2, 34, 130, 32, 32});
  // Rows hidden everywhere by the lowest float: softmax of equal scores, not the masked policy.
  std::vector<double> mask(34 * 130, 0.0);
  for (int64_t j = 0; j < 130; ++j)
    mask[size_t(5 * 130 + j)] = std::numeric_limits<float>::lowest();
  addMask(c, MaskKind::AdditiveF32, mask, 1, 1, 34);
  for (KernelIsa isa : tiers()) {
    AttentionCase copy = c;
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
    AttentionCase c = makeCase(dtype, {1, 1, 1, 33, 140, 16, 16});
    c.args.scale = 200.0f;
    // Scores in the hundreds leave one key with nearly all weight: bf16 sums differ in its choice
    // only where two scores nearly tie, so check that everything is finite and bounded by V.
    for (KernelIsa isa : tiers()) {
      AttentionCase copy = c;
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
      AttentionCase c = makeCase(dtype, {1, 1, 1, 40, 140, 32, 32});
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
      AttentionCase c = makeCase(dtype, {1, 1, 1, 40, 40, 32, 32});
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
      for (int64_t k : {1, 127, 129, 1000, 2100}) {
        AttentionCase c = makeCase(dtype, {1, 14, 2, 1, k, 64, 64});
        c.threads = threads;
        checkAll(c);
        // Every part of a key head's range has sums and states of its own, beside the workers'. Two
        // threads have a head each, and 17 tiles of keys in two parts, so that they can share.
        int64_t parts = std::min(ceilDiv(threads, 2), ceilDiv(k, kTileKeys));
        if (threads > 1 && k == 2100) parts = std::max<int64_t>(parts, 2);
        const size_t result = size_t(kTileRows) * (64 * 4 + sizeof(RowState));
        for (KernelIsa isa : tiers())
          EXPECT_EQ(attentionScratchBytes(c.args, threads, isa),
                    attentionScratchBytes(c.args, 1, isa) * size_t(threads) +
                        (parts > 1 ? size_t(2 * parts) * result : 0))
              << label(isa) << " threads " << threads << " keys " << k;
      }
}

TEST(Attention, DecodeOfSeveralTokens) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    AttentionCase c = makeCase(dtype, {2, 4, 2, 4, 300, 64, 64});
    c.args.causal = true;
    c.positions = {5, 296};
    c.threads = 3;
    checkAll(c);
  }
}

TEST(Attention, ThreadsDoNotChangePrefill) {
  for (KernelIsa isa : tiers()) {
    AttentionCase one = makeCase(DType::BF16, {1, 4, 2, 100, 200, 64, 64}), many = one;
    one.threads = 1;
    many.threads = 3;
    runCase(one, isa);
    runCase(many, isa);
    EXPECT_EQ(one.bf16[3], many.bf16[3]);
  }
}

// The last of a tile's queries sees a tile of keys but for its first key, all others see all of it.
TEST(Attention, OneRowMissesTheFirstKeyOfATile) {
  AttentionCase c = makeCase(DType::F32, {1, 1, 1, 300, 300, 16, 16});
  c.args.causal = true;
  c.args.window = 159;  // query 287, the last of a tile of 32, sees keys from 129 on
  checkAll(c);
}

// A sum of nothing, whatever the policy for rows that are masked.
TEST(Attention, NoKeysGiveZeros) {
  for (MaskedRow policy : {MaskedRow::zero, MaskedRow::nan, MaskedRow::uniform})
    for (int64_t q : {1, 40})
      for (KernelIsa isa : tiers()) {
        AttentionCase c = makeCase(DType::F32, {1, 1, 1, q, 0, 8, 8});
        c.args.maskedRow = policy;
        runCase(c, isa);
        for (int64_t i = 0; i < q * 8; ++i) ASSERT_EQ(c.output(i), 0);
      }
}

TEST(Attention, NoHeadsAreNothing) {
  for (KernelIsa isa : tiers()) {
    AttentionCase c = makeCase(DType::F32, {1, 0, 0, 3, 5, 8, 8});
    EXPECT_NO_THROW(runCase(c, isa));
    c.args.qHeads = 2;
    EXPECT_THROW(runCase(c, isa), Error);
  }
}

TEST(Attention, ScratchGrowsWithKeysNotWithTheirProduct) {
  Sizes small{1, 2, 2, 1024, 1024, 64, 64}, large{1, 2, 2, 4096, 4096, 64, 64};
  AttentionCase a = makeCase(DType::F32, {1, 2, 2, 1, 1, 64, 64}), b = a;
  a.args.qLen = small.qLen;
  a.args.kLen = small.kLen;
  b.args.qLen = large.qLen;
  b.args.kLen = large.kLen;
  EXPECT_LE(attentionScratchBytes(b.args, 2), 4 * attentionScratchBytes(a.args, 2));
}

// What lies in a packed tile at [inner, column] of `columns`, by the definition of its order.
double packedAt(const AttentionPack& pack, const std::vector<char>& tile, int64_t inner,
                int64_t column, int64_t depth, int64_t columns) {
  if (!pack.bf16) return reinterpret_cast<const float*>(tile.data())[inner * columns + column];
  const int64_t word = pack.tiles ? (column / 16 * (depth / 2) + inner / 2) * 16 + column % 16
                                  : inner / 2 * columns + column;
  return bf16ToFloat(reinterpret_cast<const uint16_t*>(tile.data())[word * 2 + inner % 2]);
}

TEST(AttentionPack, KeysAndValuesOnEveryTier) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (KernelIsa isa : tiers())
      for (int64_t dim : {1, 15, 33, 64, 80, 130})
        for (int64_t count : {1, 15, 16, 17, 100, 128}) {
          SCOPED_TRACE(label(isa) + " " + std::string(nameOf(dtype)) + " dim " +
                       std::to_string(dim) + " of " + std::to_string(count));
          const int64_t stride = dim + 3;
          AttentionCase c = makeCase(dtype, {1, 1, 1, 1, kTileKeys, stride, stride});
          c.args.headDim = c.args.valueDim = dim;
          AttentionPack pack(c.args, attentionKernels(dtype == DType::BF16, isa));
          std::vector<char> keys(pack.keyBytes(), char(0x5a)),
              values(pack.valueBytes(), char(0x5a));
          pack.keys(c.tensor(1), stride, count, keys.data());
          pack.values(c.tensor(2), stride, count, values.data());
          for (int64_t j = 0; j < roundUp(count, kKeyStep); ++j) {
            for (int64_t d = 0; d < pack.innerDim; ++d)
              ASSERT_EQ(packedAt(pack, keys, d, j, pack.innerDim, kTileKeys),
                        j < count && d < dim ? c.k[size_t(j * stride + d)] : 0.0)
                  << "key " << j << " element " << d;
            for (int64_t d = 0; d < pack.valueColumns; ++d)
              ASSERT_EQ(packedAt(pack, values, j, d, kTileKeys, pack.valueColumns),
                        j < count && d < dim ? c.v[size_t(j * stride + d)] : 0.0)
                  << "value " << j << " element " << d;
          }
        }
}

TEST(Attention, DecodeOfEveryTailOfATile) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t dim : {63, 64, 80})
      for (int64_t k : {15, 16, 17, 136, 143, 145}) {
        AttentionCase c = makeCase(dtype, {1, 4, 2, 2, k, dim, dim}, true);
        c.args.causal = true;
        c.args.causalOffset = k - 2;
        checkAll(c);
      }
}

// Kernels of one row up to eight serve as many as read keys and values where they lie; a whole tile
// of keys is read in another order than what is behind it, or than a tile that lacks a few.
TEST(Attention, EveryNumberOfFewRows) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t rows = 1; rows <= 17; ++rows)
      for (int64_t keys : {122, 130}) {
        AttentionCase c = makeCase(dtype, {1, rows, 1, 1, keys, 80, 80});
        checkAll(c);
      }
}

// `values` as their dtype has them.
std::vector<char> stored(bool bf16, const std::vector<double>& values) {
  std::vector<char> bytes;
  for (double x : values) {
    const float wide = float(x);
    const uint16_t narrow = floatToBf16(wide);
    const void* number = &wide;
    if (bf16) number = &narrow;
    const char* from = static_cast<const char*>(number);
    bytes.insert(bytes.end(), from, from + (bf16 ? sizeof(narrow) : sizeof(wide)));
  }
  return bytes;
}
// Small whole numbers times a power of two: sums of their products are exact in any order.
std::vector<double> wholeNumbers(int64_t count, int most, double unit, std::mt19937& random) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(unit * (int(random() % unsigned(2 * most + 1)) - most));
  return values;
}

// Kernels of few rows: keys outside of those that are asked for are NaN, and sums have begun. As
// the driver's, weights have room for the rows of a tile.
TEST(Attention, ProductsOfFewRowsAreExactAndOfTheirKeysAlone) {
  constexpr int64_t kDepth = 96, kStride = 104;
  std::mt19937 random(17);
  for (bool bf16 : {false, true})
    for (KernelIsa isa : tiers()) {
      const AttentionKernels& kernels = attentionKernels(bf16, isa);
      if (kernels.tiles) amxBegin();
      for (int rows = 1; rows <= kernels.inPlaceRows; ++rows)
        for (auto [first, count] : {std::pair(0, 1), {0, 7}, {1, 9}, {5, 19}, {2, 127}, {0, 128}}) {
          SCOPED_TRACE(label(isa) + (bf16 ? " bf16 " : " f32 ") + std::to_string(rows) +
                       " rows, keys " + std::to_string(first) + " to " + std::to_string(count));
          const bool narrow = kernels.bf16Operands;
          auto query = wholeNumbers(rows * kDepth, 3, 1, random),
               weights = wholeNumbers(kTileRows * kTileKeys, 3, 1, random),
               keys = wholeNumbers(kTileKeys * kStride, 255, 0x1p-7, random), values = keys;
          for (int64_t i = 0; i < kTileKeys * kStride; ++i) {
            if (i / kStride >= count) keys[size_t(i)] = std::nan("");
            if (i / kStride < first || i / kStride >= count) values[size_t(i)] = std::nan("");
          }
          std::vector<float> scores(size_t(kTileRows * kTileKeys)),
              sums(size_t(kTileRows) * kDepth, 3.0f);
          kernels.scoresInPlace(stored(narrow, query).data(), kDepth, stored(bf16, keys).data(),
                                kStride, bf16, count, rows, scores.data());
          kernels.sumInPlace(stored(narrow, weights).data(), stored(bf16, values).data(), kStride,
                             bf16, first, count, rows, kDepth, kDepth, sums.data());
          for (int64_t r = 0; r < rows; ++r) {
            for (int64_t j = 0; j < count; ++j) {
              double score = 0;
              for (int64_t d = 0; d < kDepth; ++d)
                score += query[size_t(r * kDepth + d)] * keys[size_t(j * kStride + d)];
              ASSERT_EQ(scores[size_t(r * kTileKeys + j)], score) << "row " << r << " key " << j;
            }
            for (int64_t d = 0; d < kDepth; ++d) {
              double sum = 3;
              for (int64_t j = first; j < count; ++j)
                sum += weights[size_t(r * kTileKeys + j)] * values[size_t(j * kStride + d)];
              ASSERT_EQ(sums[size_t(r * kDepth + d)], sum) << "row " << r << " column " << d;
            }
          }
        }
      if (kernels.tiles) amxEnd();
    }
}

// Keys, values and a mask that end at the end of a page, for every way of reading them: few rows
// where they lie, as many as a row of tiles holds and one more, and two tiles of rows.
TEST(Attention, NothingIsReadBehindTheLastKey) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (KernelIsa isa : tiers())
      for (int64_t rows : {1, 3, 17, 40})
        for (int64_t keys : {1, 17, 141})
          for (int64_t valueDim : {64, 40}) {
            AttentionCase c = makeCase(dtype, {1, rows, 1, 1, keys, 64, valueDim});
            // A row of the mask, or one element for all keys.
            std::vector<double> mask(valueDim == 64 ? size_t(keys) : 1, 0.0);
            addMask(c, rows == 3 ? MaskKind::AdditiveF32 : MaskKind::Bool, mask, 1, 1, 1);
            if (valueDim != 64) c.args.maskStrides[3] = 0;
            point(c);
            const size_t size = sizeOf(dtype), ofMask = rows == 3 ? 4 : 1;
            EndOfPages k(c.k.size() * size), v(c.v.size() * size), m(mask.size() * ofMask);
            std::memcpy(k.start(), c.args.k, c.k.size() * size);
            std::memcpy(v.start(), c.args.v, c.v.size() * size);
            std::memcpy(m.start(), c.args.mask, mask.size() * ofMask);
            c.args.k = k.start();
            c.args.v = v.start();
            c.args.mask = m.start();
            runPointed(c, isa);
            expectOutput(c, isa);
          }
}

// The largest score is that of the smallest product then, by which weights would overflow.
TEST(Attention, ANegativeScaleIsThatOfQueriesTurnedRound) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (KernelIsa isa : tiers())
      for (int64_t queries : {1, 40}) {
        AttentionCase c = makeCase(dtype, {1, 2, 1, queries, 140, 64, 32});
        c.args.scale = -8;
        AttentionCase turned = c;
        turned.args.scale = 8;
        for (double& x : turned.q) x = -x;
        turned.store(0, turned.q);
        runCase(c, isa);
        runCase(turned, isa);
        for (int64_t i = 0; i < 2 * queries * 32; ++i)
          ASSERT_NEAR(c.output(i), turned.output(i), 0.02) << label(isa) << " " << i;
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
  AttentionCase c = makeCase(DType::F32, {1, 3, 2, 2, 2, 8, 8});
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
  c.args.dtype = DType::F32;
  c.args.blockKeys = 4;
  for (int64_t keys : {7, 9}) {
    c.args.kLen = keys, c.args.tableEntries = 2;
    EXPECT_EQ(message(c.args), "expected as many keys as the blocks of a table hold");
  }
  for (int64_t AttentionArgs::* size :
       {&AttentionArgs::batch, &AttentionArgs::qHeads, &AttentionArgs::qLen, &AttentionArgs::kLen,
        &AttentionArgs::headDim, &AttentionArgs::valueDim}) {
    AttentionArgs negative = c.args;
    negative.blockKeys = 0;
    negative.*size = -1;
    EXPECT_EQ(message(negative), "expected attention dims of at least 0");
  }
}

}  // namespace
}  // namespace lathe::cpu
