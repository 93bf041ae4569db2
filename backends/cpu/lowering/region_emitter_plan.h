// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "passes/region_ops.h"

namespace lathe::cpu {
using lathe::dimExprs;
using lathe::isElementwise;
}  // namespace lathe::cpu
