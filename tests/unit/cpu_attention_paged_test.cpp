// SPDX-License-Identifier: Apache-2.0
// Keys and values in blocks, in any order, give what they give one behind the other; blocks of
// other sequences are not read.
#include <algorithm>
#include <numeric>

#include "tests/unit/cpu_attention_case.h"

namespace lathe::cpu {
namespace {

// Where the blocks of a cache lie: each sequence's in an order of its own, between others' blocks.
struct Blocks {
  Blocks(int64_t batch, int64_t entries) : count(2 * batch * entries + 1) {
    std::vector<int64_t> all(static_cast<size_t>(count));
    std::iota(all.begin(), all.end(), 0);
    std::mt19937 random(5);
    std::shuffle(all.begin(), all.end(), random);
    table.assign(all.begin(), all.begin() + batch * entries);
  }
  int64_t count;
  std::vector<int64_t> table;
};

// Tensor `index` of a case that has its heads first, in blocks; every other block is NaN.
template <class Element>
void scatter(std::vector<Element>& from, const Blocks& blocks, const AttentionArgs& a, int64_t size,
             int64_t dim, Element nan) {
  std::vector<Element> to(size_t(blocks.count * a.kvHeads * size * dim), nan);
  for (int64_t b = 0; b < a.batch; ++b)
    for (int64_t h = 0; h < a.kvHeads; ++h)
      for (int64_t j = 0; j < a.kLen; ++j) {
        const int64_t block = blocks.table[size_t(b * (a.kLen / size) + j / size)];
        std::copy_n(from.begin() + ((b * a.kvHeads + h) * a.kLen + j) * dim, dim,
                    to.begin() + ((block * a.kvHeads + h) * size + j % size) * dim);
      }
  from = std::move(to);
}

void checkPaged(const AttentionCase& whole, int64_t size) {
  const AttentionArgs& a = whole.args;
  const Blocks blocks(a.batch, a.kLen / size);
  for (KernelIsa isa : tiers()) {
    SCOPED_TRACE(label(isa) + " " + std::string(nameOf(a.dtype)) + " blocks of " +
                 std::to_string(size) + " q " + std::to_string(a.qLen) + " k " +
                 std::to_string(a.kLen) + " dim " + std::to_string(a.headDim) + " window " +
                 std::to_string(a.window));
    AttentionCase paged = whole;
    AttentionArgs& p = paged.args;
    for (int index : {1, 2}) {
      const int64_t dim = index == 1 ? a.headDim : a.valueDim;
      if (a.dtype == DType::F32)
        scatter(paged.f32[index], blocks, a, size, dim, std::numeric_limits<float>::quiet_NaN());
      else
        scatter(paged.bf16[index], blocks, a, size, dim, uint16_t(0x7fc0));
      (index == 1 ? p.kStrides : p.vStrides) = headMajor(a.kvHeads, size, dim);
    }
    p.blockKeys = size;
    p.tableEntries = a.kLen / size;
    p.table = blocks.table.data();
    runCase(paged, isa);
    conformance::Tolerance tolerance = conformance::toleranceOf("attention", a.dtype, false);
    AttentionCase contiguous = whole;
    point(contiguous);
    int wrong = 0;
    for (int64_t b = 0; b < a.batch; ++b)
      for (int64_t h = 0; h < a.qHeads; ++h)
        for (int64_t i = 0; i < a.qLen; ++i) {
          const std::vector<double> want = expectedRow(contiguous, b, h, i);
          for (int64_t d = 0; d < a.valueDim; ++d) {
            const double got = paged.output(b * a.outStrides.batch + h * a.outStrides.head +
                                            i * a.outStrides.token + d);
            const double bound = conformance::boundOf(want[size_t(d)], tolerance);
            if (!isNear(got, want[size_t(d)], bound) && ++wrong < 4)
              ADD_FAILURE() << b << " " << h << " " << i << " " << d << ": expected "
                            << want[size_t(d)] << ", got " << got;
          }
        }
    EXPECT_EQ(wrong, 0);
  }
}

// Blocks smaller than what is read at a time, and larger ones that begin in the middle of it.
TEST(PagedAttention, BlocksOfEverySize) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t size : {1, 5, 16, 31, 48, 64, 96, 160, 264})
      for (int64_t q : {1, 3, 40})
        checkPaged(makeCase(dtype, {2, 4, 2, q, (size < 64 ? 192 / size : 3) * size, 64, 64}),
                   size);
}

TEST(PagedAttention, HeadsOfAwkwardSizes) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t dim : {1, 33, 80})
      checkPaged(makeCase(dtype, {2, 2, 1, 5, 112, dim, dim + 2}), 16);
}

// Sequences end in the middle of a block, and what a window lets them see begins in one.
TEST(PagedAttention, RunsBeginAndEndInTheMiddleOfABlock) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t size : {7, 16, 64, 144})
      for (int64_t q : {1, 2, 33})
        for (int64_t window : {0, 1, 21, 50}) {
          AttentionCase c = makeCase(dtype, {3, 4, 2, q, 4 * size, 32, 32});
          c.args.causal = true;
          c.args.window = window;
          c.positions = {0, 2 * size + size / 2, 4 * size - q};
          if (c.positions.back() >= 0) checkPaged(c, size);
        }
}

}  // namespace
}  // namespace lathe::cpu
