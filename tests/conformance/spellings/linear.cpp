// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {

KnownSpellings linearSpellings() {
  using S = Sheet;
  auto x = [](S& m) { return m.in("x", {2, m.s, 16}); };
  auto turned = [](S& m) { return transpose(m.w("w", {24, 16}), {1, 0}); };
  return {
      {"linear_of_torch", "linear", [=](S& m) { return matmul(x(m), turned(m)) + m.w("b", {24}); },
       "bias"},
      {"linear_without_bias", "linear", [=](S& m) { return matmul(x(m), turned(m)); }},
      {"linear_kernel_of_flax", "linear",
       [=](S& m) { return matmul(x(m), m.w("w", {16, 24})) + m.w("b", {24}); }, "layout in_out"},
      {"linear_bias_first", "linear",
       [=](S& m) { return m.w("b", {24}) + matmul(x(m), m.w("w", {16, 24})); }, "bias"},
      {"linear_bias_in_a_row", "linear",
       [=](S& m) { return matmul(x(m), turned(m)) + reshape(m.w("b", {24}), {1, 1, 24}); }, "bias"},
      {"linear_bias_subtracted", "linear neg",
       [=](S& m) { return matmul(x(m), turned(m)) - m.w("b", {24}); }, "bias"},
      {"linear_flattened_rows", "linear",
       [=](S& m) {
         Tensor flat = reshape(x(m), {m.s * 2, 16});
         return reshape(m.w("b", {24}) + matmul(flat, m.w("w", {16, 24})), {2, m.s, 24});
       },
       "bias"},
      {"linear_flattened_and_turned", "linear",
       [=](S& m) {
         return reshape(matmul(reshape(x(m), {m.s * 2, 16}), turned(m)), {2, m.s, 24});
       }},
      {"linear_weight_of_one", "linear", [=](S& m) { return matmul(x(m), m.w("w", {1, 16, 24})); }},
      {"linear_weight_on_the_left", "linear",
       [=](S& m) { return swapAxes(matmul(m.w("w", {24, 16}), swapAxes(x(m), 1, 2)), 1, 2); }},
      {"linear_weight_turned_twice", "linear",
       [=](S& m) { return matmul(x(m), swapAxes(transpose(m.w("w", {16, 24}), {1, 0}), 0, 1)); }},
      {"linear_dense_general_out", "linear",
       [=](S& m) {
         Tensor w = reshape(m.w("w", {16, 3, 8}), {16, 24});
         return reshape(matmul(x(m), w), {2, m.s, 3, 8}) + m.w("b", {3, 8});
       }},
      {"linear_dense_general_in", "linear",
       [=](S& m) {
         Tensor w = reshape(m.w("w", {2, 8, 24}), {16, 24});
         return matmul(reshape(m.in("x", {2, m.s, 2, 8}), {2, m.s, 16}), w) + m.w("b", {24});
       },
       "bias"},
      {"linear_residual", "linear",
       [=](S& m) { return m.in("r", {2, m.s, 24}) + (matmul(x(m), turned(m)) + m.w("b", {24})); },
       "residual"},
      {"linear_residual_without_bias", "linear",
       [=](S& m) { return matmul(x(m), turned(m)) + m.in("r", {2, m.s, 24}); }, "residual"},
      {"linear_bias_behind_the_residual", "linear",
       [=](S& m) { return (m.in("r", {2, m.s, 24}) + matmul(x(m), turned(m))) + m.w("b", {24}); },
       "residual"},
      {"linear_relu", "linear",
       [=](S& m) { return max(matmul(x(m), turned(m)) + m.w("b", {24}), m.number(0)); },
       "activation relu"},
      {"linear_gelu", "linear",
       [=](S& m) {
         Tensor y = matmul(x(m), turned(m)) + m.w("b", {24});
         return 0.5 * y * (1.0 + erf(y * 0.7071067811865476));
       },
       "activation gelu"},
      {"linear_gelu_tanh", "linear",
       [=](S& m) {
         Tensor y = matmul(x(m), turned(m)) + m.w("b", {24});
         return 0.5 * y * (1.0 + tanh(0.7978845608028654 * (y + 0.044715 * y * y * y)));
       },
       "activation gelu_tanh"},
      {"linear_gelu_of_merged_rows", "linear",
       [=](S& m) {
         Tensor flat = matmul(reshape(x(m), {m.s * 2, 16}), m.w("w", {16, 24})) + m.w("b", {24});
         Tensor y = reshape(flat, {2, m.s, 24});
         return 0.5 * y * (1.0 + erf(y * 0.7071067811865476));
       },
       "activation gelu"},
      {"linear_silu", "linear",
       [=](S& m) {
         Tensor y = matmul(x(m), turned(m));
         return y * sigmoid(y);
       },
       "activation silu"},
      {"linear_weight_cast", "linear",
       [=](S& m) {
         Tensor w = cast(m.w("w", {24, 16}, DType::F32), DType::BF16);
         return matmul(m.in("x", {2, m.s, 16}, DType::BF16), transpose(w, {1, 0}));
       }},
      {"linear_bias_cast", "linear",
       [=](S& m) {
         const DType h = DType::BF16;
         Tensor y = matmul(m.in("x", {2, m.s, 16}, h), transpose(m.w("w", {24, 16}, h), {1, 0}));
         return y + cast(m.w("b", {24}), h);
       },
       "bias"},
      {"linear_of_low_rank_added", "linear linear linear",
       [=](S& m) {
         Tensor in = x(m);
         Tensor update = matmul(matmul(in, m.w("down", {16, 4})), m.w("up", {4, 24}));
         return matmul(in, turned(m)) + update;
       }},
      {"linear_tied_head", "embedding linear",
       [=](S& m) {
         Tensor table = m.w("table", {32, 16});
         return matmul(gather(table, m.in("ids", {2, m.s}, DType::I64), 0),
                       transpose(table, {1, 0}));
       }},
      {"linear_gated_pair", "glu linear linear linear",
       [=](S& m) {
         Tensor in = x(m), g = matmul(in, m.w("gate", {16, 24}));
         return matmul(g * sigmoid(g) * matmul(in, m.w("up", {16, 24})), m.w("down", {24, 16}));
       }},
  };
}

}  // namespace lathe::conformance
