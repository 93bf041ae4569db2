// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace lathe {

/// Where measurements and compiled kernels are kept: LATHE_CACHE_DIR, else XDG_CACHE_HOME/lathe,
/// else ~/.cache/lathe; empty where there is none.
std::string cacheFolder();

}  // namespace lathe
