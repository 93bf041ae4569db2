// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "lathe/backends/backend.h"

namespace lathe {

std::unique_ptr<Backend> makeCudaBackend();

}  // namespace lathe
