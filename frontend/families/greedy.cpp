// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/families/greedy.h"

#include <limits>

#include "lathe/ir/ops.h"
#include "lathe/runtime/generator.h"

namespace lathe {

void recordGreedy(Graph& g, const Dim& batch,
                  const std::function<Tensor(const Tensor& ids, const Tensor& positions)>& logits) {
  constexpr int64_t kSteps = GreedyStates::kSteps;
  g.state(GreedyStates::kIds, DType::I64, {batch, 1});
  g.state(GreedyStates::kPositions, DType::I64, {batch});
  g.state(GreedyStates::kChosen, DType::I64, {kSteps, batch});
  g.entry("greedy");
  const Tensor positions = g.readState(GreedyStates::kPositions);
  const Tensor x = logits(g.readState(GreedyStates::kIds), positions);
  const Tensor best = argmax(x, -1);
  // Where no token can be chosen, the largest logit is NaN or an infinity.
  const Dim vocab = x.dim(1);
  const Tensor rows = iota(x, {batch}, 0) * g.constant(double(*vocab.asConstant()), DType::I64);
  const Tensor largest = gather(reshape(x, {batch * vocab}), rows + best, 0);
  const Tensor isFinite = abs(largest) < double(std::numeric_limits<float>::infinity());
  const Tensor told = select(isFinite, best, g.constant(-1, DType::I64));
  static_assert((kSteps & (kSteps - 1)) == 0, "the place of a position is its low bits");
  const Tensor place = bitwiseAnd(positions, g.constant(double(kSteps - 1), DType::I64));
  g.writeState(GreedyStates::kChosen,
               select(iota(x, {kSteps, 1}, 0) == place, told, g.readState(GreedyStates::kChosen)));
  g.writeState(GreedyStates::kIds, reshape(best, {batch, 1}));
  g.writeState(GreedyStates::kPositions, positions + 1);
}

}  // namespace lathe
