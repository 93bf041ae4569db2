// SPDX-License-Identifier: Apache-2.0
#pragma once
// The product of two matrices of floats.
#include "backends/reference/dense.h"

namespace lathe::reference {

/// y[m, n] = a[m, k] b[k, n], row-major. Every sum starts at 0 and adds in ascending k, product and
/// sum each rounded to double: the bits of three plain loops, whatever the sizes and threads.
/// `fromA` and `fromB` give the number of the matrix that each matrix of y is the product of; `b`
/// may be stored. With `squared` the squares of the elements are multiplied.
std::vector<double> product(const Dense& a, const Dense& b, const std::vector<int64_t>& fromA,
                            const std::vector<int64_t>& fromB, bool squared = false);

}  // namespace lathe::reference
