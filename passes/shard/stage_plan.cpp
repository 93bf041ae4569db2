// SPDX-License-Identifier: Apache-2.0
#include "passes/shard/stage_plan.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/shard/cut.h"

using namespace mlir;

namespace lathe {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// So much more than the evenest cut gives may the heaviest stage have, where less crosses.
constexpr double kUneven = 1.5;
constexpr int64_t kMostStages = 64;  // bits of a mask

// Sizes that are known at run time alone count as one: cuts are compared with each other.
double bytesOfType(RankedTensorType type) {
  double elements = 1;
  for (int64_t d : type.getShape()) elements *= ShapedType::isDynamic(d) ? 1 : double(d);
  return double(bytesOf(*dtypeOf(type.getElementType()), 1 << 10)) / (1 << 10) * elements;
}

// The weights of a module by number.
struct Weights {
  llvm::StringMap<int> numbers;
  std::vector<double> bytes;
  std::vector<uint64_t> stages;  // a bit for each that has it

  int numberOf(WeightOp weight) {
    auto [it, isNew] = numbers.try_emplace(weight.getName(), int(bytes.size()));
    if (isNew) {
      bytes.push_back(bytesOfType(tensorType(weight.getY())));
      stages.push_back(0);
    }
    return it->second;
  }
};

struct StateUse {
  std::string name;
  int first, last;  // places
};

// An entry point as the ops that one stage computes, in their order. Cut k lies in front of the
// k-th of them.
class EntryPlan {
 public:
  EntryPlan(func::FuncOp f, Weights& weights) : function_(f), weights_(weights) {
    for (Operation& op : f.getBody().front().without_terminator()) classify(&op);
    crossing_.resize(work_.size() + 1);
    isClosed_.resize(work_.size() + 1);
    measureCrossing();
    findStates();
  }

  size_t size() const { return work_.size(); }
  size_t states() const { return states_.size(); }
  double weightBytes() const {
    double sum = 0;
    for (int w : distinct(0, size())) sum += weights_.bytes[size_t(w)];
    return sum;
  }

  /// Stages with as even weights as cuts with little to cross allow.
  std::vector<size_t> evenly(int64_t stages) const {
    std::vector<double> thresholds;
    for (size_t k = 1; k < size(); ++k)
      if (!isClosed_[k]) thresholds.push_back(crossing_[k]);
    if (int64_t(thresholds.size()) < stages - 1)
      throw Error(ErrorCode::InvalidArgument,
                  "mesh: expected at most " + std::to_string(thresholds.size() + 1) +
                      " stages, which the ops of entry point '" + function_.getName().str() +
                      "' can be cut into, got " + std::to_string(stages));
    llvm::sort(thresholds);
    thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
    const double evenest = evenestOf(stages, thresholds.back()).first;
    for (double most : thresholds)
      if (auto [heaviest, cuts] = evenestOf(stages, most); heaviest <= kUneven * evenest)
        return cuts;
    return {};  // the last threshold is the evenest
  }

  /// Stages with the weights and states that they have already; empty where there are none.
  std::vector<size_t> following(int64_t stages, const llvm::StringMap<int64_t>& states) const {
    using Price =
        std::tuple<double, double>;  // bytes of weights that a stage has not; what crosses
    const Price never{kNever, 0};
    const size_t n = size();
    std::vector<std::vector<Price>> best(size_t(stages), std::vector<Price>(n + 1, never));
    std::vector<std::vector<size_t>> from(size_t(stages), std::vector<size_t>(n + 1));
    for (int64_t s = 0; s < stages; ++s)
      for (size_t i = 0; i <= n; ++i) {
        if (s == 0 ? i > 0 : best[size_t(s) - 1][i] == never || isClosed_[i]) continue;
        const Price before = s == 0 ? Price{0, 0} : best[size_t(s) - 1][i];
        double missing = 0;
        std::vector<bool> seen(weights_.bytes.size());
        for (size_t j = i; j <= n; ++j) {
          if (j > i) {
            missing += missingIn(j - 1, s, seen);
            if (!allows(j - 1, s, states)) missing = kNever;
          }
          if (missing == kNever) break;
          const Price price{std::get<0>(before) + missing,
                            std::get<1>(before) + (j < n ? crossing_[j] : 0)};
          if (price < best[size_t(s)][j]) {
            best[size_t(s)][j] = price;
            from[size_t(s)][j] = i;
          }
        }
      }
    if (best.back()[n] == never) return {};
    return backwards(from, n);
  }

  void note(const std::vector<size_t>& cuts, StagePlan& plan) const {
    for (size_t s = 0; s + 1 < cuts.size(); ++s) {
      for (size_t k = cuts[s]; k < cuts[s + 1]; ++k) plan.stageOf[work_[k]] = int64_t(s);
      for (int w : distinct(cuts[s], cuts[s + 1])) weights_.stages[size_t(w)] |= uint64_t(1) << s;
      for (const StateUse& use : states_)
        if (size_t(use.first) >= cuts[s] && size_t(use.first) < cuts[s + 1])
          plan.states[use.name] = int64_t(s);
    }
  }

 private:
  // What a value is made of.
  enum class Kind { Given, Cheap, Work };

  Kind kindOf(Value v) const {
    if (auto argument = dyn_cast<BlockArgument>(v)) {
      auto attributes = function_.getArgAttrDict(argument.getArgNumber());
      return stateOf(attributes).empty() ? Kind::Cheap : Kind::Work;
    }
    return kinds_.lookup(v.getDefiningOp());
  }

  void classify(Operation* op) {
    Kind kind = Kind::Given;
    SmallVector<int> read;
    bool readsMatrix = false;
    if (auto weight = dyn_cast<WeightOp>(op)) read.push_back(weights_.numberOf(weight));
    for (Value v : op->getOperands()) {
      kind = std::max(kind, kindOf(v));
      auto made = madeOf_.find(v.getDefiningOp());
      if (made == madeOf_.end()) continue;
      readsMatrix |= tensorType(v).getRank() > 1;
      read.append(made->second);
    }
    if (!isMemoryEffectFree(op) || op->getNumRegions() || isa<RandomBitsOp>(op) ||
        (kind == Kind::Cheap && readsMatrix))
      kind = Kind::Work;
    kinds_[op] = kind;
    if (kind == Kind::Given) {
      llvm::sort(read);
      read.erase(llvm::unique(read), read.end());
      if (!read.empty()) madeOf_[op] = std::move(read);
    } else if (kind == Kind::Work) {
      places_[op] = int(work_.size());
      work_.push_back(op);
      reads_.push_back(std::move(read));
    }
  }

  int placeOf(Operation* op) const {
    auto it = places_.find(op);
    return it == places_.end() ? -1 : it->second;
  }

  void measureCrossing() {
    std::vector<double> change(size() + 2);
    for (auto [place, op] : llvm::enumerate(work_))
      for (Value v : op->getResults()) {
        int last = -1;
        for (Operation* user : v.getUsers()) last = std::max(last, placeOf(user));
        if (last <= int(place)) continue;
        const double bytes = bytesOfType(tensorType(v));
        change[place + 1] += bytes;
        change[size_t(last) + 1] -= bytes;
      }
    double sum = 0;
    for (size_t k = 0; k < crossing_.size(); ++k) crossing_[k] = sum += change[k];
  }

  // A state is read and written by one stage.
  void findStates() {
    llvm::MapVector<StringRef, std::pair<int, int>> found;
    auto note = [&](StringRef name, int place) {
      if (name.empty() || place < 0) return;
      auto [it, isNew] = found.try_emplace(name, place, place);
      it->second.first = std::min(it->second.first, place);
      it->second.second = std::max(it->second.second, place);
    };
    for (BlockArgument argument : function_.getArguments()) {
      const StringRef name = stateOf(function_.getArgAttrDict(argument.getArgNumber()));
      for (Operation* user : argument.getUsers()) note(name, placeOf(user));
    }
    Operation* end = function_.getBody().front().getTerminator();
    for (auto [i, v] : llvm::enumerate(end->getOperands()))
      note(stateOf(function_.getResultAttrDict(unsigned(i))), placeOf(v.getDefiningOp()));
    for (auto& [name, range] : found) {
      states_.push_back({name.str(), range.first, range.second});
      for (int k = range.first + 1; k <= range.second; ++k) isClosed_[size_t(k)] = true;
    }
  }

  std::vector<int> distinct(size_t begin, size_t end) const {
    std::vector<int> all;
    for (size_t k = begin; k < end; ++k) all.insert(all.end(), reads_[k].begin(), reads_[k].end());
    llvm::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // Of the weights that an op reads first, those that other stages have and this one has not.
  double missingIn(size_t place, int64_t stage, std::vector<bool>& seen) const {
    double bytes = 0;
    for (int w : reads_[place]) {
      const uint64_t have = weights_.stages[size_t(w)];
      if (!seen[size_t(w)] && have && !(have >> stage & 1)) bytes += weights_.bytes[size_t(w)];
      seen[size_t(w)] = true;
    }
    return bytes;
  }
  bool allows(size_t place, int64_t stage, const llvm::StringMap<int64_t>& states) const {
    return llvm::all_of(states_, [&](const StateUse& use) {
      auto at = states.find(use.name);
      return use.first != int(place) || at == states.end() || at->second == stage;
    });
  }

  static std::vector<size_t> backwards(const std::vector<std::vector<size_t>>& from, size_t end) {
    std::vector<size_t> cuts{end};
    for (auto s = from.rbegin(); s != from.rend(); ++s) cuts.push_back((*s)[cuts.back()]);
    std::reverse(cuts.begin(), cuts.end());
    return cuts;
  }

  // The least bytes that the heaviest stage can have where no more than `most` crosses a cut, and
  // the cuts; of several, with the others as even as they come.
  std::pair<double, std::vector<size_t>> evenestOf(int64_t stages, double most) const {
    using Price = std::tuple<double, double>;  // the heaviest stage's, the sum of squares
    const Price never{kNever, 0};
    std::vector<size_t> places{0};
    for (size_t k = 1; k < size(); ++k)
      if (!isClosed_[k] && crossing_[k] <= most) places.push_back(k);
    places.push_back(size());
    const size_t n = places.size();
    std::vector<std::vector<Price>> best(size_t(stages), std::vector<Price>(n, never));
    std::vector<std::vector<size_t>> from(best.size(), std::vector<size_t>(n));
    std::vector<size_t> seen(weights_.bytes.size(), n);
    for (size_t i = 0; i + 1 < n; ++i) {
      double bytes = 0;
      for (size_t j = i + 1; j < n; ++j) {
        for (size_t k = places[j - 1]; k < places[j]; ++k)
          for (int w : reads_[k]) {
            if (seen[size_t(w)] == i) continue;
            seen[size_t(w)] = i;
            bytes += weights_.bytes[size_t(w)];
          }
        for (size_t s = i == 0 ? 0 : 1; s < (i == 0 ? 1 : size_t(stages)); ++s) {
          const Price before = s == 0 ? Price{0, 0} : best[s - 1][i];
          const Price price{std::max(std::get<0>(before), bytes),
                            std::get<1>(before) + bytes * bytes};
          if (before == never || !(price < best[s][j])) continue;
          best[s][j] = price;
          from[s][j] = i;
        }
      }
    }
    if (best.back()[n - 1] == never) return {kNever, {}};
    std::vector<size_t> cuts = backwards(from, n - 1);
    for (size_t& k : cuts) k = places[k];
    return {std::get<0>(best.back()[n - 1]), cuts};
  }

  mutable func::FuncOp function_;  // MLIR reads through what is not const
  Weights& weights_;
  llvm::DenseMap<Operation*, Kind> kinds_;
  llvm::DenseMap<Operation*, SmallVector<int>> madeOf_;  // the weights behind what is given
  std::vector<Operation*> work_;
  std::vector<SmallVector<int>> reads_;  // weights, by place
  llvm::DenseMap<Operation*, int> places_;
  std::vector<double> crossing_;  // bytes, by cut
  std::vector<bool> isClosed_;    // a state would lie in two stages
  std::vector<StateUse> states_;
};

}  // namespace

StagePlan planStages(ModuleOp module, int64_t stages) {
  if (stages < 1 || stages > kMostStages)
    throw Error(ErrorCode::InvalidArgument, "mesh: expected from 1 to " +
                                                std::to_string(kMostStages) + " stages, got " +
                                                std::to_string(stages));
  Weights weights;
  std::vector<EntryPlan> entries;
  for (auto f : module.getOps<func::FuncOp>()) entries.emplace_back(f, weights);
  // By bytes, then by states: the more an entry point has of both, the more it says.
  std::vector<size_t> order(entries.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::sort(order, [&](size_t a, size_t b) {
    return std::tuple(entries[a].weightBytes(), entries[a].states(), b) >
           std::tuple(entries[b].weightBytes(), entries[b].states(), a);
  });
  StagePlan plan;
  for (size_t i : order) {
    const bool isFirst = i == order.front();
    const std::vector<size_t> cuts =
        isFirst ? entries[i].evenly(stages) : entries[i].following(stages, plan.states);
    if (cuts.empty())
      throw Error(ErrorCode::Unsupported,
                  "stages of a pipeline: two entry points go through the states in another order; "
                  "take one stage");
    entries[i].note(cuts, plan);
  }
  return plan;
}

}  // namespace lathe
