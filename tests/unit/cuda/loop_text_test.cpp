// SPDX-License-Identifier: Apache-2.0
// Statements of the loop form: how they read, and what they do on the host.
#include <cmath>

#include "tests/unit/cuda/loop_text_run.h"

namespace lathe::cuda {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kNames{"x", "y", "out", "threadIdx.x"};
const std::string kParameters = "%x: !llvm.ptr, %y: !llvm.ptr, %out: !llvm.ptr, %t: i32";

// Constants and addresses that most bodies start with: 8 elements at %at of each buffer.
const std::string kHead = R"(
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c8 = arith.constant 8 : i32
  %zero = arith.constant 0.0 : f32
  %zeros = arith.constant dense<0.0> : vector<8xf32>
  %at = arith.muli %t, %c8 overflow<nsw> : i32 loc("%start")
  %px = llvm.getelementptr %x[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %py = llvm.getelementptr %y[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %po = llvm.getelementptr %out[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f32
)";

class Statements : public LoopText {
 protected:
  Statements() {
    for (int64_t i = 0; i < kCount; ++i) {
      x.set(i, std::sin(double(i) * 1.3) * 3);
      y.set(i, std::cos(double(i) * 0.7) * 2);
    }
  }

  std::string body(const std::string& text) { return print(kParameters, kHead + text, kNames); }
  // Runs it and compares `out` with what is wanted of it.
  void expect(const std::string& text, const std::function<double(int64_t)>& want,
              double tolerance = 0) {
    run(text, "const float* x, const float* y, float* out", {&x, &y, &out});
    for (int64_t i = 0; i < kCount && !HasFailure(); ++i)
      ASSERT_NEAR(out.at(i), want(i), tolerance) << i << "\n" << text;
  }

  static constexpr int64_t kCount = 256;
  Array x{DType::F32, {kCount}}, y{DType::F32, {kCount}}, out{DType::F32, {kCount}};
};

TEST_F(Statements, OneLoopOverTheLanesOfAChunk) {
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %s = arith.addf %a, %a : vector<8xf32> loc("%doubled")
    %b = llvm.load %py : !llvm.ptr -> vector<8xf32>
    %p = arith.mulf %s, %b : vector<8xf32>
    %d = arith.subf %p, %s : vector<8xf32>
    llvm.store %d, %po : vector<8xf32>, !llvm.ptr
  )");
  EXPECT_EQ(text, R"(  const int start = (int)threadIdx.x * 8;
  const vec<float, 8> x_v = load_vec<8>(x + start);
  const vec<float, 8> y_v = load_vec<8>(y + start);
  vec<float, 8> out_v;
  #pragma unroll
  for (int j = 0; j < 8; ++j) {
    const float doubled = x_v[j] + x_v[j];
    out_v[j] = doubled * y_v[j] - doubled;
  }
  store_vec(out + start, out_v);
)");
  expect(
      text,
      [&](int64_t i) {
        const float d = float(x.at(i)) + float(x.at(i));
        return d * float(y.at(i)) - d;
      },
      1e-6);
}

TEST_F(Statements, LoadsDoNotPassStores) {
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %s = arith.addf %a, %a : vector<8xf32>
    llvm.store %s, %po : vector<8xf32>, !llvm.ptr
    %b = llvm.load %po : !llvm.ptr -> vector<8xf32>
    %p = arith.addf %b, %a : vector<8xf32>
    llvm.store %p, %po : vector<8xf32>, !llvm.ptr
  )");
  EXPECT_LT(text.find("store_vec(out"), text.find("load_vec<8>(out")) << text;
  expect(text, [&](int64_t i) { return float(2 * x.at(i)) + float(x.at(i)); }, 1e-6);
}

TEST_F(Statements, SumsLanesInALoopOfTheirOwn) {
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %s = arith.mulf %a, %a : vector<8xf32>
    %total = scf.for %j = %c0 to %c8 step %c1 iter_args(%sum = %zero) -> f32 : i32 {
      %lane = arith.index_cast %j : i32 to index
      %e = vector.extract %s[%lane] : f32 from vector<8xf32>
      %n = arith.addf %sum, %e : f32
      scf.yield %n : f32
    } {lanes} loc("%total")
    %all = vector.broadcast %total : f32 to vector<8xf32>
    llvm.store %all, %po : vector<8xf32>, !llvm.ptr
  )");
  EXPECT_THAT(text, HasSubstr("    total += x_v[j] * x_v[j];\n"));
  EXPECT_THAT(text, HasSubstr("    out_v[j] = total;\n"));
  expect(
      text,
      [&](int64_t i) {
        double total = 0;
        for (int64_t j = 0; j < 8; ++j) total += x.at(i / 8 * 8 + j) * x.at(i / 8 * 8 + j);
        return total;
      },
      1e-4);
}

TEST_F(Statements, CarriesScalarsAndVectorsThroughLoops) {
  // Fibonacci: the two change places.
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %b = llvm.load %py : !llvm.ptr -> vector<8xf32>
    %one = arith.constant 1.0 : f32
    %r:4 = scf.for %k = %c0 to %c8 step %c2 iter_args(%u = %a, %v = %b, %m = %zero, %n = %one)
        -> (vector<8xf32>, vector<8xf32>, f32, f32) : i32 {
      %w = arith.addf %u, %v : vector<8xf32>
      %o = arith.addf %m, %n : f32
      scf.yield %v, %w, %n, %o : vector<8xf32>, vector<8xf32>, f32, f32
    } {unroll} loc("%pair")
    %f = vector.broadcast %r#2 : f32 to vector<8xf32>
    %s = arith.mulf %r#1, %f : vector<8xf32>
    llvm.store %s, %po : vector<8xf32>, !llvm.ptr
  )");
  EXPECT_THAT(text,
              HasSubstr("  #pragma unroll\n  for (int index = 0; index < 8; index += 2) {\n"));
  expect(
      text,
      [&](int64_t i) {
        float u = float(x.at(i)), v = float(y.at(i));
        for (int k = 0; k < 4; ++k) {
          const float w = u + v;
          u = v;
          v = w;
        }
        return v * 3;
      },
      1e-5);
}

TEST_F(Statements, AccumulatesVectorsOverANest) {
  const std::string text = body(R"(
    %half = arith.constant dense<0.5> : vector<8xf32>
    %total = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %half) -> vector<8xf32> : i32 {
      %inner = scf.for %i = %c0 to %c2 step %c1 iter_args(%b = %a) -> vector<8xf32> : i32 {
        %v = llvm.load %px : !llvm.ptr -> vector<8xf32>
        %n = arith.addf %b, %v : vector<8xf32>
        scf.yield %n : vector<8xf32>
      }
      scf.yield %inner : vector<8xf32>
    } loc("%total")
    llvm.store %total, %po : vector<8xf32>, !llvm.ptr
  )");
  EXPECT_THAT(text, HasSubstr("  vec<float, 8> total;\n"));
  EXPECT_THAT(text, HasSubstr("        total[j] += x_v[j];\n"));
  EXPECT_THAT(text, HasSubstr("  store_vec(out + start, total);\n"));
  expect(text, [&](int64_t i) { return 0.5 + 4 * x.at(i); }, 1e-5);
}

TEST_F(Statements, ReadsOldLanesOfWhatItAssigns) {
  // Each lane becomes its neighbour: no lane may be written before the other is read.
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %r = scf.for %k = %c0 to %c2 step %c1 iter_args(%v = %a) -> vector<8xf32> : i32 {
      %n = vector.shuffle %v, %v [1, 2, 3, 4, 5, 6, 7, 0] : vector<8xf32>, vector<8xf32>
      scf.yield %n : vector<8xf32>
    }
    llvm.store %r, %po : vector<8xf32>, !llvm.ptr
  )");
  expect(text, [&](int64_t i) { return x.at(i / 8 * 8 + (i + 2) % 8); });
}

TEST_F(Statements, ChangesPlacesOfWhatAnotherReadsElsewhere) {
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %b = llvm.load %py : !llvm.ptr -> vector<8xf32>
    %r:2 = scf.for %k = %c0 to %c2 step %c1 iter_args(%u = %a, %v = %b)
        -> (vector<8xf32>, vector<8xf32>) : i32 {
      %n = vector.shuffle %v, %v [1, 2, 3, 4, 5, 6, 7, 0] : vector<8xf32>, vector<8xf32>
      %m = arith.negf %n : vector<8xf32>
      scf.yield %m, %u : vector<8xf32>, vector<8xf32>
    }
    %s = arith.subf %r#0, %r#1 : vector<8xf32>
    llvm.store %s, %po : vector<8xf32>, !llvm.ptr
  )");
  expect(
      text,
      [&](int64_t i) {
        const int64_t next = i / 8 * 8 + (i + 1) % 8;
        return float(-x.at(next)) - float(-y.at(next));
      },
      1e-6);
}

TEST_F(Statements, ChoosesWithoutBranchesWhereNothingIsToBeDone) {
  const std::string text = body(R"(
    %c4 = arith.constant 4 : i32
    %inside = arith.cmpi slt, %t, %c4 : i32
    %r = scf.if %inside -> f32 {
      %v = llvm.load %px : !llvm.ptr -> f32
      scf.yield %v : f32
    } else {
      scf.yield %zero : f32
    }
    %s:2 = scf.if %inside -> (f32, vector<8xf32>) {
      %v = llvm.load %py : !llvm.ptr -> f32
      %w = llvm.load %py : !llvm.ptr -> vector<8xf32>
      %d = arith.addf %w, %w : vector<8xf32>
      %e = arith.addf %v, %v : f32
      scf.yield %e, %d : f32, vector<8xf32>
    } else {
      scf.yield %zero, %zeros : f32, vector<8xf32>
    } loc("%branch")
    %b = vector.broadcast %r : f32 to vector<8xf32>
    %c = vector.broadcast %s#0 : f32 to vector<8xf32>
    %o = arith.addf %b, %c : vector<8xf32>
    %q = arith.addf %o, %s#1 : vector<8xf32>
    llvm.store %q, %po : vector<8xf32>, !llvm.ptr
    scf.if %inside {
    } else {
      %one = arith.constant 1.0 : f32
      llvm.store %one, %po : f32, !llvm.ptr
    }
  )");
  EXPECT_THAT(text, HasSubstr("? x[start] : 0.0f"));
  EXPECT_THAT(text, HasSubstr("  if (!"));
  expect(
      text,
      [&](int64_t i) {
        if (i / 8 >= 4) return i % 8 == 0 ? 1.0 : 0.0;
        return double(float(x.at(i / 8 * 8)) + 2 * float(y.at(i / 8 * 8)) + 2 * float(y.at(i)));
      },
      1e-5);
}

TEST_F(Statements, TouchesNothingUnderAMask) {
  // The last thread has 3 of 8 elements; what lies behind the buffer is not touched.
  x = Array(DType::F32, {27});
  for (int64_t i = 0; i < 27; ++i) x.set(i, double(i) + 1);
  const std::string text = body(R"(
    %n = arith.constant dense<27> : vector<8xi32>
    %ramp = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7]> : vector<8xi32>
    %base = vector.broadcast %at : i32 to vector<8xi32>
    %lane = arith.addi %base, %ramp overflow<nsw> : vector<8xi32>
    %mask = arith.cmpi slt, %lane, %n : vector<8xi32>
    %other = arith.constant dense<-1.0> : vector<8xf32>
    %pl = llvm.getelementptr %x[%lane] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
    %a = llvm.intr.masked.gather %pl, %mask, %other {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
    %last = arith.constant dense<26> : vector<8xi32>
    %back = arith.subi %last, %lane overflow<nsw> : vector<8xi32>
    %pg = llvm.getelementptr %x[%back] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
    %g = llvm.intr.masked.gather %pg, %mask, %zeros {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
    %s = arith.addf %a, %g : vector<8xf32>
    llvm.store %s, %po : vector<8xf32>, !llvm.ptr
  )");
  run(text, "const float* x, const float* y, float* out", {&x, &y, &out}, 4);
  for (int64_t i = 0; i < 32; ++i) ASSERT_EQ(out.at(i), i < 27 ? 28 : -1) << i << "\n" << text;
}

// Between a load and its reader a write to the same memory may stand: the load stays in front.
TEST_F(Statements, LoadsStayInFrontOfWrites) {
  Array small(DType::BF16, {kCount});
  for (int64_t i = 0; i < kCount; ++i) small.set(i, double(i % 50));
  const std::string text = body(R"(
    %ps = llvm.getelementptr %y[%at] : (!llvm.ptr, i32) -> !llvm.ptr, bf16
    %five = arith.constant 5.5 : bf16
    %old = llvm.load %ps : !llvm.ptr -> bf16
    llvm.store %five, %ps : bf16, !llvm.ptr
    %e = arith.extf %old : bf16 to f32
    llvm.store %e, %po : f32, !llvm.ptr
  )");
  run(text, "const float* x, bf16* y, float* out", {&x, &small, &out});
  for (int64_t i = 0; i < kCount; i += 8) ASSERT_EQ(out.at(i), i % 50) << i << "\n" << text;
}

// Lanes that read what a store has written are no part of the loop in front of the store.
TEST_F(Statements, LanesReadBehindAStore) {
  const std::string text = body(R"(
    %ramp = arith.constant dense<[7, 6, 5, 4, 3, 2, 1, 0]> : vector<8xi32>
    %all = arith.constant dense<true> : vector<8xi1>
    %base = vector.broadcast %at : i32 to vector<8xi32>
    %back = arith.addi %base, %ramp overflow<nsw> : vector<8xi32>
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %d = arith.addf %a, %a : vector<8xf32>
    llvm.store %d, %po : vector<8xf32>, !llvm.ptr
    %pg = llvm.getelementptr %out[%back] : (!llvm.ptr, vector<8xi32>) -> vector<8x!llvm.ptr>, f32
    %g = llvm.intr.masked.gather %pg, %all, %zeros {alignment = 4 : i32} : (vector<8x!llvm.ptr>, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
    %s = arith.mulf %g, %g : vector<8xf32>
    llvm.store %s, %po : vector<8xf32>, !llvm.ptr
  )");
  expect(
      text,
      [&](int64_t i) {
        const float read = float(x.at(i / 8 * 8 + 7 - i % 8)) * 2;
        return double(read * read);
      },
      1e-5);
}

// What a loop starts with may be read behind it: it goes on in a variable of its own.
TEST_F(Statements, WhatALoopStartsWithIsKept) {
  const std::string text = body(R"(
    %e = llvm.load %px : !llvm.ptr -> f32
    %first = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %zero) -> f32 : i32 {
      %n = arith.addf %a, %e : f32
      scf.yield %n : f32
    }
    %second = scf.for %k = %c0 to %c2 step %c1 iter_args(%b = %first) -> f32 : i32 {
      %n = arith.mulf %b, %b : f32
      scf.yield %n : f32
    }
    %both = arith.subf %second, %first : f32
    llvm.store %both, %po : f32, !llvm.ptr
  )");
  run(text, "const float* x, const float* y, float* out", {&x, &y, &out});
  for (int64_t i = 0; i < kCount; i += 8) {
    const double first = 2 * x.at(i);
    ASSERT_NEAR(out.at(i), std::pow(first, 4) - first, 1e-2) << i << "\n" << text;
  }
}

// A double is rounded once on its way to 16 bits: in f32 this one would lie between two of them.
TEST_F(Statements, DoublesAreRoundedOnce) {
  Array wide(DType::F64, {kCount});
  for (int64_t i = 0; i < kCount; ++i) wide.set(i, 1 + 0x1p-8 + 0x1p-40);
  const std::string text = body(R"(
    %pd = llvm.getelementptr %x[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f64
    %d = llvm.load %pd : !llvm.ptr -> f64
    %b = arith.truncf %d : f64 to bf16
    %e = arith.extf %b : bf16 to f32
    llvm.store %e, %po : f32, !llvm.ptr
  )");
  run(text, "const double* x, const float* y, float* out", {&wide, &y, &out});
  for (int64_t i = 0; i < kCount; i += 8) ASSERT_EQ(out.at(i), 1 + 0x1p-7) << i << "\n" << text;
}

// A double is written with as many digits as read back as itself: 9, which a float takes, are few.
TEST_F(Statements, DoublesKeepAllOfTheirDigits) {
  Array wide(DType::F64, {kCount});
  const std::string text = body(R"(
    %pd = llvm.getelementptr %out[%at] : (!llvm.ptr, i32) -> !llvm.ptr, f64
    %third = arith.constant 0.33333333333333331 : f64
    llvm.store %third, %pd : f64, !llvm.ptr
  )");
  run(text, "const float* x, const float* y, double* out", {&x, &y, &wide});
  for (int64_t i = 0; i < kCount; i += 8) ASSERT_EQ(wide.at(i), 1. / 3) << i << "\n" << text;
}

// Narrow integers take the lowest bits of i32: a float beyond their range has no value of its own.
TEST_F(Statements, FloatsBecomeNarrowIntegersByWayOfI32) {
  EXPECT_THAT(body(R"(
    %e = llvm.load %px : !llvm.ptr -> f32
    %b = arith.fptosi %e : f32 to i8
    %w = arith.sitofp %b : i8 to f32
    llvm.store %w, %po : f32, !llvm.ptr
  )"),
              HasSubstr("(i8)(int)"));
}

TEST_F(Statements, KeepsChunksInRegisters) {
  const std::string text = body(R"(
    %kept = llvm.alloca %c2 x vector<8xf32> : (i32) -> !llvm.ptr loc("%x_kept")
    scf.for %k = %c0 to %c2 step %c1 : i32 {
      %v = llvm.load %px : !llvm.ptr -> vector<8xf32>
      %b = arith.sitofp %k : i32 to f32
      %f = vector.broadcast %b : f32 to vector<8xf32>
      %s = arith.mulf %v, %f : vector<8xf32>
      %pk = llvm.getelementptr %kept[%k] : (!llvm.ptr, i32) -> !llvm.ptr, vector<8xf32>
      llvm.store %s, %pk : vector<8xf32>, !llvm.ptr
    } {unroll}
    %pk = llvm.getelementptr %kept[1] : (!llvm.ptr) -> !llvm.ptr, vector<8xf32>
    %v = llvm.load %pk : !llvm.ptr -> vector<8xf32>
    %w = arith.addf %v, %v : vector<8xf32>
    llvm.store %w, %pk : vector<8xf32>, !llvm.ptr
    %u = llvm.load %pk : !llvm.ptr -> vector<8xf32>
    %r = arith.addf %u, %v : vector<8xf32>
    llvm.store %r, %po : vector<8xf32>, !llvm.ptr
  )");
  EXPECT_THAT(text, HasSubstr("  vec<float, 8> x_kept[2];\n"));
  EXPECT_THAT(text, HasSubstr("      x_kept[index][j] = x_v[j] * "));
  expect(text, [&](int64_t i) { return 3 * x.at(i); }, 1e-5);
}

TEST_F(Statements, ReducesOverTheBlock) {
  const std::string text = body(R"(
    %v = llvm.load %px : !llvm.ptr -> f32
    %i = arith.extsi %at : i32 to i64
    %sum = emitc.call_opaque "block_reduce" (%v) {template_args = [32 : i32], args = [0 : index, #emitc.opaque<"Sum{}">]} : (f32) -> f32 loc("%total")
    %best:2 = emitc.call_opaque "block_reduce" (%v, %i) {template_args = [32 : i32], args = [0 : index, 1 : index, #emitc.opaque<"ArgMax{}">]} : (f32, i64) -> (f32, i64) loc("%best")
    %positive = arith.cmpf ogt, %v, %zero : f32
    %any = emitc.call_opaque "block_reduce" (%positive) {template_args = [32 : i32], args = [0 : index, #emitc.opaque<"Or{}">], truth} : (i1) -> i1 loc("%any")
    emitc.call_opaque "block_sync" () : () -> ()
    %f = arith.sitofp %best#1 : i64 to f32
    %one = arith.uitofp %any : i1 to f32
    %r = arith.addf %f, %one : f32
    %p1 = llvm.getelementptr %po[1] : (!llvm.ptr) -> !llvm.ptr, f32
    %p2 = llvm.getelementptr %po[2] : (!llvm.ptr) -> !llvm.ptr, f32
    llvm.store %sum, %po : f32, !llvm.ptr
    llvm.store %r, %p1 : f32, !llvm.ptr
    llvm.store %best#0, %p2 : f32, !llvm.ptr
  )");
  EXPECT_THAT(text, HasSubstr("const float total = block_reduce<32>(x_e, Sum{});\n"));
  EXPECT_THAT(text,
              HasSubstr("const auto best = block_reduce<32>(arg_pair<float>{x_e, (i64)start}, "
                        "ArgMax{});\n"));
  EXPECT_THAT(text,
              HasSubstr("const bool any = block_reduce<32>((u32)(x_e > 0.0f), Or{}) != 0;\n"));
  EXPECT_THAT(text, HasSubstr("  block_sync();\n"));
  double total = 0, best = -1e9, where = 0;
  for (int64_t i = 0; i < kCount; i += 8) {
    total += x.at(i);
    if (x.at(i) > best) best = x.at(i), where = double(i);
  }
  expect(
      text,
      [&](int64_t i) {
        return i % 8 == 0 ? total : i % 8 == 1 ? where + 1 : i % 8 == 2 ? best : 0;
      },
      1e-4);
}

TEST_F(Statements, FindsFormulasOfMovedLanes) {
  struct Move {
    std::string mask, text;
  };
  for (const auto& [mask, want] :
       std::vector<Move>{{"0, 1, 2, 3, 4, 5, 6, 7", "x_v[j]"},
                         {"7, 6, 5, 4, 3, 2, 1, 0", "x_v[7 - j]"},
                         {"1, 0, 3, 2, 5, 4, 7, 6", "x_v[j ^ 1]"},
                         {"4, 5, 6, 7, 0, 1, 2, 3", "x_v[j ^ 4]"},
                         {"1, 2, 3, 4, 5, 6, 7, 0", "x_v[(j + 1) % 8]"},
                         {"0, 0, 2, 2, 4, 4, 6, 6", "x_v[j / 2 * 2]"},
                         {"0, 1, 0, 1, 0, 1, 0, 1", "x_v[j % 2]"},
                         {"0, 4, 1, 5, 2, 6, 3, 7", "x_v[j / 2 + j % 2 * 4]"},
                         {"3, 3, 3, 3, 3, 3, 3, 3", "x_v[3]"},
                         {"0, 1, 2, 3, 8, 9, 10, 11", "j < 4 ? x_v[j] : y_v[j - 4]"},
                         {"8, 1, 10, 3, 12, 5, 14, 7", "j % 2 != 0 ? x_v[j] : y_v[j]"},
                         {"0, 8, 1, 9, 2, 10, 3, 11", "j % 2 == 0 ? x_v[j / 2] : y_v[j / 2]"},
                         {"8, 9, 10, 11, 12, 13, 14, 15", "y_v[j]"},
                         {"3, 1, 4, 1, 5, 2, 6, 5", "x_v[source_lanes[j]]"}}) {
    std::vector<int64_t> from;
    for (size_t at = 0; at < mask.size();
         at = mask.find(' ', at) == std::string::npos ? mask.size() : mask.find(' ', at) + 1)
      from.push_back(std::stoll(mask.substr(at)));
    const std::string text = body(R"(
      %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
      %b = llvm.load %py : !llvm.ptr -> vector<8xf32>
      %m = vector.shuffle %a, %b [)" +
                                  mask + R"(] : vector<8xf32>, vector<8xf32>
      %n = arith.negf %m : vector<8xf32>
      llvm.store %n, %po : vector<8xf32>, !llvm.ptr
    )");
    EXPECT_THAT(text, HasSubstr(want));
    expect(text, [&](int64_t i) {
      const int64_t at = from[size_t(i % 8)];
      return -(at < 8 ? x.at(i / 8 * 8 + at) : y.at(i / 8 * 8 + at - 8));
    });
  }
}

TEST_F(Statements, MovesLanesOfWhatIsComputed) {
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %e = math.floor %a : vector<8xf32> loc("%whole")
    %m = vector.shuffle %e, %e [4, 5, 6, 7, 0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
    %s = arith.subf %e, %m : vector<8xf32>
    %low = vector.shuffle %s, %s [0, 1, 2, 3] : vector<8xf32>, vector<8xf32>
    %high = vector.shuffle %s, %s [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
    %sum = arith.addf %low, %high : vector<4xf32>
    %first = vector.extract %s[5] : f32 from vector<8xf32>
    %firsts = vector.broadcast %first : f32 to vector<4xf32>
    %third = arith.constant dense<[false, false, true, false]> : vector<4xi1>
    %set = arith.select %third, %firsts, %sum : vector<4xi1>, vector<4xf32>
    %weights = arith.constant dense<[1.5, -2.0, 0.25, 3.0]> : vector<4xf32>
    %r = arith.mulf %set, %weights : vector<4xf32>
    llvm.store %r, %po : vector<4xf32>, !llvm.ptr
  )");
  EXPECT_THAT(text, HasSubstr("j == 2 ? "));
  expect(text, [&](int64_t i) {
    auto s = [&](int64_t j) {
      const int64_t at = i / 8 * 8;
      return std::floor(x.at(at + j)) - std::floor(x.at(at + (j ^ 4)));
    };
    const double weights[] = {1.5, -2, 0.25, 3};
    const int64_t j = i % 8;
    return j > 3 ? 0 : weights[j] * (j == 2 ? s(5) : s(j) + s(j + 4));
  });
}

TEST_F(Statements, ReadsConstantsByFormula) {
  const std::string text = body(R"(
    %ramp = arith.constant dense<[3, 5, 7, 9, 11, 13, 15, 17]> : vector<8xi64>
    %f = arith.sitofp %ramp : vector<8xi64> to vector<8xf32>
    %odd = arith.constant dense<[false, true, false, true, false, true, false, true]> : vector<8xi1>
    %some = arith.constant dense<[true, true, false, true, false, false, true, false]> : vector<8xi1>
    %both = arith.ori %odd, %some : vector<8xi1>
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %r = arith.select %both, %f, %a : vector<8xi1>, vector<8xf32>
    llvm.store %r, %po : vector<8xf32>, !llvm.ptr
  )");
  EXPECT_THAT(text, HasSubstr("j * 2 + 3"));
  expect(text, [&](int64_t i) {
    const int64_t j = i % 8;
    return j % 2 || (0x4b >> j & 1) ? double(2 * j + 3) : x.at(i);
  });
}

TEST_F(Statements, StoresAndLoadsInShortLanesOfALoop) {
  // The loop over lanes writes memory that it also reads: a scalar loop with a branch in it.
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> vector<8xf32>
    %s = arith.addf %a, %a : vector<8xf32>
    scf.for %j = %c0 to %c8 step %c1 : i32 {
      %lane = arith.index_cast %j : i32 to index
      %e = vector.extract %s[%lane] : f32 from vector<8xf32>
      %to = arith.addi %at, %j overflow<nsw> : i32
      %positive = arith.cmpf ogt, %e, %zero : f32
      scf.if %positive {
        %p = llvm.getelementptr %out[%to] : (!llvm.ptr, i32) -> !llvm.ptr, f32
        llvm.store %e, %p : f32, !llvm.ptr
      }
    } {lanes}
  )");
  EXPECT_THAT(text, HasSubstr("out[start + j] = "));
  expect(text, [&](int64_t i) { return std::max(2 * x.at(i), 0.0); }, 1e-6);
}

// Operands that begin with a sign, or hold one of lower rank, keep their meaning where they are
// turned round.
TEST_F(Statements, TurnsSignsAndConditionsAsWholes) {
  const std::string store = "\n llvm.store %r, %po : f32, !llvm.ptr";
  const std::string loads =
      "%a = llvm.load %px : !llvm.ptr -> f32\n %b = llvm.load %py : !llvm.ptr -> f32\n";
  auto first = [&](const std::function<double(double, double, int64_t)>& f) {
    return [&, f](int64_t i) { return i % 8 ? 0 : f(x.at(i), y.at(i), i / 8); };
  };
  std::string text = body(loads + R"(
    %true = arith.constant true
    %one = arith.constant 1.0 : f32
    %p = arith.cmpf ogt, %a, %zero : f32
    %n = arith.xori %p, %true : i1
    %q = arith.cmpf ogt, %b, %zero : f32
    %c = arith.andi %n, %q : i1
    scf.if %c {
    } else {
      llvm.store %one, %po : f32, !llvm.ptr
    })");
  EXPECT_THAT(text, HasSubstr("if (!(!("));
  expect(text, first([](double a, double b, int64_t) { return a > 0 || b <= 0 ? 1 : 0; }));

  out = Array(DType::F32, {kCount});
  text = body(loads + R"(
    %r:2 = scf.for %k = %c0 to %c8 step %c1 iter_args(%u = %zero, %v = %b) -> (f32, f32) : i32 {
      %d = arith.subf %a, %u : f32
      %s = arith.addf %a, %v : f32
      scf.yield %d, %s : f32, f32
    }
    %e = arith.addf %r#0, %r#1 : f32
    llvm.store %e, %po : f32, !llvm.ptr)");
  EXPECT_THAT(text, HasSubstr(" = x_e - "));
  expect(text, first([](double a, double b, int64_t) { return 8 * a + b; }), 1e-5);

  out = Array(DType::F32, {kCount});
  text = body(R"(
    %three = arith.constant -3 : i32
    %less = arith.addi %t, %three overflow<nsw> : i32 loc("%less")
    %more = arith.subi %t, %three overflow<nsw> : i32 loc("%more")
    %m = arith.muli %less, %more overflow<nsw> : i32
    %r = arith.sitofp %m : i32 to f32)" +
              store);
  EXPECT_THAT(text, HasSubstr("less = (int)threadIdx.x - 3;"));
  EXPECT_THAT(text, HasSubstr("more = (int)threadIdx.x + 3;"));
  expect(text, first([](double, double, int64_t t) { return double(t * t - 9); }));

  out = Array(DType::F32, {kCount});
  text = body(R"(
    %odd = arith.constant dense<[1, 3, 5, 7, 9, 11, 13, 15]> : vector<8xi32>
    %four = arith.constant 4 : i32
    %rest = arith.remsi %t, %four : i32
    %next = arith.addi %rest, %c1 overflow<nsw> : i32
    %lane = arith.index_cast %next : i32 to index
    %o = vector.extract %odd[%lane] : i32 from vector<8xi32>
    %r = arith.sitofp %o : i32 to f32)" +
              store);
  expect(text, first([](double, double, int64_t t) { return double(2 * (t % 4 + 1) + 1); }));
}

TEST_F(Statements, NamesAndComments) {
  const std::string text = body(R"(
    %a = llvm.load %px : !llvm.ptr -> f32
    %m = arith.addf %a, %a : f32 loc("%mean"("blocks.0.mlp"("/home/model.cpp":12:3)))
    %n = arith.mulf %m, %m : f32 loc("%double"("blocks.0.mlp"("/home/model.cpp":12:3)))
    %o = arith.divf %n, %m : f32 loc("%mean"("head"("/home/model.cpp":40:3)))
    llvm.store %o, %po : f32, !llvm.ptr loc(unknown)
  )");
  EXPECT_THAT(text, HasSubstr("const float mean = x_e + x_e;  // blocks.0.mlp model.cpp:12\n"));
  EXPECT_THAT(text, HasSubstr("const float double2 = mean * mean;\n"));
  EXPECT_THAT(text, HasSubstr("const float mean2 = double2 / mean;  // head model.cpp:40\n"));
}

TEST_F(Statements, ApproximatesOnlyWhereBothAllowIt) {
  const std::string ops = kHead + R"(
    %a = llvm.load %px : !llvm.ptr -> f32
    %e = math.exp %a fastmath<afn> : f32 loc("%loose")
    %f = math.exp %a : f32 loc("%tight")
    %q = arith.divf %e, %f fastmath<arcp> : f32 loc("%ratio")
    %r = arith.divf %q, %f : f32 loc("%exact")
    llvm.store %r, %po : f32, !llvm.ptr
  )";
  const std::string fast = print(kParameters, ops, kNames, true),
                    exact = print(kParameters, ops, kNames, false);
  EXPECT_THAT(fast, HasSubstr("loose = fast_exp(x_e)"));
  EXPECT_THAT(fast, HasSubstr("tight = math_exp(x_e)"));
  EXPECT_THAT(fast, HasSubstr("ratio = fast_div(loose, tight)"));
  EXPECT_THAT(fast, HasSubstr("exact = ratio / tight"));
  EXPECT_THAT(exact, Not(HasSubstr("fast_")));
}

TEST_F(Statements, SaysWhatItCannotPrint) {
  struct Refused {
    std::string body, why;
  };
  for (const auto& [text, why] : std::vector<Refused>{
           {"%r = math.atan %zero : f32\nllvm.store %r, %po : f32, !llvm.ptr", "math.atan"},
           {"\"llvm.intr.trap\"() : () -> ()", "llvm.intr.trap"},
           {"%b = arith.constant 1.0 : bf16\n%c = arith.addf %b, %b : bf16\n"
            "llvm.store %c, %po : bf16, !llvm.ptr",
            "arith.addf on bf16"},
           {"%n = arith.addi %t, %t : i32\n%a = llvm.alloca %n x f32 : (i32) -> !llvm.ptr\n"
            "llvm.store %zero, %a : f32, !llvm.ptr",
            "llvm.alloca of a size that is not constant"}}) {
    body(text);
    EXPECT_THAT(failure, HasSubstr(why)) << text;
  }
}

}  // namespace
}  // namespace lathe::cuda
