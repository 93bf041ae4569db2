// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "lathe/backends/backend.h"

namespace lathe {

/// The oracle: a program whose every entry point is one call that interprets the IR.
std::unique_ptr<Backend> makeReferenceBackend();

}  // namespace lathe
