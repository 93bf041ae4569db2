// SPDX-License-Identifier: Apache-2.0
#pragma once
// A program's `load`: what it derives from the checkpoint's weights, once, after they are bound.
#include <functional>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/program.h"
#include "runtime/bound_weights.h"

namespace lathe {

/// Moves the weights to the device, runs `load`, and gives back what entry points do not read. With
/// `fetch` the weights are not there yet: each is fetched when it is needed, so that what has to be
/// decoded is in memory one tensor at a time. Of `ranks` (null: one) all hold the same whole
/// weights, or Error (InvalidArgument) names the first that differs.
void loadWeights(const Program& program, Device& device, Communicator* ranks, BoundWeights& weights,
                 const std::function<Array(size_t weight)>& fetch = {});

}  // namespace lathe
