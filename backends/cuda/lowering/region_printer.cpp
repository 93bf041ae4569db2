// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/region_printer.h"

#include "backends/cuda/lowering/call_facts.h"
#include "backends/cuda/lowering/region_code.h"
#include "backends/cuda/lowering/region_head.h"
#include "backends/cuda/lowering/region_names.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

using Kind = RegionSchedule::Kind;

class Printer {
 public:
  Printer(func::FuncOp region, const RowPlan& plan, const RegionSchedule& schedule,
          const std::string& name, const std::vector<std::string>& names, const Spread& spread,
          const Findings& known)
      : region_(region),
        plan_(plan),
        schedule_(schedule),
        name_(name),
        text_(1),
        code_(region, plan.flat, text_, names, known),
        names_(names) {
    auto operands = region.getBody().front().getTerminator()->getOperands();
    results_.append(operands.begin(), operands.end());
    // Names of operands are not for variables.
    for (const std::string& n : names_) text_.unique(n);
    code_.width = lanesFor(schedule.vectorBytes);
    code_.team.spread = spread;
  }

  void print() {
    code_.registers = 64;
    if (schedule_.kind == Kind::Flat)
      plan_.flat ? printFlat() : printElements();
    else if (schedule_.kind == Kind::BlockPerColumns)
      printColumns();
    else
      printRows();
  }

  RegionCode& code() { return code_; }

  PrintedKernel kernel(const std::string& head) {
    PrintedKernel out;
    out.launch = launch_;
    out.launch.kernel = out.kernel.name = name_;
    out.launch.threads = schedule_.threads;
    std::string parameters;
    for (auto& [text, argument] : code_.parameters()) {
      parameters += (parameters.empty() ? "" : ", ") + text;
      out.launch.arguments.push_back(argument);
    }
    bool random = false;
    region_.walk([&](RandomBitsOp) { random = true; });
    out.kernel.source = head + "#include \"lathe_device.cuh\"\n" +
                        (random ? "#include \"lathe_random.cuh\"\n" : "") + "\n";
    for (const std::string& g : code_.globals) out.kernel.source += g + "\n";
    out.kernel.source += "extern \"C\" __global__ void " + launchBounds(schedule_.threads) + "\n" +
                         name_ + "(" + parameters + ") {\n" + text_.str() + "}\n";
    return out;
  }

  std::vector<std::pair<unsigned, unsigned>> inPlace() {
    std::vector<std::pair<unsigned, unsigned>> pairs;
    for (unsigned r = 0; r < results_.size(); ++r)
      for (unsigned a = 0; a < region_.getNumArguments(); ++a)
        if (loops_ == 1 && !code_.found.scattered.contains(a) && code_.found.operands.count(a) &&
            region_.getArgument(a).getType() == results_[r].getType() &&
            (schedule_.kind == Kind::Flat || !isRowScalar(results_[r])))
          pairs.push_back({a, r});
    return pairs;
  }

 private:
  // Elements in a vector of the narrowest type that the region touches.
  int lanesFor(int bytes) {
    int64_t widest = 8, narrowest = 64;
    auto look = [&](Value v) {
      int64_t bits = std::max<int64_t>(8, tensorType(v).getElementType().getIntOrFloatBitWidth());
      narrowest = std::min(narrowest, bits);
      widest = std::max(widest, bits);
    };
    for (Value v : region_.getArguments())
      if (tensorType(v).getRank() > 0) look(v);
    for (Value v : results_) look(v);
    // Registers for eight lanes are enough.
    return int(std::clamp<int64_t>(bytes * 8 / narrowest, 1, 8));
  }

  bool isRowScalar(Value v) const {
    return plan_.scalar || (!plan_.flat && dimExprs(v).size() == plan_.rowDims.size());
  }
  DimExpr columns(Value v) const { return isRowScalar(v) ? DimExpr(1) : dimExprs(v).back(); }
  DimExpr rows() const { return productOf(plan_.rowDims); }

  // Number of this thread in the grid as an i64, or an int where that is enough.
  std::string threadNumber(bool wide) const {
    std::string threads = std::to_string(schedule_.threads);
    return wide ? "(i64)blockIdx.x * " + threads + " + threadIdx.x"
                : "int(blockIdx.x * " + threads + " + threadIdx.x)";
  }

  void computeAt(ArrayRef<unsigned> which, const Index& index, const Linear& position) {
    code_.storedPosition = position;
    SmallVector<RegionCode::Store> stores;
    for (unsigned r : which) stores.push_back({r, position});
    code_.store(stores, index);
    code_.storedPosition.reset();
  }

  Linear openLanes(const Linear& first, int lanes) {
    return lanes == 1 ? first : code_.openLanes(first, lanes);
  }
  void closeLanes(int lanes) {
    if (lanes > 1) text_.close();
    code_.finishStores();
  }

  // One long row of elements: a vector per thread, the rest one by one.
  void printFlat() {
    loops_ = 1;
    const DimExpr count = *elementCountOf(tensorType(results_[0]));
    auto number = count.asConstant();
    const int lanes = code_.width;
    const bool wide = !number || *number > (int64_t(1) << 30);
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, results_.size()));
    launch_.grid[0] = {count, int64_t(schedule_.threads) * lanes};
    std::string n = code_.size(count).text();
    std::string start = threadNumber(wide);
    if (lanes > 1) start = (wide ? "(" + start + ")" : start) + " * " + std::to_string(lanes);
    const int64_t hi = number ? *number - lanes : Atom::kUnbounded;
    text_.unique("c");
    text_.line(0, "const " + std::string(wide ? "i64" : "int") + " c = " + start + ";");
    text_.openWork("if (c" + (lanes > 1 ? " + " + std::to_string(lanes) + " <= " : " < ") + n +
                   ")");
    Linear first(
        text_.atom({.text = "c", .level = text_.top(), .align = lanes, .hi = hi, .wide = wide}));
    Linear at = openLanes(first, lanes);
    computeAt(all, {at}, at);
    closeLanes(lanes);
    const std::string whole = text_.take();
    if (lanes == 1 || RegionCode::widthFor(count, lanes) == lanes) return text_.paste(whole);
    // What a last vector would reach beyond.
    text_.openWork("else");
    text_.unique("i");
    text_.open("for (" + std::string(wide ? "i64" : "int") + " i = c; i < " + n + "; ++i)");
    Linear single(text_.atom({.text = "i",
                              .level = text_.top(),
                              .hi = number.value_or(Atom::kUnbounded) - 1,
                              .wide = wide}));
    computeAt(all, {single}, single);
    text_.close();
    const std::string rest = text_.take();
    text_.paste(whole + rest);
  }

  // Every thread computes a chunk of one row.
  void printElements() {
    loops_ = 1;
    const DimExpr cols = columns(results_[0]);
    const bool serial = hasLaneReductions();
    const int lanes = serial ? 1 : RegionCode::widthFor(cols, code_.width);
    DimExpr chunks = 1;
    if (!(cols == DimExpr(1))) chunks = *cols.dividedBy(lanes);
    const DimExpr count = rows() * chunks;
    auto number = count.asConstant();
    const bool wide = !number || *number * lanes > (int64_t(1) << 30);
    launch_.grid[0] = {count, schedule_.threads};
    text_.unique("t");
    text_.line(0,
               "const " + std::string(wide ? "i64" : "int") + " t = " + threadNumber(wide) + ";");
    text_.openWork("if (t < " + code_.size(count).text() + ")");
    const int64_t hi = number.value_or(Atom::kUnbounded) - 1;
    Linear t(text_.atom({.text = "t", .level = text_.top(), .hi = hi, .wide = wide}));
    auto [row, chunk] = code_.divide(t, chunks, "row", "vector");
    code_.setRow(row, plan_.rowDims);
    Linear lane = openLanes(chunk * lanes, lanes);
    SmallVector<unsigned> all = llvm::to_vector(llvm::seq<unsigned>(0, results_.size()));
    Index index = code_.row;
    if (!isRowScalar(results_[0])) index.push_back(lane);
    computeAt(all, index, code_.linear(code_.dims(results_[0]), index));
    closeLanes(lanes);
    text_.close();
  }
  // Every warp of a block computes its share of the same elements, one per lane.
  void printColumns() {
    loops_ = 0;  // warps read what one of them replaces: nothing is in place
    const DimExpr count = *elementCountOf(tensorType(results_[0]));
    auto number = count.asConstant();
    const bool wide = !number || *number > (int64_t(1) << 30);
    launch_.grid[0] = {count, 32};
    Team& team = code_.team;
    team.kind = Team::Kind::Columns;
    team.threads = schedule_.threads / 32;
    team.suffix = "<" + std::to_string(schedule_.threads) + ">";
    for (const char* name : {"place", "t", "warp"}) text_.unique(name);
    const std::string type = wide ? "i64" : "int", n = code_.size(count).text();
    text_.line(0, "const int warp = warp_id();");
    text_.line(0, "const " + type + " place = " + (wide ? "(i64)blockIdx.x" : "int(blockIdx.x)") +
                      " * 32 + lane_id();");
    // Nobody may leave: lanes beyond the end repeat the last element.
    text_.line(0, "const " + type + " t = place < " + n + " ? place : " + n + " - 1;");
    team.rank = Linear(text_.atom({.text = "warp", .hi = team.threads - 1, .wide = false}));
    const int64_t hi = number.value_or(Atom::kUnbounded) - 1;
    const Linear t(text_.atom({.text = "t", .hi = hi, .wide = wide}));
    code_.setRow(t, code_.dims(results_[0]));
    code_.reduceFirst();
    text_.openWork("if (warp == 0 && place < " + n + ")");
    computeAt(llvm::to_vector(llvm::seq<unsigned>(0, results_.size())), code_.row, t);
    text_.close();
  }
  bool hasLaneReductions() {
    bool any = false;
    for (Operation& op : region_.getBody().front()) any |= isReduction(&op);
    return any;
  }

  // A team of threads per row.
  void printRows() {
    const DimExpr count = rows();
    const bool warp = schedule_.kind == Kind::WarpPerRow;
    const bool cluster = schedule_.kind == Kind::ClusterPerRow;
    const bool blocks = schedule_.kind == Kind::BlocksPerRow;
    const std::string threads = std::to_string(schedule_.threads);
    Team& team = code_.team;
    team.kind = warp      ? Team::Kind::Warp
                : cluster ? Team::Kind::Cluster
                : blocks  ? Team::Kind::Blocks
                          : Team::Kind::Block;
    team.blocks = schedule_.blocks;
    // One value per row needs no more than what combines the parts.
    const bool spread =
        blocks &&
        !(team.spread.last && llvm::all_of(results_, [&](Value v) { return isRowScalar(v); }));
    const int perRow = cluster || spread ? schedule_.blocks : 1;
    team.threads = warp ? 32 : schedule_.threads * perRow;
    if (!warp) team.suffix = "<" + threads + ">";
    launch_.cluster = cluster ? schedule_.blocks : 1;
    launch_.grid[0] = {count * perRow, warp ? schedule_.threads / 32 : 1};
    auto number = count.asConstant();
    const bool wide = !number || *number >= (int64_t(1) << 31);
    const std::string type = wide ? "i64" : "int";
    std::string row = "blockIdx.x";
    if (warp) row = "(i64)blockIdx.x * " + std::to_string(schedule_.threads / 32) + " + warp_id()";
    if (perRow > 1) row += " / " + std::to_string(perRow);
    if (warp && !wide)
      row = "int(blockIdx.x * " + std::to_string(schedule_.threads / 32) + " + warp_id())";
    const bool one = number && *number == 1 && !warp;
    text_.unique("row");
    text_.unique("lane");
    if (!one) text_.line(0, "const " + type + " row = " + row + ";");
    std::string rank = warp ? "lane_id()" : "threadIdx.x";
    if (cluster) rank = "cluster_rank() * " + threads + " + threadIdx.x";
    if (spread) {
      const std::string piece = text_.unique("piece");
      text_.line(0, "const int " + piece + " = blockIdx.x % " + std::to_string(perRow) + ";");
      team.piece = Linear(text_.atom({.text = piece, .hi = perRow - 1, .wide = false}));
      rank = piece + " * " + threads + " + threadIdx.x";
    }
    text_.line(0, "const int lane = " + rank + ";");
    // A warp is inside or outside as a whole.
    if (warp) text_.openWork("if (row < " + code_.size(count).text() + ")");
    team.rowLevel = text_.top();
    team.rank = Linear(
        text_.atom({.text = "lane", .level = text_.top(), .hi = team.threads - 1, .wide = false}));
    code_.setRow(Linear(text_.atom({.text = "row",
                                    .level = text_.top(),
                                    .hi = number.value_or(Atom::kUnbounded) - 1,
                                    .wide = wide})),
                 plan_.rowDims);
    blocks && !team.spread.last ? code_.reducePass() : printRow();
    if (warp) text_.close();
  }

  void printRow() {
    code_.reduceFirst();
    SmallVector<std::pair<unsigned, Val>> scalars;
    SmallVector<std::pair<DimExpr, SmallVector<unsigned>>> loops;
    for (unsigned r = 0; r < results_.size(); ++r) {
      if (isEmpty(results_[r])) continue;
      if (isRowScalar(results_[r])) {
        scalars.push_back({r, code_.eval(results_[r], code_.row)});
        continue;
      }
      DimExpr n = columns(results_[r]);
      auto it = llvm::find_if(loops, [&](auto& group) { return group.first == n; });
      if (it == loops.end()) it = loops.insert(loops.end(), {n, {}});
      it->second.push_back(r);
    }
    loops_ = int(loops.size());
    for (auto& [n, which] : loops) {
      const int lanes = RegionCode::widthFor(n, code_.width);
      code_.overRow(
          n, lanes,
          [&, &which = which](const Linear& lane) {
            Index index = code_.row;
            index.push_back(lane);
            computeAt(which, index, code_.linear(code_.dims(results_[which[0]]), index));
          },
          [&] { code_.finishStores(); });
    }
    if (scalars.empty()) return;
    text_.open("if (lane == 0)");
    for (auto& [r, v] : scalars) {
      Type element = tensorType(results_[r]).getElementType();
      text_.line(text_.top(), names_[region_.getNumArguments() + r] + "[" + code_.rowNumber.text() +
                                  "] = " + code_.stored(element, v) + ";");
    }
    text_.close();
  }

  func::FuncOp region_;
  const RowPlan& plan_;
  RegionSchedule schedule_;
  std::string name_;
  RegionText text_;
  RegionCode code_;
  const std::vector<std::string>& names_;
  SmallVector<Value> results_;
  Launch launch_;
  int loops_ = 0;
};

struct Made {
  PrintedKernel kernel;
  std::vector<std::pair<unsigned, unsigned>> inPlace;
  Findings found;
};

// A kernel of the elementary form `f` of a region.
FailureOr<Made> make(func::FuncOp region, func::FuncOp f, const RowPlan& plan,
                     const std::string& name, const RegionSchedule& schedule,
                     const std::string& title, const Spread& spread = {}) {
  Findings known;
  const std::vector<std::string> names = namesOf(region);
  for (int round = 0;; ++round) {
    Printer printer(f, plan, schedule, name, names, spread, known);
    printer.print();
    RegionCode& code = printer.code();
    if (!code.failure.empty()) return region.emitError(code.failure);
    if (round == 2)
      return Made{printer.kernel(headOf(region, name + ": " + title)), printer.inPlace(),
                  std::move(code.found)};
    Findings next = code.forNextRound(round);
    for (auto [operand, result] : printer.inPlace()) next.replaced.insert(operand);
    known = std::move(next);
  }
}

// A kernel for each depth of reductions, and one that writes the results.
FailureOr<PrintedRegion> printPasses(func::FuncOp region, func::FuncOp f, const RowPlan& plan,
                                     const std::string& name, const RegionSchedule& schedule) {
  RegionSchedule alone = schedule;
  alone.kind = Kind::BlockPerRow;
  auto whole = make(region, f, plan, name, alone, "");
  if (failed(whole)) return failure();
  Spread spread{.reductions = whole->found.together};
  std::set<int> depths;
  const auto depthOf = depthsOf(f);
  for (Operation* op : spread.reductions) depths.insert(depthOf.lookup(op));
  PrintedRegion out;
  const std::string passes = std::to_string(depths.size() + 1);
  auto add = [&](const std::string& suffix) -> LogicalResult {
    const std::string number = std::to_string(out.kernels.size() + 1);
    auto made = make(region, f, plan, name + suffix, schedule,
                     schedule.text() + ", pass " + number + " of " + passes, spread);
    if (failed(made)) return failure();
    out.kernels.push_back(std::move(made->kernel));
    out.inPlace = made->inPlace;
    return success();
  };
  for (int depth : depths) {
    spread.pass = depth;
    if (failed(add("_pass" + std::to_string(out.kernels.size() + 1)))) return failure();
  }
  ++spread.pass;
  spread.last = true;
  if (failed(add(""))) return failure();
  out.scratchBytes = productOf(plan.rowDims) *
                     (int64_t(spread.reductions.size()) * schedule.blocks * Spread::kPartBytes);
  return out;
}

}  // namespace

std::string whyNotPrintable(Operation* op) {
  if (isa<RandomBitsOp>(op))
    return elementCountOf(tensorType(op->getResult(0)))
               ? std::string()
               : "lathe.random_bits has a dim without a name";
  return whyNotInRows(op);
}

FailureOr<PrintedRegion> printRegion(func::FuncOp region, const std::string& name,
                                     const RegionSchedule& schedule) {
  auto elementary = elementaryRegion(region, whyNotPrintable);
  if (failed(elementary)) return failure();
  func::FuncOp f = **elementary;
  if (llvm::all_of(f.getBody().front().getTerminator()->getOperands(), isEmpty))
    return PrintedRegion{};
  auto plan = rowPlanOf(f);
  if (failed(plan)) return failure();
  if (plan->flat && schedule.kind != RegionSchedule::Kind::Flat) {
    plan->flat = false;
    plan->rowDims = dimExprs(f.getBody().front().getTerminator()->getOperand(0));
    if (!plan->rowDims.empty()) plan->rowDims.pop_back();
  }
  if (schedule.kind == RegionSchedule::Kind::BlocksPerRow)
    return printPasses(region, f, *plan, name, schedule);
  auto made = make(region, f, *plan, name, schedule, schedule.text());
  if (failed(made)) return failure();
  return PrintedRegion{.kernels = {std::move(made->kernel)}, .inPlace = made->inPlace};
}

}  // namespace lathe::cuda
