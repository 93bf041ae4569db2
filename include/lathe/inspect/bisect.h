// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which rewrite, step or kernel made a result wrong.
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/graph.h"
#include "lathe/inspect/trial.h"

namespace lathe {

struct BisectOptions {
  TrialOptions trial = {};
  /// Where reproducer.mlir and its data are written; empty: nowhere, and none is looked for.
  std::string folder = {};
  /// Also run the compiled program, and look for the kernel if only that is wrong.
  bool backend = true;
};

struct BisectResult {
  enum class Culprit {
    Nobody,   ///< every result is inside the contract
    Rewrite,  ///< `rewrite`, the first one with it that leaves the contract
    Step,     ///< `stage` and `step`, which has no numbered rewrites
    Backend,  ///< the program alone differs; `op` if a graph cut at it shows that
  };
  Culprit culprit = Culprit::Nobody;
  CompileRecord::Rewrite rewrite = {};
  std::string stage, step;
  std::string op, at;   ///< Backend: "lathe.attention", "blocks.0 model.cc:40:3"
  Deviation deviation;  ///< of the results with the culprit
  size_t rewrites = 0;  ///< numbered in the whole pipeline, or up to the first wrong step
  int runs = 0;         ///< of pipeline and interpreter, until the culprit was known
  SymbolValues sizes;
  /// Of the second trial, if nobody was found in the first and the graph is not too large for one.
  std::optional<SymbolValues> alsoSizes;

  struct Files {
    std::string graph;                  ///< reproducer.mlir
    std::vector<std::string> data;      ///< inputs and weights
    std::vector<std::string> commands;  ///< shell lines that show the right and the wrong result
    size_t ops = 0;                     ///< of the graph, constants and weights aside
    bool shows = false;                 ///< the graph shows the mistake by itself
  };
  std::optional<Files> files;
};
/// "nobody", "rewrite", "step" or "backend"; inline for those who only link the runtime.
inline const char* nameOf(BisectResult::Culprit culprit) {
  constexpr const char* kNames[] = {"nobody", "rewrite", "step", "backend"};
  return kNames[int(culprit)];
}

/// Compares the results of the graph on the interpreter before and after each step of the pipeline,
/// then searches the first wrong step's rewrites by halves for the first one with which its results
/// leave the contract. If none is wrong, the backend's program is compared with the recorded graph,
/// and for a wrong one the shortest prefix of the fused graph that shows it. Where one rewrite
/// undoes another's mistake within one step the search still ends at a rewrite that makes right
/// results wrong, not always at the first. Before a backend is
/// blamed, rewrites are looked at in the graph's dtypes: float64 does not see a cast that rounds.
/// Where nobody is found, a graph of at most 20 million weights is tried once more with the next
/// seed and larger sizes: an argmax of two elements is right by luck. Throws Error for what cannot
/// be compiled or run.
BisectResult bisect(const Graph& graph, const BisectOptions& options = {});

}  // namespace lathe
