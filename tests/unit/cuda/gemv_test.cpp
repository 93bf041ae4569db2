// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/headers.h"
#include "backends/cuda/lowering/nvrtc/nvrtc.h"
#include "backends/cuda/lowering/nvrtc/ptx_gates.h"
#include "backends/cuda/lowering/matmul/gemm_choices.h"
#include "tests/cuda_mocks/kernel_texts.h"
#include "tests/unit/cuda/matmul_cases.h"

namespace lathe::cuda {
namespace {

MatmulChoice gemv(MatmulMethod method, int warpsN, int warpsK, int splits, int columns, int steps) {
  MatmulChoice c;
  c.method = method;
  c.warpsN = warpsN;
  c.warpsK = warpsK;
  c.splits = splits;
  c.columns = columns;
  c.steps = steps;
  return c;
}
MatmulChoice mma(int warpsN, int warpsK, int splits, int steps) {
  return gemv(MatmulMethod::GemvMma, warpsN, warpsK, splits, 4, steps);
}
MatmulChoice dot(int warpsN, int warpsK, int splits, int columns, int steps) {
  return gemv(MatmulMethod::GemvDot, warpsN, warpsK, splits, columns, steps);
}

struct Way {
  LinearCase linear;
  MatmulChoice choice;
  int64_t rows;
};

// Every way to share the work, awkward sizes, all epilogues.
const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {{DType::BF16, 257, 264, Activation::silu, true, true}, mma(2, 4, 1, 2), 16},
      {{DType::F16, 31, 1000, Activation::gelu, true, false}, mma(8, 1, 1, 2), 8},
      {{DType::BF16, 33, 2048, Activation::none, false, true}, mma(1, 8, 2, 2), 8},
      {{DType::F16, 1, 72, Activation::gelu_tanh, false, false}, mma(4, 2, 4, 1), 16},
      {{DType::BF16, 257, 264, Activation::relu, true, true}, dot(4, 2, 1, 2, 1), 4},
      {{DType::F16, 33, 1000, Activation::none, false, true}, dot(8, 1, 1, 4, 2), 1},
      {{DType::F32, 31, 1032, Activation::gelu, true, true}, dot(2, 4, 2, 2, 2), 16},
      {{DType::F32, 33, 257, Activation::none, true, false}, dot(4, 2, 1, 1, 4), 16},
      {{DType::BF16, 31, 33, Activation::silu, false, true}, dot(4, 2, 2, 2, 1), 8},
      {{DType::F16, 5, 1, Activation::none, false, false}, dot(8, 1, 1, 1, 1), 3},
  };
  return all;
}

TEST(Gemv, EveryWayAndNumberOfRows) {
  for (const Way& way : ways()) {
    KernelSetRun run(only(way.linear.kernel(), way.choice, way.rows), host::Mode::Fast);
    for (int64_t m : {1, 2, 3, 5, 8, 16})
      if (m <= way.rows) expectLinear(run, way.linear, m, schedule("fast"));
  }
}

TEST(Gemv, NoRacesUnderAnySchedule) {
  for (const Way& way : ways()) {
    KernelSetRun run(only(way.linear.kernel(), way.choice, way.rows), host::Mode::Check);
    for (const char* s :
         {"check,late,forward", "check,eager,reverse", "check,random,seed=7,preempt=97"})
      expectLinear(run, way.linear, std::min<int64_t>(way.rows, 3), schedule(s));
  }
}

TEST(Gemv, NanAndInfinity) {
  for (MatmulChoice choice : {mma(2, 4, 1, 1), dot(2, 4, 1, 2, 1)}) {
    const LinearCase c{DType::BF16, 33, 136};
    KernelSetRun run(only(c.kernel(), choice, 4), host::Mode::Fast);
    expectLinear(run, c, 3, schedule("fast"), true);
  }
}

// Rows that do not fit shared memory are read where they lie.
TEST(Gemv, LongRows) {
  const LinearCase c{DType::BF16, 17, 4096};
  const MatmulSizes sizes{16, c.n, c.k, 1};
  ASSERT_EQ(gemvPlan(c.kernel(), sizes, mma(1, 8, 1, 2)).source, GemvSource::Global);
  KernelSetRun run(only(c.kernel(), mma(1, 8, 1, 2), 16), host::Mode::Fast);
  expectLinear(run, c, 13, schedule("fast"));
}

// A norm in front, gate and up behind: rows are computed by the block, columns come in pairs.
TEST(Gemv, StagedRowsAndPairs) {
  const int64_t pairs = 37, k = 264;
  for (const MatmulChoice& choice : {mma(2, 4, 1, 1), mma(4, 1, 2, 2), dot(4, 2, 1, 2, 1)}) {
    MatmulKernel p;
    p.name = "gated";
    p.m = DimExpr::symbol("m");
    p.n = pairs;
    p.k = k;
    p.hooks.staged = p.hooks.pairs = true;
    p.hooks.parameters.input("bf16", "x", 0);
    p.hooks.parameters.output("bf16", "y", 2);
    p.hooks.construction = "{x, y}";
    p.hooks.definition =
        "struct Hooks {\n"
        "  const bf16* x;\n"
        "  bf16* y;\n"
        "  __device__ void prefetch() const {}\n"
        "  __device__ void stage(long long row, bf16* to) const {\n"
        "    float sum = 0.0f;\n"
        "    for (int i = (int)threadIdx.x; i < 264; i += kThreads) {\n"
        "      const float v = to_f32(x[row * 264 + i]);\n"
        "      sum = fmaf(v, v, sum);\n"
        "    }\n"
        "    const float scale = math_rsqrt(block_sum<kThreads>(sum) / 264.0f);\n"
        "    for (int i = (int)threadIdx.x; i < 264; i += kThreads)\n"
        "      to[i] = to_bf16(to_f32(x[row * 264 + i]) * scale);\n"
        "  }\n"
        "  static __device__ long long firstColumn(long long pair) { return pair; }\n"
        "  static __device__ long long secondColumn(long long pair) { return pair + 37; }\n"
        "  __device__ void storePair(long long row, long long pair, float gate, float up) const {\n"
        "    y[row * 37 + pair] = to_bf16(matmulActivation<activation_silu>(gate) * up);\n"
        "  }\n"
        "};\n";
    KernelSetRun run(only(p, choice, 8), host::Mode::Check);
    const int64_t m = 3;
    const std::vector<double> x = randomValues(m * k, DType::BF16, 1),
                              w = randomValues(2 * pairs * k, DType::BF16, 2);
    std::vector<double> want(size_t(m * pairs)), magnitude(want.size());
    for (int64_t i = 0; i < m; ++i) {
      double squares = 0;
      for (int64_t q = 0; q < k; ++q) squares += x[size_t(i * k + q)] * x[size_t(i * k + q)];
      std::vector<double> row(static_cast<size_t>(k));
      for (int64_t q = 0; q < k; ++q)
        row[size_t(q)] = x[size_t(i * k + q)] / std::sqrt(squares / double(k));
      row = decoded(encoded(row, DType::BF16), DType::BF16);
      for (int64_t j = 0; j < pairs; ++j) {
        double gate = 0, up = 0, all = 0;
        for (int64_t q = 0; q < k; ++q) {
          gate += row[size_t(q)] * w[size_t(j * k + q)];
          up += row[size_t(q)] * w[size_t((j + pairs) * k + q)];
          all += std::abs(row[size_t(q)]);
        }
        want[size_t(i * pairs + j)] = activated(Activation::silu, gate) * up;
        // One rounding of a row's element may fall to the other side.
        magnitude[size_t(i * pairs + j)] = all * 100;
      }
    }
    std::vector<RunBuffer> buffers(3);
    buffers[0].bytes = encoded(x, DType::BF16);
    buffers[1].bytes = encoded(w, DType::BF16);
    buffers[2].bytes.resize(want.size() * 2);
    buffers[2].isOutput = true;
    run.run(buffers, {{"m", m}}, schedule("check,random,seed=3,preempt=97"));
    expectNear(decoded(buffers[2].bytes, DType::BF16), want, magnitude, DType::BF16, run.what());
  }
}

TEST(Gemv, ChosenByTheModel) {
  for (DType dtype : {DType::BF16, DType::F32})
    for (int64_t k : {257, 512}) {
      const LinearCase c{dtype, 65, k, Activation::silu, true, true};
      const KernelSet set = kernelsOf(c.kernel());
      KernelSetRun run(set, host::Mode::Fast);
      for (int64_t m : {1, 2, 3, 5, 16, 17, 33, 257}) expectLinear(run, c, m, schedule("fast"));
    }
}

// The first rows of decoding are streams that keep the memory busy; more rows go to tiles.
TEST(Gemv, ModelPrefersStreamsForFewRows) {
  LinearCase c{DType::BF16, 2048, 2048};
  for (int64_t rows : {1, 8, 16}) {
    const MatmulChoice best = matmulCandidates(c.kernel(), {rows, c.n, c.k, 1}).front();
    EXPECT_TRUE(best.method == MatmulMethod::GemvDot || best.method == MatmulMethod::GemvMma);
    const GemvPlan plan = gemvPlan(c.kernel(), {rows, c.n, c.k, 1}, best);
    EXPECT_GE(best.warpsN * best.warpsK * 32 * plan.loads * 16, 16 * 1024) << rows;
  }
  EXPECT_EQ(matmulCandidates(c.kernel(), {2048, c.n, c.k, 1}).front().method, MatmulMethod::Gemm);
  // A matrix of 128256 columns is read at the roof: 525 MB in 114 us.
  c.n = 128256;
  const MatmulSizes head{1, c.n, c.k, 1};
  const MatmulChoice best = matmulCandidates(c.kernel(), head)[0];
  EXPECT_NE(best.method, MatmulMethod::Gemm);
  const double seconds = matmulSeconds(c.kernel(), head, best);
  EXPECT_GT(seconds, 114e-6);
  EXPECT_LT(seconds, 150e-6);
}

// What the GPU gets: nothing in local memory, weights by 16 bytes and requested before the wait for
// the kernel in front, tensor cores where the choice says so.
TEST(Gemv, GpuCode) {
  SKIP_WITHOUT_NVRTC();
  Headers headers(deviceHeaders().begin(), deviceHeaders().end());
  for (int64_t rows : {1, 4, 16}) {
    const LinearCase c{DType::BF16, 2048, 2048, Activation::silu, true, true};
    // Two blocks on a processor: the sums of 16 rows leave room for half as many loads.
    const int steps = rows > 8 ? 1 : 2;
    for (const MatmulChoice& choice : {mma(2, 4, 1, steps), dot(4, 2, 1, 2, 4)}) {
      if (choice.method == MatmulMethod::GemvDot && rows > 4) continue;
      const KernelText text = only(c.kernel(), choice, rows).kernels[0];
      const NvrtcOutput out = Nvrtc::library().compile(text.name, text.source, headers, "sm_90a");
      const KernelReport report{readCubin(out.cubin, out.log).at(text.name), countPtx(out.ptx)};
      GateSpec spec;
      // Three batches are in the text: the first one and the two of the loop.
      const bool isMma = choice.method == MatmulMethod::GemvMma;
      spec.counts = {{"vector_loads", isMma ? 12 * steps : 24}, {"grid_waits", 1, 1}};
      if (isMma) spec.counts.push_back({"mma", 32});
      spec.registers = 128;
      EXPECT_EQ(gateViolations(text.name, report, spec), std::vector<std::string>{});
      EXPECT_LT(out.ptx.find("ld.global.nc.L1::no_allocate.v4"),
                out.ptx.find("griddepcontrol.wait"));
    }
  }
}

}  // namespace
}  // namespace lathe::cuda
