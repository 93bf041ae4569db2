// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of a CUDA program as files to read, compile or disassemble.
#include <string>

#include "lathe/runtime/program.h"

namespace lathe::cli {

/// Writes NAME.cu of every kernel, NAME.ptx and NAME.cubin where the program holds them, the device
/// headers that the texts include, and kernels.json with the launches. Returns how many kernels.
/// Throws Error (InvalidArgument) for a program of another backend.
size_t writeKernels(const Program& program, const std::string& folder);

}  // namespace lathe::cli
