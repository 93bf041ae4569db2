// SPDX-License-Identifier: Apache-2.0
// Products and moves of the interpreter, which are blocked and threaded, against plain loops: the
// same bits.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "backends/reference/matmul.h"
#include "backends/reference/strided.h"

namespace lathe::reference {
namespace {

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}
  int64_t below(int64_t limit) { return int64_t(random_() % uint64_t(limit)); }
  bool coin() { return random_() & 1; }

  // Numbers of the dtype, now and then one that is none.
  Array array(DType dtype, Shape shape) {
    Array a(dtype, std::move(shape));
    std::normal_distribution<double> normal;
    for (int64_t i = 0; i < a.size(); ++i) {
      a.set(i, normal(random_));
      if (below(5000) == 0) a.set(i, coin() ? NAN : coin() ? INFINITY : -0.0);
    }
    return a;
  }

 private:
  std::mt19937_64 random_;
};

uint64_t bitsOf(double v) { return std::isnan(v) ? 1 : std::bit_cast<uint64_t>(v); }

// The definition.
std::vector<double> plainProduct(const Dense& a, const Dense& b, const std::vector<int64_t>& fromA,
                                 const std::vector<int64_t>& fromB) {
  const int64_t m = a.shape.end()[-2], k = a.shape.back(), n = b.shape.back();
  const Dense left = settled(a), right = settled(b);
  std::vector<double> y;
  for (size_t matrix = 0; matrix < fromA.size(); ++matrix)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) {
          volatile double term = (*left.reals)[size_t((fromA[matrix] * m + i) * k + p)] *
                                 (*right.reals)[size_t((fromB[matrix] * k + p) * n + j)];
          sum += term;
        }
        y.push_back(sum);
      }
  return y;
}

void expectTheSameBits(const Dense& a, const Dense& b, const std::vector<int64_t>& fromA,
                       const std::vector<int64_t>& fromB) {
  const std::vector<double> want = plainProduct(a, b, fromA, fromB);
  const std::vector<double> got = product(a, b, fromA, fromB);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_EQ(bitsOf(got[i]), bitsOf(want[i])) << i << ": " << got[i] << ", want " << want[i];
}

constexpr DType kFloats[] = {DType::F64, DType::F32, DType::BF16, DType::F16};

TEST(ReferenceMatmul, HasTheBitsOfPlainLoops) {
  Draw draw(20260101);
  constexpr int64_t kSizes[] = {1, 2, 3, 5, 8, 31, 32, 33, 127, 128, 129, 257};
  auto size = [&] { return kSizes[draw.below(std::size(kSizes))]; };
  for (int round = 0; round < 60; ++round) {
    const int64_t m = kSizes[draw.below(7)], k = size(), n = size();
    const DType dtype = kFloats[round % 4];
    Dense a = fromArray(draw.array(dtype, {2, m, k}), dtype);
    // As it is stored, transposed or not, or in doubles.
    const bool turned = draw.coin();
    const Array w = draw.array(dtype, turned ? Shape{3, n, k} : Shape{3, k, n});
    Dense b = draw.coin() ? fromStored(w, dtype) : fromArray(w, dtype);
    if (turned) b = strided(b, {3, k, n}, {n * k, 1, k});
    SCOPED_TRACE(testing::Message() << m << "x" << k << "x" << n << " turned " << turned);
    expectTheSameBits(a, b, {0, 1, 1}, {2, 0, 1});
  }
}

TEST(ReferenceMatmul, HasTheBitsOfPlainLoopsOnSeveralThreads) {
  Draw draw(7);
  Dense a = fromArray(draw.array(DType::F32, {1, 9, 700}), DType::F32);
  Dense w = fromStored(draw.array(DType::BF16, {611, 700}), DType::BF16);
  ASSERT_TRUE(w.stored);
  expectTheSameBits(a, strided(w, {1, 700, 611}, {0, 1, 700}), {0}, {0});
}

TEST(ReferenceMatmul, MultipliesSquares) {
  Draw draw(3);
  for (DType dtype : kFloats) {
    const Array left = draw.array(dtype, {5, 40}), right = draw.array(dtype, {40, 130});
    Dense a = fromArray(left, dtype), b = fromStored(right, dtype);
    const std::vector<double> got = product(a, b, {0}, {0}, /*squared=*/true);
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 130; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < 40; ++p)
          sum += std::pow(left.at(i * 40 + p), 2) * std::pow(right.at(p * 130 + j), 2);
        const double is = got[size_t(i * 130 + j)];
        ASSERT_TRUE(std::isnan(sum) ? std::isnan(is)
                                    : is == sum || std::abs(is - sum) <= 1e-13 * sum)
            << is << ", want " << sum;
      }
  }
}

TEST(ReferenceMatmul, OfNothingIsZero) {
  Dense a = makeReals(DType::F32, {2, 0}, {}), b = makeReals(DType::F32, {0, 3}, {});
  EXPECT_EQ(product(a, b, {0}, {0}), std::vector<double>(6, 0.0));
}

// Any order of axes, any cut, either direction, repeated axes; stored, real and whole numbers.
TEST(ReferenceStrided, MovesEveryElementToItsPlace) {
  Draw draw(11);
  for (int round = 0; round < 80; ++round) {
    const int64_t rank = 1 + draw.below(4), most = round % 8 ? 9 : 70;
    Shape from, shape, strides;
    for (int64_t i = 0; i < rank; ++i) from.push_back(1 + draw.below(most));
    const Shape all = stridesOf(from);
    std::vector<int64_t> axes(static_cast<size_t>(rank));
    for (int64_t i = 0; i < rank; ++i) axes[size_t(i)] = i;
    for (int64_t i = rank; i-- > 1;) std::swap(axes[size_t(i)], axes[size_t(draw.below(i + 1))]);
    int64_t offset = 0;
    for (int64_t axis : axes) {
      const int64_t size = from[size_t(axis)], step = all[size_t(axis)];
      const int64_t kept = 1 + draw.below(size), start = draw.below(size - kept + 1);
      const bool back = draw.coin();
      shape.push_back(kept);
      strides.push_back(back ? -step : step);
      offset += (back ? start + kept - 1 : start) * step;
      if (draw.below(6) == 0) shape.push_back(1 + draw.below(3)), strides.push_back(0);
    }
    const Array values = draw.array(DType::F32, from);
    std::vector<int64_t> numbers(size_t(values.size()));
    for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = int64_t(i);
    const Dense x = fromArray(values, DType::F32);
    const Dense stored{DType::F32, from, nullptr, nullptr,
                       std::make_shared<const Stored>(Stored{values, all})};
    const std::vector<int64_t> want = stridedIndices(shape, strides, offset);
    const Dense i = strided(makeIntegers(DType::I64, from, numbers), shape, strides, offset);
    const Dense r = strided(x, shape, strides, offset);
    const Dense s = settled(strided(stored, shape, strides, offset));
    ASSERT_EQ(*i.integers, want);
    ASSERT_EQ(r.reals->size(), want.size());
    ASSERT_EQ(s.reals->size(), want.size());
    for (size_t at = 0; at < want.size(); ++at) {
      ASSERT_EQ(bitsOf((*r.reals)[at]), bitsOf(values.at(want[at])));
      ASSERT_EQ(bitsOf((*s.reals)[at]), bitsOf(values.at(want[at])));
    }
  }
}

TEST(ReferenceStrided, CutsAPartOfAPart) {
  Draw draw(13);
  const Array values = draw.array(DType::F16, {80, 60});
  for (const Dense& x : {fromStored(values, DType::F16), fromArray(values, DType::F16)}) {
    const Dense part = strided(x, {40, 60}, {60, 1}, 20 * 60);
    const Dense y = settled(strided(part, {5, 7}, stridesIn(part), 3 * 60 + 11));
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 7; ++j)
        ASSERT_EQ(bitsOf((*y.reals)[size_t(i * 7 + j)]), bitsOf(values.at((23 + i) * 60 + 11 + j)));
  }
}

TEST(ReferenceStrided, TurnsALargeMatrix) {
  Draw draw(5);
  const Array values = draw.array(DType::BF16, {513, 771});
  const Dense turned = strided(fromStored(values, DType::BF16), {771, 513}, {1, 771});
  EXPECT_TRUE(turned.stored);  // nothing is copied for a view
  const Dense made = settled(turned),
              real = strided(fromArray(values, DType::BF16), {771, 513}, {1, 771});
  for (int64_t i = 0; i < 771; ++i)
    for (int64_t j = 0; j < 513; ++j) {
      ASSERT_EQ(bitsOf((*made.reals)[size_t(i * 513 + j)]), bitsOf(values.at(j * 771 + i)));
      ASSERT_EQ(bitsOf((*real.reals)[size_t(i * 513 + j)]), bitsOf(values.at(j * 771 + i)));
    }
}

}  // namespace
}  // namespace lathe::reference
