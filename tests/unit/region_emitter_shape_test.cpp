// SPDX-License-Identifier: Apache-2.0
#include "runtime/status_word.h"
#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionShape : public RegionTest {};

TEST_P(RegionShape, GathersAlongTheLastAxis) {
  auto k = compile(
      "func.func @f(%x: f32[m, v], %i: i64[n]) -> f32[m, n] { %0 = lathe.gather %x, %i axis 1 : "
      "f32[m, v], i64[n]\n return %0 : f32[m, n] }");
  const double bads[] = {50, -1, -3, 0x1p61, 0x1p62 + 1024, 0x1p63 - 1024, -0x1p62 - 1024, -0x1p63};
  for (int64_t n : kColumns) {
    Array x = floats({3, 50}), i = integers({n}, DType::I64, 0, 49);
    Symbols symbols{{"m", 3}, {"v", 50}, {"n", n}};
    auto y = k.run({x, i}, symbols);
    EXPECT_EQ(k.status(), 0);
    expectNear(y[0], [&](int64_t j) { return x.at(j / n * 50 + int64_t(i.at(j % n))); }, 0);
    if (n == 0) continue;
    for (double bad : bads) {
      i.set(n - 1, bad);
      k.run({x, i}, symbols);
      EXPECT_EQ(indexOfStatus(k.status()), int64_t(bad));
    }
  }
}

TEST_P(RegionShape, PadsOnlyTheEndOfASizeKnownAtRunTime) {
  auto k = compile(
      "func.func @f(%x: f32[m, n], %v: tensor<f32>) -> f32[m+2, n+3] { %0 = lathe.pad %x, %v low "
      "[0, 0] "
      "high [2, 3] : f32[m, n], tensor<f32>\n return %0 : f32[m+2, n+3] }");
  for (int64_t n : kColumns) {
    Array x = floats({3, n});
    auto y = k.run({x, Array::fromFloats(std::vector<float>{7}, {})}, {{"m", 3}, {"n", n}});
    expectNear(
        y[0],
        [&](int64_t i) {
          const int64_t row = i / (n + 3), column = i % (n + 3);
          return row < 3 && column < n ? x.at(row * n + column) : 7;
        },
        0);
  }
}

TEST_P(RegionShape, PermutesAxes) {
  for (std::string t : {"f32", "bf16", "i8"}) {
    DType dtype = *parseDType(t);
    auto k = compile("func.func @f(%x: " + t + "[a, b, c]) -> " + t +
                     "[c, a, b] { %0 = lathe.transpose %x [2, 0, 1] : " + t +
                     "[a, b, c]\n return %0 : " + t + "[c, a, b] }");
    for (int64_t b : {1, 7, 33, 70}) {
      Array x = isFloat(dtype) ? floats({3, b, 5}, dtype) : integers({3, b, 5}, dtype, -99, 99);
      auto y = k.run({x}, {{"a", 3}, {"b", b}, {"c", 5}});
      expectNear(y[0], [&](int64_t i) { return x.at((i / b % 3 * b + i % b) * 5 + i / b / 3); }, 0);
    }
  }
}

TEST_P(RegionShape, SplitsAndMergesHeads) {
  for (int64_t d : {16, 24, 64}) {
    std::string n = std::to_string(d), all = std::to_string(4 * d);
    auto split = compile("func.func @f(%x: f32[b, s, " + all + "]) -> f32[b, 4, s, " + n + "] {" +
                         "%0 = lathe.reshape %x to <b, s, 4, " + n + "> : f32[b, s, " + all +
                         "]\n" + "%1 = lathe.transpose %0 [0, 2, 1, 3] : f32[b, s, 4, " + n +
                         "]\n return %1 : f32[b, 4, s, " + n + "] }");
    auto merge = compile("func.func @f(%x: f32[b, 4, s, " + n + "]) -> f32[b, s, " + all + "] {" +
                         "%0 = lathe.transpose %x [0, 2, 1, 3] : f32[b, 4, s, " + n + "]\n" +
                         "%1 = lathe.reshape %0 to <b, s, " + all + "> : f32[b, s, 4, " + n +
                         "]\n return %1 : f32[b, s, " + all + "] }");
    Array x = floats({2, 3, 4 * d});
    Symbols symbols{{"b", 2}, {"s", 3}};
    auto y = split.run({x}, symbols);
    expectNear(
        y[0],
        [&](int64_t i) {
          int64_t e = i % d, s = i / d % 3, h = i / d / 3 % 4, b = i / d / 12;
          return x.at(((b * 3 + s) * 4 + h) * d + e);
        },
        0);
    auto z = merge.run({y[0]}, symbols);
    expectNear(z[0], [&](int64_t i) { return x.at(i); }, 0);
  }
}

TEST_P(RegionShape, ReshapesAcrossAllAxes) {
  auto k = compile(R"(func.func @f(%x: f32[m, 6, n]) -> f32[2*m, 3*n] {
    %0 = lathe.transpose %x [1, 0, 2] : f32[m, 6, n]
    %1 = lathe.reshape %0 to <2*m, 3*n> : f32[6, m, n]
    return %1 : f32[2*m, 3*n]
  })");
  for (int64_t n : {0, 1, 7, 33}) {
    Array x = floats({5, 6, n});
    auto y = k.run({x}, {{"m", 5}, {"n", n}});
    expectNear(y[0], [&](int64_t i) { return x.at((i / n % 5 * 6 + i / n / 5) * n + i % n); }, 0);
  }
}

TEST_P(RegionShape, JoinsAlongAnyAxis) {
  auto last = compile(
      "func.func @f(%a: f32[m, n], %b: f32[m, k], %c: f32[m, 3]) -> f32[m, k+n+3] { %0 = "
      "lathe.concat %a, %b, %c axis 1 : f32[m, n], f32[m, k], f32[m, 3]\n return %0 : f32[m, "
      "k+n+3] }");
  auto fixed = compile(
      "func.func @f(%a: f32[m, 40], %b: f32[m, 3], %c: f32[m, 24]) -> f32[m, 67] { %0 = "
      "lathe.concat %a, %b, %c axis 1 : f32[m, 40], f32[m, 3], f32[m, 24]\n return %0 : f32[m, 67] "
      "}");
  auto first = compile(
      "func.func @f(%a: f32[m, n], %b: f32[k, n], %c: f32[2, n]) -> f32[k+m+2, n] { %0 = "
      "lathe.concat %a, %b, %c axis 0 : f32[m, n], f32[k, n], f32[2, n]\n return %0 : f32[k+m+2, "
      "n] }");
  for (int64_t n : {0, 1, 7, 33, 64})
    for (int64_t w : {0, 1, 40}) {
      Array a = floats({4, n}), b = floats({4, w}), c = floats({4, 3});
      int64_t all = n + w + 3;
      auto y = last.run({a, b, c}, {{"m", 4}, {"n", n}, {"k", w}});
      expectNear(
          y[0],
          [&](int64_t i) {
            int64_t r = i / all, j = i % all;
            return j < n       ? a.at(r * n + j)
                   : j < n + w ? b.at(r * w + j - n)
                               : c.at(r * 3 + j - n - w);
          },
          0);
      Array d = floats({4, n}), e = floats({w, n}), f = floats({2, n});
      y = first.run({d, e, f}, {{"m", 4}, {"n", n}, {"k", w}});
      expectNear(
          y[0],
          [&](int64_t i) {
            int64_t r = i / n;
            return r < 4 ? d.at(i) : r < 4 + w ? e.at(i - 4 * n) : f.at(i - (4 + w) * n);
          },
          0);
    }
  Array a = floats({4, 40}), b = floats({4, 3}), c = floats({4, 24});
  auto y = fixed.run({a, b, c}, {{"m", 4}});
  expectNear(
      y[0],
      [&](int64_t i) {
        int64_t r = i / 67, j = i % 67;
        return j < 40 ? a.at(r * 40 + j) : j < 43 ? b.at(r * 3 + j - 40) : c.at(r * 24 + j - 43);
      },
      0);
}

TEST_P(RegionShape, JoinsOneSidedPiecesWithoutReadingTheOther) {
  // A piece that is the same along the row is read only where it is wanted: it may be empty.
  auto k = compile(R"(func.func @f(%a: f32[m, n], %b: f32[m, k]) -> f32[m, k+n] {
    %s = lathe.reshape %b to <m, k, 1> : f32[m, k]
    %t = lathe.reshape %s to <m, k> : f32[m, k, 1]
    %e = lathe.exp %t : f32[m, k]
    %0 = lathe.concat %a, %e axis 1 : f32[m, n], f32[m, k]
    return %0 : f32[m, k+n]
  })");
  for (int64_t w : {0, 2, 40}) {
    Array a = floats({3, 50}), b = floats({3, w});
    auto y = k.run({a, b}, {{"m", 3}, {"n", 50}, {"k", w}});
    expectNear(
        y[0],
        [&](int64_t i) {
          int64_t r = i / (50 + w), j = i % (50 + w);
          return j < 50 ? a.at(r * 50 + j) : std::exp(b.at(r * w + j - 50));
        },
        kF32);
  }
}

TEST_P(RegionShape, PadsAllSides) {
  auto k = compile(
      "func.func @f(%x: bf16[m, n], %v: bf16[]) -> bf16[m+3, n+12] { %0 = lathe.pad %x, %v low [1, "
      "4] high [2, 8] : bf16[m, n], bf16[]\n return %0 : bf16[m+3, n+12] }");
  auto fixed = compile(
      "func.func @f(%x: f32[m, 40], %v: f32[]) -> f32[m, 64] { %0 = lathe.pad %x, %v low [0, 16] "
      "high [0, 8] : f32[m, 40], f32[]\n return %0 : f32[m, 64] }");
  Array v = floats({}, DType::BF16);
  for (int64_t n : kColumns)
    for (int64_t rows : {0, 2}) {
      Array x = floats({rows, n}, DType::BF16);
      auto y = k.run({x, v}, {{"m", rows}, {"n", n}});
      expectNear(
          y[0],
          [&](int64_t i) {
            int64_t r = i / (n + 12) - 1, j = i % (n + 12) - 4;
            return r >= 0 && r < rows && j >= 0 && j < n ? x.at(r * n + j) : v.at(0);
          },
          0);
    }
  Array x = floats({3, 40}), z = floats({});
  auto y = fixed.run({x, z}, {{"m", 3}});
  expectNear(
      y[0],
      [&](int64_t i) {
        int64_t j = i % 64 - 16;
        return j >= 0 && j < 40 ? x.at(i / 64 * 40 + j) : z.at(0);
      },
      0);
}

TEST_P(RegionShape, PadsFixedSizesByOneElement) {
  for (int64_t n : {1, 7, 15, 16, 33, 64})
    for (int64_t low : {0, 1}) {
      const std::string from = "f32[4, " + std::to_string(n) + "]",
                        to = "f32[5, " + std::to_string(n + 1) + "]", front = std::to_string(low),
                        back = std::to_string(1 - low);
      auto k = compile("func.func @f(%x: " + from + ", %v: f32[]) -> " + to +
                       " { %0 = lathe.pad %x, %v low [" + front + ", " + front + "] high [" + back +
                       ", " + back + "] : " + from + ", f32[]\n return %0 : " + to + " }");
      Array x = floats({4, n}), v = floats({});
      auto y = k.run({x, v});
      expectNear(
          y[0],
          [&](int64_t i) {
            const int64_t r = i / (n + 1) - low, j = i % (n + 1) - low;
            return r >= 0 && r < 4 && j >= 0 && j < n ? x.at(r * n + j) : v.at(0);
          },
          0);
    }
}

// A chunk of lanes may lie across the border of what it is divided by.
TEST_P(RegionShape, MergesTurnedAxesOfOddSizes) {
  for (std::string t : {"f64", "f32", "bf16", "i8"})
    for (auto [a, b] : {std::pair{2, 3}, {4, 3}, {2, 5}, {4, 7}, {8, 9}, {3, 4}}) {
      const std::string n = std::to_string(a), k = std::to_string(b), all = std::to_string(a * b);
      const DType dtype = *parseDType(t);
      auto kernel = compile("func.func @f(%x: " + t + "[m, " + k + ", " + n + "]) -> " + t +
                            "[m, " + all + "] { %0 = lathe.transpose %x [0, 2, 1] : " + t + "[m, " +
                            k + ", " + n + "]\n%1 = lathe.reshape %0 to <m, " + all + "> : " + t +
                            "[m, " + n + ", " + k + "]\n return %1 : " + t + "[m, " + all + "] }");
      Array x = isFloat(dtype) ? floats({5, b, a}, dtype) : integers({5, b, a}, dtype, -99, 99);
      auto y = kernel.run({x}, {{"m", 5}});
      expectNear(
          y[0],
          [&](int64_t i) {
            const int64_t r = i / (a * b), j = i % (a * b);
            return x.at((r * b + j % b) * a + j / b);
          },
          0);
    }
}

// Every element twice: a chunk counts down to a padding, or begins in front of an element.
TEST_P(RegionShape, RepeatsElementsInRowsThatArePaddedAndReversed) {
  const std::string twice = R"(
    %1 = lathe.reshape %0 to <m, 20, 1> : f32[m, 20]
    %2 = lathe.broadcast %1 to <m, 20, 2> : f32[m, 20, 1]
    %3 = lathe.reshape %2 to <m, 40> : f32[m, 20, 2]
)";
  auto inner = compile(R"(func.func @f(%x: f32[m, 12], %v: f32[]) -> f32[m, 40] {
    %0 = lathe.pad %x, %v low [0, 8] high [0, 0] : f32[m, 12], f32[])" +
                       twice + R"(%4 = lathe.reverse %3 axes [1] : f32[m, 40]
    return %4 : f32[m, 40] })");
  Array x = floats({3, 12}), v = floats({});
  expectNear(
      inner.run({x, v}, {{"m", 3}})[0],
      [&](int64_t i) {
        const int64_t from = (39 - i % 40) / 2 - 8;
        return from < 0 ? v.at(0) : x.at(i / 40 * 12 + from);
      },
      0);
  auto outer = [&](bool reversed, int64_t low) {
    const std::string n = std::to_string(low), to = "f32[m, " + std::to_string(40 + low) + "]";
    const std::string op = reversed ? "reverse %3 axes [1]" : "neg %3";
    auto k = compile("func.func @f(%0: f32[m, 20], %v: f32[]) -> " + to + " {" + twice +
                     "%4 = lathe." + op + " : f32[m, 40]\n%5 = lathe.pad %4, %v low [0, " + n +
                     "] high [0, 0] : f32[m, 40], f32[]\n return %5 : " + to + " }");
    Array y = floats({3, 20});
    expectNear(
        k.run({y, v}, {{"m", 3}})[0],
        [&](int64_t i) {
          const int64_t r = i / (40 + low) * 20, at = i % (40 + low) - low;
          if (at < 0) return v.at(0);
          return reversed ? y.at(r + (39 - at) / 2) : -y.at(r + at / 2);
        },
        0);
  };
  for (int64_t low : {2, 3, 5}) {
    outer(false, low);
    outer(true, low);
  }
}

// What is divided exactly may be negative in front of a border inside of a chunk, and from the end.
TEST_P(RegionShape, TurnsRowsBehindABorderAndFromTheEnd) {
  for (std::string t : {"f64", "f32", "bf16", "i8"}) {
    SCOPED_TRACE(t);
    const DType dtype = *parseDType(t);
    auto draw = [&](Shape shape) {
      return isFloat(dtype) ? floats(shape, dtype) : integers(shape, dtype, -99, 99);
    };
    auto behind = compile("func.func @f(%a: " + t + "[m, 8*k], %b: " + t + "[m, 8, n]) -> " + t +
                          "[m, 8*k+8*n] {\n%0 = lathe.transpose %b [0, 2, 1] : " + t +
                          "[m, 8, n]\n%1 = lathe.reshape %0 to <m, 8*n> : " + t +
                          "[m, n, 8]\n%2 = lathe.concat %a, %1 axis 1 : " + t + "[m, 8*k], " + t +
                          "[m, 8*n]\nreturn %2 : " + t + "[m, 8*k+8*n] }");
    for (int64_t k : {1, 2, 3, 5}) {
      Array a = draw({3, 8 * k}), b = draw({3, 8, 7});
      expectNear(
          behind.run({a, b}, {{"m", 3}, {"k", k}, {"n", 7}})[0],
          [&](int64_t i) {
            const int64_t r = i / (8 * k + 56), j = i % (8 * k + 56) - 8 * k;
            return j < 0 ? a.at((r + 1) * 8 * k + j) : b.at((r * 8 + j % 8) * 7 + j / 8);
          },
          0);
    }
    auto last = compile("func.func @f(%x: " + t + "[m, 8, 11]) -> " + t +
                        "[m, 88] {\n%0 = lathe.transpose %x [0, 2, 1] : " + t +
                        "[m, 8, 11]\n%1 = lathe.reshape %0 to <m, 88> : " + t +
                        "[m, 11, 8]\n%2 = lathe.reverse %1 axes [1] : " + t +
                        "[m, 88]\nreturn %2 : " + t + "[m, 88] }");
    Array x = draw({3, 8, 11});
    expectNear(
        last.run({x}, {{"m", 3}})[0],
        [&](int64_t i) {
          const int64_t j = 87 - i % 88;
          return x.at((i / 88 * 8 + j % 8) * 11 + j / 8);
        },
        0);
  }
}

// One lane of a chunk lies behind the operand that the others read.
TEST_P(RegionShape, ReadsNothingBehindTheLastElementOfARow) {
  for (int64_t n : {3, 7, 15}) {
    const std::string x = "f32[m, " + std::to_string(n) + "]",
                      all = "f32[m, " + std::to_string(n + 1) + "]",
                      halves = "m, 2, " + std::to_string((n + 1) / 2);
    auto padded = compile("func.func @f(%x: " + x + ", %v: f32[]) -> f32[" + halves +
                          "] {\n%0 = lathe.pad %x, %v low [0, 0] high [0, 1] : " + x +
                          ", f32[]\n%1 = lathe.reshape %0 to <" + halves + "> : " + all +
                          "\nreturn %1 : f32[" + halves + "] }");
    auto joined = compile("func.func @f(%x: " + x + ", %y: f32[m, 1]) -> " + all +
                          " {\n%0 = lathe.concat %x, %y axis 1 : " + x +
                          ", f32[m, 1]\nreturn %0 : " + all + " }");
    Array a = floats({3, n}), one = floats({}), column = floats({3, 1});
    auto want = [&](const Array& last) {
      return [&](int64_t i) {
        const int64_t r = i / (n + 1), j = i % (n + 1);
        return j < n ? a.at(r * n + j) : last.at(r % last.size());
      };
    };
    expectNear(padded.run({a, one}, {{"m", 3}})[0], want(one), 0);
    expectNear(joined.run({a, column}, {{"m", 3}})[0], want(column), 0);
  }
}

// As many elements as a vector has places, but for the last one.
TEST_P(RegionShape, TakesEverySecondElementOfAllButAVector) {
  for (auto [t, n] : {std::pair("f32", 3), {"f32", 7}, {"bf16", 15}}) {
    const std::string type = t, x = type + "[" + std::to_string(n) + "]",
                      half = std::to_string((n + 1) / 2), y = type + "[" + half + "]";
    auto k = compile("func.func @f(%x: " + x + ") -> " + y +
                     " {\n%0 = lathe.slice %x starts <0> sizes <" + half + "> strides [2] : " + x +
                     "\nreturn %0 : " + y + " }");
    Array a = floats({n}, *parseDType(type));
    expectNear(k.run({a})[0], [&](int64_t i) { return a.at(2 * i); }, 0);
  }
}

// Chunks of `d` elements that begin in the middle of a turned row of `d`.
TEST_P(RegionShape, CutsTurnedRowsInTheirMiddle) {
  for (int64_t d : {4, 8, 16}) {
    const std::string n = std::to_string(d), x = "f32[m, " + n + ", 3]",
                      turned = "f32[m, 3, " + n + "]", all = std::to_string(3 * d),
                      two = std::to_string(2 * d);
    auto k =
        compile("func.func @f(%x: " + x + ") -> f32[m, " + two +
                "] {\n%0 = lathe.transpose %x [0, 2, 1] : " + x +
                "\n%1 = lathe.reshape %0 to <m, " + all + "> : " + turned +
                "\n%2 = lathe.slice %1 starts <0, " + std::to_string(d / 2) + "> sizes <m, " + two +
                "> strides [1, 1] : f32[m, " + all + "]\nreturn %2 : f32[m, " + two + "] }");
    const Array a = floats({5, d, 3});
    expectNear(
        k.run({a}, {{"m", 5}})[0],
        [&](int64_t i) {
          const int64_t at = i % (2 * d) + d / 2;
          return a.at((i / (2 * d) * d + at % d) * 3 + at / d);
        },
        0);
  }
}

// One operand is a single element, and so is its result.
TEST_P(RegionShape, StoresASingleElementBesideARow) {
  auto k = compile(R"(func.func @f(%x: f32[n], %s: f32[1]) -> (f32[n], f32[1]) {
%0 = lathe.mul %x, %s : f32[n], f32[1]
%1 = lathe.neg %s : f32[1]
return %0, %1 : f32[n], f32[1] })");
  for (int64_t n : {1, 7, 64}) {
    const Array x = floats({n}), s = floats({1});
    auto y = k.run({x, s}, {{"n", n}});
    expectNear(y[0], [&](int64_t i) { return float(x.at(i) * s.at(0)); }, 1e-7);
    expectNear(y[1], [&](int64_t) { return -s.at(0); }, 0);
  }
}

// Lanes that lie in the other piece look nothing up: their numbers are no rows of the table.
TEST_P(RegionShape, LooksUpNothingForLanesOfTheOtherPiece) {
  auto k = compile(R"(func.func @f(%x: f32[m, n], %y: f32[m, 9]) -> f32[m, n+9] {
%0 = lathe.iota <n> axis 0 dtype i64
%1 = lathe.gather %x, %0 axis 1 : f32[m, n], i64[n]
%2 = lathe.concat %1, %y axis 1 : f32[m, n], f32[m, 9]
return %2 : f32[m, n+9] })");
  for (int64_t n : {3, 10, 23}) {
    const Array x = floats({4, n}), y = floats({4, 9});
    expectNear(
        k.run({x, y}, {{"m", 4}, {"n", n}})[0],
        [&](int64_t i) {
          const int64_t row = i / (n + 9), c = i % (n + 9);
          return c < n ? x.at(row * n + c) : y.at(row * 9 + c - n);
        },
        0);
    EXPECT_EQ(k.status(), 0);
  }
}

TEST_P(RegionShape, ReversesAndSlices) {
  auto k = compile(R"(func.func @f(%x: f32[m, n]) -> (f32[m, n], f32[m, n]) {
    %0 = lathe.reverse %x axes [1] : f32[m, n]
    %1 = lathe.reverse %x axes [0, 1] : f32[m, n]
    return %0, %1 : f32[m, n], f32[m, n]
  })");
  auto cut = compile(R"(func.func @f(%x: f32[m+1, 100]) -> f32[m, 33] {
    %0 = lathe.slice %x starts <1, 2> sizes <m, 33> strides [1, 3] : f32[m+1, 100]
    return %0 : f32[m, 33]
  })");
  for (int64_t n : kColumns) {
    Array x = floats({4, n});
    auto y = k.run({x}, {{"m", 4}, {"n", n}});
    expectNear(y[0], [&](int64_t i) { return x.at(i / n * n + n - 1 - i % n); }, 0);
    expectNear(y[1], [&](int64_t i) { return x.at(4 * n - 1 - i); }, 0);
  }
  Array x = floats({5, 100});
  auto y = cut.run({x}, {{"m", 4}});
  expectNear(y[0], [&](int64_t i) { return x.at((i / 33 + 1) * 100 + 2 + i % 33 * 3); }, 0);
}

// The rows of what is cut have the coordinates of the result's, and lie elsewhere.
TEST_P(RegionShape, CutsRowsFromTheBeginOfAMiddleAxis) {
  auto k = compile(R"(func.func @f(%x: f32[a, b+3, 33], %y: f32[a, b, 33]) -> f32[a, b, 33] {
    %0 = lathe.slice %x starts <0, 0, 0> sizes <a, b, 33> strides [1, 1, 1] : f32[a, b+3, 33]
    %1 = lathe.softmax %0 axis 2 : f32[a, b, 33]
    %2 = lathe.mul %y, %1 : f32[a, b, 33], f32[a, b, 33]
    return %2 : f32[a, b, 33]
  })");
  const Array x = floats({3, 5, 33}), y = floats({3, 2, 33});
  auto at = [&](int64_t row, int64_t j) { return x.at((row / 2 * 5 + row % 2) * 33 + j); };
  expectNear(
      k.run({x, y}, {{"a", 3}, {"b", 2}})[0],
      [&](int64_t i) {
        double sum = 0;
        for (int64_t j = 0; j < 33; ++j) sum += std::exp(at(i / 33, j));
        return y.at(i) * std::exp(at(i / 33, i % 33)) / sum;
      },
      2e-6);
}

INSTANTIATE_TEST_SUITE_P(Targets, RegionShape, ::testing::ValuesIn(regionTargets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace lathe::test
