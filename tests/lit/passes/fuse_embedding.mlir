// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// CHECK-LABEL: @rows
// CHECK: %[[C:.*]] = lathe.cast
// CHECK: lathe.embedding %arg0, %[[C]] : tensor<2x3xi64>, tensor<16x8xf32>
func.func @rows(%ids: tensor<2x3xi64>) -> tensor<2x3x8xf32> {
  %w = lathe.weight "embed" : tensor<16x8xbf16>
  %c = lathe.cast %w to f32 : tensor<16x8xbf16>
  %y = lathe.gather %c, %ids axis 0 : tensor<16x8xf32>, tensor<2x3xi64>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: @columns
// CHECK: lathe.gather
func.func @columns(%ids: tensor<3xi64>) -> tensor<16x3xf32> {
  %w = lathe.weight "embed" : tensor<16x8xf32>
  %y = lathe.gather %w, %ids axis 1 : tensor<16x8xf32>, tensor<3xi64>
  return %y : tensor<16x3xf32>
}

// CHECK-LABEL: @no_weight
// CHECK: lathe.gather
func.func @no_weight(%t: tensor<16x8xf32>, %ids: tensor<3xi64>) -> tensor<3x8xf32> {
  %y = lathe.gather %t, %ids axis 0 : tensor<16x8xf32>, tensor<3xi64>
  return %y : tensor<3x8xf32>
}

// Between casts the rows are taken of the narrow table; ids have no dtype of their own to narrow.
// CHECK-LABEL: @between_casts
// CHECK: %[[W:.*]] = lathe.weight
// CHECK: lathe.embedding %arg0, %[[W]] scale 2.{{.*}} : tensor<2x3xi64>, tensor<16x8xbf16>
// CHECK-NOT: lathe.cast
func.func @between_casts(%ids: tensor<2x3xi64>) -> tensor<2x3x8xbf16> {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %w = lathe.weight "embed" : tensor<16x8xbf16>
  %c = lathe.cast %w to f32 : tensor<16x8xbf16>
  %x = lathe.gather %c, %ids axis 0 : tensor<16x8xf32>, tensor<2x3xi64>
  %s = lathe.mul %x, %two : tensor<2x3x8xf32>, tensor<f32>
  %y = lathe.cast %s to bf16 : tensor<2x3x8xf32>
  return %y : tensor<2x3x8xbf16>
}
