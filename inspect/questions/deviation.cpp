// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "inspect/questions/trial_run.h"

namespace lathe {
namespace {

// Bits of a significand, the leading one included.
int precisionOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 53;
    case DType::BF16:
      return 8;
    case DType::F16:
      return 11;
    default:
      return 24;
  }
}

std::string indexText(int64_t i, const Shape& shape) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0;) {
    text = std::to_string(i % shape[axis]) + (text.empty() ? "" : ", ") + text;
    i /= shape[axis];
  }
  return "[" + text + "]";
}

bool sameBits(const Array& a, const Array& b, int64_t i) {
  if (isPacked(a.dtype())) return a.at(i) == b.at(i);
  size_t size = sizeOf(a.dtype()), at = size_t(i) * size;
  return !std::memcmp(static_cast<const char*>(a.data()) + at,
                      static_cast<const char*>(b.data()) + at, size);
}

}  // namespace

double stepAt(double value, DType dtype) {
  int lowest = dtype == DType::F64 ? -1021 : dtype == DType::F16 ? -13 : -125, exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(value == 0 ? lowest : exponent, lowest) - precisionOf(dtype));
}

double medianMagnitude(const Array& a) {
  std::vector<double> values;
  for (int64_t i = 0; i < a.size(); ++i)
    if (double v = std::abs(a.at(i)); v > 0 && std::isfinite(v)) values.push_back(v);
  if (values.empty()) return 0;
  auto middle = values.begin() + ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double contractOf(DType dtype, Precision precision) {
  if (precision == Precision::Float64) return dtype == DType::F64 ? 1e-9 : 1e-6;
  switch (dtype) {
    case DType::F64:
      return 1e-9;
    case DType::F32:
      return 1e-5;
    default:
      return 4 * std::ldexp(1.0, 1 - precisionOf(dtype));
  }
}

Deviation deviationOf(const Array& got, const Array& want, DType dtype, double allowed,
                      const std::string& name, const OtherWanted& other) {
  Deviation d;
  if (got.shape() != want.shape()) {
    d.identical = d.within = false;
    d.beyond = std::max<int64_t>(got.size(), 1);
    d.absolute = d.relative = d.share = d.ulps = INFINITY;
    d.where = name + " is " + describe(got.dtype(), got.shape()) + ", want " +
              describe(want.dtype(), want.shape());
    return d;
  }
  const bool real = isFloat(dtype), comparable = got.dtype() == want.dtype();
  const double floor = real ? medianMagnitude(want) : 0;
  const bool hasOther = real && other.value && other.value->shape() == want.shape();
  const double otherFloor = hasOther ? medianMagnitude(*other.value) : 0;
  auto isOther = [&](int64_t i, double g) {
    const double w = other.value->at(i);
    return g == w || (std::isnan(g) && std::isnan(w)) ||
           (std::isfinite(w) && std::abs(g - w) <= other.allowed * (std::abs(w) + otherFloor));
  };
  double worst = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (comparable && sameBits(got, want, i)) continue;
    double g = got.at(i), w = want.at(i);
    if (real && std::isnan(g) && std::isnan(w)) continue;
    if (real && !comparable && g == w) continue;
    d.identical = false;
    if (hasOther && isOther(i, g)) continue;
    bool finite = std::isfinite(g) && std::isfinite(w);
    double difference = real && finite ? std::abs(g - w) : real && g == w ? 0 : INFINITY;
    if (!real) difference = std::max(std::abs(g - w), 1.0);  // doubles do not hold every i64
    // An infinite difference is infinite in every unit: inf / inf would be NaN, which no maximum
    // sees. +0 and -0 differ in a bit and in nothing else.
    auto over = [&](double unit) {
      return difference == 0 || std::isinf(difference) ? difference : difference / unit;
    };
    const double share = over(std::abs(w) + floor);
    d.absolute = std::max(d.absolute, difference);
    if (w != 0) d.relative = std::max(d.relative, over(std::abs(w)));
    if (real) d.ulps = std::max(d.ulps, over(stepAt(w, dtype)));
    d.share = std::max(d.share, real ? share : INFINITY);
    const bool within = allowed > 0 && real && share <= allowed;
    d.within &= within;
    d.beyond += !within;
    if (share < worst || (!d.where.empty() && share == worst)) continue;
    worst = share;
    char line[96];
    std::snprintf(line, sizeof line, " is %.9g, want %.9g", g, w);
    d.where = name + indexText(i, got.shape()) + line;
  }
  return d;
}

Deviation deviationOf(const TrialResults& got, const TrialResults& want,
                      const std::vector<double>& allowed, const TrialResults* others,
                      const std::vector<double>& allowedOfOthers) {
  Deviation worst;
  for (size_t i = 0; i < want.size(); ++i) {
    OtherWanted other;
    if (others) other = {&(*others)[i].value, allowedOfOthers[i]};
    Deviation d = deviationOf(got.at(i).value, want[i].value, want[i].dtype, allowed[i],
                              want[i].entry + ": " + want[i].name, other);
    if (!d.identical && (worst.where.empty() || (worst.within && !d.within) ||
                         (worst.within == d.within && d.ulps > worst.ulps)))
      worst.where = d.where;
    worst.absolute = std::max(worst.absolute, d.absolute);
    worst.relative = std::max(worst.relative, d.relative);
    worst.share = std::max(worst.share, d.share);
    worst.ulps = std::max(worst.ulps, d.ulps);
    worst.identical &= d.identical;
    worst.within &= d.within;
    worst.beyond += d.beyond;
  }
  return worst;
}

}  // namespace lathe
