// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @layer_norm_bias(%x: tensor<2x8xf32>, %b: tensor<7xf32>) {
  // expected-error@+1 {{'lathe.layer_norm' [C1] bias f32[7] is not one element per last dim of f32[2, 8]}}
  %0 = lathe.layer_norm %x bias %b epsilon 1.0e-5 : tensor<2x8xf32> bias tensor<7xf32>
  return
}

// -----

func.func @add_norm_bias(%x: tensor<2x8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.add_norm' [C2] the rms norm has no bias}}
  %0:2 = lathe.add_norm rms %x, %x bias %b epsilon 1.0e-5 : tensor<2x8xf32> bias tensor<8xf32>
  return
}

// -----

func.func @adaln_scale(%x: tensor<2x8xf32>, %c: tensor<3x8xf32>) {
  // expected-error@+1 {{'lathe.adaln_modulate' [C1] shift f32[3, 8] and scale f32[3, 8] are not one type that broadcasts to f32[2, 8]}}
  %0 = lathe.adaln_modulate layer %x shift %c scale %c epsilon 1.0e-5 : tensor<2x8xf32>, tensor<3x8xf32>
  return
}

// -----

func.func @gated_residual_gate(%x: tensor<2x8xf32>, %g: tensor<7xf32>) {
  // expected-error@+1 {{'lathe.gated_residual' [C1] f f32[2, 8] and gate f32[7] do not fit x f32[2, 8]}}
  %0 = lathe.gated_residual %x, %g, %x : tensor<2x8xf32>, tensor<7xf32>
  return
}

// -----

func.func @attention_window(%q: tensor<2x3x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C6] a window needs a causal mask}}
  %0 = lathe.attention %q, %q, %q scale 1.0 window 2 : tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>
  return
}
