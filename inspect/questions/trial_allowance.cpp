// SPDX-License-Identifier: Apache-2.0
// How far right results may be apart: the recorded graph is run in several ways that are all right.
#include <cmath>

#include "inspect/questions/choice_search.h"
#include "inspect/questions/meant_constants.h"
#include "inspect/questions/trial_run.h"
#include "lathe/ir/types.h"
#include "passes/patterns/library.h"
#include "passes/user_patterns.h"

using namespace mlir;

namespace lathe {
namespace {

// Runs with roundings by chance that are made before anyone is accused.
constexpr uint64_t kRandomRoundings = 4;

// How much of the contract's measure lies between two results that differ in rounding.
double shareBetween(const Array& got, const Array& want, DType dtype) {
  const double share = deviationOf(got, want, dtype, 1, "").share;
  return share <= 1 ? share : 0;  // a NaN or a jump: no measure of rounding
}

bool isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

// Stochastic rounding: to the number of the dtype below or above, to each with the probability that
// is its nearness. Roundings that are independent and of mean zero show by how much results vary
// with them (Parker, Monte Carlo arithmetic, UCLA CSD-970002, 1997).
void roundByChance(Operation* op, std::vector<Array>& results, uint64_t& state) {
  for (auto [result, values] : llvm::zip(op->getResults(), results)) {
    if (!isFloatTensor(result.getType())) continue;
    const DType dtype = *dtypeOf(tensorType(result).getElementType());
    Array rounded = values.clone();
    for (int64_t i = 0; i < values.size(); ++i) {
      const double value = values.at(i), step = stepAt(value, dtype);
      const double below = std::floor(value / step) * step;
      if (!std::isfinite(value) || below == value) continue;
      rounded.set(i, uniform(state) * step < value - below ? below + step : below);
    }
    values = rounded;
  }
}

}  // namespace

bool changesWeights(const CompileRecord& record, size_t first) {
  for (size_t i = first; i < record.rewrites.size(); ++i)
    for (const std::string& contract : record.rewrites[i].weakened)
      for (Contract precision : {Contract::WeightPrecision, Contract::ActivationPrecision})
        if (contract == rowOf(precision).name) return true;
  return false;
}

// What the others are measured by is rounding alone: they choose as the exact run does.
TakeChoice Trial::asExact() const {
  return [this](size_t number, OpChoice& choice) {
    for (size_t i = 0; i < choice.taken.size(); ++i)
      choice.taken[i] = exact_.choices[number].taken[i].to(choice.computed[i].dtype());
  };
}

void Trial::runToMeasure() {
  choosing_ = choosingOps(recorded_);
  tell("the recorded graph in float64");
  exact_ = runChoosing(recorded_, Precision::Float64);
  tell("the recorded graph in its own dtypes");
  rounded_.push_back(runChoosing(recorded_, Precision::OwnDtype, asExact()));
  meant_ = runAsMeant(asExact());
  tell("the recorded graph with sums in another order");
  rough_ = runChoosing(recorded_, Precision::RoughSums, asExact());
  allow();
  wanted_ = options_.precision == Precision::Float64 ? exact_.results
            : choosing_.empty()                      ? rounded_[0].results
                                                     : run(recorded_, Precision::OwnDtype);
}

// One run's roundings say little where a result has few numbers or they are sensitive to it.
Deviation Trial::afterRoundings(llvm::function_ref<Deviation()> compare) {
  const Deviation plain = compare();
  if (plain.within || rounded_.size() > 1 || options_.tolerance > 0) return plain;
  tell("the recorded graph with other roundings");
  for (uint64_t seed = 1; seed <= kRandomRoundings; ++seed)
    rounded_.push_back(runChoosing(recorded_, Precision::Float64, asExact(), seed));
  allow();
  return compare();
}

void Trial::allow() {
  allowed_ = allowedOfBackend_ = {};
  for (size_t i = 0; i < exact_.results.size(); ++i) {
    const Bounds bounds =
        boundsOf(exact_.results[i].dtype,
                 [i](const ChosenRun& run) -> const Array& { return run.results[i].value; });
    allowed_.results.push_back(bounds.interpreter);
    allowedOfBackend_.results.push_back(bounds.backend);
  }
  for (size_t n = 0; n < choosing_.size(); ++n) {
    allowed_.operands.emplace_back();
    allowedOfBackend_.operands.emplace_back();
    for (size_t i = 0; i < exact_.choices[n].operands.size(); ++i) {
      auto of = [n, i](const ChosenRun& run) -> const Array& { return run.choices[n].operands[i]; };
      const DType dtype =
          *dtypeOf(tensorType(choosing_[n]->getOperand(unsigned(i))).getElementType());
      // Numbers that nothing rounds, such as positions, are compared as they are.
      auto moves = [&](const ChosenRun& run) {
        return deviationOf(of(run), of(exact_), dtype, 0, "").share != 0;
      };
      Bounds bounds;
      if (llvm::any_of(rounded_, moves) || moves(rough_) || (meant_ && moves(*meant_)))
        bounds = boundsOf(dtype, of);
      allowed_.operands.back().push_back(bounds.interpreter);
      allowedOfBackend_.operands.back().push_back(bounds.backend);
    }
  }
}

Trial::Bounds Trial::boundsOf(DType dtype,
                              llvm::function_ref<const Array&(const ChosenRun&)> of) const {
  if (options_.tolerance > 0) return {options_.tolerance, options_.tolerance};
  auto moved = [&](const ChosenRun& run) { return shareBetween(of(run), of(exact_), dtype); };
  // Rounding as the graph spells it is no mistake: half as much again is allowed to others, and as
  // much again to a backend, which sums in an order of its own. Nor is a constant as fusions take
  // it; twice its effect, where only some of the ops are fused.
  double share = 0;
  for (const ChosenRun& run : rounded_) share = std::max(share, moved(run));
  const double constants = meant_ ? 2 * moved(*meant_) : 0;
  const double ofOwn = std::max({contractOf(dtype, Precision::OwnDtype), 1.5 * share, constants});
  const double backend = std::max({ofOwn, 2 * share, moved(rough_)});
  if (options_.compile.pipeline.mode == NumericsMode::Strict) return {0, backend};
  if (options_.precision == Precision::OwnDtype) return {ofOwn, backend};
  return {std::max(contractOf(dtype, Precision::Float64), constants), backend};
}

// The recorded graph in float64 with the constants that its 16 bits only round to; nothing if they
// hold them all.
std::optional<ChosenRun> Trial::runAsMeant(const TakeChoice& take) {
  MLIRContext* context = recorded_.getContext();
  PatternLibrary library = fusionPatterns(context);
  for (auto& p : userPatterns(context, options_.compile.pipeline.patterns,
                              options_.compile.pipeline.patternFiles))
    library.push_back(p);
  OwningOpRef<ModuleOp> meant = withMeantConstants(recorded_, library);
  if (!meant) return std::nullopt;
  return runChoosing(*meant, Precision::Float64, take);
}

ChosenRun Trial::runChoosing(ModuleOp module, Precision precision, const TakeChoice& take,
                             uint64_t roundings) const {
  const std::vector<Operation*> ops = choosingOps(module);
  ChosenRun run;
  run.choices.resize(ops.size());
  Steering steering;
  steering.ops.insert(ops.begin(), ops.end());
  if (roundings)
    module.walk([&](Operation* op) {
      if (llvm::any_of(op->getResultTypes(), isFloatTensor)) steering.ops.insert(op);
    });
  uint64_t chance = roundings;
  steering.steer = [&](Operation* op, const std::vector<Array>& operands,
                       std::vector<Array>& results) {
    const auto number = size_t(llvm::find(ops, op) - ops.begin());
    if (number == ops.size()) return roundByChance(op, results, chance);
    OpChoice& choice = run.choices[number] = {operands, results, results};
    if (take) take(number, choice);
    results = choice.taken;
  };
  run.results = this->run(module, precision, {}, &steering);
  return run;
}

Deviation Trial::byChoices(const TrialResults& got, const Allowance& allowed, Precision precision,
                           const Deviation& plain) const {
  if (plain.within || choosing_.empty()) return plain;
  return comparedByChoices(
      choosing_, got, allowed,
      [&](const TakeChoice& take) { return runChoosing(recorded_, precision, take); }, plain);
}
Deviation Trial::compare(const TrialResults& got) const {
  return byChoices(got, allowed_, options_.precision, deviationOf(got, wanted_, allowed_.results));
}
// What a form gives may be nearer to the exact results than the recorded graph is in its own
// dtypes, where a number overflows or cancels.
Deviation Trial::judge(const TrialResults& got) {
  if (options_.precision == Precision::Float64 ||
      options_.compile.pipeline.mode == NumericsMode::Strict || options_.tolerance > 0)
    return compare(got);
  const Deviation plain = afterRoundings([&] {
    return deviationOf(got, wanted_, allowed_.results, &exact_.results, allowedOfBackend_.results);
  });
  return byChoices(got, allowed_, options_.precision, plain);
}
// And a backend may overflow as the graph's own dtypes do.
Deviation Trial::judgeBackend(const TrialResults& got) {
  const Deviation plain = afterRoundings([&] {
    return deviationOf(got, exact_.results, allowedOfBackend_.results,
                       options_.tolerance > 0 ? nullptr : &rounded_[0].results,
                       allowedOfBackend_.results);
  });
  return byChoices(got, allowedOfBackend_, Precision::Float64, plain);
}

}  // namespace lathe
