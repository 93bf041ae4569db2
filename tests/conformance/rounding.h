// SPDX-License-Identifier: Apache-2.0
#pragma once
// What rounding may do to the results of a random graph. Fixed tolerances are wrong there: a graph
// may cancel, and then the last bit of a constant shows in the third digit of a result.
#include <cstdint>
#include <string>

#include "inspect/questions/trial_run.h"

namespace lathe::conformance {

/// What is wrong with `got`, results of compiled code or of a rewritten graph, empty if nothing:
/// errors against `exact`, the recorded graph's in float64, must be like those of `own`, the
/// recorded graph's in its own dtypes. Both are accidents of one draw of data, over a few dozen
/// elements whose errors have causes in common: 3 times the largest error and 2 times the root of
/// the mean square are allowed, each plus one rounding. An output `next` is the argmax of `logits`:
/// where two logits are closer than their errors, either may be it. Other integers and booleans are
/// equal.
std::string beyondRounding(const TrialResults& got, const TrialResults& own,
                           const TrialResults& exact);

/// What is wrong with `got`, results in float64 of a rewritten graph: a rewrite may spell a
/// constant otherwise, as n where the graph has the f32 number next to 1 / n. So errors are held to
/// 1e-6, or to eight times what a change of the graph's own constants by one step of f32 does.
std::string beyondConstants(const Trial& trial, mlir::ModuleOp recorded, const TrialResults& got,
                            uint64_t seed);

}  // namespace lathe::conformance
