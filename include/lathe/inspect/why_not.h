// SPDX-License-Identifier: Apache-2.0
#pragma once
// Why ops were not fused, or not kept fused.
#include <string>
#include <vector>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"

namespace lathe {

struct WhyNotOptions {
  CompileOptions compile = {};
  /// Only ops whose name ("lathe.mul" or "mul") or whose nearest pattern matches this glob, and
  /// only those of a line "model.cc:40" (with or without folders). Under either, ops that no
  /// pattern came near are told about as well.
  std::string op = {}, at = {};
};

/// In three groups: ops of the fused graph that no pattern took although one came near (`by` is
/// "pattern"), fused ops that the backend expanded again ("backend"), and fusions that a laxer
/// numerics mode would have made ("mode"; `op` is empty, the graph still holds several for it).
/// Throws Error for what cannot be compiled, a name that no op and no pattern has, and a line at
/// which no op was recorded.
std::vector<CompileRecord::Miss> whyNot(const Graph& graph, const WhyNotOptions& options = {});

}  // namespace lathe
