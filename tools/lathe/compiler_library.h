// SPDX-License-Identifier: Apache-2.0
#pragma once
// The compiler, loaded when a verb first needs it.
#include "lathe/inspect/compiler_api.h"

namespace lathe::cli {

/// Loads liblathe.so from ../lib beside the program, else from where the system looks. Throws
/// Error(Unsupported) with the loader's reason where there is none.
const CompilerApi& compiler();
/// The same, or null where it cannot be loaded.
const CompilerApi* findCompiler();

}  // namespace lathe::cli
