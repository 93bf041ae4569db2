// SPDX-License-Identifier: Apache-2.0
#pragma once
// Relocatable object to shared object, by LLVM's linker inside this process.
#include <string>

namespace lathe::cpu {

/// Bytes of the shared object of one ELF object. The object may call libm and the C library's
/// memory functions only; those are resolved in the process that loads it. Throws Error.
std::string linkShared(const std::string& object);

}  // namespace lathe::cpu
