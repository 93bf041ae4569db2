// SPDX-License-Identifier: Apache-2.0
#pragma once
// The step of a language model that chooses the next token itself and keeps it for its next run.
#include <functional>

#include "lathe/frontend/graph.h"

namespace lathe {

/// Records the entry point `greedy` (lathe/runtime/generator.h): it has neither inputs nor outputs,
/// but states from which it takes the ids i64 [batch, 1] and the positions i64 [batch], and into
/// which it puts the likeliest tokens and the positions behind them. `logits` gives f32
/// [batch, vocab] of ids and positions.
void recordGreedy(Graph& graph, const Dim& batch,
                  const std::function<Tensor(const Tensor& ids, const Tensor& positions)>& logits);

}  // namespace lathe
