// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// A sum that others read too, one of them in front of the norm and of the gain's making: the new op
// stands in front of all of them, and the gain with it.
// CHECK-LABEL: @read_before_the_norm
// CHECK-NEXT: %[[W:.*]] = lathe.weight "gain"
// CHECK-NEXT: %[[S:.*]], %[[Y:.*]] = lathe.add_norm rms %arg0, %arg1 gain %[[W]] epsilon 1.000000e-03
// CHECK-NEXT: %[[E:.*]] = lathe.exp %[[S]]
// CHECK-NEXT: return %[[S]], %[[E]], %[[Y]]
func.func @read_before_the_norm(%x: tensor<2x8xf32>, %r: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %sum = lathe.add %x, %r : tensor<2x8xf32>, tensor<2x8xf32>
  %early = lathe.exp %sum : tensor<2x8xf32>
  %g = lathe.weight "gain" : tensor<8xf32>
  %y = lathe.rms_norm %sum, %g epsilon 1.0e-3 : tensor<2x8xf32>, tensor<8xf32>
  return %sum, %early, %y : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// The gain is made from the sum: there is no place for one op.
// CHECK-LABEL: @gain_of_the_sum
// CHECK: lathe.add
// CHECK: lathe.rms_norm
func.func @gain_of_the_sum(%x: tensor<2x8xf32>, %r: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %sum = lathe.add %x, %r : tensor<2x8xf32>, tensor<2x8xf32>
  %g = lathe.reduce_max %sum axes [0] : tensor<2x8xf32>
  %y = lathe.rms_norm %sum, %g epsilon 1.0e-3 : tensor<2x8xf32>, tensor<8xf32>
  return %sum, %y : tensor<2x8xf32>, tensor<2x8xf32>
}

// CHECK-LABEL: @layer
// CHECK-NEXT: %{{.*}}, %[[Y:.*]] = lathe.add_norm layer %arg0, %arg1 gain %arg2 bias %arg2 epsilon 1.000000e-03
// CHECK-NEXT: return %[[Y]]
func.func @layer(%x: tensor<2x8xf32>, %r: tensor<2x8xf32>, %g: tensor<8xf32>) -> tensor<2x8xf32> {
  %sum = lathe.add %x, %r : tensor<2x8xf32>, tensor<2x8xf32>
  %y = lathe.layer_norm %sum gain %g bias %g epsilon 1.0e-3 : tensor<2x8xf32> gain tensor<8xf32> bias tensor<8xf32>
  return %y : tensor<2x8xf32>
}

// The epilogue of a product takes the sum.
// CHECK-LABEL: @epilogue
// CHECK: lathe.linear %arg0, %{{.*}} residual %arg1
// CHECK-NEXT: lathe.rms_norm
func.func @epilogue(%x: tensor<2x8xf32>, %r: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %w = lathe.weight "w" : tensor<8x8xf32>
  %m = lathe.matmul %x, %w : tensor<2x8xf32>, tensor<8x8xf32>
  %sum = lathe.add %m, %r : tensor<2x8xf32>, tensor<2x8xf32>
  %y = lathe.rms_norm %sum epsilon 1.0e-3 : tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}
