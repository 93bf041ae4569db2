// SPDX-License-Identifier: Apache-2.0
#pragma once
// For fusions whose conditions or replacements are functions of mlir::Value. Needs MLIR's headers.
#include "lathe/passes/match.h"
