// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/matmul/grouped_kernels.h"

#include <fmt/format.h>

#include <limits>

#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/templates/lathe_matmul_plan.cuh"
#include "lathe/backends/call_attributes.h"
#include "lathe/passes/region_ops.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

constexpr int64_t kEveryRow = std::numeric_limits<int64_t>::max();

// Tiles for up to so many rows of a weight on average. Blocks along z share the tiles of one
// weight: more than one only where many rows may have chosen it.
struct GroupedChoice {
  int64_t rowsPerGroup;
  int tileM, tileN, stages, warpsM, warpsN;
  int splits;
};
constexpr GroupedChoice kOnTensorCores[] = {{8, 16, 64, 4, 1, 4, 1},
                                            {24, 32, 64, 4, 1, 4, 2},
                                            {64, 64, 64, 4, 2, 2, 4},
                                            {kEveryRow, 128, 128, 3, 2, 4, 4}};
constexpr GroupedChoice kOnOthers[] = {{8, 16, 64, 0, 1, 8, 1}, {kEveryRow, 64, 64, 0, 1, 8, 4}};

struct GroupedCall {
  DType dtype, index, result;
  bool inOut;
  SmallVector<DimExpr> indices, rows;  // sizes of the indices, and those of x in front of k
  DimExpr count, groups, n, k;
};

const char* rowAlignment(const DimExpr& length) {
  return length.asConstant().value_or(1) % 8 == 0 ? "kAlignedRows" : "kUnalignedRows";
}
const char* boolean(bool value) { return value ? "true" : "false"; }

// The row of x that row `r` of the indices meets, as a lambda.
std::string rowOf(const GroupedCall& c, KernelParameters& parameters) {
  const SmallVector<DimExpr> strides = broadcastStrides(c.rows);
  if (c.rows == c.indices) return "[=](i64 r) { return r; }";
  std::string text = "[=](i64 r) {\n    i64 at = 0;\n";
  for (size_t i = c.indices.size(); i-- > 0;) {
    const std::string size = parameters.size("size" + std::to_string(i), c.indices[i]);
    text += fmt::format("    at += r % {0} * {1};\n    r /= {0};\n", size,
                        parameters.size("stride" + std::to_string(i), strides[i]));
  }
  return text + "    return at;\n  }";
}

void addVariant(KernelSet& set, const GroupedCall& c, const GroupedChoice& choice,
                const std::string& name, std::vector<Condition> when) {
  const bool mma = choice.stages > 0;
  const int threads = 32 * choice.warpsM * choice.warpsN;
  const std::string_view type = elementType(c.dtype);
  std::string config =
      fmt::format("  typedef {} Input;\n  static constexpr int kTileM = {}, kTileN = {};\n", type,
                  choice.tileM, choice.tileN);
  if (mma)
    config += fmt::format(
        "  static constexpr int kStages = {}, kWarpsM = {}, kWarpsN = {}, kSplits = 1;\n"
        "  static constexpr int kSumPairs = 0;\n"
        "  static constexpr bool kPairs = false, kConstantB = false, kNormed = false;\n"
        "  static constexpr bool kVectors = true;\n",
        choice.stages, choice.warpsM, choice.warpsN);
  else
    config += fmt::format(
        "  static constexpr int kTileK = 16, kThreadM = {}, kThreadN = {};\n"
        "  static constexpr bool kColumnsFirst = {};\n",
        choice.tileM / 16, choice.tileN / 16, boolean(c.inOut));
  config += fmt::format(
      "  static constexpr int kThreads = {};\n"
      "  static constexpr bool kOnTensorCores = {}, kTransposedB = {};\n",
      threads, boolean(mma), boolean(c.inOut));
  KernelParameters p;
  p.input(type, "x", 0);
  p.input(type, "w", 1);
  p.input(elementType(c.index), "indices", 2);
  p.output(elementType(c.result), "y", 3);
  p.status("status", {-1, c.groups, 0});
  const std::string body = fmt::format(
      "  const auto row = {};\n"
      "  groupedLinear<Config, {}, {}>(y, x, w, indices, status, {}, {}, {}, {}, {}, row);\n",
      rowOf(c, p), rowAlignment(c.k), rowAlignment(c.inOut ? c.n : c.k),
      p.size("rowsOfX", productOf(c.rows)), p.size("count", c.count), p.size("groups", c.groups),
      p.size("n", c.n), p.size("k", c.k));
  set.kernels.push_back(
      {name, fmt::format("#include \"lathe_grouped.cuh\"\n\nstruct Config {{\n{}}};"
                         "\n{}",
                         config, kernelFunction(name, threads, p, body))});
  Launch launch;
  launch.kernel = name;
  launch.threads = threads;
  launch.waits = true;
  if (mma) launch.sharedBytes = gemmSharedBytes(choice.tileM, choice.tileN, choice.stages, false);
  launch.grid[0] = {c.n, choice.tileN, 0};
  launch.grid[1] = {.count = c.groups, .folds = true};
  launch.grid[2] = {choice.splits, 1, 0};
  launch.arguments = p.arguments();
  launch.checks = p.checks();
  Variant variant;
  variant.what = mma ? fmt::format("tiles of {}x{} by weight", choice.tileM, choice.tileN)
                     : fmt::format("tiles of {}x{} by weight, without tensor cores", choice.tileM,
                                   choice.tileN);
  variant.when = std::move(when);
  variant.launches = {std::move(launch)};
  set.variants.push_back(std::move(variant));
}

}  // namespace

KernelSet groupedKernels(KernelOp call, const std::string& name) {
  const Value x = call.getInputs()[0], w = call.getInputs()[1], indices = call.getInputs()[2];
  GroupedCall c;
  c.dtype = elementOf(x);
  c.index = elementOf(indices);
  c.result = elementOf(call.getOutputs()[0]);
  c.inOut = configOf<GroupedLinearConfig>(call).layout == WeightLayout::in_out;
  c.indices = dimExprs(indices);
  c.rows = dimExprs(x);
  c.rows.pop_back();
  c.count = productOf(c.indices);
  c.groups = dimExprs(w)[0];
  c.n = dimExprs(call.getOutputs()[0]).back();
  c.k = dimExprs(x).back();
  const bool isSmall = c.dtype == DType::BF16 || c.dtype == DType::F16;
  const ArrayRef<GroupedChoice> choices = isSmall ? ArrayRef(kOnTensorCores) : ArrayRef(kOnOthers);
  const int64_t groups = c.groups.asConstant().value_or(1);
  const std::optional<int64_t> constant = c.count.asConstant();
  KernelSet set;
  int64_t low = 0;
  for (const GroupedChoice& choice : choices) {
    const int64_t high =
        choice.rowsPerGroup == kEveryRow ? kEveryRow : choice.rowsPerGroup * groups;
    if (!constant || (low <= *constant && *constant <= high))
      addVariant(
          set, c, choice, name + "_" + std::to_string(set.kernels.size()),
          constant ? std::vector<Condition>{} : std::vector<Condition>{{c.count, low, high}});
    if (high != kEveryRow) low = high + 1;
  }
  return set;
}

}  // namespace lathe::cuda
