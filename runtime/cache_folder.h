// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace lathe {

/// Where results that cost time to make are kept: LATHE_CACHE_DIR, else XDG_CACHE_HOME/lathe, else
/// ~/.cache/lathe; empty where there is none.
std::string cacheFolder();

/// Why what is at `path` cannot be trusted to be what this user left there; empty if it can: it,
/// and a file's folder, belong to this user or to root, nobody else may write them, and nobody else
/// may put another folder in the place of one above. Code from a cache is executed only after this.
std::string whyNotPrivate(const std::string& path);

/// Makes the folder, and those above that are missing, for this user alone. Throws Error(Io) with
/// the folder, the reason and what to do if that fails or if it is there and not private.
void makePrivateFolder(const std::string& path);

}  // namespace lathe
