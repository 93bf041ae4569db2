// SPDX-License-Identifier: Apache-2.0
// Values of several ranks joined, element by element: every dtype, sum and maximum, NaN and
// infinity from any rank, counts about the blocks in which it is done.
#include "runtime/join_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "lathe/runtime/array.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

constexpr DType kFloats[] = {DType::F64, DType::F32, DType::BF16, DType::F16};
constexpr DType kIntegers[] = {DType::I64, DType::I32, DType::I16, DType::I8, DType::U8};
constexpr double kInfinity = std::numeric_limits<double>::infinity(),
                 kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<Array> partsOf(DType dtype, int64_t ranks, int64_t count) {
  std::vector<Array> parts;
  uint64_t state = uint64_t(ranks * 7919 + count);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    Array& part = parts.emplace_back(dtype, Shape{count});
    for (int64_t i = 0; i < count; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const int64_t drawn = int64_t(state >> 56);
      part.set(i, isFloat(dtype) ? double(drawn - 128) / 16
                                 : double(dtype == DType::U8 ? drawn : drawn - 128));
    }
  }
  return parts;
}

Array joined(const std::vector<Array>& parts, Combine combine) {
  std::vector<const void*> pointers;
  for (const Array& part : parts) pointers.push_back(part.data());
  Array to(parts[0].dtype(), parts[0].shape());
  joinRanks(pointers, to.data(), size_t(to.size()), to.dtype(), combine);
  return to;
}

// As the backends' maximum: a NaN is larger than all.
double largest(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? kNan : std::max(a, b);
}

TEST(JoinRanks, SumsAndMaximaOfEveryDType) {
  for (DType dtype : {DType::F64, DType::F32, DType::BF16, DType::F16, DType::I64, DType::I32,
                      DType::I16, DType::I8, DType::U8})
    for (int64_t ranks : {1, 2, 3, 5})
      for (int64_t count : {0, 1, 17, 1023, 1024, 1025, 2050}) {
        const std::vector<Array> parts = partsOf(dtype, ranks, count);
        const Array sum = joined(parts, Combine::sum), most = joined(parts, Combine::max);
        for (int64_t i = 0; i < count; ++i) {
          double total = 0, top = -kInfinity;
          for (const Array& part : parts) total += part.at(i), top = largest(top, part.at(i));
          Array want(dtype, {1});
          if (isFloat(dtype)) {
            want.set(0, total);  // sixteenths below 2^8: exact in f32, rounded once
          } else {
            const int bits = int(sizeOf(dtype)) * 8;
            int64_t wrapped = int64_t(uint64_t(int64_t(total)) << (64 - bits));
            wrapped = dtype == DType::U8 ? int64_t(uint64_t(wrapped) >> (64 - bits))
                                         : wrapped >> (64 - bits);
            want.set(0, double(wrapped));
          }
          ASSERT_EQ(sum.at(i), want.at(0)) << nameOf(dtype) << " of " << ranks << " at " << i;
          ASSERT_EQ(most.at(i), top) << nameOf(dtype) << " of " << ranks << " at " << i;
        }
      }
}

TEST(JoinRanks, NanAndInfinityOfAnyRankAreKept) {
  constexpr double kSpecial[] = {kNan, kInfinity, -kInfinity, 1.5, -0.0};
  for (DType dtype : kFloats)
    for (int64_t ranks : {2, 3})
      for (int64_t from = 0; from < ranks; ++from)
        for (double first : kSpecial)
          for (double other : kSpecial) {
            std::vector<Array> parts;
            double total = 0, top = -kInfinity;
            for (int64_t rank = 0; rank < ranks; ++rank) {
              Array& part = parts.emplace_back(dtype, Shape{20});
              const double value = rank == from ? first : other;
              for (int64_t i = 0; i < part.size(); ++i) part.set(i, value);
              total = rank == 0 ? value : total + value;
              top = rank == 0 ? value : largest(top, value);
            }
            const std::string what = std::string(nameOf(dtype)) + ": " + std::to_string(first) +
                                     " of rank " + std::to_string(from) + " beside " +
                                     std::to_string(other);
            auto expectSame = [&](double got, double want) {
              EXPECT_EQ(std::isnan(got), std::isnan(want)) << what;
              if (!std::isnan(want)) EXPECT_EQ(got, want) << what;
            };
            const Array sum = joined(parts, Combine::sum), most = joined(parts, Combine::max);
            for (int64_t i : {int64_t(0), sum.size() - 1}) {
              expectSame(sum.at(i), total);
              expectSame(most.at(i), top);
            }
          }
}

// 16-bit floats are joined in f32 and rounded once: 1 + 2^-9 + 2^-9 would stay 1 in bf16.
TEST(JoinRanks, SmallFloatsAreRoundedOnce) {
  for (auto [dtype, step] : {std::pair(DType::BF16, 0x1p-8), std::pair(DType::F16, 0x1p-11)}) {
    std::vector<Array> parts;
    for (double value : {1.0, step, step}) parts.emplace_back(dtype, Shape{1}).set(0, value);
    EXPECT_EQ(joined(parts, Combine::sum).at(0), 1 + 2 * step) << nameOf(dtype);
  }
}

TEST(JoinRanks, IntegersWrapAtTheEndsOfTheirRange) {
  for (DType dtype : kIntegers) {
    std::vector<Array> parts;
    const int bits = int(sizeOf(dtype)) * 8;
    for (int i = 0; i < 2; ++i) {
      Array& part = parts.emplace_back(dtype, Shape{1});
      auto* bytes = static_cast<unsigned char*>(part.data());
      // The highest number: 0x7f.. or, without a sign, 0xff.
      std::fill(bytes, bytes + bits / 8, 0xff);
      if (dtype != DType::U8) bytes[bits / 8 - 1] = 0x7f;
    }
    EXPECT_EQ(joined(parts, Combine::sum).at(0), -2 + (dtype == DType::U8 ? 256 : 0))
        << nameOf(dtype);
  }
}

TEST(JoinRanks, NothingElseIsJoined) {
  for (DType dtype : {DType::Bool, DType::I4, DType::U4}) {
    const char byte = 0;
    char to = 0;
    const void* parts[] = {&byte};
    EXPECT_THROW(joinRanks(parts, &to, 1, dtype, Combine::sum), Error) << nameOf(dtype);
  }
}

}  // namespace
}  // namespace lathe
