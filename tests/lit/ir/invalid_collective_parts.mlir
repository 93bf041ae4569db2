// RUN: lathe-opt %s --split-input-file --verify-diagnostics
func.func @another_number(%x: tensor<9x8xf32>) {
  // expected-error@+1 {{'lathe.reduce_scatter' [C3] expected 3 of 9 in 4 parts, got 4}}
  %0 = lathe.reduce_scatter sum %x axis 0 part <4> over "tp" of 4 : tensor<9x8xf32>
  return
}

// -----

func.func @two_sizes(%x: tensor<9x8xf32>) {
  // expected-error@+1 {{'lathe.all_slice' [C3] expected one size, got #lathe.dims<3, 3>}}
  %0 = lathe.all_slice %x axis 0 parts 4 part <3, 3> over "tp" of 4 : tensor<9x8xf32>
  return
}

// -----

func.func @another_whole(%x: tensor<3x8xf32>) {
  // expected-error@+1 {{'lathe.all_gather' [C3] expected 2 of 8 in 4 parts, got 3}}
  %0 = lathe.all_gather %x axis 0 parts 4 whole <8> over "tp" of 4 : tensor<3x8xf32>
  return
}

// -----

lathe.dim @rows 1 to 64
func.func @undeclared(%x: tensor<?x8xf32, #lathe.dims<rows, 8>>) {
  // expected-error@+1 {{'lathe.reduce_scatter' op [C3] there is no lathe.dim_part @part of <rows> parts 4}}
  %0 = lathe.reduce_scatter sum %x axis 0 part <part> over "tp" of 4 : tensor<?x8xf32, #lathe.dims<rows, 8>>
  return
}

// -----

lathe.dim @rows 1 to 64
lathe.dim_part @part of <rows> parts 2
func.func @of_other_parts(%x: tensor<?x8xf32, #lathe.dims<rows, 8>>) {
  // expected-error@+1 {{'lathe.all_slice' op [C3] there is no lathe.dim_part @part of <rows> parts 4}}
  %0 = lathe.all_slice %x axis 0 parts 4 part <part> over "tp" of 4 : tensor<?x8xf32, #lathe.dims<rows, 8>>
  return
}

// -----

lathe.dim @rows 1 to 64
lathe.dim_part @part of <rows+1> parts 4
func.func @of_another_size(%x: tensor<?x8xf32, #lathe.dims<part, 8>>) {
  // expected-error@+1 {{'lathe.all_gather' op [C3] there is no lathe.dim_part @part of <rows> parts 4}}
  %0 = lathe.all_gather %x axis 0 parts 4 whole <rows> over "tp" of 4 : tensor<?x8xf32, #lathe.dims<part, 8>>
  return
}

// -----

func.func @a_sum(%x: tensor<?x8xf32, #lathe.dims<rows, 8>>) {
  // expected-error@+1 {{'lathe.all_slice' [C3] expected the lathe.dim_part of rows in 4 parts, got part+1}}
  %0 = lathe.all_slice %x axis 0 parts 4 part <part+1> over "tp" of 4 : tensor<?x8xf32, #lathe.dims<rows, 8>>
  return
}

// -----

// expected-error@+1 {{'lathe.dim_part' op [C1] there is no lathe.dim @rows}}
lathe.dim_part @part of <rows> parts 4

// -----

// expected-error@+1 {{'lathe.dim_part' op [C1] expected one size of symbols, got #lathe.dims<8>}}
lathe.dim_part @part of <8> parts 4

// -----

lathe.dim @rows 1 to 64
// expected-error@+1 {{'lathe.dim_part' op [C2] expected at least one part, got 0}}
lathe.dim_part @part of <rows> parts 0
