// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backends that every build of the compiler has.
#include <memory>

#include "lathe/backends/backend.h"

namespace lathe {

/// The oracle: a program whose every entry point is one call that interprets the IR.
std::unique_ptr<Backend> makeReferenceBackend();
/// oneDNN and own micro-kernels for contractions and attention, generated vector code for the rest.
std::unique_ptr<Backend> makeCpuBackend();
/// Printed CUDA kernels and templates, compiled by NVRTC or, for host execution, by the host's
/// compiler.
std::unique_ptr<Backend> makeCudaBackend();

}  // namespace lathe
