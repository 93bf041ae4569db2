// SPDX-License-Identifier: Apache-2.0
#pragma once
// This machine's roofs, measured once and kept.
#include <string>

#include "lathe/runtime/machine.h"

namespace lathe::cli {

/// The peaks and the read bandwidth of all threads (backends/cpu/device/roofs.h). Taken from
/// hostRoofsPath() if they were measured there on this processor with as many threads; else, or
/// with `anew`, measured, which takes seconds, and written there. Tells of roofs that were measured
/// beside other programs (MachineRoofs::busy).
MachineRoofs hostRoofs(bool anew);
/// LATHE_CACHE_DIR, else XDG_CACHE_HOME/lathe, else ~/.cache/lathe; empty where there is none.
std::string hostRoofsPath();

}  // namespace lathe::cli
