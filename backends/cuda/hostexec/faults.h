// SPDX-License-Identifier: Apache-2.0
#pragma once
// Memory faults of kernel threads: the handler of SIGSEGV and SIGBUS names the buffer and the
// thread, and gives the launch up. Faults of other code go to the handler that was there before.
#include <cstddef>

namespace lathe::cuda::host {

/// Once per process. Nothing is installed under AddressSanitizer, which reports faults itself.
void installFaultHandler();
/// The stack on which this operating-system thread handles its faults.
void useSignalStack(void* stack, size_t bytes);

}  // namespace lathe::cuda::host
