// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls by which ranks talk to each other. They work on memory of the host and need no backend.
#include <memory>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/device.h"

namespace lathe {

/// A kernel for an all_reduce, all_gather or all_slice; null for a call of another kind. Throws
/// Error (InvalidFile) for a call whose config, operands or ranks do not fit, also where `ranks` is
/// null.
std::unique_ptr<Kernel> makeCollective(const Program& program, const EntryPoint& entry,
                                       const Call& call, Communicator* ranks);

}  // namespace lathe
