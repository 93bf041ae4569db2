// SPDX-License-Identifier: Apache-2.0
#pragma once
// Groups what is not a matmul, attention or other named kernel into `lathe.region` ops, each of
// which becomes one generated kernel.
#include <functional>

#include "mlir/IR/BuiltinOps.h"

namespace lathe {

struct RegionLimits {
  /// Ops in one region: beyond it compile time grows and registers spill.
  int ops = 64;
  /// Regions that do the same to other values side by side become one: a launch costs more than
  /// they do.
  bool joinsTwins = false;
  /// True if the backend can generate code for the op inside a region.
  std::function<bool(mlir::Operation*)> canEmit;
};

void formRegions(mlir::ModuleOp module, const RegionLimits& limits);

}  // namespace lathe
