// SPDX-License-Identifier: Apache-2.0
#pragma once
// Running modules of any stage on one set of data, and comparing what they give.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "inspect/questions/choices.h"
#include "lathe/inspect/trial.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Operation.h"

namespace lathe {

/// A result of an entry point: an output, or a state's next value.
struct TrialResult {
  std::string entry, name;
  DType dtype = DType::F32;  ///< in the IR; the array is f64 under Float64
  Array value;
};
using TrialResults = std::vector<TrialResult>;

/// A run, and what every choosing op of the module met in it.
struct ChosenRun {
  TrialResults results;
  std::vector<OpChoice> choices;  ///< empty ones for entry points that are not run
};
/// Sees what the choosing op of a number met, and may change what it takes.
using TakeChoice = std::function<void(size_t number, OpChoice& choice)>;

/// How far right results may be from those wanted (`allowed` of deviationOf).
struct Allowance {
  std::vector<double> results;
  std::vector<std::vector<double>> operands;  ///< of every choosing op; 0: exact numbers
};

/// Floats that elements may have as well, within `allowed` of them.
struct OtherWanted {
  const Array* value = nullptr;
  double allowed = 0;
};

/// Compares one array with another. `dtype` is the IR's; `allowed` as TrialOptions::tolerance, 0:
/// the bits must agree. Integers and booleans are exact in any case. Elements that are near to
/// those of `other` deviate by nothing.
Deviation deviationOf(const Array& got, const Array& want, DType dtype, double allowed,
                      const std::string& name, const OtherWanted& other = {});
/// The largest deviations of all results; `allowed` of each, and of those that are right, too.
Deviation deviationOf(const TrialResults& got, const TrialResults& want,
                      const std::vector<double>& allowed, const TrialResults* others = nullptr,
                      const std::vector<double>& allowedOfOthers = {});
/// The median of |a| over the elements that are neither 0 nor infinite nor NaN; 0 if there is none.
double medianMagnitude(const Array& a);
/// The step from |value| to the next number of the dtype. Subnormal steps count as the smallest
/// normal ones.
double stepAt(double value, DType dtype);
/// Uniform in [0, 1), by SplitMix64: as everywhere where numbers must not depend on the standard
/// library.
double uniform(uint64_t& state);
/// The contract of docs/questions.md for a float dtype.
double contractOf(DType dtype, Precision precision);
/// True if one of the rewrites from `first` on put other weights, or what meets them, in the place
/// of the given ones, as it was asked to: no contract bounds what that changes.
bool changesWeights(const CompileRecord& record, size_t first);
/// "model.cc:40:3", with the module path in front if there is one.
std::string sourceText(mlir::Location location);

class Trial {
 public:
  /// Chooses sizes and data for a recorded module, which outlives the trial. Throws Error
  /// (InvalidArgument) for an unknown size or input and a value outside a symbol's range.
  Trial(mlir::ModuleOp recorded, const TrialOptions& options);

  /// All entry points on the interpreter, `@load` first. `observe` sees ops of entry points.
  TrialResults run(mlir::ModuleOp module, Precision precision, const ObserveFn& observe = {},
                   const Steering* steering = nullptr) const;
  /// The same on the program's own backend.
  TrialResults run(Program program) const;
  /// One function that takes what `entry` takes.
  std::vector<Array> run(mlir::func::FuncOp function, const std::string& entry, Precision precision,
                         const ObserveFn& observe = {}) const;

  /// Against wanted(), the results of the recorded graph in `options.precision`, by the contract.
  /// Where the graph chooses between numbers that are equal within what they may be off, what
  /// follows from the other choice is right, too.
  Deviation compare(const TrialResults& got) const;
  /// The same, before anyone is accused: where results are outside of the contract, the recorded
  /// graph is rounded in other ways as well, and what it loses then is allowed from now on.
  Deviation judge(const TrialResults& got);
  /// A backend's results against the recorded graph's in float64, likewise.
  Deviation judgeBackend(const TrialResults& got);

  /// True if the interpreter knows every op of the module.
  static bool canRun(mlir::ModuleOp module);
  /// True for the entry points that are run: results are theirs, in order.
  bool runs(mlir::func::FuncOp function) const;
  /// Tells `options.progress`.
  void tell(const std::string& what, size_t done = 0, size_t total = 0) const {
    if (options_.progress) options_.progress(what, done, total);
  }

  const TrialResults& wanted() const { return wanted_; }
  const TrialOptions& options() const { return options_; }
  const Symbols& sizes() const { return sizes_; }
  /// Arguments of an entry point in the dtypes of the IR.
  const std::vector<Array>& arguments(const std::string& entry) const {
    return arguments_.at(entry);
  }
  /// A checkpoint tensor, in the dtype of the IR.
  Array weight(const std::string& name) const;
  /// Largest allowed difference of result `i`.
  double allowed(size_t i) const { return allowed_.results[i]; }
  /// The same of a backend's result.
  double allowedOfBackend(size_t i) const { return allowedOfBackend_.results[i]; }

 private:
  struct Bounds {
    double interpreter = 0, backend = 0;
  };
  void runToMeasure();
  Deviation afterRoundings(llvm::function_ref<Deviation()> compare);
  void allow();
  TakeChoice asExact() const;
  Bounds boundsOf(DType dtype, llvm::function_ref<const Array&(const ChosenRun&)> of) const;
  ChosenRun runChoosing(mlir::ModuleOp module, Precision precision, const TakeChoice& take = {},
                        uint64_t roundings = 0) const;
  Deviation byChoices(const TrialResults& got, const Allowance& allowed, Precision precision,
                      const Deviation& plain) const;
  void checkEntry(mlir::ModuleOp recorded) const;
  SymbolValues sizesAsked(mlir::ModuleOp recorded) const;
  void chooseSizes(mlir::ModuleOp recorded);
  std::optional<ChosenRun> runAsMeant(const TakeChoice& take);
  void makeArguments(mlir::func::FuncOp function);
  std::map<std::string, Array> derivedWeights(mlir::ModuleOp module, Precision precision) const;

  TrialOptions options_;
  mlir::ModuleOp recorded_;
  std::vector<mlir::Operation*> choosing_;  // in recorded_
  Symbols sizes_;
  std::map<std::string, std::vector<Array>> arguments_;
  std::map<std::string, std::vector<size_t>> inputs_;  // which arguments are no states
  std::map<std::string, TensorInfo> weightInfo_;
  mutable std::map<std::string, Array> weights_;
  // The recorded graph in options_.precision, and what others are measured by: in float64, rounded
  // in one or more ways, with sums in another order, with the constants that were meant.
  TrialResults wanted_;
  ChosenRun exact_, rough_;
  std::vector<ChosenRun> rounded_;
  std::optional<ChosenRun> meant_;
  Allowance allowed_, allowedOfBackend_;
};

}  // namespace lathe
