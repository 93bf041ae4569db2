// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// CHECK-LABEL: @out_in
// CHECK-NEXT: %[[W:.*]] = lathe.weight "w"
// CHECK-NEXT: lathe.linear %arg0, %[[W]] : tensor<?x8xf32, #lathe.dims<seq, 8>>, tensor<6x8xf32>
// CHECK-NEXT: return
func.func @out_in(%x: tensor<?x8xf32, #lathe.dims<seq, 8>>) -> tensor<?x6xf32, #lathe.dims<seq, 6>> {
  %w = lathe.weight "w" : tensor<6x8xf32>
  %t = lathe.transpose %w [1, 0] : tensor<6x8xf32>
  %y = lathe.matmul %x, %t : tensor<?x8xf32, #lathe.dims<seq, 8>>, tensor<8x6xf32>
  return %y : tensor<?x6xf32, #lathe.dims<seq, 6>>
}

// CHECK-LABEL: @in_out
// CHECK: lathe.linear %arg0, %{{.*}} layout in_out : tensor<2x3x8xf32>, tensor<8x6xf32>
func.func @in_out(%x: tensor<2x3x8xf32>) -> tensor<2x3x6xf32> {
  %w = lathe.weight "w" : tensor<8x6xf32>
  %y = lathe.matmul %x, %w : tensor<2x3x8xf32>, tensor<8x6xf32>
  return %y : tensor<2x3x6xf32>
}

// A stored dtype of its own, a bias and a residual.
// CHECK-LABEL: @bias_residual
// CHECK: %[[C:.*]] = lathe.cast %{{.*}} to bf16 : tensor<6x8xf32>
// CHECK: %[[Y:.*]] = lathe.linear %arg0, %[[C]] bias %arg1 residual %arg2 : tensor<2x8xbf16>, tensor<6x8xbf16> bias tensor<6xbf16> residual tensor<2x6xbf16>
// CHECK-NEXT: return %[[Y]]
func.func @bias_residual(%x: tensor<2x8xbf16>, %b: tensor<6xbf16>, %r: tensor<2x6xbf16>) -> tensor<2x6xbf16> {
  %w = lathe.weight "w" : tensor<6x8xf32>
  %c = lathe.cast %w to bf16 : tensor<6x8xf32>
  %t = lathe.transpose %c [1, 0] : tensor<6x8xbf16>
  %m = lathe.matmul %x, %t : tensor<2x8xbf16>, tensor<8x6xbf16>
  %a = lathe.add %m, %b : tensor<2x6xbf16>, tensor<6xbf16>
  %y = lathe.add %r, %a : tensor<2x6xbf16>, tensor<2x6xbf16>
  return %y : tensor<2x6xbf16>
}

// The cast behind the transpose.
// CHECK-LABEL: @cast_of_transpose
// CHECK: %[[C:.*]] = lathe.cast %{{.*}} to f32 : tensor<6x8xbf16>
// CHECK: lathe.linear %arg0, %[[C]] : tensor<2x8xf32>, tensor<6x8xf32>
func.func @cast_of_transpose(%x: tensor<2x8xf32>) -> tensor<2x6xf32> {
  %w = lathe.weight "w" : tensor<6x8xbf16>
  %t = lathe.transpose %w [1, 0] : tensor<6x8xbf16>
  %c = lathe.cast %t to f32 : tensor<8x6xbf16>
  %y = lathe.matmul %x, %c : tensor<2x8xf32>, tensor<8x6xf32>
  return %y : tensor<2x6xf32>
}

// CHECK-LABEL: @no_weight
// CHECK: lathe.matmul
func.func @no_weight(%x: tensor<2x8xf32>, %w: tensor<8x6xf32>) -> tensor<2x6xf32> {
  %y = lathe.matmul %x, %w : tensor<2x8xf32>, tensor<8x6xf32>
  return %y : tensor<2x6xf32>
}

// The product of two weights is arithmetic on weights.
// CHECK-LABEL: @two_weights
// CHECK: lathe.matmul
func.func @two_weights() -> tensor<6x6xf32> {
  %a = lathe.weight "a" : tensor<6x8xf32>
  %b = lathe.weight "b" : tensor<8x6xf32>
  %y = lathe.matmul %a, %b : tensor<6x8xf32>, tensor<8x6xf32>
  return %y : tensor<6x6xf32>
}

// One row for all rows is a bias.
// CHECK-LABEL: @bias_row
// CHECK: %[[B:.*]] = lathe.reshape %arg1 to
// CHECK: lathe.linear %arg0, %{{.*}} bias %[[B]]
// CHECK-NEXT: return
func.func @bias_row(%x: tensor<2x8xf32>, %b: tensor<1x6xf32>) -> tensor<2x6xf32> {
  %w = lathe.weight "w" : tensor<6x8xf32>
  %t = lathe.transpose %w [1, 0] : tensor<6x8xf32>
  %m = lathe.matmul %x, %t : tensor<2x8xf32>, tensor<8x6xf32>
  %y = lathe.add %m, %b : tensor<2x6xf32>, tensor<1x6xf32>
  return %y : tensor<2x6xf32>
}

// A residual that broadcasts, and a product with another user.
// CHECK-LABEL: @residual_broadcasts
// CHECK: lathe.linear %arg0, %{{.*}} : tensor<2x8xf32>, tensor<6x8xf32>
// CHECK: lathe.add
func.func @residual_broadcasts(%x: tensor<2x8xf32>, %r: tensor<2x1xf32>) -> tensor<2x6xf32> {
  %w = lathe.weight "w" : tensor<6x8xf32>
  %t = lathe.transpose %w [1, 0] : tensor<6x8xf32>
  %m = lathe.matmul %x, %t : tensor<2x8xf32>, tensor<8x6xf32>
  %y = lathe.add %m, %r : tensor<2x6xf32>, tensor<2x1xf32>
  return %y : tensor<2x6xf32>
}
// CHECK-LABEL: @product_is_used
// CHECK: lathe.linear %arg0, %{{.*}} : tensor<2x8xf32>, tensor<6x8xf32>
// CHECK: lathe.add
func.func @product_is_used(%x: tensor<2x8xf32>, %r: tensor<2x6xf32>) -> (tensor<2x6xf32>, tensor<2x6xf32>) {
  %w = lathe.weight "w" : tensor<6x8xf32>
  %t = lathe.transpose %w [1, 0] : tensor<6x8xf32>
  %m = lathe.matmul %x, %t : tensor<2x8xf32>, tensor<8x6xf32>
  %y = lathe.add %m, %r : tensor<2x6xf32>, tensor<2x6xf32>
  return %y, %m : tensor<2x6xf32>, tensor<2x6xf32>
}

// The rows are taken apart in front of the activation: it goes with the product all the same.
// CHECK-LABEL: @activation_behind_a_layout
// CHECK: %[[Y:.*]] = lathe.linear %arg0, %{{.*}} activation silu
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %[[Y]] to <2, 3, 4>
// CHECK-NEXT: return %[[R]]
func.func @activation_behind_a_layout(%x: tensor<6x8xf32>) -> tensor<2x3x4xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %p = lathe.linear %x, %w : tensor<6x8xf32>, tensor<4x8xf32>
  %r = lathe.reshape %p to <2, 3, 4> : tensor<6x4xf32>
  %s = lathe.sigmoid %r : tensor<2x3x4xf32>
  %y = lathe.mul %r, %s : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}
