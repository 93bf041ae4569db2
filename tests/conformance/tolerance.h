// SPDX-License-Identifier: Apache-2.0
#pragma once
// How far a backend may be from the float64 reference: |got - want| <= atol + rtol * |want|, where
// `want` is rounded to the result's dtype. One table for every op and dtype.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>

#include "runtime/array.h"

namespace lathe::conformance {

struct Tolerance {
  double atol = 0, rtol = 0;
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

/// In units of ulpOf: `relative` of the result, `absolute` of a result near 1. Ops that are not
/// listed round once and get kRoundedOnce.
struct Ulps {
  double absolute = 0, relative = 0;
};
inline constexpr Ulps kRoundedOnce{0, 1};

inline const std::map<std::string, Ulps>& ulpTable() {
  static const std::map<std::string, Ulps> table{
      // Polynomials, in f32 or f64.
      {"exp", {0, 4}},
      {"log", {2, 4}},
      {"sin", {2, 4}},
      {"cos", {2, 4}},
      {"tanh", {2, 4}},
      {"erf", {2, 4}},
      {"sigmoid", {2, 4}},
      {"rsqrt", {0, 4}},
      {"reciprocal", {0, 2}},
      {"pow", {0, 64}},
      {"mod", {16, 4}},
      // Sums: terms cancel, so the error is absolute; 257 terms of a spread of 1.5.
      {"reduce_sum", {128, 4}},
      {"reduce_mean", {8, 4}},
      {"reduce_prod", {0, 256}},
      {"cumsum", {128, 4}},
      {"matmul", {256, 4}},
      {"convolution", {256, 4}},
      // Fused ops round in between: at most a step for every op of the decomposition.
      {"softmax", {4, 16}},
      {"rms_norm", {4, 16}},
      {"layer_norm", {16, 16}},
      {"adaln_modulate", {32, 16}},
      {"gated_residual", {8, 4}},
      // The sum and the norm are rounded to the dtype in between, at up to 8 times the result.
      {"add_norm", {256, 16}},
      {"norm_rope", {512, 16}},
      {"rope_append", {512, 16}},
      {"embedding", {8, 4}},
      {"rope", {8, 8}},
      {"silu_gate", {8, 16}},
      {"attention", {48, 16}},
      {"linear", {256, 4}},
  };
  return table;
}

/// `op` without the dialect's name; `dtype` of the result.
inline Tolerance toleranceOf(const std::string& op, DType dtype, bool exact) {
  if (!isFloat(dtype)) return {};
  // AVX512-BF16 converts what is smaller than the smallest normal number to zero.
  const double smallest = dtype == DType::BF16 ? 0x1p-126 : 0;
  if (exact) return {smallest, 0};
  // RoPE's tables are f32, and so is its arithmetic.
  const bool rotates = op == "rope" || op == "norm_rope" || op == "rope_append";
  double ulp = rotates && dtype == DType::F64 ? ulpOf(DType::F32) : ulpOf(dtype);
  auto it = ulpTable().find(op);
  Ulps ulps = it == ulpTable().end() ? kRoundedOnce : it->second;
  // 16-bit floats compute in f32 and round once: sums do not lose their digits.
  bool narrow = dtype == DType::BF16 || dtype == DType::F16;
  double absolute = narrow ? ulps.absolute / 64 : ulps.absolute;
  double relative = narrow ? std::min(ulps.relative, 2.0) : ulps.relative;
  return {std::max(absolute * ulp, smallest), relative * ulp};
}

/// NaN must meet NaN and an infinity its like.
inline bool isClose(double got, double want, Tolerance t) {
  if (std::isnan(got) || std::isnan(want)) return std::isnan(got) && std::isnan(want);
  if (std::isinf(got) || std::isinf(want)) return got == want;
  return std::abs(got - want) <= t.atol + t.rtol * std::abs(want);
}

/// The first element that differs, as text; empty if all are close. `want` may be wider than `got`.
inline std::string firstDifference(const Array& got, const Array& want, Tolerance t) {
  if (got.shape() != want.shape())
    return "got " + describe(got.dtype(), got.shape()) + ", want " +
           describe(want.dtype(), want.shape());
  const Array rounded = want.to(got.dtype());
  const bool real = isFloat(got.dtype());
  auto same = [&](int64_t i) {  // doubles do not hold every i64
    if (real) return isClose(got.at(i), rounded.at(i), t);
    size_t size = sizeOf(got.dtype()), at = size_t(i) * size;
    return !std::memcmp(static_cast<const char*>(got.data()) + at,
                        static_cast<const char*>(rounded.data()) + at, size);
  };
  int64_t count = 0;
  std::string text;
  for (int64_t i = 0; i < got.size(); ++i) {
    if (same(i)) continue;
    if (count++) continue;
    char line[160];
    std::snprintf(line, sizeof line, "element %lld is %.9g, want %.9g +- %.3g", (long long)i,
                  got.at(i), rounded.at(i), t.atol + t.rtol * std::abs(rounded.at(i)));
    text = line;
  }
  return count ? text + " (" + std::to_string(count) + " of " + std::to_string(got.size()) + ")"
               : "";
}

}  // namespace lathe::conformance
