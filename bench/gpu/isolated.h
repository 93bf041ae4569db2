// SPDX-License-Identifier: Apache-2.0
#pragma once
// Work in child processes: a kernel that faults takes the GPU's context, and may take the process,
// with it. What is left then goes on in a new one.
#include <cstddef>
#include <functional>
#include <string>

namespace lathe::cuda {

/// Calls work(0), work(1), .. in a child of this process and done(i, text, failed) here with what
/// each returned. After an exception (whose text is told), a crash or `seconds` without an end, the
/// next item starts in a new child; after `most` failures the rest is not run. Nothing may have
/// started a thread or used the GPU in this process before.
void runIsolated(size_t count, const std::function<std::string(size_t)>& work,
                 const std::function<void(size_t, const std::string&, bool)>& done,
                 unsigned seconds = 60, size_t most = 20);

}  // namespace lathe::cuda
