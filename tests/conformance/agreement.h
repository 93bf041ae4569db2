// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a backend computes what the reference does.
#include <string>
#include <vector>

#include "tests/conformance/cases.h"

namespace lathe::conformance {

/// Runs all samples of a row and dtype on a backend and on the reference in float64, at every size
/// of allSizes(), and compares within toleranceOf(). Empty if all agree, else a line for each
/// output that does not: its sample, name, sizes, and first wrong element. Empty for what the
/// backend refuses, too: ask compiled(). Throws Error for anything but a refusal.
std::string agreement(const std::string& backend, const OpRow& row, DType dtype);

/// The dtypes of a row that run for every change (tests/depth.h): f32, f64, bool, one of the short
/// floats, one of the integers and one of 4 bits, by turns of the ops. In depth all; all are
/// compiled in any case, for docs/support.md.
std::vector<DType> testedDtypes(const OpRow& row);

}  // namespace lathe::conformance
