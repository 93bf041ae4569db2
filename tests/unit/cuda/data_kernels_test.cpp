// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/data/data_kernels.h"

#include <array>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include "runtime/status_word.h"
#include "tests/closeness.h"
#include "tests/unit/cuda/element_bytes.h"
#include "tests/unit/cuda/kernel_set_run.h"

namespace lathe::cuda {
namespace {

using Shape = std::vector<int64_t>;
using Values = std::vector<double>;

RunBuffer input(const Values& values, DType dtype) { return {encoded(values, dtype)}; }
RunBuffer output(int64_t count, DType dtype) {
  return {std::vector<std::byte>(size_t(count) * sizeOf(dtype)), true};
}

Values ramp(int64_t count) {
  Values x(static_cast<size_t>(count));
  std::iota(x.begin(), x.end(), 1.0);
  return x;
}

// Small values with many ties.
Values ties(int64_t count, int64_t distinct, unsigned seed = 3) {
  std::mt19937 random(seed);
  Values x(static_cast<size_t>(count));
  for (double& v : x) v = double(int64_t(random() % uint32_t(distinct)));
  return x;
}

// ---- copies -----------------------------------------------------------------------------------

void expectCopy(DType dtype, const Shape& sizes, const Shape& strides, int64_t offset,
                int64_t sourceCount, const std::string& what) {
  CopyKernel c{"moved", dtype, offset, {}, {}};
  int64_t count = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    c.sizes.push_back(sizes[i]);
    c.strides.push_back(strides[i]);
    count *= sizes[i];
  }
  Values source = ramp(sourceCount);
  for (double& v : source) v = std::fmod(v, 101);
  Values want;
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = offset, rest = i;
    for (size_t axis = sizes.size(); axis-- > 0; rest /= sizes[axis])
      at += rest % sizes[axis] * strides[axis];
    want.push_back(source[size_t(at)]);
  }
  KernelSetRun run(copyKernels(c), host::Mode::Check);
  std::vector<RunBuffer> buffers{input(source, dtype), output(count, dtype)};
  run.run(buffers, {}, {});
  EXPECT_EQ(decoded(buffers[1].bytes, dtype), want) << run.what();
  EXPECT_EQ(run.what(), what);
}

TEST(Copy, StridedRowsInWords) {
  expectCopy(DType::BF16, {3, 5, 16}, {200, 24, 1}, 8, 620, "copy");
  expectCopy(DType::I8, {3, 5, 7}, {100, 9, 1}, 3, 300, "copy");
  // Rows of whole words that begin between them.
  expectCopy(DType::F32, {3, 5, 8}, {50, 10, 1}, 0, 200, "copy");
  // Rows that would be words, but for where the first one begins.
  expectCopy(DType::BF16, {3, 5, 16}, {200, 24, 1}, 9, 620, "copy");
}

TEST(Copy, TransposedThroughTiles) {
  expectCopy(DType::F32, {33, 65}, {1, 33}, 0, 33 * 65, "transposed copy");
  expectCopy(DType::BF16, {2, 31, 3, 40}, {31 * 3 * 40, 1, 31 * 40, 31}, 0, 2 * 31 * 3 * 40,
             "transposed copy");
  expectCopy(DType::F64, {4, 3, 2}, {1, 8, 4}, 0, 24, "transposed copy");
}

// A block takes another pair of axes in its turn, through the same shared tile: nobody may still
// read of it.
TEST(Copy, MorePairsOfAxesThanBlocks) {
  expectCopy(DType::F32, {1030, 3, 4}, {12, 1, 3}, 0, 1030 * 12, "transposed copy");
  expectCopy(DType::BF16, {2, 520, 40, 3}, {520 * 120, 120, 1, 40}, 0, 2 * 520 * 120,
             "transposed copy");
}

TEST(Copy, BroadcastAndReversedAxes) {
  expectCopy(DType::I32, {3, 4, 5}, {0, 5, 1}, 0, 20, "copy");
  expectCopy(DType::I32, {4, 5}, {-5, -1}, 19, 20, "copy");
}

// ---- update -----------------------------------------------------------------------------------

class Update : public testing::Test {
 protected:
  // x [2, 3, 9, inner], two new rows per head at 4 and 7, which begin at `offset` of their buffer.
  void expectUpdate(DType dtype, int64_t inner, bool inPlace, DType positions, int64_t offset = 0) {
    const int64_t batch = 2, heads = 3, length = 9, count = 2;
    UpdateKernel u{"updated", dtype, positions, {batch, heads, length, inner},
                   2,         count, offset,    {}};
    // The value as it comes out of a projection: [batch, count, heads, inner], seen transposed.
    u.valueStrides = {count * heads * inner, inner, heads * inner, 1};
    Values x = ramp(batch * heads * length * inner),
           value = ramp(offset + batch * count * heads * inner);
    for (double& v : x) v = -std::fmod(v, 89);
    for (double& v : value) v = std::fmod(v, 97);
    const std::array<int64_t, 2> at{4, 7};
    Values want = x;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t r = 0; r < count; ++r)
          for (int64_t d = 0; d < inner; ++d)
            want[size_t(((b * heads + h) * length + at[size_t(b)] + r) * inner + d)] =
                value[size_t(offset + ((b * count + r) * heads + h) * inner + d)];
    KernelSetRun run(updateKernels(u), host::Mode::Check);
    std::vector<RunBuffer> buffers{input(x, dtype), input(value, dtype), input({4, 7}, positions),
                                   output(int64_t(x.size()), dtype)};
    run.run(buffers, {}, {}, inPlace ? std::pair(0, 3) : std::pair(-1, -1));
    EXPECT_EQ(decoded(buffers[3].bytes, dtype), want);
    EXPECT_EQ(run.status(), 0);
  }
};

TEST_F(Update, InPlace) {
  expectUpdate(DType::BF16, 64, true, DType::I64);
  expectUpdate(DType::F32, 7, true, DType::I32);
}
TEST_F(Update, IntoANewBuffer) {
  expectUpdate(DType::F16, 8, false, DType::I64);
  expectUpdate(DType::I8, 1, false, DType::I64);
}

TEST_F(Update, ByRowsThatBeginBetweenWords) {
  expectUpdate(DType::BF16, 64, true, DType::I64, 5);
  expectUpdate(DType::F32, 8, false, DType::I32, 2);
}

TEST_F(Update, PositionsOutOfRangeAreToldAndNotWritten) {
  for (int64_t bad : {int64_t{-1}, int64_t{8}, INT64_MAX, INT64_MIN, (int64_t{1} << 62) + 1}) {
    UpdateKernel u{"updated", DType::F32, DType::I64, {2, 9, 4}, 1, 2, 0, {}};
    KernelSetRun run(updateKernels(u), host::Mode::Check);
    Values x = ramp(72), value = ramp(16);
    std::vector<RunBuffer> buffers{input(x, DType::F32), input(value, DType::F32),
                                   bufferOf(std::vector<int64_t>{bad, 0}), output(72, DType::F32)};
    run.run(buffers, {}, {}, {0, 3});
    EXPECT_EQ(indexOfStatus(run.status()), bad);
    Values want = x;
    std::copy(value.begin() + 8, value.end(), want.begin() + 36);
    EXPECT_EQ(decoded(buffers[3].bytes, DType::F32), want);
  }
}

// Blocks [6, 2, 4, inner]; two sequences of three entries each, with rows from `first` on that end
// at the last place of all.
void expectPagedUpdate(DType dtype, DType index, int64_t inner, int64_t count, int64_t first,
                       bool inPlace) {
  const int64_t blocks = 6, heads = 2, length = 4, batch = 2, entries = 3;
  PagedUpdateKernel u;
  u.name = "paged";
  u.dtype = dtype;
  u.positions = u.table = index;
  u.sizes = {blocks, heads, length, inner};
  u.axis = 2;
  u.count = count;
  u.batch = batch;
  u.entries = entries;
  const Values table{5, 0, 3, 1, 4, 2};
  const std::array<int64_t, 2> at{first, entries * length - count};
  Values x = ramp(blocks * heads * length * inner), value = ramp(batch * heads * count * inner);
  for (double& v : x) v = -std::fmod(v, 89);
  for (double& v : value) v = std::fmod(v, 97);
  Values want = x;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t r = 0; r < count; ++r)
        for (int64_t d = 0; d < inner; ++d) {
          const int64_t p = at[size_t(b)] + r;
          const auto block = int64_t(table[size_t(b * entries + p / length)]);
          want[size_t(((block * heads + h) * length + p % length) * inner + d)] =
              value[size_t(((b * heads + h) * count + r) * inner + d)];
        }
  KernelSetRun run(pagedUpdateKernels(u), host::Mode::Check);
  std::vector<RunBuffer> buffers{input(x, dtype), input(value, dtype), input(table, index),
                                 input({double(at[0]), double(at[1])}, index),
                                 output(int64_t(x.size()), dtype)};
  run.run(buffers, {}, {}, inPlace ? std::pair(0, 4) : std::pair(-1, -1));
  EXPECT_EQ(decoded(buffers[4].bytes, dtype), want);
  EXPECT_EQ(run.status(), 0);
}

TEST(PagedUpdate, ReachesTheLastPlaceOfATable) {
  for (int64_t count : {1, 3, 7, 12}) {
    SCOPED_TRACE(count);
    expectPagedUpdate(DType::BF16, DType::I64, 8, count, 0, true);
    expectPagedUpdate(DType::F32, DType::I32, 3, count, std::min<int64_t>(3, 12 - count), false);
  }
}

// ---- casts of four bits -----------------------------------------------------------------------

// Bytes, two elements each, of an odd and of an even number of them.
TEST(PackedCast, HalvesAreBytesAndBack) {
  const Values whole{1, 14, 7, 8, 3, 15}, sums{1 + 16 * 14, 7 + 16 * 8, 3 + 16 * 15};
  for (int64_t count : {6, 5, 1}) {
    SCOPED_TRACE(count);
    const int64_t bytes = (count + 1) / 2;
    Values few(whole.begin(), whole.begin() + count), pairs(sums.begin(), sums.begin() + bytes);
    if (count % 2) pairs.back() = few.back();
    for (DType packed : {DType::I4, DType::U4}) {
      const bool isSigned = packed == DType::I4;
      Values read = few;  // as bytes without a sign
      for (double& v : read)
        if (isSigned && v > 7) v += 240;
      KernelSetRun pack(
          packedCastKernels({"packs", isSigned ? DType::I8 : DType::U8, packed, count}),
          host::Mode::Check);
      std::vector<RunBuffer> buffers{input(read, DType::U8), output(bytes, DType::U8)};
      pack.run(buffers, {}, {});
      EXPECT_EQ(decoded(buffers[1].bytes, DType::U8), pairs);
      KernelSetRun unpack(
          packedCastKernels({"unpacks", packed, isSigned ? DType::I8 : DType::U8, count}),
          host::Mode::Check);
      std::vector<RunBuffer> back{input(pairs, DType::U8), output(count, DType::U8)};
      unpack.run(back, {}, {});
      EXPECT_EQ(decoded(back[1].bytes, DType::U8), read);
    }
  }
}

// ---- top_k ------------------------------------------------------------------------------------

void expectTopK(DType dtype, Values x, int64_t rows, int64_t columns, int64_t k,
                const std::string& what, bool symbolic = false) {
  x = decoded(encoded(x, dtype), dtype);
  Values want, places;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<int64_t> order(static_cast<size_t>(columns));
    std::iota(order.begin(), order.end(), r * columns);
    std::ranges::sort(order, [&](int64_t i, int64_t j) {
      const double a = x[size_t(i)], b = x[size_t(j)];
      if (std::isnan(a) != std::isnan(b)) return std::isnan(a);
      return a == b || std::isnan(a) ? i < j : a > b;
    });
    for (int64_t i = 0; i < k; ++i) {
      want.push_back(x[size_t(order[size_t(i)])]);
      places.push_back(double(order[size_t(i)] - r * columns));
    }
  }
  TopKKernel t{"largest", dtype, rows, columns, k};
  if (symbolic) t.columns = DimExpr::symbol("n");
  KernelSetRun run(topKKernels(t), rows * columns < 5000 ? host::Mode::Check : host::Mode::Fast);
  std::vector<RunBuffer> buffers{input(x, dtype), output(rows * k, dtype),
                                 output(rows * k, DType::I64)};
  run.run(buffers, {{"n", columns}}, {});
  EXPECT_EQ(run.what(), what);
  EXPECT_EQ(decoded(buffers[2].bytes, DType::I64), places) << nameOf(dtype);
  const Values got = decoded(buffers[1].bytes, dtype);
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_TRUE(got[i] == want[i] || (std::isnan(got[i]) && std::isnan(want[i]))) << i;
}

const std::string kWarp = "top-k, a warp per row", kBlock = "top-k, a block per row";

TEST(TopK, EveryDtypeWithTies) {
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32,
                      DType::I16, DType::I8, DType::U8}) {
    Values x = ties(5 * 33, 9);
    if (dtype != DType::U8)
      for (double& v : x) v -= 4;
    expectTopK(dtype, x, 5, 33, 7, kWarp);
    expectTopK(dtype, x, 5, 33, 33, kBlock);
    // Of the equal ones no more are taken than there is room for.
    expectTopK(dtype, x, 5, 33, 16, kBlock, true);
  }
}

TEST(TopK, NanInfinityAndSignedZeros) {
  Values x{0.0, -0.0, NAN, -INFINITY, INFINITY, 1, NAN, -1, 0.0, -0.0};
  for (DType dtype : {DType::F32, DType::BF16, DType::F64}) {
    expectTopK(dtype, x, 1, 10, 10, kWarp);
    expectTopK(dtype, x, 1, 10, 10, kBlock, true);
  }
}

TEST(TopK, RowsOfAVocabulary) {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  Values x(2 * 9973);
  for (double& v : x) v = normal(random);
  expectTopK(DType::F32, x, 2, 9973, 50, kBlock, true);
  expectTopK(DType::BF16, x, 2, 9973, 50, kBlock, true);
  expectTopK(DType::F32, x, 2, 9973, 5000, kBlock);
  expectTopK(DType::F32, x, 19946, 1, 1, kWarp);
}

// ---- cumsum -----------------------------------------------------------------------------------

void expectCumSum(DType dtype, int64_t outer, int64_t length, int64_t inner, double tolerance) {
  const Values x = ties(outer * length * inner, 100);
  Values want = x;
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 1; i < length; ++i)
      for (int64_t j = 0; j < inner; ++j)
        want[size_t((o * length + i) * inner + j)] +=
            want[size_t((o * length + i - 1) * inner + j)];
  const bool wraps = dtype == DType::I8 || dtype == DType::U8 || dtype == DType::I16;
  KernelSetRun run(cumSumKernels({"running", dtype, outer, length, inner}), host::Mode::Check);
  std::vector<RunBuffer> buffers{input(x, dtype), output(int64_t(x.size()), dtype)};
  run.run(buffers, {}, {});
  const Values got = decoded(buffers[1].bytes, dtype);
  for (size_t i = 0; i < want.size(); ++i) {
    if (wraps) want[i] = decoded(encoded({want[i]}, dtype), dtype)[0];
    ASSERT_TRUE(isNear(got[i], want[i], tolerance * std::abs(want[i])))
        << nameOf(dtype) << " element " << i << " is " << got[i] << ", want " << want[i];
  }
}

TEST(CumSum, EveryDtypeAndAxis) {
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32,
                      DType::I16, DType::I8, DType::U8}) {
    const double tolerance = dtype == DType::BF16 ? 4e-3 : dtype == DType::F16 ? 5e-4 : 0;
    expectCumSum(dtype, 3, 257, 1, tolerance);
    expectCumSum(dtype, 2, 31, 5, tolerance);
  }
}

TEST(CumSum, NanAndInfinityGoForward) {
  Values x(600, 1.0);
  x[300] = INFINITY;
  x[500] = -INFINITY;
  KernelSetRun run(cumSumKernels({"running", DType::F32, 1, 600, 1}), host::Mode::Check);
  std::vector<RunBuffer> buffers{input(x, DType::F32), output(600, DType::F32)};
  run.run(buffers, {}, {});
  const Values y = decoded(buffers[1].bytes, DType::F32);
  EXPECT_EQ(y[299], 300);
  EXPECT_EQ(y[300], INFINITY);
  EXPECT_EQ(y[499], INFINITY);
  EXPECT_TRUE(std::isnan(y[500]) && std::isnan(y[599]));
}

// ---- random bits ------------------------------------------------------------------------------

// Salmon et al.'s known answers for Philox-4x32-10.
TEST(RandomBits, KnownAnswers) {
  const std::vector<uint32_t> zero{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  KernelSetRun run(randomBitsKernels({"bits", 4}), host::Mode::Check);
  std::vector<RunBuffer> buffers{bufferOf(std::vector<int64_t>{0}), output(4, DType::I32)};
  run.run(buffers, {}, {});
  EXPECT_EQ(valuesOf<uint32_t>(buffers[1]), zero);
}

TEST(RandomBits, AnyCountIsABeginningOfTheSameSequence) {
  std::vector<uint32_t> longest;
  for (int64_t count : {2051, 1, 2, 3, 1030}) {
    KernelSetRun run(randomBitsKernels({"bits", DimExpr::symbol("n")}), host::Mode::Check);
    std::vector<RunBuffer> buffers{bufferOf(std::vector<int64_t>{0x123456789abcdef}),
                                   output(count, DType::I32)};
    run.run(buffers, {{"n", count}}, {});
    std::vector<uint32_t> got = valuesOf<uint32_t>(buffers[1]);
    if (longest.empty()) longest = got;
    EXPECT_TRUE(std::ranges::equal(got, std::span(longest).first(size_t(count))));
  }
  EXPECT_NE(longest[0], longest[4]);
}

// Entries of a row that shared memory does not hold lie in scratch memory, those of each block.
TEST(TopK, EveryBlockHasRoomForItsEntries) {
  const KernelSet set = topKKernels({"largest", DType::F32, 1 << 20, 10000, 5000});
  const Variant& v = set.variants.at(0);
  EXPECT_EQ(v.scratchBytes, DimExpr(v.launches.at(0).grid[0].most * 8192 * 16));
}

}  // namespace
}  // namespace lathe::cuda
