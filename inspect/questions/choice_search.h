// SPDX-License-Identifier: Apache-2.0
#pragma once
// Results that are right if the graph chose otherwise between candidates that rounding cannot tell
// apart.
#include <functional>
#include <vector>

#include "inspect/questions/choices.h"
#include "inspect/questions/trial_run.h"

namespace lathe {

/// Runs the recorded graph; `take` may change what every choosing op takes.
using RunChoosing = std::function<ChosenRun(const TakeChoice& take)>;

/// Compares `got` with what the recorded graph gives if it takes other choices, those that bring it
/// nearest to `got`: an index that `got` itself shows is looked up, a choice inside the graph is
/// tried, one after the other, up to 100 runs. `plain` is the comparison without.
Deviation comparedByChoices(const std::vector<mlir::Operation*>& choosing, const TrialResults& got,
                            const Allowance& allowed, const RunChoosing& run,
                            const Deviation& plain);

}  // namespace lathe
