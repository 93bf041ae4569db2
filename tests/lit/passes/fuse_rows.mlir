// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// The last token is cut out before the norm and the head.
// CHECK-LABEL: @last_token
// CHECK-NEXT: %[[W:.*]] = lathe.weight
// CHECK-NEXT: %[[X:.*]] = lathe.slice %arg0 starts <0, 4, 0> sizes <2, 1, 8>
// CHECK-NEXT: %[[N:.*]] = lathe.rms_norm %[[X]], %arg1
// CHECK-NEXT: lathe.linear %[[N]], %[[W]]
// CHECK-NEXT: return
func.func @last_token(%x: tensor<2x5x8xf32>, %g: tensor<8xf32>) -> tensor<2x1x16xf32> {
  %w = lathe.weight "head" : tensor<16x8xf32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-3 : tensor<2x5x8xf32>, tensor<8xf32>
  %l = lathe.linear %n, %w : tensor<2x5x8xf32>, tensor<16x8xf32>
  %y = lathe.slice %l starts <0, 4, 0> sizes <2, 1, 16> strides [1, 1, 1] : tensor<2x5x16xf32>
  return %y : tensor<2x1x16xf32>
}

// CHECK-LABEL: @greedy
// CHECK-NEXT: lathe.argmax %arg0 axis 1
// CHECK-NEXT: return
func.func @greedy(%x: tensor<2x5xf32>) -> tensor<2xi64> {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %t = lathe.div %x, %two : tensor<2x5xf32>, tensor<f32>
  %p = lathe.softmax %t axis 1 : tensor<2x5xf32>
  %y = lathe.argmax %p axis 1 : tensor<2x5xf32>
  return %y : tensor<2xi64>
}

// CHECK-LABEL: @patches
// CHECK: lathe.reshape %arg0 to <2, 3, 4, 2, 4, 2>
// CHECK: lathe.linear
// CHECK-NOT: lathe.convolution
// CHECK: return
func.func @patches(%x: tensor<2x3x8x8xf32>, %b: tensor<6x1x1xf32>) -> tensor<2x6x4x4xf32> {
  %w = lathe.weight "w" : tensor<6x3x2x2xf32>
  %c = lathe.convolution %x, %w strides [2, 2] padding [0, 0, 0, 0] : tensor<2x3x8x8xf32>, tensor<6x3x2x2xf32>
  %y = lathe.add %c, %b : tensor<2x6x4x4xf32>, tensor<6x1x1xf32>
  return %y : tensor<2x6x4x4xf32>
}
