// SPDX-License-Identifier: Apache-2.0
#pragma once
// From wide numbers to 16 bits with one rounding (Boldo and Melquiond, 2008): on the way through
// f32 a number that f32 does not hold becomes the neighbour whose last bit is odd. That one is no
// tie of 16 bits and lies on the number's own side of every tie, which the nearest one need not.
#include <bit>
#include <cmath>
#include <cstdint>

#include "lathe/runtime/dtype.h"

namespace lathe {

inline float oddFloat(double value) {
  const float near = static_cast<float>(value);
  const uint32_t bits = std::bit_cast<uint32_t>(near);
  const double has = std::abs(double(near)), wants = std::abs(value);
  if (bits & 1 || !(has < wants || has > wants)) return near;
  return std::bit_cast<float>(has < wants ? bits + 1 : bits - 1);
}
inline float oddFloat(int64_t value) {
  // A double holds 53 bits: beyond them it is odd, too.
  constexpr int64_t kHeld = int64_t(1) << 53;
  if (value > -kHeld && value < kHeld) return oddFloat(double(value));
  return oddFloat(double((value >> 11 | int64_t((value & 0x7ff) != 0)) * 2048));
}

inline uint16_t doubleToBf16(double value) { return floatToBf16(oddFloat(value)); }
inline uint16_t doubleToF16(double value) { return floatToF16(oddFloat(value)); }

}  // namespace lathe
