// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region/region_printer.h"

#include <fmt/format.h>

#include "backends/common/loops/row_results.h"
#include "backends/cuda/lowering/kernel/index_checks.h"
#include "backends/cuda/lowering/region/region_code.h"
#include "backends/cuda/lowering/region/region_head.h"
#include "backends/cuda/lowering/region/region_names.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Kind = RegionSchedule::Kind;
using loops::lastOf;

class Printer {
 public:
  Printer(func::FuncOp region, const RowPlan& plan, const RegionSchedule& schedule,
          const std::string& name, const std::vector<std::string>& names, const Spread& spread,
          const llvm::SetVector<Operation*>& together)
      : region_(region),
        plan_(plan),
        schedule_(schedule),
        name_(name),
        together_(together),
        code_(region, plan.flat, names),
        results_(region, plan) {
    e().width = lanesPerAccess();
    e().team.spread = spread;
  }

  void print() {
    if (schedule_.kind == Kind::Flat)
      plan_.flat ? printFlat() : printElements();
    else if (schedule_.kind == Kind::BlockPerColumns)
      printColumns();
    else
      printRows();
  }

  ThreadEvaluator& e() { return code_.e; }

  /// Ends the code and adds the kernel and its launch.
  void addTo(KernelSet& set, const std::string& head) {
    set.inPlace = results_.inPlace(e(), /*rowScalars=*/schedule_.kind == Kind::Flat);
    if (!set.inPlace.empty()) e().resultsReplaceOperands();
    const std::string body = code_.text();
    KernelParameters parameters;
    for (const Frame::Parameter& p : e().parameters())
      parameters.add(p.declaration + p.name, p.argument);
    launch_.kernel = name_;
    launch_.threads = schedule_.threads;
    launch_.waits = true;
    launch_.arguments = parameters.arguments();
    set.variants[0].launches.push_back(launch_);
    std::string source = head + "#include \"lathe_device.cuh\"\n";
    if (!region_.getOps<RandomBitsOp>().empty()) source += "#include \"lathe_random.cuh\"\n";
    source += "\n";
    for (const std::string& g : e().globals) source += g + "\n";
    source += kernelFunction(name_, schedule_.threads, parameters,
                             "  grid_dep_launch();\n  grid_dep_wait();\n" + body);
    set.kernels.push_back({name_, std::move(source)});
  }

 private:
  // Elements in a vector of the narrowest type that the region touches.
  int lanesPerAccess() {
    int64_t narrowest = 64;
    auto look = [&](Value v) {
      int64_t bits = std::max<int64_t>(8, tensorType(v).getElementType().getIntOrFloatBitWidth());
      narrowest = std::min(narrowest, bits);
    };
    for (Value v : region_.getArguments())
      if (tensorType(v).getRank() > 0) look(v);
    for (Value v : results_.values) look(v);
    // Registers for eight lanes are enough.
    return int(std::clamp<int64_t>(RegionSchedule::kVectorBytes * 8 / narrowest, 1, 8));
  }

  // Number of this thread in the grid as an i64, or an int where that is enough.
  std::string threadNumber(bool wide) const {
    return fmt::format(fmt::runtime(wide ? "(i64)blockIdx.x * {} + threadIdx.x"
                                         : "int(blockIdx.x * {} + threadIdx.x)"),
                       schedule_.threads);
  }
  // Whether threads that count so far need an i64: those beyond the end of the work count, too.
  static bool isWide(const DimExpr& numbers) { return lastOf(numbers) >= int64_t(1) << 30; }

  // One long row of elements: a vector per thread, the rest one by one.
  void printFlat() {
    results_.loops = 1;
    const DimExpr count = *elementCountOf(tensorType(results_.values[0]));
    const int lanes = e().width;
    const bool wide = isWide(count);
    launch_.grid[0] = {count, int64_t(schedule_.threads) * lanes};
    std::string start = threadNumber(wide);
    if (lanes > 1) start = (wide ? "(" + start + ")" : start) + " * " + std::to_string(lanes);
    const int64_t end = lastOf(count) + 1 + int64_t(schedule_.threads) * lanes;
    const Coord c = code_.variable("c", start, wide, std::min(end, Coord::kUnbounded), lanes);
    const Coord n = e().size(count);
    auto vector = [&] {
      const Coord lane = m().clip(m().ramp(c, lanes), 0, lastOf(count));
      e().storeResults(results_.all(), Index{{lane}, lanes, {}}, lane);
    };
    if (lanes == 1) return code_.work(c, Predicate::slt, n, vector);
    // What a last vector would reach beyond.
    auto rest = [&] {
      if (ThreadEvaluator::widthFor(count, lanes) == lanes) return;
      Value from = m().scalar(c), to = m().scalar(n);
      if (from.getType() != to.getType()) from = k().widened(from), to = k().widened(to);
      k().loop(from, to, 1, {}, [&](Value i, ValueRange) {
        const Coord at = m().of(i, 1, 0, lastOf(count));
        e().storeResults(results_.all(), Index{{at}}, at);
        return loops::LoopBuilder::Values();
      });
    };
    code_.work(m().sum(c, lanes, 1), Predicate::sle, n, vector, rest);
  }

  // Every thread computes a chunk of one row.
  void printElements() {
    results_.loops = 1;
    const DimExpr cols = results_.columns(results_.values[0]);
    const int lanes = hasReductions() ? 1 : ThreadEvaluator::widthFor(cols, e().width);
    DimExpr chunks = 1;
    if (!(cols == DimExpr(1))) chunks = *cols.dividedBy(lanes);
    const DimExpr count = results_.rows() * chunks;
    const bool wide = isWide(count * lanes);
    launch_.grid[0] = {count, schedule_.threads};
    const Coord t = code_.variable("t", threadNumber(wide), wide, lastOf(count));
    code_.work(t, Predicate::slt, e().size(count), [&] {
      auto [row, chunk] = m().divide(t, e().size(chunks), 1);
      for (auto [name, c] : {std::pair("row", row), std::pair("vector", chunk)})
        if (c.terms.size() == 1) k().named(name, c.terms[0].first);
      e().setRow(row, plan_.rowDims);
      Index index{e().row, lanes, {}};
      if (!results_.isRowScalar(results_.values[0])) {
        const Coord first = m().times(chunk, lanes, 1);
        index.coords.push_back(m().clip(m().ramp(first, lanes), 0, lastOf(cols)));
      }
      e().storeResults(results_.all(), index, e().linear(e().dims(results_.values[0]), index));
    });
  }

  // Every warp of a block computes its share of the same elements, one per lane. Warps read what
  // one of them replaces: nothing is in place, as if there were no loop that stores.
  void printColumns() {
    const DimExpr count = *elementCountOf(tensorType(results_.values[0]));
    const bool wide = isWide(count);
    launch_.grid[0] = {count, 32};
    const std::string n = code_.sizeText(count);
    const Coord warp = code_.variable("warp", "warp_id()", false, schedule_.threads / 32 - 1);
    const Coord place = code_.variable(
        "place", (wide ? "(i64)blockIdx.x" : "int(blockIdx.x)") + std::string(" * 32 + lane_id()"),
        wide);
    // Nobody may leave: lanes beyond the end repeat the last element.
    const Coord t =
        code_.variable("t", "place < " + n + " ? place : " + n + " - 1", wide, lastOf(count));
    e().team = {.kind = Team::Kind::BlockPerColumns,
                .threads = schedule_.threads / 32,
                .ofBlock = schedule_.threads,
                .rank = warp};
    e().setRow(t, e().dims(results_.values[0]));
    e().reduceFirst(together_);
    Value first = m().compare(Predicate::eq, warp, 0, 1);
    Value inside = m().compare(Predicate::slt, place, e().size(count), 1);
    k().when(k().make<arith::AndIOp>(first, inside),
             [&] { e().storeResults(results_.all(), Index{e().row}, *e().rowNumber); });
  }

  bool hasReductions() {
    return llvm::any_of(region_.getBody().front(), [](Operation& op) { return isReduction(&op); });
  }

  // A team of threads per row.
  void printRows() {
    const DimExpr count = results_.rows();
    const bool warp = schedule_.kind == Kind::WarpPerRow;
    const bool cluster = schedule_.kind == Kind::ClusterPerRow;
    const bool blocks = schedule_.kind == Kind::BlocksPerRow;
    const std::string threads = std::to_string(schedule_.threads);
    Team& team = e().team;
    team.kind = schedule_.kind;
    team.blocks = schedule_.blocks;
    // One value per row needs no more than what combines the parts.
    const bool spread = blocks && !(team.spread.last && llvm::all_of(results_.values, [&](Value v) {
                                      return results_.isRowScalar(v);
                                    }));
    const int perRow = cluster || spread ? schedule_.blocks : 1;
    team.threads = warp ? 32 : schedule_.threads * perRow;
    team.ofBlock = warp ? 0 : schedule_.threads;
    launch_.cluster = cluster ? schedule_.blocks : 1;
    launch_.grid[0] = {count * perRow, warp ? schedule_.threads / 32 : 1};
    const bool wide = lastOf(count) >= INT32_MAX;
    std::string row = "blockIdx.x";
    if (warp)
      row = fmt::format(fmt::runtime(wide ? "(i64)blockIdx.x * {} + warp_id()"
                                          : "int(blockIdx.x * {} + warp_id())"),
                        schedule_.threads / 32);
    if (perRow > 1) row += fmt::format(" / {}", perRow);
    Coord rowNumber = 0;
    if (warp || !(count == DimExpr(1))) rowNumber = code_.variable("row", row, wide, lastOf(count));
    std::string rank = warp ? "lane_id()" : "threadIdx.x";
    if (cluster) rank = "cluster_rank() * " + threads + " + threadIdx.x";
    if (spread) {
      team.piece =
          code_.variable("piece", "blockIdx.x % " + std::to_string(perRow), false, perRow - 1);
      rank = "piece * " + threads + " + threadIdx.x";
    }
    team.rank = code_.variable("lane", rank, false, team.threads - 1);
    auto body = [&] {
      team.level = k().top();
      e().setRow(rowNumber, plan_.rowDims);
      blocks && !team.spread.last ? e().reducePass() : printRow();
    };
    if (!warp) return body();
    // A warp is inside or outside as a whole.
    code_.work(rowNumber, Predicate::slt, e().size(count), body);
  }

  void printRow() {
    e().reduceFirst(together_);
    auto scalars = results_.storeColumns(e(), [&](const loops::RowResults::Columns& c) {
      const auto box = e().dims(results_.values[c.results[0]]);
      e().overRow(c.length, ThreadEvaluator::widthFor(c.length, e().width), {},
                  [&](const Coord& lane, int64_t w, Value, ValueRange) {
                    const Index index = e().inRow(lane, w);
                    e().storeResults(c.results, index, e().linear(box, index));
                    return loops::LoopBuilder::Values();
                  });
    });
    if (scalars.empty()) return;
    k().when(m().compare(Predicate::eq, e().team.rank, 0, 1), [&] {
      for (auto& [r, v] : scalars) e().storeResult(r, v, *e().rowNumber, Index{e().row});
    });
  }

  using Predicate = arith::CmpIPredicate;
  loops::LoopBuilder& k() { return code_.k; }
  loops::IndexMath& m() { return e().m; }

  func::FuncOp region_;
  const RowPlan& plan_;
  RegionSchedule schedule_;
  std::string name_;
  llvm::SetVector<Operation*> together_;  // found when the code was made before
  RegionCode code_;
  loops::RowResults results_;
  Launch launch_;
};

// Adds a kernel of the elementary form `f` of a region; gives the reductions that a whole team
// makes.
FailureOr<llvm::SetVector<Operation*>> addKernel(KernelSet& set, func::FuncOp region,
                                                 func::FuncOp f, const RowPlan& plan,
                                                 const std::string& name,
                                                 const RegionSchedule& schedule,
                                                 const std::string& title,
                                                 const Spread& spread = {}) {
  // Which reductions the whole team makes is known only when the code has been made; they come
  // before all else, so that what they read stays in registers.
  llvm::SetVector<Operation*> together;
  if (schedule.kind != Kind::Flat) {
    Printer draft(f, plan, schedule, name, namesOf(region), spread, {});
    draft.print();
    together = draft.e().together;
  }
  Printer printer(f, plan, schedule, name, namesOf(region), spread, together);
  printer.print();
  printer.addTo(set, headOf(region, name + ": " + title));
  if (const std::string& failure = printer.e().failure; !failure.empty())
    return region.emitError(failure);
  return printer.e().together;
}

// A kernel for each depth of reductions, and one that writes the results.
LogicalResult addPasses(KernelSet& set, func::FuncOp region, func::FuncOp f, const RowPlan& plan,
                        const std::string& name, const RegionSchedule& schedule) {
  RegionSchedule alone = schedule;
  alone.kind = Kind::BlockPerRow;
  KernelSet whole{.variants = {Variant{}}};
  auto reductions = addKernel(whole, region, f, plan, name, alone, "");
  if (failed(reductions)) return failure();
  Spread spread{.reductions = *reductions};
  set.variants[0].scratchBytes = productOf(plan.rowDims) * (int64_t(reductions->size()) *
                                                            schedule.blocks * Spread::kPartBytes);
  std::set<int> depths;
  const auto depthOf = loops::depthsOf(f);
  for (Operation* op : spread.reductions) depths.insert(depthOf.lookup(op));
  const std::string passes = std::to_string(depths.size() + 1);
  auto add = [&](const std::string& suffix) {
    const std::string number = std::to_string(set.kernels.size() + 1);
    return addKernel(set, region, f, plan, name + suffix, schedule,
                     schedule.text() + ", pass " + number + " of " + passes, spread);
  };
  for (int depth : depths) {
    spread.pass = depth;
    if (failed(add("_pass" + std::to_string(set.kernels.size() + 1)))) return failure();
  }
  ++spread.pass;
  spread.last = true;
  return add("");
}

}  // namespace

std::string whyNotPrintable(Operation* op) {
  if (isa<RandomBitsOp>(op))
    return elementCountOf(tensorType(op->getResult(0)))
               ? std::string()
               : "lathe.random_bits has a dim without a name";
  return whyNotInRows(op);
}

bool isPrintedFromRegions(Operation* op) {
  return !hasOwnKernel(op) && whyNotPrintable(op).empty();
}

FailureOr<KernelSet> printRegion(func::FuncOp region, const std::string& name,
                                 const RegionSchedule& schedule) {
  auto elementary = elementaryRegion(region, whyNotPrintable);
  if (failed(elementary)) return failure();
  func::FuncOp f = **elementary;
  KernelSet set{.variants = {{.what = schedule.text()}}};
  if (llvm::all_of(resultsOf(f), isEmpty)) return set;
  auto plan = rowPlanOf(f);
  if (failed(plan)) return failure();
  if (plan->flat && schedule.kind != Kind::Flat) {
    plan->flat = false;
    plan->rowDims = dimExprs(resultsOf(f)[0]);
    if (!plan->rowDims.empty()) plan->rowDims.pop_back();
  }
  const LogicalResult printed =
      schedule.kind == Kind::BlocksPerRow
          ? addPasses(set, region, f, *plan, name, schedule)
          : LogicalResult(addKernel(set, region, f, *plan, name, schedule, schedule.text()));
  if (failed(printed)) return failure();
  for (Launch& launch : set.variants[0].launches)
    if (llvm::any_of(launch.arguments,
                     [](const Argument& a) { return a.kind == Argument::Kind::Status; }))
      launch.checks = checksOfGathers(region);
  return set;
}

}  // namespace lathe::cuda
