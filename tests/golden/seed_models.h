// SPDX-License-Identifier: Apache-2.0
#pragma once
// Every model of docs/seeds.md as a small graph of elementary ops, for tests that hold for all of
// them: fusion counts, fused against unfused, planted mistakes.
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lathe/frontend/graph.h"
#include "lathe/runtime/array.h"
#include "lathe/runtime/session.h"

namespace lathe::seeds {

/// One call of an entry point. Calls of a model are made in order, on one session: a cache filled
/// by the first is read by the second.
struct SeedCall {
  std::string entry;
  Arrays inputs;
};

struct SeedModel {
  std::string name;
  /// Records the model; floats, weights and caches are of the given dtype. Batch and sequence
  /// lengths are symbols where the model allows it. Weights are left to the caller.
  std::function<Graph(DType)> build;
  /// Inputs that fit it: the same numbers at every call.
  std::function<std::vector<SeedCall>(DType)> calls;
  std::vector<DType> dtypes = {DType::F32, DType::BF16};
  /// Symbols that no input shows, for Session::setSymbol.
  std::map<std::string, int64_t> symbols = {};
};

std::vector<SeedModel> seedModels();

}  // namespace lathe::seeds
