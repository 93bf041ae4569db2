// SPDX-License-Identifier: Apache-2.0
#pragma once
// What every step of the pipeline did to the numbers.
#include <string>
#include <vector>

#include "lathe/frontend/graph.h"
#include "lathe/inspect/trial.h"

namespace lathe {

struct NumericsRow {
  std::string stage, step;  ///< "fused", "fuse"; the last row: "program" and the backend's name
  size_t rewrites = 0;      ///< numbered rewrites of this step
  bool ran = false;     ///< false after the step that made kernel calls: only a backend runs them
  Deviation deviation;  ///< of all results, from those of the recorded graph
  /// The step put weights in few bits in the place of the stored ones, as it was asked to: no
  /// contract bounds what that changes, and later rows count from this one's results.
  bool changesWeights = false;
  /// Where results first part from those after the step before: beyond the contract if `deviation`
  /// is, else by a bit. Empty if the step changed no bit, and in the backend's row.
  std::string op, at;
  std::string was, wasAt;  ///< the op before the step whose value that op should have
};

struct NumericsTable {
  std::vector<NumericsRow> rows;
  bool within = true;  ///< every row is inside the contract
  SymbolValues sizes;
  size_t results = 0;  ///< compared in every row: outputs and states of all entry points
};

/// Runs the graph on the interpreter as recorded and after each step of the pipeline, on one input,
/// then the compiled program on its backend, whose results are compared with the recorded graph's
/// in float64. Throws Error for what cannot be compiled or run.
NumericsTable checkNumerics(const Graph& graph, const TrialOptions& options = {});

}  // namespace lathe
