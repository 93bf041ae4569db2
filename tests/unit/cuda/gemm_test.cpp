// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/headers.h"
#include "backends/cuda/lowering/nvrtc/nvrtc.h"
#include "backends/cuda/lowering/nvrtc/ptx_gates.h"
#include "tests/cuda_mocks/kernel_texts.h"
#include "tests/unit/cuda/matmul_cases.h"

namespace lathe::cuda {
namespace {

MatmulChoice tiles(int tileM, int tileN, int stages, int warpsM, int warpsN, int splits = 1) {
  MatmulChoice c;
  c.method = MatmulMethod::Gemm;
  c.tileM = tileM;
  c.tileN = tileN;
  c.stages = stages;
  c.warpsM = warpsM;
  c.warpsN = warpsN;
  c.splits = splits;
  return c;
}

struct Way {
  LinearCase linear;
  MatmulChoice choice;
  std::vector<int64_t> rows;
};

// Both layouts of b; whole and ragged tiles in every direction; rows that begin at 16 bytes and
// rows that do not; k shorter than the ring and no multiple of a step.
const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {{DType::BF16, 64, 64, Activation::silu, true, true}, tiles(64, 64, 4, 2, 2), {1, 17, 64}},
      {{DType::BF16, 264, 200, Activation::none, true, false}, tiles(64, 128, 4, 2, 2), {33, 257}},
      {{DType::F16, 257, 264, Activation::gelu, true, true}, tiles(64, 64, 4, 2, 2), {33}},
      {{DType::F16, 33, 257, Activation::none, false, true}, tiles(64, 64, 3, 2, 2), {5, 65}},
      {{DType::BF16, 136, 328, Activation::gelu_tanh, false, true, true},
       tiles(64, 128, 3, 2, 2),
       {130}},
      {{DType::BF16, 31, 33, Activation::none, true, false, true}, tiles(64, 64, 4, 2, 2), {3, 64}},
      {{DType::BF16, 256, 128, Activation::relu, false, true}, tiles(128, 128, 3, 2, 2), {129}},
      {{DType::F16, 264, 72, Activation::none, false, false}, tiles(128, 256, 3, 2, 4), {257}},
      {{DType::BF16, 72, 1032, Activation::silu, true, true}, tiles(64, 64, 4, 2, 2, 4), {17, 65}},
      {{DType::BF16, 1, 1, Activation::none, false, false}, tiles(64, 64, 4, 2, 2), {1}},
      {{DType::BF16, 40, 44, Activation::none, false, false}, tiles(64, 64, 4, 2, 2), {5}},
      {{DType::F16, 44, 40, Activation::none, false, false, true}, tiles(64, 64, 3, 2, 2), {5}},
  };
  return all;
}

TEST(Gemm, EveryWay) {
  for (const Way& way : ways()) {
    KernelSetRun run(only(way.linear.kernel(), way.choice, 512), host::Mode::Fast);
    for (int64_t m : way.rows) expectLinear(run, way.linear, m, schedule("fast"));
  }
}

TEST(Gemm, NoRacesUnderAnySchedule) {
  for (size_t i : {size_t(0), size_t(2), size_t(5), size_t(8)}) {
    const Way& way = ways()[i];
    KernelSetRun run(only(way.linear.kernel(), way.choice, 512), host::Mode::Check);
    for (const char* s :
         {"check,late,forward", "check,eager,reverse", "check,random,seed=5,preempt=97"})
      expectLinear(run, way.linear, way.rows[0], schedule(s));
  }
}

TEST(Gemm, NanAndInfinity) {
  const LinearCase c{DType::BF16, 40, 136};
  KernelSetRun run(only(c.kernel(), tiles(64, 64, 4, 2, 2), 512), host::Mode::Fast);
  expectLinear(run, c, 20, schedule("fast"), true);
}

// Tiles of two weights: gate and up lie one behind the other, their product is stored.
TEST(Gemm, Pairs) {
  for (auto [pairs, k] : {std::pair<int64_t, int64_t>{48, 136}, {37, 136}, {37, 133}}) {
    const int64_t m = 35;
    const std::string n = std::to_string(pairs);
    MatmulKernel p;
    p.name = "gated";
    p.m = DimExpr::symbol("m");
    p.n = pairs;
    p.k = k;
    p.hooks.pairs = true;
    p.hooks.parameters.input("bf16", "x", 0);
    p.hooks.parameters.output("bf16", "y", 2);
    p.hooks.construction = "{x, y}";
    p.hooks.definition =
        "struct Hooks {\n"
        "  const bf16* x;\n"
        "  bf16* y;\n"
        "  static __device__ long long firstColumn(long long pair) { return pair; }\n"
        "  static __device__ long long secondColumn(long long pair) { return pair + " +
        n +
        "; }\n"
        "  __device__ void storePair(long long row, long long pair, float a, float b) const {\n"
        "    y[row * " +
        n +
        " + pair] = to_bf16(a * b);\n"
        "  }\n"
        "  __device__ void storePair8(long long row, long long pair, const float (&a)[8],\n"
        "                             const float (&b)[8]) const {\n"
        "    vec<float, 8> v;\n"
        "    for (int i = 0; i < 8; ++i) v[i] = a[i] * b[i];\n"
        "    store_f32(y + row * " +
        n +
        " + pair, v);\n"
        "  }\n"
        "};\n";
    const std::vector<double> x = randomValues(m * k, DType::BF16, 1),
                              w = randomValues(2 * pairs * k, DType::BF16, 2);
    std::vector<double> want(size_t(m * pairs)), magnitude(want.size());
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < pairs; ++j) {
        double sums[2] = {}, all[2] = {};
        for (int64_t q = 0; q < k; ++q)
          for (int64_t h = 0; h < 2; ++h) {
            const double term = x[size_t(i * k + q)] * w[size_t((j + h * pairs) * k + q)];
            sums[h] += term;
            all[h] += std::abs(term);
          }
        want[size_t(i * pairs + j)] = sums[0] * sums[1];
        magnitude[size_t(i * pairs + j)] = all[0] * all[1];
      }
    for (const MatmulChoice& choice : {tiles(128, 64, 3, 2, 2), tiles(64, 64, 4, 2, 2, 2)}) {
      KernelSetRun run(only(p, choice, 128), host::Mode::Fast);
      std::vector<RunBuffer> buffers(3);
      buffers[0].bytes = encoded(x, DType::BF16);
      buffers[1].bytes = encoded(w, DType::BF16);
      buffers[2].bytes.resize(want.size() * 2);
      buffers[2].isOutput = true;
      run.run(buffers, {{"m", m}}, schedule("fast"));
      expectNear(decoded(buffers[2].bytes, DType::BF16), want, magnitude, DType::BF16, run.what());
    }
  }
}

// Rows that are normed on their way, in blocks that share k: each block's gains are those of its
// own steps. Here 5 steps of 64, the last of them ragged, in two and three parts.
TEST(Gemm, NormedRowsInSplits) {
  const int64_t m = 18, n = 40, k = 296;
  MatmulKernel p;
  p.name = "normed";
  p.m = DimExpr::symbol("m");
  p.n = n;
  p.k = k;
  p.b = 2;
  p.hooks.staged = p.hooks.normed = true;
  p.hooks.parameters.input("bf16", "x", 0);
  p.hooks.parameters.input("bf16", "gain", 1);
  p.hooks.parameters.output("bf16", "y", 3);
  p.hooks.construction = "{x, gain, y}";
  p.hooks.definition =
      "struct Hooks {\n"
      "  const bf16 *x, *gain;\n"
      "  bf16* y;\n"
      "  static constexpr bool kHasGains = true;\n"
      "  __device__ const bf16* rows() const { return x; }\n"
      "  __device__ const bf16* gains() const { return gain; }\n"
      "  static __device__ float rowScale(float squares) { return math_rsqrt(squares); }\n"
      "  static __device__ bf16 normed(bf16 x, float scale, bf16 gain) {\n"
      "    return to_bf16(to_f32(x) * scale * to_f32(gain));\n"
      "  }\n"
      "  __device__ void store(long long row, long long column, float v) const {\n"
      "    y[row * 40 + column] = to_bf16(v);\n"
      "  }\n"
      "  __device__ void store8(long long row, long long column, const float (&v)[8]) const {\n"
      "    for (int i = 0; i < 8; ++i) store(row, column + i, v[i]);\n"
      "  }\n"
      "};\n";
  const std::vector<double> x = randomValues(m * k, DType::BF16, 1),
                            w = randomValues(n * k, DType::BF16, 2),
                            gain = randomValues(k, DType::BF16, 3);
  std::vector<double> want(size_t(m * n)), magnitude(want.size());
  for (int64_t i = 0; i < m; ++i) {
    double squares = 0;
    for (int64_t q = 0; q < k; ++q) squares += x[size_t(i * k + q)] * x[size_t(i * k + q)];
    for (int64_t j = 0; j < n; ++j)
      for (int64_t q = 0; q < k; ++q) {
        const double normed = x[size_t(i * k + q)] / std::sqrt(squares) * gain[size_t(q)];
        const double term = double(bf16ToFloat(floatToBf16(float(normed)))) * w[size_t(j * k + q)];
        want[size_t(i * n + j)] += term;
        // A normed element may be rounded the other way.
        magnitude[size_t(i * n + j)] += std::abs(term) * 200;
      }
  }
  for (int splits : {1, 2, 3}) {
    KernelSetRun run(only(p, tiles(64, 64, 4, 2, 2, splits), 64), host::Mode::Check);
    std::vector<RunBuffer> buffers(4);
    buffers[0].bytes = encoded(x, DType::BF16);
    buffers[1].bytes = encoded(gain, DType::BF16);
    buffers[2].bytes = encoded(w, DType::BF16);
    buffers[3].bytes.resize(want.size() * 2);
    buffers[3].isOutput = true;
    run.run(buffers, {{"m", m}}, schedule("check,random,seed=3"));
    expectNear(decoded(buffers[3].bytes, DType::BF16), want, magnitude, DType::BF16, run.what());
  }
}

TEST(Gemm, GpuCode) {
  SKIP_WITHOUT_NVRTC();
  Headers headers(deviceHeaders().begin(), deviceHeaders().end());
  for (const MatmulChoice& choice :
       {tiles(64, 64, 4, 2, 2, 4), tiles(128, 128, 3, 2, 2), tiles(128, 256, 3, 2, 4)}) {
    const LinearCase c{DType::BF16, 2048, 2048, Activation::silu, true, true};
    const KernelText text = only(c.kernel(), choice, 512).kernels[0];
    const NvrtcOutput out = Nvrtc::library().compile(text.name, text.source, headers, "sm_90a");
    const KernelReport report{readCubin(out.cubin, out.log).at(text.name), countPtx(out.ptx)};
    GateSpec spec;
    // Of one step of 64: 16 x 8 x 16 products, and the warps' reads of 16 x 16.
    const int warps = choice.warpsM * choice.warpsN, mma = choice.tileM * choice.tileN / 32 / warps,
              reads = (choice.tileM / choice.warpsM + choice.tileN / choice.warpsN) / 4;
    spec.counts = {{"mma", mma, mma}, {"ldmatrix", reads, reads}, {"async_copies", 16}};
    EXPECT_EQ(gateViolations(text.name, report, spec), std::vector<std::string>{});
  }
}

}  // namespace
}  // namespace lathe::cuda
