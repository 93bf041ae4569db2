// SPDX-License-Identifier: Apache-2.0
#pragma once
// What rounding does to a sum whose order nobody knows.
#include <cstdint>
#include <vector>

#include "lathe/runtime/dtype.h"

namespace lathe::reference {

/// A bound on the rounding of a sum of n = `terms` products x_i, which is `sum` and whose squares
/// add up to `squares`, in an accumulator of unit roundoff u:
///
///     lambda * u * sqrt((n + 1) / 6 * (squares + 2 * sum^2) + squares)
///
/// Each addition rounds its partial sum s_i by s_i * d_i, |d_i| <= u (Higham, Accuracy and
/// Stability of Numerical Algorithms, 2nd ed., SIAM 2002, section 3.3: running error analysis).
/// Where the d_i are independent and of mean zero, |sum of s_i d_i| <= lambda * u * sqrt(sum of
/// s_i^2) with probability 1 - 2 exp(-lambda^2 / 2) (Higham and Mary, A new approach to
/// probabilistic rounding error analysis, SIAM J. Sci. Comput. 41(5), 2019, model 2.1 and
/// theorem 2.4). Over all orders of the terms, the mean of the sum of s_i^2 is (n + 1) / 6 *
/// (squares + 2 * sum^2). The last term is the rounding of the products. Orders of a backend, with
/// several accumulators or in blocks, have smaller partial sums than one accumulator in a random
/// order. lambda = 4: 1 - 7e-4.
double roundingOfSum(double sum, double squares, int64_t terms, DType dtype);

/// Moves each value by its bound, up or down by a fixed coin of its index. What is not finite
/// stays.
void addRoundingOfSums(DType dtype, std::vector<double>& values, const std::vector<double>& squares,
                       int64_t terms);

}  // namespace lathe::reference
