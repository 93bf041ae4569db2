// SPDX-License-Identifier: Apache-2.0
#include "backends/reference/sum_rounding.h"

#include <cmath>

namespace lathe::reference {
namespace {

// The accumulators of backends are f64 for f64 and f32 for every other float (docs/numerics.md).
double roundoffOf(DType dtype) { return dtype == DType::F64 ? 0x1p-53 : 0x1p-24; }

// SplitMix64's last step: one bit of it is a fair coin.
bool coin(uint64_t i) {
  i = (i + 1) * 0x9e3779b97f4a7c15;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9;
  i = (i ^ (i >> 27)) * 0x94d049bb133111eb;
  return (i ^ (i >> 31)) & 1;
}

}  // namespace

double roundingOfSum(double sum, double squares, int64_t terms, DType dtype) {
  constexpr double kLambda = 4;
  const double partial = double(terms + 1) / 6 * (squares + 2 * sum * sum);
  return kLambda * roundoffOf(dtype) * std::sqrt(partial + squares);
}

void addRoundingOfSums(DType dtype, std::vector<double>& values, const std::vector<double>& squares,
                       int64_t terms) {
  for (size_t i = 0; i < values.size(); ++i) {
    const double by = roundingOfSum(values[i], squares[i], terms, dtype);
    if (std::isfinite(by)) values[i] += coin(i) ? by : -by;
  }
}

}  // namespace lathe::reference
