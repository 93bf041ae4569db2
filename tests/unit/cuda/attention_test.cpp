// SPDX-License-Identifier: Apache-2.0
// Attention of many queries: tiles on tensor cores, and every option without them; which kernels
// are chosen.
#include <gmock/gmock.h>

#include "backends/cuda/lowering/attention/attention_calls.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cuda/attention_cases.h"

namespace lathe::cuda {
namespace {

using testing::HasSubstr;

AttentionChoice tiles(int warps, int rowTiles, int keys, bool packsHeads = false) {
  AttentionChoice choice;
  choice.method = AttentionMethod::Tiled;
  choice.warps = warps;
  choice.rowTiles = rowTiles;
  choice.keys = keys;
  choice.packsHeads = packsHeads;
  return choice;
}

// Every third key or so hidden; row `empty` of the queries sees none.
std::vector<double> someHidden(int64_t queries, int64_t keys, int64_t empty) {
  std::vector<double> mask(size_t(queries * keys));
  for (int64_t i = 0; i < queries; ++i)
    for (int64_t j = 0; j < keys; ++j)
      mask[size_t(i * keys + j)] = i != empty && (i * 7 + j * 5) % 3 != 0;
  return mask;
}

TEST(TiledAttention, LengthsAndTiles) {
  struct Sizes {
    AttentionChoice choice;
    DType dtype;
    int64_t group, depth, valueDepth, queries, keys;
    Causal causal;
  };
  for (const Sizes& s : {
           Sizes{tiles(4, 2, 64), DType::BF16, 1, 64, 64, 257, 257, Causal::top_left},
           Sizes{tiles(4, 2, 32), DType::F16, 2, 128, 128, 65, 257, Causal::bottom_right},
           Sizes{tiles(8, 1, 64), DType::BF16, 2, 128, 64, 33, 65, Causal::none},
           Sizes{tiles(8, 1, 32), DType::BF16, 1, 256, 256, 31, 33, Causal::top_left},
           Sizes{tiles(4, 1, 64, true), DType::F16, 4, 80, 40, 33, 31, Causal::bottom_right},
           Sizes{tiles(4, 1, 64, true), DType::BF16, 8, 72, 72, 31, 65, Causal::none},
           Sizes{tiles(4, 2, 64), DType::BF16, 4, 32, 32, 1, 1, Causal::top_left},
       }) {
    AttentionKernel a = groupedAttention(s.dtype, 2, s.group, s.depth, s.valueDepth);
    a.causal = s.causal;
    expectAttention(attentionCase(a, 2, s.queries, s.keys), s.choice);
  }
}

TEST(TiledAttention, WithoutRaces) {
  AttentionKernel a = groupedAttention(DType::BF16, 1, 2, 64, 64);
  a.causal = Causal::top_left;
  expectAttention(attentionCase(a, 1, 150, 150), tiles(4, 2, 64), host::Mode::Check);
  a.causal = Causal::none;
  expectAttention(attentionCase(a, 1, 35, 130), tiles(4, 1, 64, true), host::Mode::Check);
}

TEST(TiledAttention, ChunksOfAPromptAtPositions) {
  for (bool packs : {false, true}) {
    AttentionKernel a = groupedAttention(DType::F16, 1, 2, 64, 64);
    a.causal = Causal::positions;
    a.window = 70;
    AttentionCase c = attentionCase(a, 3, 65, 257);
    c.positions = {0, 192, 100};
    expectAttention(c, tiles(4, 2, 64, packs));
  }
}

TEST(TiledAttention, MasksBroadcastAndSoftcap) {
  AttentionKernel a = groupedAttention(DType::BF16, 1, 2, 64, 64);
  a.softcap = 5;
  a.scale = 0.5;
  AttentionCase c = attentionCase(a, 2, 33, 65);
  addMask(c, DType::Bool, {1, 1, 33, 65}, someHidden(33, 65, -1));
  expectAttention(c, tiles(4, 1, 64));
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  std::vector<double> added(2 * 2 * 33 * 65);
  for (double& x : added) x = random() % 4 == 0 ? -INFINITY : normal(random);
  for (size_t j = 0; j < 65; ++j) added[j] = -3.3e38;  // a row of large numbers is no empty row
  addMask(c, DType::BF16, {2, 2, 33, 65}, added);
  expectAttention(c, tiles(4, 1, 64));
  added.resize(65);
  addMask(c, DType::F32, {1, 1, 1, 65}, added);
  expectAttention(c, tiles(4, 1, 64, true));
}

TEST(TiledAttention, RowsWithoutKeysFollowThePolicy) {
  for (MaskedRow row : {MaskedRow::nan, MaskedRow::zero, MaskedRow::uniform}) {
    AttentionKernel a = groupedAttention(DType::BF16, 1, 1, 32, 40);
    a.maskedRow = row;
    AttentionCase c = attentionCase(a, 1, 33, 65);
    addMask(c, DType::Bool, {1, 1, 33, 65}, someHidden(33, 65, 17));
    expectAttention(c, tiles(4, 1, 64));
    a.causal = Causal::bottom_right;  // the first 32 queries come before the keys
    expectAttention(attentionCase(a, 1, 65, 33), tiles(4, 1, 64));
  }
}

// As many as 65,535 blocks stand along the second and third axis of a grid.
TEST(TiledAttention, MoreSequencesThanAnAxisOfTheGridHasBlocks) {
  const int64_t batch = 65600;
  AttentionKernel a = groupedAttention(DType::BF16, 1, 1, 8, 8);
  const AttentionCase c = attentionCase(a, batch, 1, 1);  // the one key's value is the result
  KernelSet set;
  addAttention(c.kernel, tiles(1, 1, 16), c.kernel.name, {}, set);
  EXPECT_EQ(whyNotEveryGrid(set.variants[0].launches[0]), "");
  std::vector<RunBuffer> buffers{
      {encoded(c.q, a.dtype)}, {encoded(c.k, a.dtype)}, {encoded(c.v, a.dtype)}};
  buffers.push_back({std::vector<std::byte>(c.v.size() * sizeOf(a.dtype)), true});
  KernelSetRun run(set, host::Mode::Fast);
  run.run(buffers, {{"b", batch}, {"s", 1}, {"t", 1}}, {});
  EXPECT_EQ(decoded(buffers[3].bytes, a.dtype), c.v);
}

TEST(TiledAttention, NanAndInfinity) {
  AttentionKernel a = groupedAttention(DType::BF16, 2, 1, 64, 64);
  AttentionCase c = attentionCase(a, 1, 33, 70);
  c.k[size_t(50 * 64 + 3)] = NAN;
  c.v[size_t((70 + 20) * 64 + 5)] = -INFINITY;
  c.q[size_t((33 + 4) * 64)] = INFINITY;
  expectAttention(c, tiles(4, 2, 64));
}

// All keys weigh the same, however large their one score is.
TEST(TiledAttention, EqualScoresOfAnySize) {
  for (double size : {0x1p3, 0x1p12, 0x1p17, 0x1p40, -0x1p17}) {
    AttentionCase c = attentionCase(groupedAttention(DType::BF16, 1, 1, 64, 64), 1, 33, 70);
    for (auto* operand : {&c.q, &c.k})
      for (size_t i = 0; i < operand->size(); ++i)
        (*operand)[i] = i % 64 ? 0 : operand == &c.q ? size : std::abs(size);
    expectAttention(c, tiles(4, 1, 64));
  }
}

// A block may begin and end within a group of heads: its last query sees its own key.
TEST(SimtAttention, GroupsThatBlocksTakeApart) {
  AttentionChoice simt;
  AttentionKernel a = groupedAttention(DType::F32, 1, 7, 8, 8);
  a.causal = Causal::top_left;
  expectAttention(attentionCase(a, 1, 70, 70), simt);
}

TEST(SimtAttention, EveryOption) {
  AttentionChoice simt;
  AttentionKernel a = groupedAttention(DType::F32, 2, 3, 33, 70);
  a.causal = Causal::bottom_right;
  a.window = 40;
  a.softcap = 4;
  a.maskedRow = MaskedRow::zero;
  AttentionCase c = attentionCase(a, 2, 35, 67);
  addMask(c, DType::Bool, {1, 1, 35, 67}, someHidden(35, 67, 30));
  expectAttention(c, simt);
  a.dtype = DType::F64;
  a.maskedRow = MaskedRow::uniform;
  c = attentionCase(a, 1, 35, 67);
  addMask(c, DType::F64, {1, 1, 35, 67}, std::vector<double>(35 * 67, 0.5));
  expectAttention(c, simt, host::Mode::Check);
  a = groupedAttention(DType::BF16, 1, 2, 15, 7);
  expectAttention(attentionCase(a, 1, 31, 33), simt);
}

// ---- every way --------------------------------------------------------------------------------

// The three ways of one case: tiles, a stream over the keys in two parts, without tensor cores.
std::vector<AttentionChoice> everyWay(const AttentionCase& c) {
  return {tiles(4, 1, 64), splitInto(AttentionMethod::Decode, 2, c),
          splitInto(AttentionMethod::Simt, 2, c)};
}

// Each row's mean is that of its own batch's and head's values.
TEST(Attention, RowsWithoutKeysAreThoseOfTheirHead) {
  for (MaskedRow row : {MaskedRow::zero, MaskedRow::uniform}) {
    AttentionKernel a = groupedAttention(DType::BF16, 2, 2, 32, 40);
    a.maskedRow = row;
    AttentionCase c = attentionCase(a, 2, 9, 130);
    std::vector<double> mask;
    for (int64_t empty : {3, 8, -1, 0})  // of two batches and two query heads each
      for (int pair = 0; pair < 2; ++pair) {
        const std::vector<double> one = someHidden(9, 130, empty);
        mask.insert(mask.end(), one.begin(), one.end());
      }
    addMask(c, DType::Bool, {2, 4, 9, 130}, mask);
    for (const AttentionChoice& choice : everyWay(c)) expectAttention(c, choice);
  }
}

// A query far behind the keys sees the last of them as long as its window reaches them; one far in
// front sees none.
TEST(Attention, PositionsOutsideOfTheKeys) {
  for (auto [window, row] : {std::pair{0, MaskedRow::zero}, {40, MaskedRow::uniform}}) {
    AttentionKernel a = groupedAttention(DType::BF16, 2, 2, 32, 32);
    a.causal = Causal::positions;
    a.window = window;
    a.maskedRow = row;
    AttentionCase c = attentionCase(a, 8, 5, 67);
    c.positions = {0, 62, 66, 90, 104, 5000, int64_t(1) << 40, -3};
    for (const AttentionChoice& choice : everyWay(c)) expectAttention(c, choice);
  }
}

// ---- views ------------------------------------------------------------------------------------

// q, k, v as slices of one projection [batch, tokens, heads * depth * 3], the result likewise
// [batch, tokens, heads, depth].
TEST(TiledAttention, OperandsInPlaceOfTransposes) {
  AttentionKernel a = groupedAttention(DType::BF16, 2, 1, 32, 32);
  AttentionCase c = attentionCase(a, 2, 65, 65);
  const std::vector<double> want = expectedAttention(c);
  const int64_t row = 3 * 64, heads = 2, depth = 32, tokens = 65;
  std::vector<double> joined(size_t(2 * tokens * row));
  const std::vector<double>* parts[] = {&c.q, &c.k, &c.v};
  AttentionView* views[] = {&c.kernel.q, &c.kernel.k, &c.kernel.v};
  auto each = [&](auto&& body) {
    for (int64_t b = 0, n = 0; b < 2; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < tokens; ++i)
          for (int64_t d = 0; d < depth; ++d, ++n) body(size_t(n), (b * tokens + i), h * depth + d);
  };
  for (int64_t p = 0; p < 3; ++p) {
    *views[p] = {p * 64, DimExpr::symbol("s") * DimExpr(row), depth, row};
    each([&](size_t n, int64_t token, int64_t at) {
      joined[size_t(token * row + p * 64 + at)] = (*parts[p])[n];
    });
  }
  c.kernel.y = {0, DimExpr::symbol("s") * DimExpr(64), depth, 64};
  const auto tolerance = conformance::toleranceOf("attention", DType::BF16, false);
  for (const AttentionChoice& choice :
       {tiles(4, 2, 64), splitInto(AttentionMethod::Decode, 2, c), AttentionChoice()}) {
    KernelSet set;
    addAttention(c.kernel, choice, "attention", {}, set);
    KernelSetRun run(set, host::Mode::Fast);
    std::vector<RunBuffer> buffers(3, {encoded(joined, DType::BF16)});
    buffers.push_back({std::vector<std::byte>(want.size() * 2), true});
    run.run(buffers, {{"b", 2}, {"s", tokens}, {"t", tokens}}, {});
    const std::vector<double> got = decoded(buffers[3].bytes, DType::BF16);
    each([&](size_t n, int64_t token, int64_t at) {
      const double bound = conformance::boundOf(want[n], tolerance);
      EXPECT_TRUE(isNear(got[size_t(token * 64 + at)], want[n], bound)) << run.what();
    });
  }
}

// ---- choices ----------------------------------------------------------------------------------

const Variant* chosen(const KernelSet& set, int64_t batch, int64_t queries) {
  for (const Variant& v : set.variants) {
    bool fits = true;
    for (const Condition& c : v.when) {
      const int64_t value = c.value.evaluate({{"b", batch}, {"s", queries}, {"t", 4096}}).value();
      fits = fits && c.low <= value && value <= c.high;
    }
    if (fits) return &v;
  }
  return nullptr;
}

TEST(AttentionKernels, OneTableServesEverySize) {
  const AttentionCase c = attentionCase(groupedAttention(DType::BF16, 8, 4, 128, 128), 1, 1, 1);
  const KernelSet set = attentionKernels(c.kernel);
  EXPECT_EQ(chosen(set, 1, 1)->what, "decode attention, 16 splits");
  EXPECT_EQ(chosen(set, 2, 16)->what, "decode attention, 8 splits");
  EXPECT_EQ(chosen(set, 300, 1)->what, "decode attention, 1 splits");
  for (int64_t queries : {17, 100, 5000}) {
    ASSERT_NE(chosen(set, 1, queries), nullptr);
    EXPECT_THAT(chosen(set, 1, queries)->what, HasSubstr("tiled"));
  }
  // Every tile has a counter, and a block's 227 KiB have room for what kernels declare themselves.
  for (const Variant& v : set.variants) {
    const Launch& l = v.launches[0];
    for (const Argument& a : l.arguments)
      if (a.kind == Argument::Kind::Counters && l.grid[2].most > 1)
        EXPECT_GE(a.index, 4 * 8 * l.grid[2].most / 16);
    EXPECT_LE(l.sharedBytes, 227 * 1024 - 1024);
  }
}

TEST(AttentionKernels, WithoutTensorCoresWhereTheyDecline) {
  for (DType dtype : {DType::F32, DType::BF16}) {
    AttentionKernel a = groupedAttention(dtype, 8, 1, 60, 60);
    const AttentionCase c = attentionCase(a, 1, 1, 1);
    const KernelSet set = attentionKernels(c.kernel);
    EXPECT_EQ(set.kernels.size(), 1u);
    EXPECT_EQ(chosen(set, 1, 1)->what, "simt attention, 33 splits");
    EXPECT_EQ(chosen(set, 1, 500)->what, "simt attention, 1 splits");
  }
  AttentionKernel a = groupedAttention(DType::BF16, 8, 1, 60, 60);
  EXPECT_THAT(whyNotTensorCores(a), HasSubstr("multiples of 8 up to 256, got 60 and 60"));
  a = attentionCase(groupedAttention(DType::F16, 8, 1, 64, 64), 1, 1, 1).kernel;
  EXPECT_EQ(whyNotTensorCores(a), "");
  for (AttentionView AttentionKernel::* view :
       {&AttentionKernel::q, &AttentionKernel::k, &AttentionKernel::v, &AttentionKernel::y})
    for (DimExpr AttentionView::* member : {&AttentionView::offset, &AttentionView::batch,
                                            &AttentionView::head, &AttentionView::token})
      for (int64_t elements : {1, 2, 4, 8, 12, 16}) {
        AttentionKernel other = a;
        (other.*view).*member = DimExpr::symbol("s") * elements;
        EXPECT_EQ(whyNotTensorCores(other).find("16 bytes") == std::string::npos, elements % 8 == 0)
            << elements;
      }
  a.k.token = DimExpr::symbol("s");
  EXPECT_THAT(whyNotTensorCores(a), HasSubstr("16 bytes"));
}

TEST(AttentionKernels, SayWhyThereIsNone) {
  EXPECT_EQ(whyNotAttention(groupedAttention(DType::F32, 1, 1, 512, 512)), "");
  EXPECT_THAT(whyNotAttention(groupedAttention(DType::F64, 1, 1, 512, 512)),
              HasSubstr("fit 231424 bytes of shared memory, 512 and 512 take"));
  EXPECT_THAT(whyNotAttention(groupedAttention(DType::I32, 1, 1, 64, 64)), HasSubstr("got i32"));
  EXPECT_THROW(attentionKernels(groupedAttention(DType::I32, 1, 1, 64, 64)), Error);
}

TEST(AttentionKernels, TheModelPrefersSplitsWhereBlocksAreFew) {
  const AttentionKernel a =
      attentionCase(groupedAttention(DType::BF16, 8, 4, 128, 128), 1, 1, 1).kernel;
  const std::vector<AttentionChoice> few = attentionCandidates(a, {1, 1, 8192});
  EXPECT_EQ(few[0].method, AttentionMethod::Decode);
  EXPECT_GT(few[0].mostSplits, 8);
  const std::vector<AttentionChoice> many = attentionCandidates(a, {1, 4096, 4096});
  EXPECT_EQ(many[0].method, AttentionMethod::Tiled);
  EXPECT_EQ(many[0].rowTiles, 2);
  EXPECT_LT(attentionSeconds(a, {1, 1024, 1024}, many[0]),
            attentionSeconds(a, {1, 4096, 4096}, many[0]));
}

}  // namespace
}  // namespace lathe::cuda
