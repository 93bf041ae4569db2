// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/matmul/gemm_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "backends/cuda/lowering/matmul/gemm_choices.h"
#include "backends/cuda/templates/lathe_matmul_plan.cuh"

namespace lathe::cuda {
namespace {

constexpr int64_t kUnlimited = std::numeric_limits<int64_t>::max();

int64_t constantOf(const DimExpr& size, int64_t otherwise) {
  return size.asConstant().value_or(otherwise);
}
int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
const char* flag(bool value) { return value ? "true" : "false"; }

// Sizes by which the model ranks choices for up to `rows` rows.
MatmulSizes sizesFor(const MatmulKernel& p, int64_t rows) {
  MatmulSizes s;
  s.rows = std::min<int64_t>(rows, constantOf(p.m, 4096));
  s.n = constantOf(p.n, 1024);
  s.k = constantOf(p.k, 1024);
  for (const DimExpr& d : p.batch) s.batch *= constantOf(d, 8);
  return s;
}

std::string header(std::string_view includes, const MatmulHooks& hooks, int threads,
                   std::string_view config, bool tiles = false) {
  return fmt::format("{}\nconstexpr int kThreads = {};\nstruct Config {{\n{}}};\n{}\n", includes,
                     threads, config,
                     hooks.definitionFor ? hooks.definitionFor(threads, tiles) : hooks.definition);
}

struct Printed {
  std::string source;
  Launch launch;
  DimExpr scratchBytes = 0;
};

// Room for partial sums, and what counts the blocks that have left theirs.
void addScratch(Printed& out, KernelParameters& parameters, int64_t sums, int64_t counters) {
  parameters.scratch("float", "partial", 0);
  parameters.counters("counters", counters);
  out.scratchBytes = roundUp(sums * 4, 256);
}

Printed printGemv(const MatmulKernel& p, const MatmulChoice& c, int64_t rows,
                  const std::string& name) {
  const MatmulSizes s = sizesFor(p, rows);
  const GemvPlan plan = gemvPlan(p, s, c);
  const bool mma = c.method == MatmulMethod::GemvMma;
  const int threads = 32 * c.warpsN * c.warpsK;
  const std::string_view type = elementType(p.dtype);
  constexpr const char* kSources[] = {"kStagedInput", "kCopiedInput", "kGlobalInput"};
  const auto& clusterInput = p.hooks.clusterInput;
  std::string config = fmt::format(
      "  typedef {} Input;\n"
      "  static constexpr long long kN = {};\n"
      "  static constexpr int kK = {}, kRows = {}, kColumns = {};\n"
      "  static constexpr int kWarpsN = {}, kWarpsK = {}, kSplits = {}, kBatch = {};\n"
      "  static constexpr GemvSource kSource = {};\n"
      "  static constexpr bool kPairs = {}, kConstantWeights = {};\n"
      "  static constexpr int kSumPairs = {};\n",
      type, s.n, s.k, plan.rows, c.columns, c.warpsN, c.warpsK, c.splits, c.steps,
      clusterInput ? "kClusterInput" : kSources[int(plan.source)], flag(p.hooks.pairs),
      flag(p.constantB), p.hooks.sumPairs);
  Printed out;
  KernelParameters parameters = p.hooks.parameters;
  parameters.input(type, "w", p.b);
  std::string scratch = "nullptr, nullptr";
  if (c.splits > 1) {
    const int64_t slots = plan.groupColumns * plan.rows * c.warpsN;
    addScratch(out, parameters, plan.blocks * slots * c.splits, plan.blocks);
    scratch = "partial, counters";
  }
  const std::string m = parameters.size("m", p.m);
  std::string body = fmt::format(
      "  constexpr i64 batch = 0;\n{}  const Hooks hooks = {};\n  gemv<{}, Config>(hooks, w, {}, "
      "{});\n",
      clusterInput ? clusterInput->statements : "", p.hooks.construction,
      mma ? "GemvMma" : "GemvDot", m, scratch);
  const std::string file = clusterInput ? clusterInput->header : "lathe_gemv.cuh";
  out.source = header(fmt::format("#include \"{}\"\n", file), p.hooks, threads, config) +
               kernelFunction(name, threads, parameters, body,
                              clusterInput ? 1 : std::max(plan.resident, 1));
  out.launch.grid[0] = {plan.blocks, 1, plan.together};
  out.launch.cluster = clusterInput ? clusterInput->cluster : plan.cluster;
  out.launch.grid[1] = {c.splits, 1, 0};
  out.launch.threads = threads;
  out.launch.sharedBytes = clusterInput ? clusterInput->sharedBytes : plan.sharedBytes;
  out.launch.arguments = parameters.arguments();
  out.launch.checks = parameters.checks();
  return out;
}

// Statements that define `batch`, and where its matrices of a and b begin.
std::string batchOffsets(const MatmulKernel& p, KernelParameters& parameters) {
  std::string text = "    i64 rest = batch, aAt = 0, bAt = 0;\n";
  for (size_t i = p.batch.size(); i-- > 0;) {
    const std::string at = std::to_string(i), size = parameters.size("batch" + at, p.batch[i]);
    text += fmt::format(
        "    aAt += rest % {0} * {1};\n    bAt += rest % {0} * {2};\n    rest /= {0};\n", size,
        parameters.size("aStride" + at, p.aStrides[i]),
        parameters.size("bStride" + at, p.bStrides[i]));
  }
  return text;
}

// `product` computes one matrix from `aAt` and `bAt`; a kernel with batch axes strides over them.
std::string batchLoop(const MatmulKernel& p, KernelParameters& parameters,
                      const std::string& matmul) {
  if (p.batch.empty())
    return "  constexpr i64 batch = 0, aAt = 0, bAt = 0;\n  {\n" + matmul + "  }\n";
  DimExpr count = 1;
  for (const DimExpr& d : p.batch) count = count * d;
  return fmt::format(
      "  for (i64 batch = blockIdx.z; batch < {}; batch += gridDim.z) {{\n"
      "    if (batch != blockIdx.z) block_sync();\n{}{}  }}\n",
      parameters.size("batches", count), batchOffsets(p, parameters), matmul);
}

void setGrid(Launch& launch, const MatmulKernel& p, const MatmulChoice& c) {
  DimExpr count = 1;
  for (const DimExpr& d : p.batch) count = count * d;
  launch.grid[0] = {p.m, c.tileM, 0};
  launch.grid[1] = {.count = p.n, .per = c.tileN, .folds = true};
  launch.grid[2] = {c.splits > 1 ? DimExpr(c.splits) : count, 1, kMostOnAxis};
}

// How rows of `length` elements begin, as far as that is known now.
const char* alignmentOf(const DimExpr& length) {
  auto constant = length.asConstant();
  if (!constant) return "kCheckedRows";
  return *constant % 8 == 0 ? "kAlignedRows" : "kUnalignedRows";
}

Printed printGemm(const MatmulKernel& p, const MatmulChoice& c, int64_t rows,
                  const std::string& name) {
  const int threads = 32 * c.warpsM * c.warpsN;
  const std::string_view type = elementType(p.dtype);
  std::string config = fmt::format(
      "  typedef {} Input;\n"
      "  static constexpr int kTileM = {}, kTileN = {}, kStages = {}, kWarpsM = {}, kWarpsN = {};\n"
      "  static constexpr int kSplits = {}, kSumPairs = {};\n"
      "  static constexpr bool kTransposedB = {}, kPairs = {}, kConstantB = {};\n"
      "  static constexpr bool kNormed = {}, kVectors = {};\n",
      type, c.tileM, c.tileN, c.stages, c.warpsM, c.warpsN, c.splits, p.hooks.sumPairs,
      flag(p.transposedB), flag(p.hooks.pairs), flag(p.constantB), flag(p.hooks.staged),
      flag(p.hooks.vectors));
  Printed out;
  KernelParameters parameters = p.hooks.parameters;
  parameters.input(type, "b", p.b);
  std::string scratch;
  if (c.splits > 1) {
    const int64_t n = *p.n.asConstant(), halves = p.hooks.pairs ? 2 : 1;
    const int64_t tiles = ((rows + c.tileM - 1) / c.tileM) * ((n + c.tileN - 1) / c.tileN);
    addScratch(out, parameters, tiles * c.splits * halves * c.tileM * c.tileN, tiles);
    scratch = ", (int)blockIdx.z, partial, counters";
  }
  const std::string m = parameters.size("m", p.m), n = parameters.size("n", p.n),
                    k = parameters.size("k", p.k);
  const DimExpr& inner = p.transposedB ? p.n : p.k;
  // Pairs are any rows of b: those of the last pair are the farthest.
  const std::string rowsOfB = p.transposedB ? k : p.hooks.pairs ? "1ll << 62" : n;
  const std::string matmul = fmt::format(
      "    const Hooks hooks = {0};\n"
      "    const DenseOperand<{1}, {2}> left{{hooks.{10} + aAt, {3}, {5}, {5}}};\n"
      "    const DenseOperand<{1}, {6}> right{{b + bAt, {7}, {8}, {8}}};\n"
      "    gemm<Config>(hooks, left, right, {3}, {4}, {5}{9});\n",
      p.hooks.construction, type, alignmentOf(p.k), m, n, k, alignmentOf(inner), rowsOfB,
      p.transposedB ? n : k, scratch, p.hooks.staged ? "rows()" : "x");
  const std::string body = batchLoop(p, parameters, matmul);
  out.source = header("#include \"lathe_gemm.cuh\"\n", p.hooks, threads, config, true) +
               kernelFunction(name, threads, parameters, body);
  out.launch.threads = threads;
  out.launch.sharedBytes = gemmSharedBytes(c.tileM, c.tileN, c.stages, p.hooks.pairs);
  setGrid(out.launch, p, c);
  out.launch.arguments = parameters.arguments();
  out.launch.checks = parameters.checks();
  return out;
}

constexpr int kSimtThreads = 256;

std::string simtConfig(std::string_view type, const MatmulChoice& c, bool columnsFirst) {
  return fmt::format(
      "  typedef {} Input;\n"
      "  static constexpr int kTileM = {}, kTileN = {}, kTileK = 16, kThreadM = {}, kThreadN = "
      "{};\n"
      "  static constexpr bool kColumnsFirst = {};\n",
      type, c.tileM, c.tileN, c.tileM / 16, c.tileN / 16, flag(columnsFirst));
}

Printed printSimt(const MatmulKernel& p, const MatmulChoice& c, const std::string& name) {
  const std::string_view type = elementType(p.dtype);
  Printed out;
  KernelParameters parameters = p.hooks.parameters;
  parameters.input(type, "b", p.b);
  const std::string m = parameters.size("m", p.m), n = parameters.size("n", p.n),
                    k = parameters.size("k", p.k);
  const std::string matmul = fmt::format(
      "    const Hooks hooks = {0};\n"
      "    const StridedOperand<{1}> left{{hooks.x + aAt, {4}, 1}};\n"
      "    const StridedOperand<{1}> right{{b + bAt, {5}, {6}}};\n"
      "    simtGemm<Config>(hooks, left, right, {2}, {3}, {4});\n",
      p.hooks.construction, type, m, n, k, p.transposedB ? n : "1", p.transposedB ? "1" : k);
  const std::string body = batchLoop(p, parameters, matmul);
  out.source = header("#include \"lathe_simt_gemm.cuh\"\n", p.hooks, kSimtThreads,
                      simtConfig(type, c, p.transposedB)) +
               kernelFunction(name, kSimtThreads, parameters, body);
  out.launch.threads = kSimtThreads;
  setGrid(out.launch, p, c);
  out.launch.arguments = parameters.arguments();
  return out;
}

Printed print(const MatmulKernel& p, const MatmulChoice& c, int64_t rows, const std::string& name) {
  switch (c.method) {
    case MatmulMethod::GemvDot:
    case MatmulMethod::GemvMma:
      return printGemv(p, c, rows, name);
    case MatmulMethod::Gemm:
      return printGemm(p, c, rows, name);
    case MatmulMethod::Simt:
      return printSimt(p, c, name);
    case MatmulMethod::Library:
      break;  // has no text
  }
  return {};
}

std::string describe(const MatmulChoice& c) {
  const std::string splits = c.splits > 1 ? fmt::format(", {} splits of k", c.splits) : "";
  switch (c.method) {
    case MatmulMethod::GemvDot:
      return fmt::format("gemv {} columns/warp, {} warps along k{}", c.columns, c.warpsK, splits);
    case MatmulMethod::GemvMma:
      return fmt::format("gemv mma, {} warps along k{}", c.warpsK, splits);
    case MatmulMethod::Gemm:
      return fmt::format("tiled {}x{}, {} stages{}", c.tileM, c.tileN, c.stages, splits);
    case MatmulMethod::Simt:
      return fmt::format("tiled {}x{} without tensor cores", c.tileM, c.tileN);
    case MatmulMethod::Library:
      return c.rank ? fmt::format("library's choice {}", c.rank) : "library";
  }
  return {};
}

// One matrix b for all of a dense batch is one product with more rows.
MatmulKernel withoutSharedBatch(MatmulKernel p) {
  const bool shared = std::all_of(p.bStrides.begin(), p.bStrides.end(),
                                  [](const DimExpr& s) { return s == DimExpr(0); });
  DimExpr step = p.m * p.k;
  for (size_t i = p.batch.size(); i-- > 0;) {
    if (!shared || !(p.aStrides[i] == step || p.batch[i] == DimExpr(1))) return p;
    step = step * p.batch[i];
  }
  for (const DimExpr& d : p.batch) p.m = p.m * d;
  p.batch.clear();
  p.aStrides.clear();
  p.bStrides.clear();
  return p;
}

}  // namespace

MatmulHooks linearHooks(const MatmulKernel& matmul, int result, Activation activation, int bias,
                        int residual, bool unrounded) {
  const std::string_view type = elementType(matmul.dtype);
  MatmulHooks hooks;
  hooks.definition = fmt::format("typedef LinearHooks<{}, activation_{}, {}, {}{}> Hooks;\n", type,
                                 nameOf(activation), flag(bias >= 0), flag(residual >= 0),
                                 unrounded ? ", float, true" : "");
  KernelParameters& parameters = hooks.parameters;
  if (matmul.a >= 0) parameters.input(type, "x", matmul.a);
  if (bias >= 0) parameters.input(type, "bias", bias);
  if (residual >= 0) parameters.input(type, "residual", residual);
  parameters.output(unrounded ? elementType(DType::F32) : type, "y", result);
  const std::string n = parameters.size("n", matmul.n);
  const std::string offset =
      matmul.batch.empty()
          ? ""
          : fmt::format(" + batch * {} * {}", parameters.size("matrixRows", matmul.m), n);
  hooks.construction = fmt::format("{{{}, {}, {}, y{}, {}}}", matmul.a >= 0 ? "x" : "nullptr",
                                   bias >= 0 ? "bias" : "nullptr",
                                   residual >= 0 ? "residual" : "nullptr", offset, n);
  return hooks;
}

MatmulVariant printMatmul(const MatmulKernel& matmul, const MatmulChoice& choice, int64_t rows,
                          const std::string& name) {
  Printed printed = print(matmul, choice, rows, name);
  MatmulVariant out;
  out.text = {name, std::move(printed.source)};
  printed.launch.kernel = name;
  printed.launch.waits = true;
  out.variant.what = describe(choice);
  out.variant.scratchBytes = printed.scratchBytes;
  out.variant.launches = {std::move(printed.launch)};
  return out;
}

MatmulChoice choiceForOneRow(const MatmulKernel& matmul, const std::string& kernel) {
  const MatmulSizes sizes = sizesFor(matmul, 1);
  const std::vector<MatmulChoice> choices = matmulCandidates(matmul, sizes);
  return choices.at(chosenCandidate(questionOf(matmul, sizes, choices, kernel, 0, 1)));
}

KernelSet kernelsOf(const MatmulKernel& given) {
  const MatmulKernel matmul = withoutSharedBatch(given);
  KernelSet out;
  const auto constantRows = matmul.m.asConstant();
  int64_t low = 0;
  std::optional<MatmulChoice> last, lastPrinted;
  for (int64_t high : {int64_t(1), int64_t(4), int64_t(8), int64_t(16), int64_t(32), int64_t(64),
                       int64_t(128), int64_t(512), int64_t(2048), kUnlimited}) {
    if (constantRows && *constantRows > high) continue;
    const MatmulSizes sizes = sizesFor(matmul, high);
    const std::vector<MatmulChoice> choices = matmulCandidates(matmul, sizes);
    if (choices.empty()) break;  // the hooks serve no more rows
    const std::string name = matmul.name + "_" + std::to_string(out.kernels.size());
    const TuningQuestion question = questionOf(matmul, sizes, choices, name, low, high);
    const size_t number = chosenCandidate(question);
    const MatmulChoice& chosen = choices[number];
    // A library may be missing where the program runs.
    const bool library = chosen.method == MatmulMethod::Library;
    const MatmulChoice& best = library ? choices[standInFor(question, number)] : chosen;
    // Kernels that know no bound of the rows serve neighbours alike.
    const bool unbounded = best.method == MatmulMethod::Simt ||
                           (best.method == MatmulMethod::Gemm && best.splits == 1);
    if (unbounded && last == chosen && lastPrinted == best) {
      out.variants.back().when[0].high = high;
    } else {
      MatmulVariant made = printMatmul(matmul, best, constantRows ? *constantRows : high, name);
      made.variant.when = {{matmul.m, low, high}};
      if (library) {
        made.variant.what = describe(chosen) + ", else " + made.variant.what;
        made.variant.launches[0].matmul = matmul.plain;
        made.variant.launches[0].matmul->rank = chosen.rank;
      }
      out.kernels.push_back(std::move(made.text));
      out.variants.push_back(std::move(made.variant));
    }
    last = chosen;
    lastPrinted = best;
    if (constantRows || high == kUnlimited) break;
    low = high + 1;
  }
  if (constantRows)
    for (Variant& v : out.variants) v.when.clear();
  return out;
}

KernelSet convolutionKernels(const ConvolutionKernel& c) {
  const bool small = c.dtype == DType::BF16 || c.dtype == DType::F16;
  const std::string_view type = elementType(c.dtype);
  const int64_t pixels = c.outH() * c.outW(), depth = c.channels * c.kernelH * c.kernelW;
  MatmulKernel p;
  p.name = c.name;
  p.dtype = c.dtype;
  p.m = c.filters;
  p.n = pixels;
  p.k = depth;
  p.batch = {c.images};
  p.a = 1;
  p.b = 0;
  p.hooks = linearHooks(p, 2);
  MatmulChoice choice;
  choice.method = small ? MatmulMethod::Gemm : MatmulMethod::Simt;
  choice.warpsM = choice.warpsN = 2;
  KernelParameters parameters = p.hooks.parameters;
  parameters.input(type, "image", 0);
  const int threads = small ? 128 : kSimtThreads;
  std::string config = small
                           ? fmt::format(
                                 "  typedef {} Input;\n"
                                 "  static constexpr int kTileM = {}, kTileN = {}, kStages = {};\n"
                                 "  static constexpr int kWarpsM = 2, kWarpsN = 2, kSplits = 1;\n"
                                 "  static constexpr int kSumPairs = 0;\n"
                                 "  static constexpr bool kTransposedB = false, kPairs = false;\n"
                                 "  static constexpr bool kConstantB = false, kNormed = false;\n"
                                 "  static constexpr bool kVectors = true;\n",
                                 type, choice.tileM, choice.tileN, choice.stages)
                           : simtConfig(type, choice, true);
  config += fmt::format(
      "  static constexpr int kChannels = {}, kHeight = {}, kWidth = {}, kOutH = {}, kOutW = {};\n"
      "  static constexpr int kKernelH = {}, kKernelW = {}, kStrideH = {}, kStrideW = {};\n"
      "  static constexpr int kTop = {}, kLeft = {};\n",
      c.channels, c.height, c.width, c.outH(), c.outW(), c.kernelH, c.kernelW, c.strideH, c.strideW,
      c.top, c.left);
  const int64_t imageSize = c.channels * c.height * c.width;
  const std::string operands =
      small ? fmt::format(
                  "    const DenseOperand<{0}, {1}> left{{x, {2}, {3}, {3}}};\n"
                  "    const GatheredOperand<{0}, ConvolutionRows<Config>> right{{{{{{image + "
                  "batch * "
                  "{4}}}}}, {5}, {3}}};\n"
                  "    gemm",
                  type, alignmentOf(depth), c.filters, depth, imageSize, pixels)
            : fmt::format(
                  "    const StridedOperand<{0}> left{{x, {1}, 1}};\n"
                  "    const ConvolutionColumns<Config> right{{{{image + batch * {2}}}}};\n"
                  "    simtGemm",
                  type, depth, imageSize);
  p.batch = {c.images};
  const std::string body = fmt::format(
      "  for (i64 batch = blockIdx.z; batch < {}; batch += gridDim.z) {{\n"
      "    if (batch != blockIdx.z) block_sync();\n"
      "    const Hooks hooks = {};\n{}<Config>(hooks, left, right, {}, {}, {});\n  }}\n",
      parameters.size("images", c.images), p.hooks.construction, operands, c.filters, pixels,
      depth);
  KernelText text{c.name, header("#include \"lathe_convolution.cuh\"\n", p.hooks, threads, config) +
                              kernelFunction(c.name, threads, parameters, body)};
  Launch launch;
  launch.kernel = c.name;
  launch.threads = threads;
  launch.waits = true;
  if (small) launch.sharedBytes = gemmSharedBytes(choice.tileM, choice.tileN, choice.stages, false);
  setGrid(launch, p, choice);
  launch.arguments = parameters.arguments();
  Variant variant;
  variant.what = describe(choice) + " over patches";
  variant.launches = {launch};
  return {{text}, {variant}};
}

}  // namespace lathe::cuda
