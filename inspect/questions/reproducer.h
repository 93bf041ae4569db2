// SPDX-License-Identifier: Apache-2.0
#pragma once
// A small graph cut out of a larger one, with the data that it ran on.
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "inspect/questions/trial_run.h"
#include "lathe/frontend/graph.h"
#include "mlir/IR/OwningOpRef.h"

namespace lathe {

struct CutGraph {
  Graph graph;         ///< one entry point, "forward", of the ops that were cut out
  TrialOptions trial;  ///< inputs, weights and sizes that the ops had
  size_t ops = 0;      ///< without constants and weights
};

/// Some ops of one block as a graph of its own. What they read from outside becomes an input,
/// constants and weights are taken along, what somebody outside reads becomes an output. Symbols
/// that no input would bind become the numbers of the trial. Nothing if no value leaves the ops.
/// The values of the inputs are those of the function's run in `trial`, rounded to the IR's dtypes.
/// `trial` outlives what is cut out.
std::optional<CutGraph> cutOut(llvm::ArrayRef<mlir::Operation*> ops, const Trial& trial);

/// The least that still shows a mistake: the shortest prefix of the function for which `shows` is
/// true, then its last op alone, or that with as few of the ops before it as it takes. Nothing if
/// the whole function does not show it when cut out.
std::optional<CutGraph> narrow(mlir::func::FuncOp function, const Trial& trial,
                               const std::function<bool(const CutGraph&)>& shows);

/// What was written for somebody to look at.
struct Reproducer {
  std::string file;                   ///< the graph
  std::vector<std::string> data;      ///< files of inputs and weights
  std::vector<std::string> commands;  ///< shell lines that show right and wrong results
  size_t ops = 0;
  bool shows = false;  ///< the graph by itself shows the mistake
};
/// Writes reproducer.mlir and one .npy file per input (.safetensors for bf16, which NumPy lacks)
/// into a folder, which is made. The commands have the flags that stand for the trial's options;
/// fusions given as functions have none. Throws Error (Io).
Reproducer write(const CutGraph& cut, const std::string& folder);

}  // namespace lathe
