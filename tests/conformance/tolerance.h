// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a backend may be from the float64 reference. One table for every op and dtype.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "lathe/runtime/array.h"
#include "tests/closeness.h"
#include "tests/observed_errors.h"

namespace lathe::conformance {

/// |got - want| <= absolute + relative * |want| + steps * (half a step of `dtype` at want). `want`
/// is what float64 gives; with `steps` of 0 it is first rounded to the dtype of the result.
struct Tolerance {
  double absolute = 0, relative = 0;
  double steps = 0;
  DType dtype = DType::F32;
};

/// One step of the dtype next to 1.
inline double ulpOf(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-52;
    case DType::F32:
      return 0x1p-23;
    case DType::BF16:
      return 0x1p-7;
    case DType::F16:
      return 0x1p-10;
    default:
      return 0;
  }
}
/// Half the distance of the dtype's numbers at `value`: what rounding to nearest may cost.
inline double halfStep(DType dtype, double value) {
  const int smallest = dtype == DType::F16 ? -14 : dtype == DType::F64 ? -1022 : -126;
  const int exponent = value == 0 ? smallest : std::max(std::ilogb(value), smallest);
  return std::ldexp(ulpOf(dtype), exponent - 1);
}

/// In units of ulpOf: `relative` of the result, `absolute` of a result near 1. Ops that are not
/// listed round once and get kRoundedOnce. 16-bit floats compute in f32 and round once to nearest:
/// for them both are steps of f32, beside half a step of their own at the result, so that cutting
/// digits off fails. `between` is for ops that round to the dtype on the way, in units of ulpOf
/// too.
struct Ulps {
  double absolute = 0, relative = 0;
  double betweenAbsolute = 0, betweenRelative = 0;
};
inline constexpr Ulps kRoundedOnce{0, 1};

inline const std::map<std::string, Ulps>& ulpTable() {
  static const std::map<std::string, Ulps> table{
      // Polynomials, in f32 or f64; CUDA's own functions are documented to 2 steps.
      {"exp", {0, 2.5}},
      {"log", {1, 2.5}},
      {"sin", {1, 2.5}},
      {"cos", {1, 2.5}},
      {"tanh", {1, 2.5}},
      {"erf", {1, 2.5}},
      {"sigmoid", {1, 2.5}},
      {"rsqrt", {0, 2.5}},
      {"pow", {0, 8}},
      // Sums: terms cancel, so the error is absolute; 257 terms of a spread of 1.5.
      {"reduce_sum", {128, 4}},
      {"reduce_mean", {1.5, 1}},
      {"reduce_prod", {0, 26}},
      {"cumsum", {111, 4}},
      {"matmul", {256, 4}},
      {"convolution", {400, 6}},
      // Fused ops round in between: at most a step for every op of the decomposition.
      {"softmax", {1.5, 6}},
      {"rms_norm", {4, 6, 0, 0.5}},
      {"layer_norm", {9, 9}},
      {"adaln_modulate", {17, 9}},
      {"gated_residual", {4, 2}},
      // The sum and the norm are rounded to the dtype in between, at up to 8 times the result.
      {"add_norm", {40, 3, 1.6, 0.8}},
      {"norm_rope", {40, 2, 8, 1}},
      {"rope_append", {42, 2, 2.4, 0.6}},
      {"embedding", {1, 1}},
      {"rope", {6, 6}},
      {"glu", {8, 16}},
      {"attention", {26, 9, 0.8}},
      {"paged_attention", {26, 9, 0.8}},
      {"linear", {256, 4}},
      {"grouped_linear", {256, 4}},
      {"quantized_linear", {800, 9}},
  };
  return table;
}

/// `op` without the dialect's name; `dtype` of the result.
inline Tolerance toleranceOf(const std::string& op, DType dtype, bool exact) {
  if (!isFloat(dtype)) return {};
  // AVX512-BF16 converts what is smaller than the smallest normal number to zero.
  const double smallest = dtype == DType::BF16 ? 0x1p-126 : 0;
  if (exact) return {smallest, 0};
  auto it = ulpTable().find(op);
  const Ulps ulps = it == ulpTable().end() ? kRoundedOnce : it->second;
  const bool narrow = dtype == DType::BF16 || dtype == DType::F16;
  // RoPE's tables are f32, and so is its arithmetic.
  const bool rotates = op == "rope" || op == "norm_rope" || op == "rope_append";
  const double ulp = ulpOf(narrow || rotates ? DType::F32 : dtype);
  Tolerance t{ulps.absolute * ulp, ulps.relative * ulp};
  if (narrow) {
    t.absolute += ulps.betweenAbsolute * ulpOf(dtype);
    t.relative += ulps.betweenRelative * ulpOf(dtype);
    t.steps = 1;
    t.dtype = dtype;
  }
  t.absolute = std::max(t.absolute, smallest);
  return t;
}

/// What rounding the result alone may cost at `want`.
inline double roundingOf(double want, const Tolerance& t) {
  return t.steps ? t.steps * halfStep(t.dtype, want) : 0;
}
/// The largest error that is right at `want`.
inline double boundOf(double want, const Tolerance& t) {
  return t.absolute + t.relative * std::abs(want) + roundingOf(want, t);
}

/// Notes an error for the table of observed ones: what goes beyond the rounding of the result,
/// which is exhausted by any two numbers that lie near a tie, as a part of what is allowed beside
/// it.
inline void noteError(const std::string& what, double got, double want, const Tolerance& t) {
  const double rounding = roundingOf(want, t), error = errorOf(got, want) - rounding;
  if (error > 0) test::ObservedErrors::note(what, error, boundOf(want, t) - rounding);
}

/// The first element that differs, as text; empty if all are close. `want` may be wider than `got`,
/// `what` names the comparison for the table of observed errors.
inline std::string firstDifference(const Array& got, const Array& want, const Tolerance& t,
                                   const std::string& what = {}) {
  if (got.shape() != want.shape())
    return "got " + describe(got.dtype(), got.shape()) + ", want " +
           describe(want.dtype(), want.shape());
  const Array rounded = want.to(got.dtype());
  const bool real = isFloat(got.dtype());
  // What overflows the dtype is an infinity in both.
  auto wanted = [&](int64_t i) {
    return t.steps && std::isfinite(rounded.at(i)) ? want.at(i) : rounded.at(i);
  };
  auto same = [&](int64_t i) {  // doubles do not hold every i64
    if (real) return isNear(got.at(i), wanted(i), boundOf(wanted(i), t));
    size_t size = sizeOf(got.dtype()), at = size_t(i) * size;
    return !std::memcmp(static_cast<const char*>(got.data()) + at,
                        static_cast<const char*>(rounded.data()) + at, size);
  };
  int64_t count = 0;
  std::string text;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (real && !what.empty() && std::isfinite(got.at(i)) && std::isfinite(wanted(i)))
      noteError(what, got.at(i), wanted(i), t);
    if (same(i)) continue;
    if (count++) continue;
    char line[160];
    std::snprintf(line, sizeof line, "element %lld is %.9g, want %.9g +- %.3g", (long long)i,
                  got.at(i), wanted(i), boundOf(wanted(i), t));
    text = line;
  }
  return count ? text + " (" + std::to_string(count) + " of " + std::to_string(got.size()) + ")"
               : "";
}

}  // namespace lathe::conformance
