// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/array.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/runtime/odd_rounding.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

const DType kAll[] = {DType::F64, DType::F32, DType::BF16, DType::F16,  DType::I64, DType::I32,
                      DType::I16, DType::I8,  DType::U8,   DType::Bool, DType::I4,  DType::U4};

TEST(DTypes, NamesParseBack) {
  for (DType d : kAll) EXPECT_EQ(parseDType(nameOf(d)), d);
  EXPECT_FALSE(parseDType("float"));
  EXPECT_FALSE(parseDType(""));
}

TEST(DTypes, FloatsAreTold) {
  for (DType d : kAll)
    EXPECT_EQ(isFloat(d),
              d == DType::F64 || d == DType::F32 || d == DType::BF16 || d == DType::F16);
}

// All 65,536 patterns widen and narrow back to themselves; a NaN stays a NaN of the same sign.
TEST(DTypes, EveryBf16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float wide = bf16ToFloat(uint16_t(bits));
    const uint16_t back = floatToBf16(wide);
    if (std::isnan(wide)) {
      ASSERT_TRUE(std::isnan(bf16ToFloat(back))) << bits;
      ASSERT_EQ(back >> 15, bits >> 15) << bits;
    } else {
      ASSERT_EQ(back, bits);
    }
  }
}

// By the definition of the format, in double arithmetic.
double f16Value(uint32_t bits) {
  const int exponent = int(bits >> 10 & 31);
  const double mantissa = double(bits & 1023), sign = bits >> 15 ? -1 : 1;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST(DTypes, EveryF16HasItsValue) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const double want = f16Value(bits), got = f16ToFloat(uint16_t(bits));
    if (std::isnan(want))
      ASSERT_TRUE(std::isnan(got)) << bits;
    else
      ASSERT_TRUE(got == want && std::signbit(got) == std::signbit(want)) << bits;
  }
}

TEST(DTypes, EveryF16SurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float wide = f16ToFloat(uint16_t(bits));
    if (std::isnan(wide))
      ASSERT_TRUE(std::isnan(f16ToFloat(floatToF16(wide)))) << bits;
    else
      ASSERT_EQ(floatToF16(wide), bits);
  }
}

// Between two neighbours: nearer ones round there, the middle to the even pattern.
template <class Widen, class Narrow>
void checkRounding(Widen widen, Narrow narrow, uint32_t infinity) {
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double low = widen(uint16_t(bits)), high = widen(uint16_t(bits + 1));
    const float middle = float((low + high) / 2);
    ASSERT_EQ(double(middle), (low + high) / 2) << "the middle is no f32 number";
    const uint16_t even = uint16_t(bits & 1 ? bits + 1 : bits);
    ASSERT_EQ(narrow(middle), even) << bits;
    ASSERT_EQ(narrow(std::nextafterf(middle, 0)), bits) << bits;
    ASSERT_EQ(narrow(std::nextafterf(middle, INFINITY)), bits + 1) << bits;
    ASSERT_EQ(narrow(-middle), even | 0x8000) << bits;
  }
}
TEST(DTypes, Bf16RoundsToNearestEven) { checkRounding(bf16ToFloat, floatToBf16, 0x7f80); }
TEST(DTypes, F16RoundsToNearestEven) { checkRounding(f16ToFloat, floatToF16, 0x7c00); }

// What an f32 does not hold lies next to a tie there, and would be rounded to it on the way.
template <class Widen, class Narrow>
void checkOneRounding(Widen widen, Narrow narrow, uint32_t infinity) {
  for (uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double low = widen(uint16_t(bits)), high = widen(uint16_t(bits + 1));
    const double middle = (low + high) / 2;
    ASSERT_EQ(narrow(middle), bits & 1 ? bits + 1 : bits);
    for (double off : {0x1p-26, 0x1p-40, 0x1p-52}) {
      ASSERT_EQ(narrow(middle * (1 - off)), bits) << off;
      ASSERT_EQ(narrow(middle * (1 + off)), bits + 1) << off;
      ASSERT_EQ(narrow(-middle * (1 + off)), (bits + 1) | 0x8000) << off;
    }
  }
  EXPECT_EQ(narrow(INFINITY), infinity);
  EXPECT_EQ(narrow(-1e308), infinity | 0x8000);
  EXPECT_EQ(narrow(-1e-308), 0x8000);
  EXPECT_TRUE(std::isnan(widen(narrow(NAN))));
}
TEST(DTypes, DoublesBecomeBf16WithOneRounding) {
  checkOneRounding(bf16ToFloat, doubleToBf16, 0x7f80);
}
TEST(DTypes, DoublesBecomeF16WithOneRounding) { checkOneRounding(f16ToFloat, doubleToF16, 0x7c00); }

// bf16 has 8 bits: the middle between two integers that it holds is an integer, too.
TEST(DTypes, IntegersBecomeFloatsWithOneRounding) {
  for (int high = 9; high < 63; ++high)
    for (int64_t mantissa : {0, 1, 2, 77, 126}) {
      const int64_t unit = int64_t(1) << (high - 7), low = (int64_t(1) << high) + mantissa * unit;
      const int64_t middle = low + unit / 2, even = mantissa % 2 ? low + unit : low;
      const Array x =
          Array::fromInts(std::vector<int64_t>{middle - 1, middle, middle + 1, -middle - 1}, {4});
      const Array y = x.to(DType::BF16);
      EXPECT_EQ(y.at(0), double(low)) << high;
      EXPECT_EQ(y.at(1), double(even)) << high;
      EXPECT_EQ(y.at(2), double(low + unit)) << high;
      EXPECT_EQ(y.at(3), -double(low + unit)) << high;
      const Array f = x.to(DType::F32);
      for (int64_t i = 0; i < 4; ++i)
        EXPECT_EQ(f.as<float>()[size_t(i)], float(x.as<int64_t>()[size_t(i)]));
    }
}

// Where f32 has fewer digits than the integer, and f64 too.
TEST(DTypes, IntegersBecomeF32WithOneRounding) {
  for (int high = 25; high < 63; ++high)
    for (int64_t mantissa : {0, 1, 2, 77, 126}) {
      const int64_t unit = int64_t(1) << (high - 23), low = (int64_t(1) << high) + mantissa * unit;
      const int64_t middle = low + unit / 2, even = mantissa % 2 ? low + unit : low;
      const Array y =
          Array::fromInts(std::vector<int64_t>{middle - 1, middle, middle + 1, -middle - 1}, {4})
              .to(DType::F32);
      EXPECT_EQ(y.at(0), double(low)) << high;
      EXPECT_EQ(y.at(1), double(even)) << high;
      EXPECT_EQ(y.at(2), double(low + unit)) << high;
      EXPECT_EQ(y.at(3), -double(low + unit)) << high;
    }
}

TEST(DTypes, OverflowIsInfinity) {
  EXPECT_EQ(floatToF16(65519.996f), 0x7bff);
  EXPECT_EQ(floatToF16(65520.f), 0x7c00);
  EXPECT_EQ(floatToBf16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(Arrays, StartAsZerosAtAlignedAddresses) {
  for (DType d : kAll) {
    const Array a(d, {3, 5});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data()) % 64, 0u);
    EXPECT_EQ(a.bytes(), isPacked(d) ? 8 : 15 * sizeOf(d));
    for (int64_t i = 0; i < a.size(); ++i) EXPECT_EQ(a.at(i), 0);
  }
}

TEST(Arrays, EmptyAndScalarShapes) {
  EXPECT_EQ(Array(DType::F32, {}).size(), 1);
  EXPECT_EQ(Array(DType::F32, {0, 5}).size(), 0);
  EXPECT_TRUE(Array(DType::F32, {0}).defined());
  EXPECT_FALSE(Array().defined());
}

TEST(Arrays, CopiesShareUntilCloned) {
  Array a = Array::fromFloats(std::vector<float>{1, 2}, {2});
  Array copy = a, clone = a.clone();
  copy.set(0, 7);
  EXPECT_EQ(a.at(0), 7);
  EXPECT_EQ(clone.at(0), 1);
  EXPECT_TRUE(a.shared());
  EXPECT_FALSE(clone.shared());
}

TEST(Arrays, IntegersKeepEveryBit) {
  const int64_t odd = (int64_t(1) << 60) + 1;
  const Array a = Array::fromInts(std::vector<int64_t>{odd, -odd}, {2});
  EXPECT_EQ(a.to(DType::I64).as<int64_t>()[0], odd);
  EXPECT_EQ(a.to(DType::I32).as<int32_t>()[0], 1);
  EXPECT_EQ(a.to(DType::I8).as<int8_t>()[1], -1);
  EXPECT_EQ(a.clone().as<int64_t>()[1], -odd);
}

TEST(Arrays, ConversionToBoolIsNotEqualZero) {
  const Array a = Array::fromFloats(std::vector<float>{0.f, -0.f, 0.5f, NAN, -3}, {5});
  const Array b = a.to(DType::Bool);
  EXPECT_EQ(b.at(0) + b.at(1), 0);
  EXPECT_EQ(b.at(2) + b.at(3) + b.at(4), 3);
  for (int64_t low : {int64_t(256), int64_t(1) << 32, INT64_MIN})  // the lowest bits are zero
    EXPECT_EQ(Array::fromInts(std::vector<int64_t>{low}, {1}).to(DType::Bool).at(0), 1) << low;
}

TEST(Arrays, ReshapedViewsKeepTheCount) {
  const Array a(DType::F32, {2, 6});
  EXPECT_EQ(a.reshaped({3, 4}).data(), a.data());
  test::expectError(ErrorCode::InvalidArgument, "cannot view f32[2, 6] as f32[5]",
                    [&] { a.reshaped({5}); });
}

TEST(Arrays, BadShapesAreErrors) {
  const auto code = ErrorCode::InvalidArgument;
  test::expectError(code, "negative dim -1", [] { Array(DType::F32, {-1}); });
  test::expectError(code, "the product of the dims overflows",
                    [] { Array(DType::I8, {int64_t(1) << 40, int64_t(1) << 40}); });
  test::expectError(code, "got 3 values for f32[2]",
                    [] { Array::fromFloats(std::vector<float>{1, 2, 3}, {2}); });
  // A zero makes any product representable.
  EXPECT_EQ(elementCount(std::vector<int64_t>{int64_t(1) << 62, 8, 0}), 0);
}

TEST(Arrays, EndAtTheirLastElement) {
  for (const Shape& shape : std::vector<Shape>{{}, {1}, {3}, {2, 3}, {0}, {3, 0}}) {
    Array a(DType::F32, shape);
    for (int64_t i : {int64_t(-1), a.size(), a.size() + 1, INT64_MIN, INT64_MAX}) {
      const std::string words = "element " + std::to_string(i) + " is outside " +
                                describe(DType::F32, shape) + ", which has " +
                                std::to_string(a.size()) + " elements";
      test::expectError(ErrorCode::InvalidArgument, words, [&] { a.at(i); });
      test::expectError(ErrorCode::InvalidArgument, words, [&] { a.set(i, 1); });
    }
    if (!a.size()) continue;
    a.set(a.size() - 1, 7);
    EXPECT_EQ(a.at(a.size() - 1), 7);
  }
}

// Two elements share a byte, the even one in its low half; neighbours stay as they are.
TEST(Arrays, FourBitElementsLieTwoToAByte) {
  for (DType dtype : {DType::I4, DType::U4}) {
    const int low = dtype == DType::I4 ? -8 : 0;
    Array a(dtype, {3, 5});
    EXPECT_EQ(a.bytes(), 8u);
    for (int64_t i = 0; i < 15; ++i) a.set(i, double(low + i));
    for (int64_t i = 0; i < 15; ++i) EXPECT_EQ(a.at(i), double(low + i));
    const auto* bytes = static_cast<const uint8_t*>(a.data());
    EXPECT_EQ(bytes[0], dtype == DType::I4 ? 0x98 : 0x10);
    EXPECT_EQ(bytes[7] >> 4, 0);  // behind the last element
    a.set(4, double(low));
    EXPECT_EQ(a.at(3), double(low + 3));
    EXPECT_EQ(a.at(5), double(low + 5));
    EXPECT_THROW(a.set(0, double(low - 1)), Error);
    EXPECT_THROW(a.set(0, double(low + 16)), Error);
    EXPECT_THROW((void)a.as<uint8_t>(), Error);
    EXPECT_THROW(sizeOf(dtype), Error);
    EXPECT_EQ(a.clone().at(14), double(low + 14));
    EXPECT_EQ(describe(dtype, a.shape()), dtype == DType::I4 ? "i4[3, 5]" : "u4[3, 5]");
  }
  EXPECT_EQ(bytesOf(DType::I4, 0), 0u);
  EXPECT_EQ(bytesOf(DType::F32, 3), 12u);
}

// Narrowing keeps the low bits, as for every integer.
TEST(Arrays, BytesBecomeFourBitsAndBack) {
  const Array bytes = Array::fromInts({-9, -8, -1, 0, 7, 8, 15, 16}, {8}).to(DType::I8);
  const Array four = bytes.to(DType::I4), back = four.to(DType::I8);
  const double want[] = {7, -8, -1, 0, 7, -8, -1, 0}, plain[] = {7, 8, 15, 0, 7, 8, 15, 0};
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(back.at(i), want[i]) << i;
    EXPECT_EQ(bytes.to(DType::U4).at(i), plain[i]) << i;
  }
  EXPECT_EQ(four.to(DType::F32).at(1), -8);
}

TEST(Arrays, AreDescribed) {
  EXPECT_EQ(describe(DType::F32, std::vector<int64_t>{2, 3}), "f32[2, 3]");
  EXPECT_EQ(describe(DType::Bool, {}), "bool[]");
}

}  // namespace
}  // namespace lathe
