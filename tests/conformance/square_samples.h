// SPDX-License-Identifier: Apache-2.0
#pragma once
// Samples of fused ops for tests that rewrite their decompositions.
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/rewriting.h"

namespace lathe::conformance {

/// Fused op and sample. Every axis has four elements as far as the op allows it, so that types hold
/// whatever an axis is changed to. There is at least one for every fused op.
std::vector<std::pair<std::string, Sample>> squareSamples(DType dtype);

/// The canonical elementary form of a sample.
Module elementaryForm(const Graph& graph);

/// All results agree but for the rounding of float64.
bool agree(const std::vector<Array>& a, const std::vector<Array>& b);

}  // namespace lathe::conformance
