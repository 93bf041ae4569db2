// SPDX-License-Identifier: Apache-2.0
#pragma once
// One kernel of the cache on disk: FOLDER/NAME-KEY/{kernel.cu, kernel.cubin, kernel.ptx,
// report.json}.
#include <optional>
#include <string>

#include "backends/cuda/lowering/nvrtc/kernel_cache.h"

namespace lathe::cuda {

std::string cacheEntryPath(const std::string& folder, const std::string& name,
                           const std::string& key);
/// Nothing where there is no entry, or one that does not hold what was written.
std::optional<CompiledKernel> readCacheEntry(const std::string& path, const std::string& key);
/// The entry appears whole or not at all; of several writers one wins. What is at `path` already is
/// replaced: it was found to be bad. Never throws.
void writeCacheEntry(const std::string& path, const std::string& key, const KernelText& kernel,
                     const CompiledKernel& compiled) noexcept;

}  // namespace lathe::cuda
