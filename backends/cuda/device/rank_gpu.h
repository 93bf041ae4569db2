// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which GPU a rank takes.
#include <array>

#include "lathe/runtime/communicator.h"

namespace lathe::cuda {

/// How many ranks before this one run on its host. All ranks call it at once.
int placeOnHost(Communicator& ranks);

using GpuId = std::array<char, 16>;  ///< a CUuuid
/// Throws Error (InvalidArgument) where two ranks have one GPU, on every rank. All call it at once.
void expectOwnGpus(Communicator& ranks, const GpuId& mine);

}  // namespace lathe::cuda
