// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rows of activations in 8 bits, as `quantizes_x` of lathe.quantized_linear defines them: whole
// numbers of [-127, 127] times a size of their own.
#include <cstdint>
#include <limits>

namespace lathe::cpu {

/// An element x becomes round(x * steps) * size.
struct ByteScale {
  float steps = 0, size = 0;
};

/// Of a row whose largest magnitude is given, NaN if it holds a NaN or an infinity: such a row is
/// NaN throughout, since its size is.
inline ByteScale byteScaleOf(float largest) {
  constexpr float kLeast = 0x1p-100f;  // whose steps are a normal number
  if (largest != largest) return {0, std::numeric_limits<float>::quiet_NaN()};
  const float reached = largest < kLeast ? kLeast : largest;
  return {127 / reached, reached / 127};
}

}  // namespace lathe::cpu
