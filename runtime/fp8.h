// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/quantized_folder.h"

namespace lathe::quantized {

bool isFp8(const CheckpointTensor& tensor);

/// Joins `weight` and its scales to an f32 matrix: `value * scale`, rounded once. `tile` [rows,
/// columns] is what one scale serves where there are neither one nor one for each row.
void joinFp8Layer(Module& module, std::string_view scaleName, const Shape& tile);

}  // namespace lathe::quantized
