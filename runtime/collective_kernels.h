// SPDX-License-Identifier: Apache-2.0
#pragma once
// The calls by which ranks talk to each other. What they do in memory is copies, so that they need
// no kernels of a backend.
#include <memory>

#include "lathe/runtime/communicator.h"
#include "lathe/runtime/device.h"

namespace lathe {

/// A kernel for an all_reduce, reduce_scatter, all_gather, all_to_all or all_slice, a send or a
/// receive; null for a call of another kind. `memory`: where its operands are, which `ranks` joins
/// there; null for the host's. Throws Error (InvalidFile) for a call whose config, operands or
/// ranks do not fit, also where `ranks` is null.
std::unique_ptr<Kernel> makeCollective(const Program& program, const EntryPoint& entry,
                                       const Call& call, Communicator* ranks, DeviceMemory* memory);

/// Whether the call sends or receives an output, which a run may go without.
bool isMessageOfOutputs(const Call& call);

}  // namespace lathe
