// SPDX-License-Identifier: Apache-2.0
#pragma once
// How many ops still know the line that recorded them, after each step.
#include <cstdint>
#include <string>
#include <vector>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"

namespace lathe {

struct LocationRow {
  std::string stage, step;  ///< the last row: "program" and the backend's name, counting calls
  int64_t ops = 0, known = 0;
  std::vector<std::string> lost;  ///< the first ten ops without a recorded line
};
struct LocationTable {
  std::vector<LocationRow> rows;
  bool complete = true;  ///< every op of every row has its line
  std::string error;     ///< why the pipeline ended early; empty if it did not
};

/// Throws Error for a graph that cannot be compiled for another reason than a lost location.
LocationTable checkLocations(const Graph& graph, const CompileOptions& options = {});

}  // namespace lathe
