// SPDX-License-Identifier: Apache-2.0
// Up to 64 rows, a projection is one kernel with the norm in front and the gate or the conversion
// behind it: tiles norm their rows on the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "tests/closeness.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

enum class Behind { Nothing, Gate, Cast };

struct Form {
  const char* name;
  DType dtype;
  int64_t depth, columns;  ///< of the projection; a gate has half of them
  GainRounding rounding;
  bool hasGain = true;
  Behind behind = Behind::Nothing;
};
void PrintTo(const Form& f, std::ostream* os) { *os << f.name; }

Graph graphOf(const Form& f) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 128);
  Tensor x = g.input("x", f.dtype, {rows, f.depth});
  Tensor gain = f.hasGain ? g.weight("gain", f.dtype, {f.depth}) : Tensor();
  Tensor y = fused::linear(fused::rmsNorm(x, gain, 1e-5, f.rounding),
                           g.weight("w", f.dtype, {f.columns, f.depth}));
  if (f.behind == Behind::Gate)
    y = fused::glu(sliceAxis(y, -1, 0, f.columns / 2),
                   sliceAxis(y, -1, f.columns / 2, f.columns / 2));
  if (f.behind == Behind::Cast) y = cast(y, DType::F32);
  g.output("y", y);
  return g;
}

class FusedRowsOf : public ::testing::TestWithParam<Form> {};

TEST_P(FusedRowsOf, AreOneKernelAndTheReferences) {
  const Form& f = GetParam();
  const Graph graph = graphOf(f);
  auto program = std::make_shared<Program>(compile(graph, {.backend = "cuda"}));
  Session reference(compile(graph, {.backend = "reference"}));
  reference.bindRandomWeights(3);
  uint64_t seed = 1;
  for (int64_t rows : {16, 17, 33, 64, 65}) {
    const bool isOne = f.depth % 8 == 0 || rows <= 16;
    EXPECT_EQ(launchesOf(*program, rows) == 1, isOne && rows <= 64) << rows << " rows";
    HostProgram cuda(program, "check,random,seed=" + std::to_string(seed++));
    cuda.session().bindRandomWeights(3);
    Array x(f.dtype, {rows, f.depth});
    for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i * i % 1009)) * 2);
    x.set(f.depth * (rows - 1), INFINITY);  // a row of NaN, and no other
    const Array got = cuda.session().run("forward", {{"x", x}}).at("y"),
                want = reference.run("forward", {{"x", x}}).at("y");
    ASSERT_EQ(got.shape(), want.shape());
    double largest = 0;
    for (int64_t i = 0; i < want.size(); ++i)
      if (std::isfinite(want.at(i))) largest = std::max(largest, std::abs(want.at(i)));
    // A normed element may be rounded the other way, and the result again.
    const double bound = largest * (f.dtype == DType::BF16 ? 1.0 / 64 : 1.0 / 512);
    int wrong = 0;
    // The projection's own rounding, in front of the conversion.
    if (f.behind == Behind::Cast)
      for (int64_t i = 0; i < got.size() && wrong < 4; ++i)
        if (std::isfinite(got.at(i)) && got.at(i) != bf16ToFloat(floatToBf16(float(got.at(i))))) {
          ++wrong;
          ADD_FAILURE() << rows << " rows, element " << i << " is no bf16: " << got.at(i);
        }
    for (int64_t i = 0; i < want.size() && wrong < 4; ++i)
      if (!isNear(got.at(i), want.at(i), bound)) {
        ++wrong;
        ADD_FAILURE() << rows << " rows, element " << i << " is " << got.at(i) << ", expected "
                      << want.at(i);
      }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Forms, FusedRowsOf,
    ::testing::Values(
        Form{"bf16_gain_behind_the_rounding", DType::BF16, 136, 72, GainRounding::before_gain},
        Form{"f16_gain_before_the_rounding", DType::F16, 520, 40, GainRounding::after_gain},
        Form{"bf16_without_gain", DType::BF16, 64, 33, GainRounding::after_gain, false},
        Form{"bf16_gated", DType::BF16, 136, 48, GainRounding::before_gain, true, Behind::Gate},
        Form{"bf16_gated_by_odd_halves", DType::BF16, 72, 74, GainRounding::after_gain, true,
             Behind::Gate},
        Form{"bf16_converted", DType::BF16, 200, 88, GainRounding::before_gain, true, Behind::Cast},
        Form{"bf16_rows_that_are_no_chunks", DType::BF16, 68, 40, GainRounding::before_gain}),
    [](const auto& info) { return std::string(info.param.name); });

// Columns of two products each are exact sums in f32, so what is rounded on the way shows: the
// norm in front of its gain, the normed element, the projection, and the gate.
TEST(FusedRows, AreRoundedWhereTheOpsAre) {
  constexpr int64_t kDepth = 64;
  for (GainRounding rounding : {GainRounding::before_gain, GainRounding::after_gain})
    for (Behind behind : {Behind::Nothing, Behind::Gate}) {
      const int64_t columns = behind == Behind::Gate ? 2 * kDepth : kDepth;
      const Graph graph =
          graphOf({"diagonals", DType::BF16, kDepth, columns, rounding, true, behind});
      HostProgram cuda(std::make_shared<Program>(compile(graph, {.backend = "cuda"})),
                       "check,random");
      Session reference(compile(graph, {.backend = "reference"}));
      Array w(DType::BF16, {columns, kDepth}), gain(DType::BF16, {kDepth});
      for (int64_t i = 0; i < columns; ++i) {
        w.set(i * kDepth + i % kDepth, 1);
        w.set(i * kDepth + (i + 1) % kDepth, 0.3203125);
      }
      for (int64_t i = 0; i < kDepth; ++i) gain.set(i, 1 + double(i * 29 % 64) / 64);
      reference.bindWeights(Arrays{{"w", w}, {"gain", gain}});
      cuda.session().bindWeights(Arrays{{"w", w}, {"gain", gain}});
      for (int64_t rows : {8, 20, 64}) {
        Array x(DType::BF16, {rows, kDepth});
        for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i * i % 1009)) * 2);
        const Array got = cuda.session().run("forward", {{"x", x}}).at("y"),
                    want = reference.run("forward", {{"x", x}}).at("y");
        int64_t apart = 0;  // a sum of squares in another order moves few
        for (int64_t i = 0; i < want.size(); ++i) apart += got.at(i) != want.at(i);
        EXPECT_LE(apart, want.size() / 50)
            << rows << " rows" << (behind == Behind::Gate ? ", gated" : "");
      }
    }
}

// Sixteen rows of 8192 elements do not fit in shared memory: there is no stream over the weights.
TEST(FusedRows, OfManyElementsTakeTiles) {
  const Program program = compile(
      graphOf({"wide", DType::BF16, 8192, 64, GainRounding::before_gain}), {.backend = "cuda"});
  for (int64_t rows : {1, 8, 9, 16, 17, 64})
    EXPECT_EQ(launchesOf(program, rows), 1) << rows << " rows";
}

// Gains are asked for in chunks of 16 bytes, as the instruction takes them.
TEST(FusedRows, PrefetchGainsOfWholeChunks) {
  for (int64_t depth : {136, 68}) {
    const Program program = compile(
        graphOf({"gains", DType::BF16, depth, 40, GainRounding::before_gain}), {.backend = "cuda"});
    bool some = false;
    for (const KernelCode& k : kernelCodeOf(program))
      some |= k.source.find("prefetch_l2_bulk(norm_gain, 272)") != std::string::npos ||
              (depth == 68 && k.source.find("prefetch_l2_bulk(") != std::string::npos);
    EXPECT_EQ(some, depth == 136) << depth;
  }
}

// A norm over one element, whose result has no axes.
TEST(FusedRows, ANormMayBecomeAScalar) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {1});
  g.output("y", exp(reshape(fused::rmsNorm(x, Tensor(), 1e-5, GainRounding::after_gain), Dims{})));
  HostProgram cuda(std::make_shared<Program>(compile(g, {.backend = "cuda"})), "check");
  const Array y = cuda.session().run("forward", {{"x", Array::fromFloats({-2}, {1})}}).at("y");
  EXPECT_EQ(y.shape(), Shape{});
  EXPECT_NEAR(y.at(0), std::exp(-1.0), 1e-5);
}

}  // namespace
}  // namespace lathe::cuda
