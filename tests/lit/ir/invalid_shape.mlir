// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @transpose_repeat(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.transpose' [C1] not a permutation of the 2 axes of f32[2, 4]}}
  %0 = lathe.transpose %a [0, 0] : tensor<2x4xf32>
  return
}

// -----

func.func @transpose_short(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.transpose' [C1] not a permutation}}
  %0 = lathe.transpose %a [0] : tensor<2x4xf32>
  return
}

// -----

func.func @reshape_count(%a: tensor<?x4xf32, #lathe.dims<seq, 4>>) {
  // expected-error@+1 {{'lathe.reshape' [C1] element counts cannot be proved equal: f32[seq, 4] has 4*seq, f32[2*seq, 4] has 8*seq}}
  %0 = lathe.reshape %a to <2*seq, 4> : tensor<?x4xf32, #lathe.dims<seq, 4>>
  return
}

// -----

func.func @reshape_unnamed(%a: tensor<?xf32>) {
  // expected-error@+1 {{'lathe.reshape' [C1] element counts cannot be proved equal: f32[?] has ?}}
  %0 = lathe.reshape %a to <seq> : tensor<?xf32>
  return
}

// -----

func.func @broadcast_rank(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.broadcast' [C1] f32[4] has a smaller rank than f32[2, 4]}}
  %0 = lathe.broadcast %a to <4> : tensor<2x4xf32>
  return
}

// -----

func.func @broadcast_dim(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.broadcast' [C2] f32[2, 4] does not stretch to f32[6, 4]}}
  %0 = lathe.broadcast %a to <6, 4> : tensor<2x4xf32>
  return
}

// -----

func.func @slice_count(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.slice' [C1] needs 2 starts, sizes and strides for f32[2, 4]}}
  %0 = lathe.slice %a starts <0> sizes <2> strides [1] : tensor<2x4xf32>
  return
}

// -----

func.func @slice_stride(%a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.slice' [C2] stride 0 of axis 0 is below 1}}
  %0 = lathe.slice %a starts <0> sizes <2> strides [0] : tensor<4xf32>
  return
}

// -----

func.func @slice_outside(%a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.slice' [C3] start 1, size 4, stride 1 is not provably inside axis 0 of f32[4]}}
  %0 = lathe.slice %a starts <1> sizes <4> strides [1] : tensor<4xf32>
  return
}

// -----

func.func @slice_symbol(%a: tensor<?xf32, #lathe.dims<seq>>) {
  // expected-error@+1 {{'lathe.slice' [C3] start 0, size cache, stride 1 is not provably inside axis 0 of f32[seq]}}
  %0 = lathe.slice %a starts <0> sizes <cache> strides [1] : tensor<?xf32, #lathe.dims<seq>>
  return
}

// -----

func.func @concat_types(%a: tensor<4xf32>, %b: tensor<4xi32>) {
  // expected-error@+1 {{'lathe.concat' [C1] i32[4] and f32[4] differ in element type or rank}}
  %0 = lathe.concat %a, %b axis 0 : tensor<4xf32>, tensor<4xi32>
  return
}

// -----

func.func @concat_empty() {
  // expected-error@+2 {{'lathe.concat' [C1] needs at least one operand}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = "lathe.concat"() {axis = 0 : i64} : () -> tensor<4xf32>
  return
}

// -----

func.func @concat_axis(%a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.concat' [C2] axis 1 is outside rank 1}}
  %0 = lathe.concat %a, %a axis 1 : tensor<4xf32>, tensor<4xf32>
  return
}

// -----

func.func @concat_dims(%a: tensor<2x4xf32>, %b: tensor<2x5xf32>) {
  // expected-error@+1 {{'lathe.concat' [C3] dim 1 cannot be proved equal in f32[2, 5] and f32[2, 4]}}
  %0 = lathe.concat %a, %b axis 0 : tensor<2x4xf32>, tensor<2x5xf32>
  return
}

// -----

func.func @pad_value(%a: tensor<4xf32>, %v: tensor<1xf32>) {
  // expected-error@+1 {{'lathe.pad' [C1] the value must be a scalar like f32[4], got f32[1]}}
  %0 = lathe.pad %a, %v low [0] high [1] : tensor<4xf32>, tensor<1xf32>
  return
}

// -----

func.func @pad_negative(%a: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'lathe.pad' [C2] needs a non-negative low and high for each of 1 axes}}
  %0 = lathe.pad %a, %v low [-1] high [1] : tensor<4xf32>, tensor<f32>
  return
}

// -----

func.func @pad_negative_high(%a: tensor<4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'lathe.pad' [C2] needs a non-negative low and high for each of 1 axes}}
  %0 = lathe.pad %a, %v low [1] high [-1] : tensor<4xf32>, tensor<f32>
  return
}

// -----

func.func @reverse_axis(%a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.reverse' [C1] axis 1 is outside rank 1}}
  %0 = lathe.reverse %a axes [1] : tensor<4xf32>
  return
}

// -----

func.func @reverse_order(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.reverse' [C2] the axes do not ascend}}
  %0 = lathe.reverse %a axes [1, 0] : tensor<2x4xf32>
  return
}

// -----

func.func @pad_one_negative(%a: tensor<4x4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'lathe.pad' [C2] needs a non-negative low and high for each of 2 axes}}
  %0 = lathe.pad %a, %v low [0, 0] high [0, -1] : tensor<4x4xf32>, tensor<f32>
  return
}

// -----

func.func @pad_one_negative_low(%a: tensor<4x4xf32>, %v: tensor<f32>) {
  // expected-error@+1 {{'lathe.pad' [C2] needs a non-negative low and high for each of 2 axes}}
  %0 = lathe.pad %a, %v low [-1, 0] high [0, 0] : tensor<4x4xf32>, tensor<f32>
  return
}

// -----

// As many elements as there are, every other one.
func.func @slice_of_all_with_gaps(%a: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.slice' [C3] start 0, size 4, stride 2 is not provably inside axis 0 of f32[4]}}
  %0 = lathe.slice %a starts <0> sizes <4> strides [2] : tensor<4xf32>
  return
}

// -----

// How many elements there are of a size without a name nobody knows.
func.func @reshape_unknown(%a: tensor<?x4xf32>) {
  // expected-error@+1 {{'lathe.reshape' [C1] element counts cannot be proved equal: f32[?, 4] has ?, f32[8] has 8}}
  %0 = lathe.reshape %a to <8> : tensor<?x4xf32>
  return
}

// -----

func.func @slice_start_below(%a: tensor<?xf32, #lathe.dims<n>>) {
  // expected-error@+1 {{'lathe.slice' [C3]}}
  %0 = lathe.slice %a starts <n - 8> sizes <4> strides [1] : tensor<?xf32, #lathe.dims<n>>
  return
}

// -----

func.func @slice_size_below(%a: tensor<?xf32, #lathe.dims<n>>) {
  // expected-error@+1 {{'lathe.slice' [C3]}}
  %0 = lathe.slice %a starts <4> sizes <n - 8> strides [1] : tensor<?xf32, #lathe.dims<n>>
  return
}

// -----

func.func @broadcast_to_fewer_axes(%a: tensor<1x4xf32>) {
  // expected-error@+1 {{'lathe.broadcast' [C1]}}
  %0 = lathe.broadcast %a to <4> : tensor<1x4xf32>
  return
}

// -----

func.func @concat_ranks(%a: tensor<2x4xf32>, %b: tensor<2x4x1xf32>) {
  // expected-error@+1 {{'lathe.concat' [C1] f32[2, 4, 1] and f32[2, 4] differ in element type or rank}}
  %0 = lathe.concat %a, %b axis 0 : tensor<2x4xf32>, tensor<2x4x1xf32>
  return
}
