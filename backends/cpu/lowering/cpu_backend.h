// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "lathe/backends/backend.h"

namespace lathe {

/// oneDNN and own micro-kernels for contractions and attention, generated vector code for the rest.
std::unique_ptr<Backend> makeCpuBackend();

}  // namespace lathe
