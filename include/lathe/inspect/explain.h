// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a graph would cost, without compiling code or running anything.
#include "lathe/frontend/compile.h"
#include "lathe/runtime/cost.h"

namespace lathe {

/// The graph at a stage from `fused` to `lowered` as a program without code: entry points, buffers,
/// and one call with its cost (lathe/runtime/cost.h) for each op, or for each kernel once there are
/// some. Symbols in `values` count as numbers where a cost depends on which of two sizes is the
/// larger. `metadata["stage"]` names the stage. Throws Error: InvalidArgument for a stage outside
/// that range and for values that are none of the model's, Unsupported for what the backend cannot
/// run.
Program explain(const Graph& graph, std::string_view stage, const SymbolValues& values = {},
                const CompileOptions& options = {});

}  // namespace lathe
