// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "backends/cuda/lowering/region_printer.h"
#include "backends/cuda/lowering/tuning_choice.h"

namespace lathe::cuda {

/// How to run a printed region, asked by its ops and types whatever it is called.
TuningQuestion questionOf(mlir::func::FuncOp region, const std::string& kernel,
                          const std::vector<RegionSchedule>& schedules);

}  // namespace lathe::cuda
