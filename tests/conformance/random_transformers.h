// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random graphs that look like transformers: norms, projections, rotary embeddings, masked
// attention, gated MLPs, caches, modulation, each in one of the spellings that people use, now and
// then with a mistake in it (another axis, a second user, a missing cast) that a fusion must see.
#include <cstdint>

#include "lathe/frontend/graph.h"

namespace lathe::conformance {

/// The graph of a seed; the same on every machine. Symbols are `batch`, `seq` and `keys`; inputs
/// are named after what they are (`x`, `ids`, `positions`, `mask`, `bias`, `context`), weights
/// after where they are used.
Graph randomTransformer(uint64_t seed);

}  // namespace lathe::conformance
