// SPDX-License-Identifier: Apache-2.0
// Which schedules a region can have, by its shape, and the question which of them is taken.
#include "backends/cuda/lowering/region/region_printer.h"

#include "backends/cuda/lowering/kernel/call_facts.h"
#include "backends/cuda/lowering/kernel/hopper_facts.h"
#include "lathe/backends/region_plan.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Kind = RegionSchedule::Kind;

constexpr int64_t kWorthABlock = 64;         // elements per result
constexpr int64_t kWorthALaunch = 64 << 10;  // elements
constexpr int64_t kMeasuredRows = 512;

// That go into one element of a reduction's result.
DimExpr reducedElements(Operation* reduction) {
  auto shape = dimExprs(reduction->getOperand(0));
  SmallVector<DimExpr> box;
  for (int64_t axis : reducedAxes(reduction)) box.push_back(shape[size_t(axis)]);
  return productOf(box);
}

// The longest row that a reduction of whole rows reads; nothing if none does.
std::optional<DimExpr> reducedRow(func::FuncOp f) {
  std::optional<DimExpr> longest;
  for (Operation& op : f.getBody().front()) {
    if (!isReduction(&op)) continue;
    auto shape = dimExprs(op.getOperand(0));
    auto axes = reducedAxes(&op);
    if (axes.empty() || axes.back() + 1 != int64_t(shape.size())) continue;
    const DimExpr length = reducedElements(&op);
    auto number = length.asConstant(), best = longest ? longest->asConstant() : std::nullopt;
    // A size that is known only at run time may be any.
    if (!longest || !number || (best && *number > *best)) longest = length;
  }
  return longest;
}

// A thread alone would take long for one of the reductions.
bool reducesMuch(func::FuncOp f) {
  return llvm::any_of(f.getBody().front(), [](Operation& op) {
    return isReduction(&op) &&
           reducedElements(&op).asConstant().value_or(kWorthABlock) >= kWorthABlock;
  });
}

// The region's text without its name and without places in the user's program.
std::string textOf(func::FuncOp region) {
  std::string text;
  llvm::raw_string_ostream(text) << region;
  const std::string name = "@" + region.getName().str();
  if (const size_t at = text.find(name); at != std::string::npos) text.erase(at, name.size());
  return text;
}

}  // namespace

std::string RegionSchedule::text() const {
  const char* names[] = {
      "flat",           "a warp per row",        "a block per row", "a cluster per row",
      "blocks per row", "a block per 32 columns"};
  std::string text = names[int(kind)] + std::string(", ") + std::to_string(threads) + " threads";
  if (kind == Kind::ClusterPerRow) text += ", clusters of " + std::to_string(blocks);
  if (kind == Kind::BlocksPerRow) text = std::to_string(blocks) + " " + text;
  if (kind == Kind::BlockPerColumns) return text;
  return text + ", " + std::to_string(kVectorBytes) + "-byte vectors";
}

std::vector<RegionSchedule> schedulesOf(func::FuncOp region) {
  ScopedDiagnosticHandler quiet(region.getContext(), [](Diagnostic&) { return success(); });
  auto elementary = elementaryRegion(region, whyNotPrintable);
  if (failed(elementary)) return {};
  auto plan = rowPlanOf(**elementary);
  if (failed(plan)) return {};
  ValueRange results = resultsOf(**elementary);
  std::vector<RegionSchedule> schedules;
  bool oneShape =
      llvm::all_of(results, [&](Value v) { return dimExprs(v) == dimExprs(results[0]); });
  auto flat = [&] {
    schedules.push_back({.kind = Kind::Flat, .threads = 256});
    schedules.push_back({.kind = Kind::Flat, .threads = 128});
  };
  auto row = reducedRow(**elementary);
  if (plan->flat || (oneShape && !row)) {
    if (!plan->flat && reducesMuch(**elementary))
      for (int threads : {256, 1024})
        schedules.push_back({.kind = Kind::BlockPerColumns, .threads = threads});
    flat();
    return schedules;
  }
  auto length = row ? row->asConstant() : std::nullopt;
  const RegionSchedule warp{.kind = Kind::WarpPerRow, .threads = 256};
  auto block = [&](int threads) {
    return RegionSchedule{.kind = Kind::BlockPerRow, .threads = threads};
  };
  if (!row) {
    // Results of several widths without a reduction.
    schedules = {warp, block(256)};
  } else if (length && *length <= 8 && oneShape) {
    flat();
    schedules.push_back(warp);
  } else if (length && *length <= 1024) {
    schedules = {warp, block(128), block(256)};
  } else if (length && *length > 32768) {
    for (int blocks : {8, 4, 2})
      schedules.push_back({.kind = Kind::ClusterPerRow, .threads = 512, .blocks = blocks});
    // Clusters of so few rows leave most multiprocessors idle, for longer than a launch takes.
    const bool first =
        productOf(plan->rowDims).asConstant().value_or(kMultiprocessors) * 8 < kMultiprocessors &&
        *length >= kWorthALaunch;
    schedules.insert(first ? schedules.begin() : schedules.end(),
                     {.kind = Kind::BlocksPerRow, .threads = 512, .blocks = 128});
    schedules.push_back(block(1024));
    schedules.push_back(block(512));
  } else if (length) {
    // About two vectors of a row per thread.
    const int best = *length <= 2048 ? 128 : *length <= 8192 ? 256 : 512;
    schedules.push_back(block(best));
    for (int threads : {128, 256, 512, 1024})
      if (threads != best) schedules.push_back(block(threads));
    if (*length <= 4096) schedules.push_back(warp);
  } else {
    schedules = {block(256), block(128), block(512), warp};
  }
  if (oneShape && !(length && *length <= 8))
    schedules.push_back({.kind = Kind::Flat, .threads = 128});
  return schedules;
}

TuningQuestion questionOf(func::FuncOp region, const std::string& kernel,
                          const std::vector<RegionSchedule>& schedules) {
  Value result = resultsOf(region)[0];
  auto sizes = dimExprs(result);
  TuningQuestion q;
  q.problem = "region " + shortHash(textOf(region));
  q.version = kRegionVersion;
  q.kernel = kernel;
  for (const RegionSchedule& s : schedules) q.candidates.push_back(s.text());
  if (sizes.size() > 1) q.sizes = {{productOf(ArrayRef(sizes).drop_back()), 0, kMeasuredRows}};
  return q;
}

}  // namespace lathe::cuda
