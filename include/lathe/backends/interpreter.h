// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference backend: plain loops over the elementary ops. It is the oracle that every other
// backend and every pass is compared with, so it shares no code with them.
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lathe/runtime/array.h"

namespace mlir {
class Operation;
namespace func {
class FuncOp;
}
}  // namespace mlir

namespace lathe {

class Communicator;

enum class Precision {
  /// Every op computes in double and rounds its result once to its element type, exactly as it is
  /// stored; sums, means and matmuls accumulate in double.
  OwnDtype,
  /// Float tensors are held as f64 and never rounded, so a cast between floats changes nothing.
  /// Integers stay exact. Bitcasts read the bits of the value rounded to the type in the IR.
  Float64,
  /// As Float64, and every sum of floats is moved up or down by what the roundings of an
  /// accumulator may do to it that adds in an order of its own (docs/questions.md). Says how far
  /// apart backends may be that are both right.
  RoughSums,
};

/// Values of the named dims.
using Symbols = std::map<std::string, int64_t, std::less<>>;

/// Gives the checkpoint tensor of a name; an undefined Array if there is none. Its shape is the
/// weight op's; its dtype too under OwnDtype, any float for a float weight unless it is OwnDtype.
using WeightProvider = std::function<Array(const std::string& name)>;

/// Sees the results of an op right after it ran. Ops inside a `lathe.region` are seen too, those
/// that a fused op decomposes into are not.
using ObserveFn = std::function<void(mlir::Operation* op, const std::vector<Array>& results)>;

/// Changes what some ops compute. Ops inside a fused op are not met.
struct Steering {
  std::set<mlir::Operation*> ops;
  /// Called for each of `ops` after it ran; the run goes on with what is left in `results`, of the
  /// same shapes. Arrays are changed by putting others in their places.
  std::function<void(mlir::Operation* op, const std::vector<Array>& operands,
                     std::vector<Array>& results)>
      steer;
};

/// Runs a verified function of lathe ops and returns its results in order.
///
/// Arguments have the shapes and dtypes of the function's arguments; unless it is OwnDtype a float
/// argument may have any float dtype and float results are f64. A dim that is a bare symbol binds
/// it, every other dim is checked against the bound symbols, and symbols with a `lathe.dim` in the
/// module against its range. `symbols` gives those that no argument binds.
///
/// Fused ops run as their decomposition; a packed weight is its logical `[n, k]` matrix.
/// `ranks` is this rank's end where several interpret the function, which has collectives then.
/// Throws Error: InvalidArgument for arguments, weights or symbols that do not fit and for indices
/// out of range, Unsupported for ops outside the dialect and for `lathe.kernel`.
/// Types and attributes are made in the function's context: one call at a time per context.
std::vector<Array> interpret(mlir::func::FuncOp function, const std::vector<Array>& arguments,
                             const WeightProvider& weights, Precision precision,
                             const ObserveFn& observe = {}, const Symbols& symbols = {},
                             const Steering* steering = nullptr, Communicator* ranks = nullptr);

/// The same in float64, of an op that is a function: an Evaluator (lathe/passes/numerics.h).
std::vector<Array> interpretFunction(mlir::Operation* function, const std::vector<Array>& arguments,
                                     const WeightProvider& weights, const Symbols& symbols);

}  // namespace lathe
