// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a graph to a program, or to the text of any stage in between.
#include <string>
#include <string_view>

#include "frontend/graph.h"
#include "runtime/program.h"

namespace lathe {

struct CompileOptions {
  std::string backend = "cpu";  ///< see backendNames()
  bool allTiers = false;        ///< code for every ISA tier, for artifacts that travel
  bool float64 = false;         ///< reference backend only: f64 throughout, no rounding
  std::string saveIrDir = {};   ///< if set: NN-STAGE.mlir files of every stage go there
};

/// Throws Error: InvalidArgument for an unfinished graph, Unsupported with the op, its line and the
/// reason for what the backend cannot run.
Program compile(const Graph& graph, const CompileOptions& options = {});

/// The module's text at a stage: recorded, canonical, fused, laid-out, lowered or program. It
/// parses back with Graph::parse.
std::string irAt(const Graph& graph, std::string_view stage, const CompileOptions& options = {},
                 bool withLocations = false);

}  // namespace lathe
