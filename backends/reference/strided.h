// SPDX-License-Identifier: Apache-2.0
#pragma once
// Values that are read with strides: everything that permutes, cuts or repeats elements.
#include "backends/reference/dense.h"

namespace lathe::reference {

/// Distances between neighbours along each axis of `x`, in the elements that it holds or lies in.
Shape stridesIn(const Dense& x);
/// Element `index` of the result is `offset + sum(index * strides)` elements behind the first of
/// `x`. What is stored stays where it is; anything else is copied.
Dense strided(const Dense& x, Shape shape, Shape strides, int64_t offset = 0);
/// With elements of its own in row-major order: `x` itself if it has them.
Dense settled(const Dense& x);

}  // namespace lathe::reference
