// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @add_types(%a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error@+1 {{'lathe.add' [C1] element types differ: f32[4] and i32[4]; insert a cast}}
  %0 = lathe.add %a, %b : tensor<4xf32>, tensor<4xi32>
  return
}

// -----

func.func @add_dims(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.add' [C2] dim 1 cannot be proved equal: 3 in f32[2, 3] and 4 in f32[2, 4]}}
  %0 = lathe.add %a, %b : tensor<2x3xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @mul_symbols(%a: tensor<?xf32, #lathe.dims<seq>>, %b: tensor<?xf32, #lathe.dims<cache>>) {
  // expected-error@+1 {{'lathe.mul' [C2] dim 0 cannot be proved equal: seq in f32[seq] and cache in f32[cache]}}
  %0 = lathe.mul %a, %b : tensor<?xf32, #lathe.dims<seq>>, tensor<?xf32, #lathe.dims<cache>>
  return
}

// -----

func.func @sub_unnamed(%a: tensor<?xf32>) {
  // expected-error@+1 {{'lathe.sub' [C2] dim 0 cannot be proved equal: ? in f32[?] and ? in f32[?]}}
  %0 = lathe.sub %a, %a : tensor<?xf32>, tensor<?xf32>
  return
}

// -----

func.func @compare_types(%a: tensor<4xf32>, %b: tensor<4xf64>) {
  // expected-error@+1 {{'lathe.compare' [C1] element types differ: f32[4] and f64[4]}}
  %0 = lathe.compare lt %a, %b : tensor<4xf32>, tensor<4xf64>
  return
}

// -----

func.func @compare_dims(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{'lathe.compare' [C2] dim 0 cannot be proved equal}}
  %0 = lathe.compare lt %a, %b : tensor<4xf32>, tensor<5xf32>
  return
}

// -----

func.func @select_types(%c: tensor<4xi1>, %a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error@+1 {{'lathe.select' [C1] element types differ: f32[4] and i32[4]}}
  %0 = lathe.select %c, %a, %b : tensor<4xi1>, tensor<4xf32>, tensor<4xi32>
  return
}

// -----

func.func @select_dims(%c: tensor<3xi1>, %a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.select' [C2] dim 0 cannot be proved equal: 3 in bool[3] and 4 in f32[4]}}
  %0 = lathe.select %c, %a, %a : tensor<3xi1>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @cast_type(%a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.cast' [C1] no tensor has elements of 'i3'}}
  %0 = lathe.cast %a to i3 : tensor<4xf32>
  return
}

// -----

func.func @bitcast_width(%a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.bitcast' [C1] widths differ: f32[4] to 'i16'}}
  %0 = lathe.bitcast %a to i16 : tensor<4xf32>
  return
}

// -----

func.func @logical_and_number(%a: tensor<4xf32>) {
  // expected-error@+1 {{operand #0 must be ranked tensor of 1-bit signless integer values}}
  %0 = lathe.logical_and %a, %a : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @exp_integer(%a: tensor<4xi32>) {
  // expected-error@+1 {{operand #0 must be ranked tensor of}}
  %0 = lathe.exp %a : tensor<4xi32>
  return
}

// -----

func.func @bitcast_byte_to_boolean(%a: tensor<4xi8>) {
  // expected-error@+1 {{'lathe.bitcast' [C1] widths differ: i8[4] to 'i1'}}
  %0 = lathe.bitcast %a to i1 : tensor<4xi8>
  return
}

// -----

func.func @bitcast_boolean_to_byte(%a: tensor<4xi1>) {
  // expected-error@+1 {{'lathe.bitcast' [C1] widths differ: bool[4] to 'ui8'}}
  %0 = lathe.bitcast %a to ui8 : tensor<4xi1>
  return
}

// -----

func.func @cast_of_four_bits(%a: tensor<4xi4>) {
  // expected-error@+1 {{'lathe.cast' [C2] 4-bit elements become i8 or u8 and come from them, got i4[4] to 'f32'}}
  %0 = lathe.cast %a to f32 : tensor<4xi4>
  return
}

// -----

func.func @cast_to_four_bits(%a: tensor<4xi32>) {
  // expected-error@+1 {{'lathe.cast' [C2] 4-bit elements become i8 or u8 and come from them, got i32[4] to 'i4'}}
  %0 = lathe.cast %a to i4 : tensor<4xi32>
  return
}
