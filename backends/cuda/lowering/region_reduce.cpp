// SPDX-License-Identifier: Apache-2.0
// Reductions: by the whole team where the result is one value per row, else by each thread alone.
#include "backends/cuda/lowering/region_code.h"

#include "backends/cuda/lowering/call_facts.h"

using namespace mlir;

namespace lathe::cuda {
namespace {

bool isArg(Operation* op) { return isa<ArgMaxOp, ArgMinOp>(op); }
bool isLeast(Operation* op) { return isa<ReduceMinOp, ArgMinOp>(op); }

/// How one reduction accumulates, as text.
struct Accumulation {
  explicit Accumulation(Operation* op) : op(op) {
    Type element = tensorType(op->getOperand(0)).getElementType();
    value = computedName(element);
    // Narrow integers wrap in 32 bits as well: the rest is cut off at the end.
    if (!isReal(element) && !element.isInteger(1) && element.getIntOrFloatBitWidth() < 32)
      value = "i32";
    type = isArg(op) ? "arg_pair<" + value + ">" : value;
    real = isReal(element);
    // Signed or not is seen in the bounds alone: the values themselves fit i32.
    bound = storedName(element);
  }

  std::string start() const {
    if (isArg(op)) {
      std::string worst = isLeast(op) ? "highest_of<" : "lowest_of<";
      return type + "{" + worst + value + ">(), highest_of<i64>()}";
    }
    if (isa<ReduceMaxOp, ReduceMinOp>(op)) {
      std::string of = real ? value : bound;
      return (isLeast(op) ? "highest_of<" : "lowest_of<") + of + ">()";
    }
    if (isa<ReduceAnyOp>(op)) return "false";
    if (isa<ReduceAllOp>(op)) return "true";
    const std::string one = isa<ReduceProdOp>(op) ? "1" : "0";
    return value == "float" ? one + ".0f" : value == "double" ? one + ".0" : one;
  }

  std::string step(const std::string& acc, const std::string& x, const std::string& at) const {
    if (isArg(op))
      return acc + " = " + functor() + "(" + acc + ", " + type + "{" + x + ", " + at + "});";
    if (isa<ReduceMaxOp, ReduceMinOp>(op)) {
      std::string better = isLeast(op) ? " < " : " > ";
      if (real)
        return acc + " = " + (isLeast(op) ? "min_nan(" : "max_nan(") + acc + ", " + x + ");";
      return acc + " = " + x + better + acc + " ? " + x + " : " + acc + ";";
    }
    if (isa<ReduceAnyOp>(op)) return acc + " |= " + x + ";";
    if (isa<ReduceAllOp>(op)) return acc + " &= " + x + ";";
    const bool product = isa<ReduceProdOp>(op);
    if (real) return acc + (product ? " *= " : " += ") + x + ";";
    return acc + " = " + (product ? "int_mul(" : "int_add(") + acc + ", (" + value + ")" + x + ");";
  }

  std::string functor() const {
    if (isArg(op)) return isLeast(op) ? "ArgMin{}" : "ArgMax{}";
    if (isa<ReduceMaxOp>(op)) return "Max{}";
    if (isa<ReduceMinOp>(op)) return "Min{}";
    if (isa<ReduceAnyOp>(op)) return "Or{}";
    if (isa<ReduceAllOp>(op)) return "And{}";
    return isa<ReduceProdOp>(op) ? "Prod{}" : "Sum{}";
  }

  /// The accumulators of the whole team as one.
  std::string together(const std::string& acc, const Team& team) const {
    const char* scopes[] = {"", "warp", "block", "cluster", "block", "columns"};
    const bool truth = isa<ReduceAnyOp, ReduceAllOp>(op);
    std::string text = std::string(scopes[int(team.kind)]) + "_reduce" + team.suffix + "(" +
                       (truth ? "(u32)" : "") + acc + ", " + functor() + ")";
    return acc + " = " + text + (truth ? " != 0" : "") + ";";
  }

  Operation* op;
  std::string value, type, bound;
  bool real;
};

}  // namespace

llvm::DenseMap<Operation*, int> depthsOf(func::FuncOp region) {
  llvm::DenseMap<Operation*, int> depths;
  llvm::DenseMap<Value, int> waits;
  for (Operation& op : region.getBody().front()) {
    int depth = 0;
    for (Value v : op.getOperands()) depth = std::max(depth, waits.lookup(v));
    if (isReduction(&op)) depths[&op] = ++depth;
    for (Value v : op.getResults()) waits[v] = depth;
  }
  return depths;
}

Index RegionCode::ownPlace(size_t rank) const {
  Index own = row;
  if (own.size() < rank) own.push_back(Linear(0));
  return own;
}

// All threads of the team come here together, and the value is the same for all of them.
bool RegionCode::isCooperative(Operation* op, const Index& index) const {
  if (team.kind == Team::Kind::Thread || k.barrier() > 0 || !k.laneGuards().empty()) return false;
  // Blocks have left parts of their own row alone.
  if (team.kind == Team::Kind::Blocks)
    return team.spread.reductions.contains(op) && index == ownPlace(index.size());
  return llvm::all_of(index, [&](const Linear& c) { return c.level() <= team.rowLevel; });
}

// Where the blocks of all rows leave their partial results.
std::string RegionCode::partsOf(Operation* op, bool written) {
  auto [it, isNew] = parts_.insert({op, {}});
  if (isNew) {
    const auto& all = team.spread.reductions;
    const int64_t before = llvm::find(all, op) - all.begin();
    it->second.name = k.unique(nameOf(op) + "_parts");
    it->second.declaration =
        (written ? "" : "const ") + Accumulation(op).type + "* __restrict__ " + it->second.name;
    it->second.argument = {
        .kind = Argument::Kind::Scratch,
        .index = 0,
        .value = productOf(rowDims) * (before * team.blocks * Spread::kPartBytes)};
  }
  return it->second.name;
}

// Others of the same box that wait for no more than the first one share its pass.
void RegionCode::addPassMates(Operation* op, const Index& index, const Index& coords,
                              SmallVectorImpl<std::pair<Operation*, Index>>& group) {
  group.push_back({op, index});
  auto shape = dims(op->getOperand(0));
  auto axes = reducedAxes(op);
  for (Operation& other : region_.getBody().front()) {
    if (&other == op || !isReduction(&other) || depth_[&other] != depth_[op]) continue;
    if (dims(other.getOperand(0)) != shape || reducedAxes(&other) != axes) continue;
    if (team.kind == Team::Kind::Blocks && !team.spread.reductions.contains(&other)) continue;
    Index place;
    for (int64_t i = 0; i < int64_t(shape.size()); ++i)
      if (!llvm::is_contained(axes, i) || keepsDims(&other)) place.push_back(coords[size_t(i)]);
    if (!k.find(keyOf(other.getResult(0), place))) group.push_back({&other, place});
  }
}

void RegionCode::reduceFirst() {
  for (Operation& op : region_.getBody().front()) {
    if (!known_.together.contains(&op)) continue;
    const Index own = ownPlace(dims(op.getResult(0)).size());
    if (own.size() == dims(op.getResult(0)).size()) eval(op.getResult(0), own);
  }
}

void RegionCode::reducePass() {
  for (Operation* op : team.spread.reductions)
    if (depth_[op] == team.spread.pass)
      eval(op->getResult(0), ownPlace(dims(op->getResult(0)).size()));
}

Val RegionCode::reduce(Operation* op, const Index& index) {
  auto shape = dims(op->getOperand(0));
  SmallVector<int64_t> axes = reducedAxes(op);
  // The free coordinates, under either spelling of the result.
  Index coords(shape.size(), Linear(0));
  size_t next = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool reduced = llvm::is_contained(axes, int64_t(i));
    if (!reduced) coords[i] = index[next];
    if (!reduced || keepsDims(op)) ++next;
  }
  SmallVector<DimExpr> box;
  for (int64_t axis : axes) box.push_back(shape[size_t(axis)]);
  DimExpr elements = 1;
  for (const DimExpr& d : box) elements = elements * d;

  const bool together = isCooperative(op, index);
  if (together && index == ownPlace(index.size())) found.together.insert(op);
  const bool inBlocks = together && team.kind == Team::Kind::Blocks;
  const bool combines = inBlocks && depth_[op] < team.spread.pass;
  SmallVector<std::pair<Operation*, Index>> group;
  if (together && !combines)
    addPassMates(op, index, coords, group);
  else
    group.push_back({op, index});
  int level = 0;
  for (const Linear& c : index) level = std::max(level, c.level());
  level = together ? team.rowLevel : loadLevel(level);
  auto position = std::exchange(storedPosition, std::nullopt);

  k.at(level, [&] {
    SmallVector<Accumulation> kinds;
    SmallVector<std::string> names;
    for (auto& [one, place] : group) {
      kinds.emplace_back(one);
      // The mean is what is left of its total.
      names.push_back(k.unique(isa<ReduceMeanOp>(one) ? "total" : nameOf(one)));
      std::string origin = commentOf(one);
      k.line(level, kinds.back().type + " " + names.back() + " = " + kinds.back().start() + ";" +
                        (origin.empty() ? "" : "  // " + origin));
    }
    auto body = [&](const Linear& lane) {
      Index at = coords;
      Index inner = split(lane, box);
      for (auto [axis, c] : llvm::zip(axes, inner)) at[size_t(axis)] = c;
      SmallVector<std::string> values;
      for (auto& member : group) {
        Value x = member.first->getOperand(0);
        values.push_back(computed(x, eval(x, at)).text);
      }
      for (auto [n, kind] : llvm::enumerate(kinds)) {
        std::string where;
        if (isArg(kind.op)) where = "(i64)" + at[size_t(axes[0])].factor();
        k.line(k.top(), kind.step(names[n], values[n], where));
      }
    };
    Pass* outer = std::exchange(pass_, nullptr);
    bool outerTeam = std::exchange(teamPass_, together);
    if (elements == DimExpr(0)) {
      // What it starts with is the result.
    } else if (combines) {
      const Linear thread(k.atom({.text = "threadIdx.x", .hi = team.blocks - 1, .wide = false}));
      k.line(level, "if (threadIdx.x < " + std::to_string(team.blocks) + ") " + names[0] + " = " +
                        partsOf(op, false) + "[" + (rowNumber * team.blocks + thread).text() +
                        "];");
    } else if (together) {
      const bool last = !axes.empty() && axes.back() + 1 == int64_t(shape.size());
      overRow(elements, last ? widthFor(shape.back(), width) : 1, body);
    } else {
      std::string i = k.unique("i");
      auto number = elements.asConstant();
      const bool wide = !number || *number >= (int64_t(1) << 31);
      k.open("for (" + std::string(wide ? "i64 " : "int ") + i + " = 0; " + i + " < " +
             size(elements).text() + "; ++" + i + ")");
      body(Linear(k.atom({.text = i,
                          .level = k.top(),
                          .hi = number.value_or(Atom::kUnbounded) - 1,
                          .wide = wide})));
      k.close();
    }
    pass_ = outer;
    teamPass_ = outerTeam;
    for (auto [n, kind] : llvm::enumerate(kinds)) {
      if (together) k.line(level, kind.together(names[n], team));
      Operation* one = kind.op;
      Val v{names[n], level};
      if (inBlocks && !combines) {
        k.line(level, "if (threadIdx.x == 0) " + partsOf(one, true) + "[" +
                          (rowNumber * team.blocks + team.piece).text() + "] = " + names[n] + ";");
      } else if (isa<ReduceMeanOp>(one)) {
        std::string count = size(elements).factor();
        v = k.define(level, kind.value, nameOf(one), names[n] + " / (" + kind.value + ")" + count);
      } else if (isArg(one)) {
        // An empty row has no index.
        v = k.define(level, "i64", "index",
                     names[n] + ".index == highest_of<i64>() ? 0 : " + names[n] + ".index");
      } else if (kind.value != computedName(tensorType(one->getResult(0)).getElementType())) {
        const std::string type = computedName(tensorType(one->getResult(0)).getElementType());
        v = k.define(level, type, "narrowed", "(" + type + ")" + names[n]);
      }
      k.remember(keyOf(one->getResult(0), group[n].second), v);
    }
  });
  storedPosition = position;
  return *k.find(keyOf(op->getResult(0), index));
}

}  // namespace lathe::cuda
