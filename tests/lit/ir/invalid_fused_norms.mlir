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

// -----

func.func @attention_window_without_causal(%q: tensor<2x3x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C6] a window needs a causal mask}}
  %0 = lathe.attention %q, %q, %q scale 1.0 causal none window 2 : tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>
  return
}

// -----

func.func @rms_norm_gain_dtype(%x: tensor<2x8xf32>, %g: tensor<8xbf16>) {
  // expected-error@+1 {{'lathe.rms_norm' [C1] gain bf16[8] is not one element per last dim of f32[2, 8]}}
  %0 = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<2x8xf32>, tensor<8xbf16>
  return
}

// -----

func.func @rms_norm_gain_rank(%x: tensor<2x8xf32>, %g: tensor<1x8xf32>) {
  // expected-error@+1 {{'lathe.rms_norm' [C1] gain f32[1, 8] is not one element per last dim of f32[2, 8]}}
  %0 = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<2x8xf32>, tensor<1x8xf32>
  return
}

// -----

func.func @layer_norm_epsilon(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'lathe.layer_norm' [C2] epsilon is negative}}
  %0 = lathe.layer_norm %x epsilon -1.0e-5 : tensor<2x8xf32>
  return
}

// -----

func.func @layer_norm_bias_dtype(%x: tensor<2x8xf32>, %b: tensor<8xf64>) {
  // expected-error@+1 {{'lathe.layer_norm' [C1] bias f64[8] is not one element per last dim of f32[2, 8]}}
  %0 = lathe.layer_norm %x bias %b epsilon 1.0e-5 : tensor<2x8xf32> bias tensor<8xf64>
  return
}

// -----

func.func @rope_sines_of_other_dims(%x: tensor<2x8xf32>, %c: tensor<2x4xf32>, %s: tensor<1x4xf32>) {
  // expected-error@+1 {{'lathe.rope' [C2] cos }}
  %0 = lathe.rope half %x, %c, %s : tensor<2x8xf32>, tensor<2x4xf32>, tensor<1x4xf32>
  return
}

// -----

func.func @rope_sines_of_another_dtype(%x: tensor<2x8xf32>, %c: tensor<2x4xf32>, %s: tensor<2x4xf64>) {
  // expected-error@+1 {{'lathe.rope' [C2] cos }}
  %0 = lathe.rope half %x, %c, %s : tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x4xf64>
  return
}

// -----

func.func @rope_narrow_tables(%x: tensor<2x8xf32>, %c: tensor<2x4xbf16>, %s: tensor<2x4xbf16>) {
  // expected-error@+1 {{'lathe.rope' [C2] cos }}
  %0 = lathe.rope half %x, %c, %s : tensor<2x8xf32>, tensor<2x4xbf16>, tensor<2x4xbf16>
  return
}

// -----

func.func @rope_angles_beyond_the_half(%x: tensor<2x8xf32>, %c: tensor<2x5xf32>, %s: tensor<2x5xf32>) {
  // expected-error@+1 {{'lathe.rope' [C2] cos }}
  %0 = lathe.rope half %x, %c, %s : tensor<2x8xf32>, tensor<2x5xf32>, tensor<2x5xf32>
  return
}

// -----

func.func @rope_tables_of_other_rows(%x: tensor<2x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) {
  // expected-error@+1 {{'lathe.rope' [C2] cos }}
  %0 = lathe.rope half %x, %c, %s : tensor<2x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>
  return
}

// -----

func.func @gated_residual_gate_dtype(%x: tensor<2x8xf32>, %g: tensor<8xbf16>) {
  // expected-error@+1 {{'lathe.gated_residual' [C1] f f32[2, 8] and gate bf16[8] do not fit x f32[2, 8]}}
  %0 = lathe.gated_residual %x, %g, %x : tensor<2x8xf32>, tensor<8xbf16>
  return
}

// -----

func.func @rope_append_first_axis(%c: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.rope_append' [C3] x f32[2, 3, 1, 8] and positions i64[2] do not fit the cache f32[2, 3, 9, 8] along axis 0}}
  %0 = lathe.rope_append half %c, %x, %t, %t, %p axis 0 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<2xi64>
  return
}

// -----

func.func @rope_append_heads(%c: tensor<2x4x9x8xf32>, %x: tensor<2x3x1x8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.rope_append' [C3] x f32[2, 3, 1, 8]}}
  %0 = lathe.rope_append half %c, %x, %t, %t, %p axis 2 : tensor<2x4x9x8xf32>, tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<2xi64>
  return
}

// -----

func.func @rope_append_positions(%c: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %t: tensor<1x4xf32>, %p: tensor<3xi64>) {
  // expected-error@+1 {{'lathe.rope_append' [C3] x f32[2, 3, 1, 8] and positions i64[3]}}
  %0 = lathe.rope_append half %c, %x, %t, %t, %p axis 2 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<3xi64>
  return
}

// -----

func.func @add_norm_epsilon(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'lathe.add_norm' [C3] epsilon is negative}}
  %0:2 = lathe.add_norm rms %x, %x epsilon -1.0e-5 : tensor<2x8xf32>
  return
}

// -----

func.func @adaln_epsilon(%x: tensor<2x8xf32>, %c: tensor<2x8xf32>) {
  // expected-error@+1 {{'lathe.adaln_modulate' [C2] epsilon is negative}}
  %0 = lathe.adaln_modulate layer %x shift %c scale %c epsilon -1.0e-5 : tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

func.func @norm_rope_epsilon(%x: tensor<2x8xf32>, %g: tensor<8xf32>, %t: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.norm_rope' [C1] epsilon is negative}}
  %0 = lathe.norm_rope half %x gain %g, %t, %t epsilon -1.0e-5 : tensor<2x8xf32>, tensor<8xf32>, tensor<2x4xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @rope_append_epsilon(%c: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.rope_append' [C1] epsilon is negative}}
  %0 = lathe.rope_append half %c, %x, %t, %t, %p axis 2 epsilon -1.0e-5 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<2xi64>
  return
}

// -----

func.func @adaln_dtype(%x: tensor<2x8xf32>, %c: tensor<2x8xbf16>) {
  // expected-error@+1 {{'lathe.adaln_modulate' [C1] shift bf16[2, 8] and scale bf16[2, 8] are not one type that broadcasts to f32[2, 8]}}
  %0 = lathe.adaln_modulate layer %x shift %c scale %c epsilon 1.0e-5 : tensor<2x8xf32>, tensor<2x8xbf16>
  return
}

// -----

func.func @rope_append_along_the_batch(%c: tensor<2x3x9x8xf32>, %x: tensor<1x3x9x8xf32>, %t: tensor<9x4xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.rope_append' [C3] x f32[1, 3, 9, 8] and positions i64[2] do not fit the cache f32[2, 3, 9, 8] along axis 0}}
  %0 = lathe.rope_append half %c, %x, %t, %t, %p axis 0 : tensor<2x3x9x8xf32>, tensor<1x3x9x8xf32>, tensor<9x4xf32>, tensor<9x4xf32>, tensor<2xi64>
  return
}
