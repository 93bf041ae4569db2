// SPDX-License-Identifier: Apache-2.0
#pragma once
// The speed of single ops at the sizes of a model with 2048 features.
#include "tools/selftest/selftest_api.h"

namespace lathe::selftest {

/// linear, attention and the row-wise ops, in f32 and bf16.
std::vector<Kernel> kernels();
Measurement measure(const std::string& backend, size_t kernel, int64_t flushBytes);

}  // namespace lathe::selftest
