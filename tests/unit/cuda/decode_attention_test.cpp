// SPDX-License-Identifier: Apache-2.0
// Attention of few queries over split keys: on tensor cores, and without for f32 and f64.
#include "backends/cuda/lowering/attention/attention_kernels.h"
#include "tests/unit/cuda/attention_cases.h"

namespace lathe::cuda {
namespace {

// The capacity is the key length; positions say how much of it is there.
AttentionCase cached(AttentionKernel a, std::vector<int64_t> positions, int64_t queries,
                     int64_t capacity) {
  a.causal = Causal::positions;
  AttentionCase c = attentionCase(a, int64_t(positions.size()), queries, capacity);
  c.positions = positions;
  return c;
}

void expectDecode(const AttentionCase& c, int splits, host::Mode mode = host::Mode::Fast) {
  if (!whyNotTensorCores(c.kernel).empty())
    return expectAttention(c, splitInto(AttentionMethod::Simt, splits, c), mode);
  for (int warps : {4, 8})
    expectAttention(c, splitInto(AttentionMethod::Decode, splits, c, warps), mode);
}

TEST(DecodeAttention, LengthsGroupsAndDepths) {
  struct Sizes {
    DType dtype;
    int64_t group, depth, valueDepth, queries;
  };
  for (const Sizes& s : {Sizes{DType::BF16, 1, 64, 64, 1}, Sizes{DType::F16, 4, 128, 128, 3},
                         Sizes{DType::BF16, 8, 256, 256, 16}, Sizes{DType::BF16, 4, 40, 72, 5},
                         Sizes{DType::F32, 4, 65, 33, 5}, Sizes{DType::F64, 1, 16, 40, 2}}) {
    AttentionKernel a = groupedAttention(s.dtype, 2, s.group, s.depth, s.valueDepth);
    expectDecode(cached(a, {0, 30, 64, 240}, s.queries, 257), 8);
  }
}

// The last sequence is the longest: its partial sums end where their memory does.
TEST(DecodeAttention, SplitsWithoutRaces) {
  for (DType dtype : {DType::BF16, DType::F32}) {
    AttentionKernel a = groupedAttention(dtype, 1, 4, 32, 32);
    expectDecode(cached(a, {700, 1, 1023}, 3, 1030), 16, host::Mode::Check);
  }
}

TEST(DecodeAttention, ACacheThatHoldsMoreThanAnySplitCount) {
  AttentionKernel a = groupedAttention(DType::F16, 1, 2, 32, 64);
  expectDecode(cached(a, {4000}, 1, 4096), 3);
}

// Only checked memory ends where the launch says that it ends.
TEST(DecodeAttention, SharedMemoryHoldsUnevenDepths) {
  for (int64_t depth : {136, 200}) {
    AttentionKernel a = groupedAttention(DType::BF16, 1, 2, depth, 64);
    expectDecode(cached(a, {64, 3}, 2, 66), 2, host::Mode::Check);
  }
}

TEST(DecodeAttention, WindowAndSoftcap) {
  for (DType dtype : {DType::BF16, DType::F32}) {
    AttentionKernel a = groupedAttention(dtype, 2, 4, 64, 64);
    a.window = 100;
    a.softcap = 3;
    a.scale = 0.4;
    a.positions = DType::I32;
    expectDecode(cached(a, {250, 64, 3}, 2, 257), 4);
  }
}

TEST(DecodeAttention, EndsAlignedAndUnmasked) {
  AttentionKernel a = groupedAttention(DType::BF16, 2, 2, 64, 64);
  a.causal = Causal::bottom_right;
  expectDecode(attentionCase(a, 1, 4, 131), 2);
  a.causal = Causal::none;
  a.scale = -0.125;
  expectDecode(attentionCase(a, 1, 2, 65), 2);
}

TEST(DecodeAttention, RowsWithoutKeysFollowThePolicy) {
  for (DType dtype : {DType::BF16, DType::F32})
    for (MaskedRow row : {MaskedRow::nan, MaskedRow::zero, MaskedRow::uniform}) {
      AttentionKernel a = groupedAttention(dtype, 1, 2, 32, 32);
      a.maskedRow = row;
      // The first batch sees nothing, the first query of the second neither.
      expectDecode(cached(a, {-3, -1, 140, INT64_MIN}, 2, 150), 3);
    }
}

TEST(DecodeAttention, KeysAddedToMaskAreNumbersAndInfinity) {
  for (DType dtype : {DType::BF16, DType::F32}) {
    AttentionKernel a = groupedAttention(dtype, 1, 2, 32, 32);
    AttentionCase c = attentionCase(a, 2, 2, 130);
    std::vector<double> mask(2 * 130, 0.0);
    for (size_t i = 0; i < mask.size(); ++i)
      mask[i] = i < 130 ? -3.3e38 : i % 3 == 0 ? -INFINITY : 0.25 * double(i % 5);
    addMask(c, DType::F32, {2, 1, 1, 130}, mask);
    expectDecode(c, 2);
    addMask(c, DType::BF16, {2, 1, 1, 130}, mask);
    expectDecode(c, 2);
  }
}

TEST(DecodeAttention, NanAndInfinity) {
  for (DType dtype : {DType::F16, DType::F32}) {
    AttentionKernel a = groupedAttention(dtype, 2, 2, 32, 32);
    AttentionCase c = cached(a, {128}, 1, 200);
    c.k[size_t(70 * 32)] = NAN;  // seen by the heads of the first key head
    c.v[size_t((200 + 20) * 32 + 5)] = INFINITY;
    c.q[size_t(3 * 32)] = -INFINITY;  // scores of both signs
    expectDecode(c, 3);
  }
}

// An axis of the grid ends at 65,535 blocks: each goes on with what is left.
TEST(DecodeAttention, MoreHeadsThanTheGridHasBlocks) {
  for (DType dtype : {DType::BF16, DType::F32})
    for (host::Mode mode : {host::Mode::Fast, host::Mode::Check}) {
      AttentionKernel a = groupedAttention(dtype, 3, 2, 16, 16);
      const AttentionCase c = cached(a, {130, 3, 70, 0, 129}, 2, 140);
      const bool small = dtype == DType::BF16;
      expectAttention(c, splitInto(small ? AttentionMethod::Decode : AttentionMethod::Simt, 2, c),
                      mode, 4);
    }
}

// A range of batches and queries has one kernel: its counters are those of the largest ones.
TEST(DecodeAttention, EveryRowTileOfARangeHasItsCounter) {
  for (DType dtype : {DType::BF16, DType::F32}) {
    const AttentionKernel a = attentionCase(groupedAttention(dtype, 2, 4, 64, 64), 1, 1, 1).kernel;
    int64_t split = 0;
    for (const Variant& v : attentionKernels(a).variants) {
      int64_t batches = 0, queries = 0;
      for (const Condition& c : v.when) {
        if (c.value == a.batch) batches = c.high;
        if (c.value == a.queries) queries = c.high;
      }
      const Launch& l = v.launches[0];
      for (const Argument& argument : l.arguments)
        if (argument.kind == Argument::Kind::Counters && argument.index > 0) {
          const int64_t tiles = (queries * 4 + l.grid[0].per - 1) / l.grid[0].per;
          EXPECT_GE(queries, 16);
          EXPECT_GE(argument.index / 4, batches * 2 * tiles) << v.what << ", " << batches;
          ++split;
        }
    }
    EXPECT_GE(split, 3);
  }
}

TEST(DecodeAttention, NoKeysGiveZeros) {
  AttentionKernel a = groupedAttention(DType::BF16, 1, 2, 32, 32);
  AttentionCase c = attentionCase(a, 1, 1, 0);
  expectDecode(c, 2);
}

}  // namespace
}  // namespace lathe::cuda
