// SPDX-License-Identifier: Apache-2.0
#pragma once
// The values of several ranks joined element by element, in the order of the ranks.
#include <span>

#include "lathe/runtime/dtype.h"
#include "lathe/runtime/enums.h"

namespace lathe {

/// `to[i] = parts[0][i] + parts[1][i] + ...`, or the largest of them (a NaN wins). 16-bit floats
/// are joined in f32 and rounded once; integers wrap. Throws Error (Unsupported) for dtypes without
/// arithmetic. `to` may be one of the parts.
void joinRanks(std::span<const void* const> parts, void* to, size_t count, DType dtype,
               Combine combine);

}  // namespace lathe
