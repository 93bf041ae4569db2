// SPDX-License-Identifier: Apache-2.0
// What only CUDA text has: every schedule of a region, rows over a cluster, random bits.
#include "backends/reference/interpreter_ops.h"
#include "tests/unit/region_kernel.h"

namespace lathe::test {
namespace {

class RegionCuda : public RegionTest {
 protected:
  // Every schedule that the region has.
  void forEach(
      const std::string& text,
      const std::function<void(RegionKernelUnderTest&, cuda::RegionSchedule::Kind)>& body) {
    std::set<std::string> seen;
    for (size_t i = 0;; ++i) {
      RegionKernelUnderTest k(text, {"cuda", std::nullopt, i});
      const std::string& source = k.printed().kernels[0].source;
      if (!seen.insert(source).second) return;
      SCOPED_TRACE(source);
      body(k, k.schedule().kind);
    }
  }
};

TEST_F(RegionCuda, TakesSoftmaxUnderEverySchedule) {
  using Kind = cuda::RegionSchedule::Kind;
  for (int64_t n : {33, 1000, 4104, 33000}) {
    const std::string x = "f32[m, " + std::to_string(n) + "]";
    std::set<Kind> kinds;
    forEach("func.func @f(%x: " + x + ") -> " + x +
                " { %0 = lathe.softmax %x axis 1 masked_row zero : " + x + "\n return %0 : " + x +
                " }",
            [&](RegionKernelUnderTest& k, Kind kind) {
              if (kind == Kind::Flat && n > 1000) return;  // every thread would read its row alone
              kinds.insert(kind);
              Array in = floats({3, n}, DType::F32, 8);
              for (int64_t i = 0; i < n; ++i) in.set(n + i, -kInf);
              in.set(5, NAN);
              auto y = k.run({in}, {{"m", 3}});
              double top = -kInf, sum = 0;
              for (int64_t i = 2 * n; i < 3 * n; ++i) top = std::max(top, in.at(i));
              for (int64_t i = 2 * n; i < 3 * n; ++i) sum += std::exp(in.at(i) - top);
              expectNear(
                  y[0],
                  [&](int64_t i) {
                    return i < n ? NAN : i < 2 * n ? 0 : std::exp(in.at(i) - top) / sum;
                  },
                  6e-6, 1e-37);
            });
    EXPECT_TRUE(kinds.count(n > 32768  ? Kind::ClusterPerRow
                            : n > 1024 ? Kind::BlockPerRow
                                       : Kind::WarpPerRow))
        << n;
  }
}

TEST_F(RegionCuda, FindsTheGreatestOfALongRow) {
  forEach(
      "func.func @f(%x: f32[m, 33003]) -> i64[m] { %0 = lathe.argmax %x axis 1 : f32[m, 33003]\n"
      " return %0 : i64[m] }",
      [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
        Array x = floats({2, 33003});
        x.set(20001, 9);
        x.set(30002, 9);
        x.set(33003 + 7, 50);
        x.set(33003 + 32111, NAN);
        auto y = k.run({x}, {{"m", 2}});
        EXPECT_EQ(y[0].at(0), 20001);
        EXPECT_EQ(y[0].at(1), 32111);
      });
}

TEST_F(RegionCuda, ReducesLeadingAxesByBlocks) {
  // Masked mean pooling, and the first greatest token, over a length known only at run time.
  bool seen = false;
  for (std::string cols : {"1", "33", "256"})
    forEach("func.func @f(%x: bf16[b, s, " + cols + "], %m: f32[b, s, 1]) -> (f32[b, " + cols +
                "], i64[b, " + cols + R"(]) {
 %0 = lathe.cast %x to f32 : bf16[b, s, )" +
                cols + R"(]
 %1 = lathe.mul %0, %m : f32[b, s, )" +
                cols + R"(], f32[b, s, 1]
 %2 = lathe.reduce_sum %1 axes [1] : f32[b, s, )" +
                cols + R"(]
 %3 = lathe.reduce_sum %m axes [1] : f32[b, s, 1]
 %4 = lathe.div %2, %3 : f32[b, )" +
                cols + R"(], f32[b, 1]
 %5 = lathe.argmax %x axis 1 : bf16[b, s, )" +
                cols + R"(]
 return %4, %5 : f32[b, )" +
                cols + "], i64[b, " + cols + "] }",
            [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind kind) {
              seen |= kind == cuda::RegionSchedule::Kind::BlockPerColumns;
              const int64_t b = 2, n = std::stoi(cols);
              for (int64_t s : {1, 7, 31, 131}) {
                Array x = floats({b, s, n}, DType::BF16, 2),
                      m = integers({b, s, 1}, DType::F32, 0, 1);
                for (int64_t i = 0; i < b; ++i) m.set(i * s, 1);
                x.set(s / 2 * n, NAN);
                auto y = k.run({x, m}, {{"b", b}, {"s", s}});
                for (int64_t i = 0; i < b; ++i)
                  for (int64_t c = 0; c < n; ++c) {
                    double sum = 0, count = 0;
                    int64_t best = 0;
                    auto at = [&](int64_t j) { return x.at((i * s + j) * n + c); };
                    for (int64_t j = 0; j < s; ++j) {
                      sum += at(j) * m.at(i * s + j);
                      count += m.at(i * s + j);
                      if (!std::isnan(at(best)) && (std::isnan(at(j)) || at(j) > at(best)))
                        best = j;
                    }
                    const double got = y[0].at(i * n + c), expected = sum / count;
                    if (std::isnan(expected))
                      EXPECT_TRUE(std::isnan(got));
                    else
                      EXPECT_NEAR(got, expected, 1e-5);
                    EXPECT_EQ(y[1].at(i * n + c), best);
                  }
              }
            });
  EXPECT_TRUE(seen);
}

// A kernel per pass: one partial result per block, combined by the next.
class RegionPasses : public RegionCuda {
 protected:
  void forPasses(const std::string& text, size_t passes,
                 const std::function<void(RegionKernelUnderTest&)>& body) {
    bool seen = false;
    forEach(text, [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind kind) {
      if (kind != cuda::RegionSchedule::Kind::BlocksPerRow) return;
      seen = true;
      EXPECT_EQ(k.printed().kernels.size(), passes);
      for (const cuda::KernelText& p : k.printed().kernels) {
        SCOPED_TRACE(p.source);
        EXPECT_NE(p.source.find("pass "), std::string::npos);
        body(k);
        if (&p == k.printed().kernels.data() || HasFailure()) break;
      }
    });
    EXPECT_TRUE(seen);
  }
};

TEST_F(RegionPasses, NormalizesLongRows) {
  const int64_t n = 40008;
  forPasses(R"(func.func @f(%x: bf16[m, 40008], %w: f32[40008]) -> (bf16[m, 40008], f32[m, 1]) {
 %0 = lathe.cast %x to f32 : bf16[m, 40008]
 %1 = lathe.reduce_mean %0 axes [1] keep_dims true : f32[m, 40008]
 %2 = lathe.sub %0, %1 : f32[m, 40008], f32[m, 1]
 %3 = lathe.mul %2, %2 : f32[m, 40008], f32[m, 40008]
 %4 = lathe.reduce_mean %3 axes [1] keep_dims true : f32[m, 40008]
 %5 = lathe.reduce_max %0 axes [1] keep_dims true : f32[m, 40008]
 %6 = lathe.rsqrt %4 : f32[m, 1]
 %7 = lathe.mul %2, %6 : f32[m, 40008], f32[m, 1]
 %8 = lathe.mul %7, %w : f32[m, 40008], f32[40008]
 %9 = lathe.cast %8 to bf16 : f32[m, 40008]
 return %9, %5 : bf16[m, 40008], f32[m, 1] })",
            3, [&](RegionKernelUnderTest& k) {
              Array x = floats({2, n}, DType::BF16, 2), w = floats({n}, DType::F32, 1);
              auto y = k.run({x, w}, {{"m", 2}}, true);
              for (int64_t row = 0; row < 2; ++row) {
                double mean = 0, square = 0, most = -kInf;
                for (int64_t i = row * n; i < (row + 1) * n; ++i) {
                  mean += x.at(i) / double(n);
                  most = std::max(most, x.at(i));
                }
                for (int64_t i = row * n; i < (row + 1) * n; ++i)
                  square += (x.at(i) - mean) * (x.at(i) - mean) / double(n);
                EXPECT_EQ(y[1].at(row), most);
                for (int64_t i = 0; i < n; i += 7) {
                  const double expected = (x.at(row * n + i) - mean) / std::sqrt(square) * w.at(i);
                  ASSERT_NEAR(y[0].at(row * n + i), expected, 0.004 * std::abs(expected) + 1e-5);
                }
              }
            });
}

TEST_F(RegionPasses, ReducesAllElementsOfATensor) {
  // 640,000 elements that no vector divides, to one value each.
  forPasses(R"(func.func @f(%x: i16[800, 821]) -> (i16[], i64[], i1[]) {
 %0 = lathe.reduce_sum %x axes [0, 1] : i16[800, 821]
 %c = lathe.constant dense<7> : tensor<i16>
 %1 = lathe.compare eq %x, %c : i16[800, 821], i16[]
 %2 = lathe.reduce_any %1 axes [0, 1] : i1[800, 821]
 %3 = lathe.reshape %x to <656800> : i16[800, 821]
 %4 = lathe.argmin %3 axis 0 : i16[656800]
 return %0, %4, %2 : i16[], i64[], i1[] })",
            2, [&](RegionKernelUnderTest& k) {
              Array x(DType::I16, {800, 821});
              int16_t sum = 0;
              for (int64_t i = 0; i < x.size(); ++i) {
                x.set(i, double(i % 997 - 300 - (i % 997 == 307)));
                sum = int16_t(sum + int16_t(x.at(i)));
              }
              x.set(600001, -400);
              sum = int16_t(sum - (600001 % 997 - 300) - 400);
              auto y = k.run({x});
              EXPECT_EQ(y[0].at(0), sum);
              EXPECT_EQ(y[1].at(0), 600001);
              EXPECT_EQ(y[2].at(0), 0);
              x.set(655000, 7);
              EXPECT_EQ(k.run({x})[2].at(0), 1);
            });
}

// A part has a value and a place, of 8 bytes each.
TEST_F(RegionPasses, FindsTheGreatestOfLongRowsOfWideNumbers) {
  const int64_t n = 70001;
  for (std::string t : {"f64", "i64"})
    forPasses("func.func @f(%x: " + t +
                  "[2, 70001]) -> (i64[2], i64[2]) { %0 = lathe.argmax %x axis 1 : " + t +
                  "[2, 70001]\n %1 = lathe.argmin %x axis 1 : " + t +
                  "[2, 70001]\n return %0, %1 : i64[2], i64[2] }",
              2, [&](RegionKernelUnderTest& k) {
                Array x = integers({2, n}, *parseDType(t), -1000, 1000);
                x.set(65432, 2000), x.set(300, -2000);
                x.set(n + 69999, 2000), x.set(n + 34567, -2000);
                auto y = k.run({x});
                EXPECT_EQ(y[0].at(0), 65432);
                EXPECT_EQ(y[0].at(1), 69999);
                EXPECT_EQ(y[1].at(0), 300);
                EXPECT_EQ(y[1].at(1), 34567);
              });
}

TEST_F(RegionCuda, DrawsTheBitsOfTheReference) {
  for (std::string n : {"1", "7", "64", "257"}) {
    const std::string text = "func.func @f(%s: tensor<i64>) -> i32[3, " + n +
                             "] { %0 = lathe.random_bits %s to <3, " + n +
                             "> : tensor<i64>\n return %0 : i32[3, " + n + "] }";
    forEach(text, [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
      const int64_t key = 0x123456789abcdef;
      auto y = k.run({Array::fromInts(std::vector<int64_t>{key}, {})});
      expectNear(
          y[0],
          [&](int64_t i) {
            auto block =
                reference::philox({uint32_t(i / 4), 0, 0, 0}, {uint32_t(key), uint32_t(key >> 32)});
            return double(int32_t(block[size_t(i % 4)]));
          },
          0);
    });
  }
}

// Lanes of the first piece have no word among those of the second.
TEST_F(RegionCuda, DrawsBitsIntoAPieceOfARow) {
  forEach(R"(func.func @f(%x: f32[6, 4], %s: tensor<i64>) -> f32[6, 8] {
%0 = lathe.random_bits %s to <6, 4> : tensor<i64>
%1 = lathe.cast %0 to f32 : i32[6, 4]
%2 = lathe.concat %x, %1 axis 1 : f32[6, 4], f32[6, 4]
return %2 : f32[6, 8] })",
          [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
            const Array x = floats({6, 4});
            auto y = k.run({x, Array::fromInts(std::vector<int64_t>{77}, {})});
            expectNear(
                y[0],
                [&](int64_t i) {
                  const int64_t row = i / 8, column = i % 8;
                  if (column < 4) return double(x.at(row * 4 + column));
                  auto block = reference::philox({uint32_t(row), 0, 0, 0}, {77, 0});
                  return double(float(int32_t(block[size_t(column - 4)])));
                },
                0);
          });
}

// Every piece of a row that one thread holds is read as one vector, and lanes of other pieces have
// no element of it.
TEST_F(RegionCuda, ReadsEveryPieceOfARowAsOneVector) {
  forEach(R"(func.func @f(%x: f32[m, 4], %z: bf16[m, 4]) -> f32[m, 8] {
%0 = lathe.cast %z to f32 : bf16[m, 4]
%1 = lathe.concat %x, %0 axis 1 : f32[m, 4], f32[m, 4]
return %1 : f32[m, 8] })",
          [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
            const std::string& source = k.printed().kernels[0].source;
            size_t vectors = 0;
            for (size_t at = 0; (at = source.find("load_vec", at)) != std::string::npos; ++at)
              ++vectors;
            EXPECT_EQ(vectors, 2u);
            const Array x = floats({7, 4}), z = floats({7, 4}, DType::BF16);
            expectNear(
                k.run({x, z}, {{"m", 7}})[0],
                [&](int64_t i) {
                  const int64_t row = i / 8, column = i % 8;
                  return column < 4 ? x.at(row * 4 + column) : z.at(row * 4 + column - 4);
                },
                0);
          });
}

// A block has more threads than a single row needs: those without work read nothing.
TEST_F(RegionCuda, ReadsASingleRowWithinItsBounds) {
  struct Case {
    const char *op, *type;
    double want;
  };
  for (const Case& c : {Case{"reduce_max %x axes [1] keep_dims true", "f32", 3},
                        {"reduce_min %x axes [1] keep_dims true", "f32", -2},
                        {"reduce_sum %x axes [1] keep_dims true", "f64", 2},
                        {"reduce_prod %x axes [1] keep_dims true", "f32", -6},
                        {"reduce_mean %x axes [1] keep_dims true", "f32", 2.0 / 3},
                        {"reduce_any %x axes [1] keep_dims true", "i1", 1},
                        {"reduce_all %x axes [1] keep_dims true", "i1", 1},
                        {"argmax %x axis 1", "f32", 2},
                        {"argmin %x axis 1", "f32", 1}}) {
    const std::string type = c.type,
                      result = std::string(c.op).starts_with("arg") ? "i64[1]" : type + "[1, 1]";
    forEach("func.func @f(%x: " + type + "[1, 3]) -> " + result + " { %0 = lathe." + c.op + " : " +
                type + "[1, 3]\n return %0 : " + result + " }",
            [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
              Array x(*parseDType(type == "i1" ? "bool" : type), {1, 3});
              for (int64_t i = 0; i < 3; ++i) x.set(i, type == "i1" ? 1 : i == 1 ? -2 : 1 + i);
              EXPECT_NEAR(k.run({x})[0].at(0), c.want, 1e-6);
            });
  }
  // Beside results of other shapes, and under every kind of team.
  for (std::string n : {"3", "100", "3000"})
    forEach("func.func @f(%x: f64[1, " + n + "], %y: f64[5, " + n + "]) -> f64[5, " + n +
                "] { %0 = lathe.reduce_max %x axes [1] keep_dims true : f64[1, " + n +
                "]\n %1 = lathe.sub %y, %0 : f64[5, " + n + "], f64[1, 1]\n return %1 : f64[5, " +
                n + "] }",
            [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
              const int64_t columns = std::stoll(n);
              const Array x = floats({1, columns}, DType::F64),
                          y = floats({5, columns}, DType::F64);
              double most = -kInf;
              for (int64_t i = 0; i < columns; ++i) most = std::max(most, x.at(i));
              expectNear(k.run({x, y})[0], [&](int64_t i) { return y.at(i) - most; }, 1e-12);
            });
}

// Threads count beyond the end of the work, to the end of their block: where that leaves 31 bits,
// they count in 64.
TEST_F(RegionCuda, CountsBeyond31BitsIn64) {
  auto sourceOf = [](const std::string& n) {
    const std::string x = "i8[" + n + "]";
    return RegionKernelUnderTest("func.func @f(%x: " + x + ") -> " + x +
                                     " { %0 = lathe.neg %x : " + x + "\n return %0 : " + x + " }",
                                 {"cuda", std::nullopt, 0})
        .printed()
        .kernels[0]
        .source;
  };
  EXPECT_NE(sourceOf("2147483647").find("(i64)blockIdx.x"), std::string::npos);
  EXPECT_EQ(sourceOf("1000000000").find("(i64)blockIdx.x"), std::string::npos);
}

// A row's number fits an int, and its first element's does not: between 2^31 and 2^32, too.
TEST_F(RegionCuda, FindsRowsBeyond31BitsIn64) {
  auto sourceOf = [](const std::string& rows) {
    const std::string x = "i8[" + rows + ", 65536]";
    return RegionKernelUnderTest("func.func @f(%x: " + x + ") -> i8[" + rows +
                                     "] { %0 = lathe.reduce_max %x axes [1] : " + x +
                                     "\n return %0 : i8[" + rows + "] }",
                                 {"cuda", std::nullopt, 0})
        .printed()
        .kernels[0]
        .source;
  };
  EXPECT_NE(sourceOf("40000").find("(i64)"), std::string::npos) << sourceOf("40000");
  EXPECT_EQ(sourceOf("20000").find("(i64)"), std::string::npos) << sourceOf("20000");
  // Rows of any number are counted in 64 bits.
  EXPECT_NE(sourceOf("m").find("const i64 row = "), std::string::npos) << sourceOf("m");
}

// Approximations of exp and of quotients are hidden by the rounding to 16 bits, of every result.
TEST_F(RegionCuda, ApproximatesWhereEveryResultIsRounded) {
  const std::string wide = "f32[m, 64]", small = "bf16[m, 64]";
  auto sourceOf = [&](const std::string& types, const std::string& values) {
    return RegionKernelUnderTest("func.func @f(%x: " + small + ") -> (" + types +
                                     ") { %w = lathe.cast %x to f32 : " + small +
                                     "\n %s = lathe.sigmoid %w : " + wide +
                                     "\n %r = lathe.cast %s to bf16 : " + wide + "\n return " +
                                     values + " : " + types + " }",
                                 {"cuda", std::nullopt, 0})
        .printed()
        .kernels[0]
        .source;
  };
  const std::string rounded = sourceOf(small, "%r");
  EXPECT_NE(rounded.find("fast_exp("), rounded.npos) << rounded;
  EXPECT_NE(rounded.find("fast_div("), rounded.npos) << rounded;
  for (const std::string& source : {sourceOf(wide, "%s"), sourceOf(small + ", " + wide, "%r, %s")})
    EXPECT_EQ(source.find("fast_"), source.npos) << source;
}

// A piece of a row has been read by some of its threads alone: what they kept of it is no row.
TEST_F(RegionCuda, KeepsNoPieceOfARowForTheWhole) {
  for (auto [piece, whole] : {std::pair(32, 96), {64, 128}, {256, 768}, {512, 2048}}) {
    const std::string x = "f32[m, " + std::to_string(whole) + "]",
                      part = "f32[m, " + std::to_string(piece) + "]";
    forEach("func.func @f(%x: " + x + ") -> " + x +
                " {\n%0 = lathe.slice %x starts <0, 0> sizes <m, " + std::to_string(piece) +
                "> strides [1, 1] : " + x +
                "\n%1 = lathe.reduce_max %0 axes [1] keep_dims true : " + part +
                "\n%2 = lathe.sub %x, %1 : " + x + ", f32[m, 1]\nreturn %2 : " + x + " }",
            [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
              const Array in = floats({3, whole});
              expectNear(
                  k.run({in}, {{"m", 3}})[0],
                  [&](int64_t i) {
                    double most = -kInf;
                    for (int64_t j = 0; j < piece; ++j)
                      most = std::max(most, in.at(i / whole * whole + j));
                    return in.at(i) - most;
                  },
                  kF32);
            });
  }
}

// One thread writes what all of them could still be reading.
TEST_F(RegionCuda, ReplacesASingleElement) {
  for (std::string shape : {"tensor<f16>", "tensor<1xf16>", "tensor<1x1xf16>"})
    forEach("func.func @f(%x: " + shape + ") -> " + shape + " { %0 = lathe.ceil %x : " + shape +
                "\n return %0 : " + shape + " }",
            [&](RegionKernelUnderTest& k, cuda::RegionSchedule::Kind) {
              ASSERT_EQ(k.inPlace().size(), 1u);
              Array x(DType::F16, Shape(size_t(std::count(shape.begin(), shape.end(), 'x')), 1));
              x.set(0, 1.25);
              EXPECT_EQ(k.run({x}, {}, true)[0].at(0), 2);
            });
}

}  // namespace
}  // namespace lathe::test
