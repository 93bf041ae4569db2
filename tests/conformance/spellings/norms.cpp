// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/spellings/spellings.h"

namespace lathe::conformance {
namespace {

using S = Sheet;

Tensor meanOf(const Tensor& x, LATHE_AT) { return reduceMean(x, {-1}, true, at); }

KnownSpelling rms(const char* name,
                  const std::function<Tensor(S&, const Tensor& x, const Tensor& gain)>& spell,
                  const char* ops = "rms_norm") {
  return {name, ops, [=](S& m) { return spell(m, m.in("x", {2, m.s, 16}), m.w("gain", {16})); }};
}
KnownSpelling layer(
    const char* name,
    const std::function<Tensor(S&, const Tensor& x, const Tensor& gain, const Tensor& bias)>& spell,
    const char* ops = "layer_norm") {
  return {name, ops, [=](S& m) {
            return spell(m, m.in("x", {2, m.s, 16}), m.w("gain", {16}), m.w("bias", {16}));
          }};
}

}  // namespace

KnownSpellings normSpellings() {
  return {
      // --- rms
      rms("rms_norm_of_llama",
          [](S& m, const Tensor& x, const Tensor& g) {
            return g * (x * rsqrt(meanOf(pow(x, m.number(2))) + 1e-6));
          }),
      rms("rms_norm_of_products",
          [](S&, const Tensor& x, const Tensor& g) { return x * rsqrt(meanOf(x * x) + 1e-5) * g; }),
      rms("rms_norm_divided_by_root",
          [](S& m, const Tensor& x, const Tensor& g) {
            return x / sqrt(meanOf(pow(x, m.number(2))) + 1e-5) * g;
          }),
      rms("rms_norm_times_inverse_of_root",
          [](S& m, const Tensor& x, const Tensor& g) {
            return x * (1.0 / sqrt(meanOf(pow(x, m.number(2))) + 1e-5)) * g;
          }),
      rms(
          "rms_norm_of_gemma",
          [](S&, const Tensor& x, const Tensor& g) {
            return x * rsqrt(meanOf(x * x) + 1e-6) * (1.0 + g);
          },
          "add rms_norm"),
      rms("rms_norm_to_the_power_of_minus_half",
          [](S& m, const Tensor& x, const Tensor& g) {
            return x * pow(meanOf(x * x) + 1e-6, m.number(-0.5)) * g;
          }),
      rms("rms_norm_sum_over_count",
          [](S&, const Tensor& x, const Tensor& g) {
            return x * (1.0 / sqrt(reduceSum(x * x, {-1}, true) / 16.0 + 1e-5)) * g;
          }),
      rms("rms_norm_sum_times_inverse",
          [](S&, const Tensor& x, const Tensor& g) {
            return g * (x * rsqrt(reduceSum(x * x, {-1}, true) * 0.0625 + 1e-5));
          }),
      rms("rms_norm_gain_on_the_factor",
          [](S&, const Tensor& x, const Tensor& g) {
            return x * (rsqrt(meanOf(x * x) + 1e-5) * g);
          }),
      rms("rms_norm_gain_in_a_row",
          [](S&, const Tensor& x, const Tensor& g) {
            return x * rsqrt(meanOf(x * x) + 1e-5) * reshape(g, {1, 1, 16});
          }),
      rms("rms_norm_of_magnitudes",
          [](S&, const Tensor& x, const Tensor& g) {
            Tensor size = abs(x);
            return x * rsqrt(meanOf(size * size) + 1e-5) * g;
          }),
      rms("rms_norm_axis_behind_the_root",
          [](S& m, const Tensor& x, const Tensor& g) {
            return x * reshape(rsqrt(reduceMean(x * x, {-1}) + 1e-5), {2, m.s, 1}) * g;
          }),
      rms("rms_norm_axis_behind_the_mean",
          [](S& m, const Tensor& x, const Tensor& g) {
            return x * rsqrt(reshape(reduceMean(x * x, {-1}), {2, m.s, 1}) + 1e-5) * g;
          }),
      rms("rms_norm_without_gain",
          [](S&, const Tensor& x, const Tensor&) { return x * rsqrt(meanOf(x * x) + 1e-5); }),
      rms("rms_norm_without_epsilon",
          [](S&, const Tensor& x, const Tensor& g) { return x / sqrt(meanOf(x * x)) * g; }),
      {"rms_norm_rounded_before_the_gain", "rms_norm",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}, DType::BF16), w = cast(x, DType::F32);
         Tensor y = w * rsqrt(meanOf(pow(w, m.number(2))) + 1e-6);
         return m.w("gain", {16}, DType::BF16) * cast(y, DType::BF16);
       },
       "before_gain"},
      {"rms_norm_gain_before_the_rounding", "rms_norm",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}, DType::BF16), w = cast(x, DType::F32);
         Tensor y = w * rsqrt(meanOf(w * w) + 1e-6);
         return cast(y * cast(m.w("gain", {16}, DType::BF16), DType::F32), DType::BF16);
       }},
      {"rms_norm_of_heads", "rms_norm",
       [](S& m) {
         Tensor x = reshape(m.in("x", {2, m.s, 64}), {2, m.s, 4, 16});
         return x * rsqrt(meanOf(x * x) + 1e-6) * m.w("gain", {16});
       }},
      // --- layer
      layer("layer_norm_in_two_passes",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - meanOf(x);
              return d / sqrt(meanOf(d * d) + 1e-5) * g + b;
            }),
      layer("layer_norm_of_onnx",
            [](S& m, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - meanOf(x);
              return d / sqrt(meanOf(pow(d, m.number(2))) + 1e-12) * g + b;
            }),
      layer("layer_norm_times_inverse_root",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - meanOf(x);
              return d * rsqrt(meanOf(d * d) + 1e-5) * g + b;
            }),
      layer("layer_norm_gain_on_the_factor",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - meanOf(x);
              return d * (rsqrt(meanOf(d * d) + 1e-6) * g) + b;
            }),
      layer("layer_norm_centred_again",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor mean = meanOf(x), d = x - mean;
              return (x - mean) * rsqrt(meanOf(d * d) + 1e-5) * g + b;
            }),
      layer("layer_norm_variance_of_centred",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - meanOf(x), c = d - meanOf(d);
              return d / sqrt(meanOf(c * c) + 1e-5) * g + b;
            }),
      layer("layer_norm_of_sums",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - reduceSum(x, {-1}, true) / 16.0;
              return d / sqrt(reduceSum(d * d, {-1}, true) / 16.0 + 1e-5) * g + b;
            }),
      layer("layer_norm_axes_put_back",
            [](S& m, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - reshape(reduceMean(x, {-1}), {2, m.s, 1});
              Tensor variance = reshape(reduceMean(d * d, {-1}), {2, m.s, 1});
              return d * rsqrt(variance + 1e-5) * g + b;
            }),
      layer("layer_norm_without_affine",
            [](S&, const Tensor& x, const Tensor&, const Tensor&) {
              Tensor d = x - meanOf(x);
              return d * rsqrt(meanOf(d * d) + 1e-6);
            }),
      layer("layer_norm_without_bias",
            [](S&, const Tensor& x, const Tensor& g, const Tensor&) {
              Tensor d = x - meanOf(x);
              return g * (d * rsqrt(meanOf(d * d) + 1e-6));
            }),
      layer(
          "layer_norm_one_plus_gain",
          [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
            Tensor d = x - meanOf(x);
            return d * rsqrt(meanOf(d * d) + 1e-6) * (g + 1.0) + b;
          },
          "add layer_norm"),
      layer("layer_norm_of_magnitudes",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor d = x - meanOf(x);
              Tensor size = abs(d);
              return d * rsqrt(meanOf(size * size) + 1e-6) * g + b;
            }),
      layer("layer_norm_as_batch_normalization",
            [](S&, const Tensor& x, const Tensor& g, const Tensor& b) {
              Tensor mean = meanOf(x), d = x - mean;
              Tensor factor = rsqrt(meanOf(d * d) + 1e-3) * g;
              return x * factor + (b - mean * factor);
            }),
      {"layer_norm_widened", "layer_norm",
       [](S& m) {
         auto wide = [](const Tensor& x) { return cast(x, DType::F32); };
         const DType h = DType::BF16;
         Tensor x = wide(m.in("x", {2, m.s, 16}, h)), d = x - meanOf(x);
         Tensor y = d * rsqrt(meanOf(d * d) + 1e-5);
         return cast(y * wide(m.w("gain", {16}, h)) + wide(m.w("bias", {16}, h)), h);
       }},
      // --- with what stands around them
      {"norm_behind_a_residual", "add_norm",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}) + m.in("r", {2, m.s, 16});
         return x * rsqrt(meanOf(x * x) + 1e-6) * m.w("gain", {16});
       }},
      {"layer_norm_behind_a_residual", "add_norm",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}) + m.in("r", {2, m.s, 16}), d = x - meanOf(x);
         return d * rsqrt(meanOf(d * d) + 1e-6) * m.w("gain", {16}) + m.w("bias", {16});
       }},
      {"modulated_norm", "adaln_modulate",
       [](S& m) {
         Tensor x = m.in("x", {2, m.s, 16}), d = x - meanOf(x);
         Tensor y = d * rsqrt(meanOf(d * d) + 1e-6);
         return y * (1.0 + m.in("scale", {2, 1, 16})) + m.in("shift", {2, 1, 16});
       }},
  };
}

}  // namespace lathe::conformance
