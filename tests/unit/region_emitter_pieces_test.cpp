// SPDX-License-Identifier: Apache-2.0
// Pieces of a row side by side, in rows so short that one thread of CUDA text holds a whole one.
#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionPieces : public RegionTest {
 protected:
  static double tolerance(DType dtype) {
    return dtype == DType::F32 ? 2e-6 : dtype == DType::BF16 ? 8e-3 : 1e-3;
  }
};

std::string named(const std::string& type, int64_t columns) {
  return type + "[m, " + std::to_string(columns) + "]";
}

// concat(x[:, :h] - x[:, h:], z): two places of one row are read by lanes of one piece.
TEST_P(RegionPieces, ReadsTwoPlacesOfARowInOnePiece) {
  for (std::string t : {"f32", "bf16", "f16"})
    for (int64_t half : {1, 2, 3, 4}) {
      const DType dtype = *parseDType(t);
      const std::string x = named(t, 2 * half), z = named(t, half), n = std::to_string(half);
      auto k = compile(
          "func.func @f(%x: " + x + ", %z: " + z + ") -> " + x +
          " {\n%0 = lathe.slice %x starts <0, 0> sizes <m, " + n + "> strides [1, 1] : " + x +
          "\n%1 = lathe.slice %x starts <0, " + n + "> sizes <m, " + n + "> strides [1, 1] : " + x +
          "\n%2 = lathe.sub %0, %1 : " + z + ", " + z + "\n%3 = lathe.concat %2, %z axis 1 : " + z +
          ", " + z + "\nreturn %3 : " + x + " }");
      const Array a = floats({5, 2 * half}, dtype), b = floats({5, half}, dtype);
      auto y = k.run({a, b}, {{"m", 5}});
      expectNear(
          y[0],
          [&](int64_t i) {
            const int64_t row = i / (2 * half), c = i % (2 * half);
            if (c >= half) return b.at(row * half + c - half);
            return roundTo(dtype, a.at(row * 2 * half + c) - a.at(row * 2 * half + c + half));
          },
          tolerance(dtype), 1e-5);
    }
}

// concat(x + neg(s), y * neg(s), s) along rows: what one piece reads is read by the others too, and
// only where its own rows are.
TEST_P(RegionPieces, ReadsOneOperandInPiecesOfOtherRows) {
  for (std::string t : {"f32", "bf16", "f16"})
    for (int64_t columns : {1, 2, 4, 8}) {
      const DType dtype = *parseDType(t);
      const std::string n = std::to_string(columns), s = t + "[" + n + "]",
                        x = t + "[3, " + n + "]", whole = t + "[9, " + n + "]",
                        two = " : " + x + ", " + s;
      auto k = compile("func.func @f(%x: " + x + ", %y: " + x + ", %s: " + s + ") -> " + whole +
                       " {\n%0 = lathe.neg %s : " + s + "\n%1 = lathe.add %x, %0" + two +
                       "\n%2 = lathe.mul %y, %0" + two + "\n%3 = lathe.broadcast %s to <3, " + n +
                       "> : " + s + "\n%4 = lathe.concat %1, %2, %3 axis 0 : " + x + ", " + x +
                       ", " + x + "\nreturn %4 : " + whole + " }");
      const Array a = floats({3, columns}, dtype), b = floats({3, columns}, dtype),
                  c = floats({columns}, dtype);
      SCOPED_TRACE(t + " " + n);
      const auto y = k.run({a, b, c});
      expectNear(
          y[0],
          [&](int64_t i) {
            const int64_t row = i / columns, column = i % columns;
            if (row < 3) return roundTo(dtype, a.at(i) - c.at(column));
            if (row < 6) return roundTo(dtype, b.at(i - 3 * columns) * -c.at(column));
            return c.at(column);
          },
          tolerance(dtype), 1e-5);
    }
}

// Rotated in halves and in neighbours, all of a row or its first part.
TEST_P(RegionPieces, RotatesRowsOfAnyWidth) {
  for (std::string t : {"f32", "bf16", "f16"})
    for (int64_t pairs : {1, 2, 4})
      for (int64_t rest : {int64_t(0), 2 * pairs}) {
        const DType dtype = *parseDType(t);
        const int64_t width = 2 * pairs + rest;
        const std::string x = named(t, width), table = named("f32", pairs),
                          types = " %x, %c, %s : " + x + ", " + table + ", " + table + "\n";
        auto k =
            compile("func.func @f(%x: " + x + ", %c: " + table + ", %s: " + table + ") -> (" + x +
                    ", " + x + ") {\n%0 = lathe.rope half" + types + "%1 = lathe.rope interleaved" +
                    types + "return %0, %1 : " + x + ", " + x + " }");
        const Array a = floats({3, width}, dtype), c = floats({3, pairs}, DType::F32, 1),
                    s = floats({3, pairs}, DType::F32, 1);
        SCOPED_TRACE(t + " " + std::to_string(pairs) + " pairs of " + std::to_string(width));
        const auto y = k.run({a, c, s}, {{"m", 3}});
        for (bool half : {true, false})
          expectNear(
              y[half ? 0 : 1],
              [&](int64_t i) {
                const int64_t row = i / width, column = i % width, at = row * width;
                if (column >= 2 * pairs) return a.at(i);
                const int64_t pair = half ? column % pairs : column / 2;
                const bool isFirst = half ? column < pairs : column % 2 == 0;
                const int64_t first = at + (half ? pair : 2 * pair);
                const double p = a.at(first), q = a.at(first + (half ? pairs : 1)),
                             cosine = c.at(row * pairs + pair), sine = s.at(row * pairs + pair);
                return roundTo(dtype, isFirst ? p * cosine - q * sine : q * cosine + p * sine);
              },
              tolerance(dtype), 1e-5);
      }
}

TEST_P(RegionPieces, PutsManyPiecesIntoOneRow) {
  // Corners of boxes from their centres and sizes, of which some lie reversed.
  auto k = compile(R"(func.func @f(%x: f32[m, 4]) -> f32[m, 8] {
%0 = lathe.slice %x starts <0, 0> sizes <m, 2> strides [1, 1] : f32[m, 4]
%1 = lathe.slice %x starts <0, 2> sizes <m, 2> strides [1, 1] : f32[m, 4]
%2 = lathe.sub %0, %1 : f32[m, 2], f32[m, 2]
%3 = lathe.add %0, %1 : f32[m, 2], f32[m, 2]
%4 = lathe.slice %x starts <0, 1> sizes <m, 1> strides [1, 1] : f32[m, 4]
%5 = lathe.reverse %x axes [1] : f32[m, 4]
%6 = lathe.slice %5 starts <0, 1> sizes <m, 3> strides [1, 1] : f32[m, 4]
%7 = lathe.concat %2, %3, %4, %6 axis 1 : f32[m, 2], f32[m, 2], f32[m, 1], f32[m, 3]
return %7 : f32[m, 8] })");
  const Array x = floats({7, 4});
  expectNear(
      k.run({x}, {{"m", 7}})[0],
      [&](int64_t i) {
        auto a = [&](int64_t column) { return x.at(i / 8 * 4 + column); };
        const double want[] = {a(0) - a(2), a(1) - a(3), a(0) + a(2), a(1) + a(3),
                               a(1),        a(2),        a(1),        a(0)};
        return want[i % 8];
      },
      1e-6);
}

TEST_P(RegionPieces, ReadsRowsOfPiecesOfPieces) {
  // Rows 2 to 3 of the result are rows 0 to 1 of a concat, of which row 1 is row 0 of an operand.
  auto k = compile(R"(func.func @f(%x: tensor<1x4xf32>, %y: tensor<1x4xf32>) -> tensor<4x4xf32> {
%0 = lathe.concat %x, %y axis 0 : tensor<1x4xf32>, tensor<1x4xf32>
%1 = lathe.neg %0 : tensor<2x4xf32>
%2 = lathe.concat %0, %1 axis 0 : tensor<2x4xf32>, tensor<2x4xf32>
return %2 : tensor<4x4xf32> })");
  const Array x = floats({1, 4}), y = floats({1, 4}, DType::F32, 2);
  expectNear(
      k.run({x, y})[0],
      [&](int64_t i) {
        const double v = (i / 4 % 2 ? y : x).at(i % 4);
        return i < 8 ? v : -v;
      },
      0);
  // A padded and reversed concat: the row counts down from the middle of an operand.
  auto reversed = compile(R"(func.func @f(%x: tensor<4x3xf32>) -> tensor<9x5xf32> {
%0 = lathe.neg %x : tensor<4x3xf32>
%1 = lathe.concat %x, %0 axis 0 : tensor<4x3xf32>, tensor<4x3xf32>
%2 = lathe.constant dense<7.0> : tensor<f32>
%3 = lathe.pad %1, %2 low [1, 2] high [0, 0] : tensor<8x3xf32>, tensor<f32>
%4 = lathe.reverse %3 axes [0] : tensor<9x5xf32>
return %4 : tensor<9x5xf32> })");
  const Array z = floats({4, 3});
  expectNear(
      reversed.run({z})[0],
      [&](int64_t i) {
        const int64_t row = 8 - i / 5 - 1, column = i % 5 - 2;
        if (row < 0 || column < 0) return 7.0;
        return row < 4 ? z.at(row * 3 + column) : -z.at((row - 4) * 3 + column);
      },
      0);
}

TEST_P(RegionPieces, ReadsNoPieceForLanesThatAreHidden) {
  // The last lane lies in the padding, and it alone would read the second piece.
  auto high = compile(R"(func.func @f(%x: f32[m, 6], %y: f32[m, 1], %v: f32[]) -> f32[m, 4] {
%0 = lathe.concat %x, %y axis 1 : f32[m, 6], f32[m, 1]
%1 = lathe.pad %0, %v low [0, 0] high [0, 1] : f32[m, 7], f32[]
%2 = lathe.slice %1 starts <0, 1> sizes <m, 4> strides [1, 2] : f32[m, 8]
return %2 : f32[m, 4] })");
  // The first lane.
  auto low = compile(R"(func.func @f(%x: f32[m, 6], %y: f32[m, 1], %v: f32[]) -> f32[m, 4] {
%0 = lathe.concat %y, %x axis 1 : f32[m, 1], f32[m, 6]
%1 = lathe.pad %0, %v low [0, 1] high [0, 0] : f32[m, 7], f32[]
%2 = lathe.slice %1 starts <0, 0> sizes <m, 4> strides [1, 2] : f32[m, 8]
return %2 : f32[m, 4] })");
  for (int64_t m : {1, 3}) {
    const Array x = floats({m, 6}), y = floats({m, 1});
    Array v(DType::F32, {});
    v.set(0, 7);
    expectNear(
        high.run({x, y, v}, {{"m", m}})[0],
        [&](int64_t i) { return i % 4 == 3 ? 7 : x.at(i / 4 * 6 + 2 * (i % 4) + 1); }, 0);
    expectNear(
        low.run({x, y, v}, {{"m", m}})[0],
        [&](int64_t i) { return i % 4 == 0 ? 7 : x.at(i / 4 * 6 + 2 * (i % 4) - 2); }, 0);
  }
}

// One lane alone reads the second piece, behind lanes that the padding hides.
TEST_P(RegionPieces, ReadsAPieceOfOneLane) {
  auto k = compile(R"(func.func @f(%x: f32[m, 2], %y: f32[m, 1], %z: f32[m, 3]) -> f32[m, 8] {
%0 = lathe.concat %x, %y, %z axis 1 : f32[m, 2], f32[m, 1], f32[m, 3]
%1 = lathe.constant dense<7.0> : tensor<f32>
%2 = lathe.pad %0, %1 low [0, 2] high [0, 0] : f32[m, 6], tensor<f32>
return %2 : f32[m, 8] })");
  const Array x = floats({3, 2}), y = floats({3, 1}), z = floats({3, 3});
  expectNear(
      k.run({x, y, z}, {{"m", 3}})[0],
      [&](int64_t i) {
        const int64_t row = i / 8, c = i % 8;
        if (c < 2) return 7.0;
        return c < 4 ? x.at(row * 2 + c - 2) : c < 5 ? y.at(row) : z.at(row * 3 + c - 5);
      },
      0);
}

TEST_P(RegionPieces, ReducesRowsOfPiecesWhereTheyHaveThem) {
  // Rows 3 and 4 of the result are not rows of the first operand.
  auto k = compile(R"(func.func @f(%x: f32[3, 16], %y: f32[2, 16], %z: f32[5, 16]) -> f32[5, 16] {
%0 = lathe.reduce_sum %x axes [1] keep_dims true : f32[3, 16]
%1 = lathe.reduce_sum %y axes [1] keep_dims true : f32[2, 16]
%2 = lathe.concat %0, %1 axis 0 : f32[3, 1], f32[2, 1]
%3 = lathe.reduce_max %z axes [1] keep_dims true : f32[5, 16]
%4 = lathe.add %2, %3 : f32[5, 1], f32[5, 1]
%5 = lathe.mul %z, %4 : f32[5, 16], f32[5, 1]
return %5 : f32[5, 16] })");
  const Array x = floats({3, 16}), y = floats({2, 16}), z = floats({5, 16});
  expectNear(
      k.run({x, y, z})[0],
      [&](int64_t i) {
        const int64_t row = i / 16;
        double sum = 0, largest = -kInf;
        for (int64_t j = 0; j < 16; ++j) {
          sum += row < 3 ? x.at(row * 16 + j) : y.at((row - 3) * 16 + j);
          largest = std::max(largest, z.at(row * 16 + j));
        }
        return z.at(i) * (sum + largest);
      },
      1e-5, 1e-4);
}

// x - max(x - x[:, :1]) in x's place: all threads of a row read its first element.
TEST_P(RegionPieces, ReplacesNothingThatOtherThreadsMayStillRead) {
  auto k = compile(R"(func.func @f(%x: f32[m, 33]) -> f32[m, 33] {
%0 = lathe.slice %x starts <0, 0> sizes <m, 1> strides [1, 1] : f32[m, 33]
%1 = lathe.sub %x, %0 : f32[m, 33], f32[m, 1]
%2 = lathe.reduce_max %1 axes [1] keep_dims true : f32[m, 33]
%3 = lathe.sub %x, %2 : f32[m, 33], f32[m, 1]
return %3 : f32[m, 33] })");
  const Array x = floats({9, 33});
  for (bool inPlace : {false, true})
    expectNear(
        k.run({x}, {{"m", 9}}, inPlace)[0],
        [&](int64_t i) {
          double largest = -kInf;
          for (int64_t j = 0; j < 33; ++j)
            largest = std::max(largest, x.at(i / 33 * 33 + j) - x.at(i / 33 * 33));
          return x.at(i) - largest;
        },
        1e-6, 1e-5);
}

// A row of two pieces is walked piece by piece, from the ninth element on: no chunk of the second
// one begins where a vector of the row does.
TEST_P(RegionPieces, WalksTheSecondPieceFromItsBegin) {
  auto k = compile(R"(func.func @f(%x: f32[m, 9], %y: f32[m, 39], %z: f32[m, 16, 3]) -> f32[m, 48] {
%0 = lathe.concat %x, %y axis 1 : f32[m, 9], f32[m, 39]
%1 = lathe.transpose %z [0, 2, 1] : f32[m, 16, 3]
%2 = lathe.reshape %1 to <m, 48> : f32[m, 3, 16]
%3 = lathe.sub %0, %2 : f32[m, 48], f32[m, 48]
return %3 : f32[m, 48] })");
  const Array x = floats({5, 9}), y = floats({5, 39}), z = floats({5, 16, 3});
  expectNear(
      k.run({x, y, z}, {{"m", 5}})[0],
      [&](int64_t i) {
        const int64_t row = i / 48, c = i % 48;
        const double piece = c < 9 ? x.at(row * 9 + c) : y.at(row * 39 + c - 9);
        return piece - z.at((row * 16 + c % 16) * 3 + c / 16);
      },
      kF32, kF32);
}

// Of a row's exponentials a sum over pieces needs the first nine: they are not kept for all.
TEST_P(RegionPieces, KeepsNoneOfARowThatOnePieceNeeds) {
  auto k = compile(R"(func.func @f(%x: f32[m, 48], %y: f32[m, 39]) -> f32[m, 48] {
%0 = lathe.exp %x : f32[m, 48]
%1 = lathe.slice %0 starts <0, 0> sizes <m, 9> strides [1, 1] : f32[m, 48]
%2 = lathe.concat %1, %y axis 1 : f32[m, 9], f32[m, 39]
%3 = lathe.reduce_max %2 axes [1] keep_dims true : f32[m, 48]
%4 = lathe.mul %0, %3 : f32[m, 48], f32[m, 1]
return %4 : f32[m, 48] })");
  const Array x = floats({5, 48}), y = floats({5, 39});
  expectNear(
      k.run({x, y}, {{"m", 5}})[0],
      [&](int64_t i) {
        const int64_t row = i / 48;
        double most = -kInf;
        for (int64_t c = 0; c < 9; ++c) most = std::max(most, std::exp(x.at(row * 48 + c)));
        for (int64_t c = 0; c < 39; ++c) most = std::max(most, y.at(row * 39 + c));
        return std::exp(x.at(i)) * most;
      },
      2e-6);
}

// Two lanes share an element, of which the first one lies in the other piece.
TEST_P(RegionPieces, ReadsWhatTheSecondOfTwoLanesWants) {
  auto k = compile(R"(func.func @f(%x: f32[m, 20], %y: f32[m, 3]) -> f32[m, 40] {
%0 = lathe.reshape %x to <m, 20, 1> : f32[m, 20]
%1 = lathe.broadcast %0 to <m, 20, 2> : f32[m, 20, 1]
%2 = lathe.reshape %1 to <m, 40> : f32[m, 20, 2]
%3 = lathe.slice %2 starts <0, 3> sizes <m, 37> strides [1, 1] : f32[m, 40]
%4 = lathe.concat %y, %3 axis 1 : f32[m, 3], f32[m, 37]
return %4 : f32[m, 40] })");
  const Array x = floats({5, 20}), y = floats({5, 3});
  expectNear(
      k.run({x, y}, {{"m", 5}})[0],
      [&](int64_t i) {
        const int64_t row = i / 40, c = i % 40;
        return c < 3 ? y.at(row * 3 + c) : x.at(row * 20 + c / 2);
      },
      0);
}

INSTANTIATE_TEST_SUITE_P(Targets, RegionPieces, ::testing::ValuesIn(regionTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
