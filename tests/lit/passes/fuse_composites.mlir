// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// CHECK-LABEL: @adaln
// CHECK-NEXT: lathe.adaln_modulate layer %arg0 shift %arg1 scale %arg2 epsilon 1.000000e-03
// CHECK-NEXT: return
func.func @adaln(%x: tensor<2x3x8xf32>, %s: tensor<2x1x8xf32>, %c: tensor<2x1x8xf32>) -> tensor<2x3x8xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.layer_norm %x epsilon 1.0e-3 : tensor<2x3x8xf32>
  %f = lathe.add %one, %c : tensor<f32>, tensor<2x1x8xf32>
  %m = lathe.mul %f, %n : tensor<2x1x8xf32>, tensor<2x3x8xf32>
  %y = lathe.add %s, %m : tensor<2x1x8xf32>, tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: @gated
// CHECK-NEXT: lathe.gated_residual %arg0, %arg1, %arg2
// CHECK-NEXT: return
func.func @gated(%x: tensor<2x3x8xf32>, %g: tensor<2x1x8xf32>, %f: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %m = lathe.mul %f, %g : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  %y = lathe.add %m, %x : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: @norm_rope_append
// CHECK-NEXT: lathe.rope_append half %arg0, %arg1 gain %arg2, %arg3, %arg3, %arg4 axis 2 epsilon 1.000000e-03
// CHECK-NEXT: return
func.func @norm_rope_append(%cache: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %g: tensor<8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>) -> tensor<2x3x9x8xf32> {
  %n = lathe.rms_norm %x, %g epsilon 1.0e-3 : tensor<2x3x1x8xf32>, tensor<8xf32>
  %r = lathe.rope half %n, %t, %t : tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %y = lathe.update %cache, %r, %p axis 2 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<2xi64>
  return %y : tensor<2x3x9x8xf32>
}

// The rotated value has another reader: it stays.
// CHECK-LABEL: @rotated_is_read
// CHECK-NEXT: lathe.norm_rope half %arg1 gain %arg2
// CHECK-NEXT: lathe.update
func.func @rotated_is_read(%cache: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %g: tensor<8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>) -> (tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>) {
  %n = lathe.rms_norm %x, %g epsilon 1.0e-3 : tensor<2x3x1x8xf32>, tensor<8xf32>
  %r = lathe.rope half %n, %t, %t : tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %y = lathe.update %cache, %r, %p axis 2 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<2xi64>
  return %y, %r : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>
}
