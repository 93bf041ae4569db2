// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether two graphs compute the same, spelt the same way, and where they first part.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lathe/frontend/graph.h"

namespace lathe {

struct GraphDiffOptions {
  std::string stage = "canonical";  ///< recorded, canonical or fused
  /// Weights are the same if they have the same name; else if they are the n-th of their dtype and
  /// shape in both entry points.
  bool weightsByName = true;
};

struct GraphDiff {
  struct Side {
    std::string op;    ///< "lathe.mul", "an input", "a weight", or "nothing"
    std::string at;    ///< "blocks.0 model.cc:40:3"
    std::string text;  ///< the op in the IR
  };
  struct Entry {
    std::string name;
    bool equal = true;
    std::string why;  ///< "the ops differ", "attribute 'axis' is 1 in A and 2 in B", ...
    Side a, b;        ///< the first ops that differ
    std::vector<std::string> path;  ///< from a result to them: "output 'y'", "lathe.add operand 1"
    std::map<std::string, std::pair<int, int>> counts;  ///< ops by name
  };
  bool equal = true;           ///< up to `layouts`
  std::vector<Entry> entries;  ///< those that both have
  std::vector<std::string>
      layouts;  ///< weights that lie transposed: "'w' is [8, 4] in A, [4, 8] in B"
  std::vector<std::string> notes;  ///< entry points, inputs, sizes that only one has or names so
};

/// Compares the graphs after `stage` entry by entry. Names of symbols, the order of independent ops
/// and of the operands of commutative ones do not count; inputs, outputs, states and entry points
/// go by name (inputs by position where the names differ). Throws Error (InvalidArgument) for
/// another stage.
GraphDiff diff(const Graph& a, const Graph& b, const GraphDiffOptions& options = {});

}  // namespace lathe
