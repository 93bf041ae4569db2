// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far numbers are from those that were wanted. Every test that allows an error measures it
// here: `std::max(worst, NaN)` is `worst` and `NaN > limit` is false, so that a comparison written
// by hand passes for results that are no numbers at all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "lathe/runtime/array.h"

namespace lathe {

/// |got - want|. Zero for two NaN and for equal infinities; infinite if only one is NaN, or if an
/// infinity does not meet its like.
inline double errorOf(double got, double want) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  const double error = std::abs(got - want);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

/// True if `got` is within `allowed` of `want`. No bound allows NaN or an infinity for a number,
/// not even the infinite one that a relative tolerance of an infinite `want` makes.
inline bool isNear(double got, double want, double allowed) {
  const double error = errorOf(got, want);
  return error == 0 || (std::isfinite(error) && error <= allowed);
}

/// Largest errorOf over all elements; infinite if the shapes differ.
inline double largestError(const Array& got, const Array& want) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  double worst = 0;
  for (int64_t i = 0; i < got.size(); ++i) worst = std::max(worst, errorOf(got.at(i), want.at(i)));
  return worst;
}

/// Root of the mean square of errorOf: steadier than the largest error, which on a few hundred
/// rounded numbers differs by a factor of 2 from one order of sums to another.
inline double typicalError(const Array& got, const Array& want) {
  if (got.shape() != want.shape()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (int64_t i = 0; i < got.size(); ++i) sum += std::pow(errorOf(got.at(i), want.at(i)), 2);
  return got.size() == 0 ? 0 : std::sqrt(sum / double(got.size()));
}

/// Largest finite |element|.
inline double largestValue(const Array& a) {
  double most = 0;
  for (int64_t i = 0; i < a.size(); ++i)
    if (std::isfinite(a.at(i))) most = std::max(most, std::abs(a.at(i)));
  return most;
}

/// No element is NaN or an infinity: what a test asks of the results that it compares others with
/// if they are ours too, as NaN meets NaN.
inline bool isFinite(const Array& a) {
  for (int64_t i = 0; i < a.size(); ++i)
    if (!std::isfinite(a.at(i))) return false;
  return true;
}

/// `count` elements from `begin` of an array's flat order, as f64[count].
inline Array elements(const Array& a, int64_t begin, int64_t count) {
  Array part(DType::F64, {count});
  for (int64_t i = 0; i < count; ++i) part.set(i, a.at(begin + i));
  return part;
}

}  // namespace lathe
