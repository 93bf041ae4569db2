// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the calls of gated layers tell their kernels: activation(gate) * up, where one layer's
// outputs are the gates and then as many that they gate.
#include <cstdint>
#include <string_view>

#include "lathe/runtime/call_config.h"

namespace lathe::cpu {

inline constexpr std::string_view kGatedLinear = "gated_linear",
                                  kGatedQuantizedLinear = "gated_quantized_linear";

/// Operands x and the packed weight.
struct GatedLinearConfig {
  Activation gate = Activation::silu;
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("gate", self.gate);
  }
};

/// Operands x, packed q, the scale, and the zero points where there are such.
struct GatedQuantizedConfig {
  Activation gate = Activation::silu;
  int64_t block = 1;  ///< neighbours of a row that share a scale
  bool zero = false;
  bool quantizesX = false;  ///< rows of x are rounded to 8 bits
  template <class Self, class Field>
  static void fields(Self& self, Field field) {
    field("gate", self.gate);
    field("block", self.block);
    field("zero", self.zero);
    field("quantizes_x", self.quantizesX);
  }
};

}  // namespace lathe::cpu
