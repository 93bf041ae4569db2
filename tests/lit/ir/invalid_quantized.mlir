// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @cast_to_float(%q: tensor<4xi4>) {
  // expected-error@+1 {{'lathe.cast' [C2] 4-bit elements become i8 or u8 and come from them, got i4[4] to 'f32'}}
  %0 = lathe.cast %q to f32 : tensor<4xi4>
  return
}

// -----

func.func @cast_from_float(%x: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.cast' [C2] 4-bit elements become i8 or u8 and come from them, got f32[4] to 'ui4'}}
  %0 = lathe.cast %x to ui4 : tensor<4xf32>
  return
}

// -----

func.func @no_arithmetic(%q: tensor<4xi4>) {
  // expected-error@+1 {{operand #0 must be ranked tensor}}
  %0 = lathe.add %q, %q : tensor<4xi4>, tensor<4xi4>
  return
}

// -----

func.func @axis(%x: tensor<4x8xf32>, %s: tensor<4x2xf32>) {
  // expected-error@+1 {{'lathe.quantize' [C1] axis 2 of f32[4, 8] has no fixed size, or block 4 is not from 1 to 2147483647}}
  %0 = lathe.quantize %x, %s axis 2 block 4 to i8 : tensor<4x8xf32>, tensor<4x2xf32>
  return
}

// -----

func.func @no_block(%x: tensor<4x8xi8>, %s: tensor<4x2xf32>) {
  // expected-error@+1 {{'lathe.dequantize' [C1] axis 1 of i8[4, 8] has no fixed size, or block 0 is not from 1 to 2147483647}}
  %0 = lathe.dequantize %x, %s axis 1 block 0 to f32 : tensor<4x8xi8>, tensor<4x2xf32>
  return
}

// -----

// Nine elements have three blocks of four.
func.func @scales(%x: tensor<4x9xf32>, %s: tensor<4x2xf32>) {
  // expected-error@+1 {{'lathe.quantize' [C2] scale f32[4, 2] is not one element for 4 neighbours along axis 1 of f32[4, 9]}}
  %0 = lathe.quantize %x, %s axis 1 block 4 to i8 : tensor<4x9xf32>, tensor<4x2xf32>
  return
}

// -----

func.func @zeros(%x: tensor<4x8xui8>, %s: tensor<4x2xf32>, %z: tensor<4x1xui8>) {
  // expected-error@+1 {{'lathe.dequantize' [C2] zero u8[4, 1] is not one element for 4 neighbours along axis 1 of u8[4, 8]}}
  %0 = lathe.dequantize %x, %s zero %z axis 1 block 4 to f32 : tensor<4x8xui8>, tensor<4x2xf32> zero tensor<4x1xui8>
  return
}

// -----

func.func @quantize_dtype(%x: tensor<4x8xf32>, %s: tensor<4x2xf32>) {
  // expected-error@+1 {{'lathe.quantize' [C3] expected i8, ui8, i4 or ui4, got 'i16'}}
  %0 = lathe.quantize %x, %s axis 1 block 4 to i16 : tensor<4x8xf32>, tensor<4x2xf32>
  return
}

// -----

func.func @dequantize_dtype(%x: tensor<4x8xi8>, %s: tensor<4x2xf32>) {
  // expected-error@+1 {{'lathe.dequantize' [C3] expected a float dtype, got 'i32'}}
  %0 = lathe.dequantize %x, %s axis 1 block 4 to i32 : tensor<4x8xi8>, tensor<4x2xf32>
  return
}

// -----

func.func @linear_columns(%x: tensor<2x7xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C1] x f32[2, 7] and q i8[6, 8]: q must be a static matrix of as many columns}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 : tensor<2x7xf32>, tensor<6x8xi8>, tensor<6x1xf32>
  return
}

// -----

func.func @linear_scales(%x: tensor<2x8xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C2] scale f32[6, 1] is not one element for 4 columns of i8[6, 8]}}
  %0 = lathe.quantized_linear %x, %q, %s block 4 : tensor<2x8xf32>, tensor<6x8xi8>, tensor<6x1xf32>
  return
}

// -----

func.func @linear_bias(%x: tensor<2x8xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C3] bias f32[8] does not fit x f32[2, 8] and q i8[6, 8]}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 bias %b : tensor<2x8xf32>, tensor<6x8xi8>, tensor<6x1xf32> bias tensor<8xf32>
  return
}

// -----

func.func @linear_residual(%x: tensor<2x8xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C4] residual f32[2, 8] is not f32[2, 6]}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 residual %x : tensor<2x8xf32>, tensor<6x8xi8>, tensor<6x1xf32> residual tensor<2x8xf32>
  return
}

// -----

func.func @linear_layout(%x: tensor<2x8xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C5] expected the layout out_in or packed, got in_out}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 layout in_out : tensor<2x8xf32>, tensor<6x8xi8>, tensor<6x1xf32>
  return
}

// -----

func.func @linear_bias_dtype(%x: tensor<2x8xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>, %b: tensor<6xbf16>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C3] bias bf16[6] does not fit x f32[2, 8] and q i8[6, 8]}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 bias %b : tensor<2x8xf32>, tensor<6x8xi8>, tensor<6x1xf32> bias tensor<6xbf16>
  return
}

// -----

func.func @linear_bias_rank(%x: tensor<2x8xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>, %b: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C3] bias f32[6, 1] does not fit x f32[2, 8] and q i8[6, 8]}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 bias %b : tensor<2x8xf32>, tensor<6x8xi8>, tensor<6x1xf32> bias tensor<6x1xf32>
  return
}

// -----

func.func @linear_block(%x: tensor<2x8xf32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C2] block 0 is not from 1 to 2147483647}}
  %0 = lathe.quantized_linear %x, %q, %s block 0 : tensor<2x8xf32>, tensor<6x8xi8>, tensor<6x1xf32>
  return
}

// -----

func.func @linear_rank_of_q(%x: tensor<2x8xf32>, %q: tensor<1x6x8xi8>, %s: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C1] x f32[2, 8] and q i8[1, 6, 8]}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 : tensor<2x8xf32>, tensor<1x6x8xi8>, tensor<6x1xf32>
  return
}

// -----

func.func @linear_of_a_scalar(%x: tensor<f32>, %q: tensor<6x8xi8>, %s: tensor<6x1xf32>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C1] x f32[] and q i8[6, 8]}}
  %0 = lathe.quantized_linear %x, %q, %s block 8 : tensor<f32>, tensor<6x8xi8>, tensor<6x1xf32>
  return
}

// -----

func.func @axis_below(%x: tensor<4x8xf32>, %s: tensor<4x2xf32>) {
  // expected-error@+1 {{'lathe.quantize' [C1] axis -1 of f32[4, 8] has no fixed size, or block 4 is not from 1 to 2147483647}}
  %0 = lathe.quantize %x, %s axis -1 block 4 to i8 : tensor<4x8xf32>, tensor<4x2xf32>
  return
}

// -----

func.func @longer_than_any_axis(%x: tensor<2x10xbf16>, %q: tensor<6x10xi4>, %s: tensor<6x1xbf16>) {
  // expected-error@+1 {{'lathe.quantized_linear' [C2] block 2147483648 is not from 1 to 2147483647}}
  %y = lathe.quantized_linear %x, %q, %s block 2147483648 : tensor<2x10xbf16>, tensor<6x10xi4>, tensor<6x1xbf16>
  return
}

// -----

func.func @longer_than_any_axis_apart(%q: tensor<6x10xi4>, %s: tensor<6x1xbf16>) {
  // expected-error@+1 {{'lathe.dequantize' [C1] axis 1 of i4[6, 10] has no fixed size, or block 2147483648 is not from 1 to 2147483647}}
  %y = lathe.dequantize %q, %s axis 1 block 2147483648 to bf16 : tensor<6x10xi4>, tensor<6x1xbf16>
  return
}
