// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where two forms of one graph part.
#include <optional>
#include <string>

#include "inspect/questions/trial_run.h"

namespace lathe {

struct Divergence {
  std::string op, at;      ///< in the new form
  std::string was, wasAt;  ///< the op of the old form whose value it should have; may be empty
  Deviation deviation;     ///< of those two values
};

/// A form of a graph, and the results that it gave in the trial's precision.
struct Form {
  mlir::ModuleOp module;
  const TrialResults& results;
};

/// The first op of `now` that is to blame for results that differ from those of `before`, another
/// form of the same graph in the same context: the first, in program order, on the way to such a
/// result, whose value no op of `before` has that shares a recorded line and the type with it,
/// while at least one such op exists; without one, the first on the way whose value is new. A way
/// ends where a value is one of `before` again. `contract`: values differ when they leave the
/// contract, else when a bit does. Nothing if all results agree.
/// Of values of more than a million elements some are compared, and a digest of all. The first
/// entry point whose results differ is looked at.
std::optional<Divergence> firstDivergence(const Form& before, const Form& now, const Trial& trial,
                                          bool contract);

}  // namespace lathe
