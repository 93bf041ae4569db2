// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @axis_outside(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.reduce_sum' [C1] axis 2 is outside rank 2 of f32[2, 4]}}
  %0 = lathe.reduce_sum %a axes [2] : tensor<2x4xf32>
  return
}

// -----

func.func @axis_negative(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.reduce_max' [C1] axis -1 is outside rank 2}}
  %0 = lathe.reduce_max %a axes [-1] : tensor<2x4xf32>
  return
}

// -----

func.func @axes_repeat(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.reduce_mean' [C2] the axes do not ascend}}
  %0 = lathe.reduce_mean %a axes [1, 1] : tensor<2x4xf32>
  return
}

// -----

func.func @argmax_axis(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.argmax' [C1] axis 2 is outside rank 2}}
  %0 = lathe.argmax %a axis 2 : tensor<2x4xf32>
  return
}

// -----

func.func @argmin_axis(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.argmin' [C1] axis -1 is outside rank 2}}
  %0 = lathe.argmin %a axis -1 : tensor<2x4xf32>
  return
}

// -----

func.func @argmax_of_nothing(%a: tensor<2x0xf32>) {
  // expected-error@+1 {{'lathe.argmax' [C1] axis 1 of f32[2, 0] has no elements}}
  %0 = lathe.argmax %a axis 1 : tensor<2x0xf32>
  return
}

// -----

func.func @argmin_of_nothing(%a: tensor<0x2xi32>) {
  // expected-error@+1 {{'lathe.argmin' [C1] axis 0 of i32[0, 2] has no elements}}
  %0 = lathe.argmin %a axis 0 : tensor<0x2xi32>
  return
}

// -----

func.func @cumsum_axis(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.cumsum' [C1] axis 5 is outside rank 2}}
  %0 = lathe.cumsum %a axis 5 : tensor<2x4xf32>
  return
}

// -----

func.func @top_k_scalar(%a: tensor<f32>) {
  // expected-error@+1 {{'lathe.top_k' [C1] needs an axis, got f32[]}}
  %0, %1 = lathe.top_k %a k 1 : tensor<f32>
  return
}

// -----

func.func @top_k_large(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.top_k' [C2] k = 5 is outside [1, last dim] of f32[2, 4]}}
  %0, %1 = lathe.top_k %a k 5 : tensor<2x4xf32>
  return
}

// -----

func.func @top_k_zero(%a: tensor<2x4xf32>) {
  // expected-error@+1 {{'lathe.top_k' [C2] k = 0 is outside}}
  %0, %1 = lathe.top_k %a k 0 : tensor<2x4xf32>
  return
}
