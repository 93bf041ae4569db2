// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt %s --mlir-print-op-generic | lathe-opt | FileCheck %s

// CHECK-LABEL: @norms
func.func @norms(%x: tensor<2x3x8xf32>, %g: tensor<8xf32>, %row: tensor<2x1x8xf32>) {
  // CHECK: lathe.rms_norm %{{.*}} epsilon 1.000000e-05 : tensor<2x3x8xf32>
  %0 = lathe.rms_norm %x epsilon 1.0e-5 : tensor<2x3x8xf32>
  // CHECK: lathe.layer_norm %{{.*}} epsilon 1.000000e-05 : tensor<2x3x8xf32>
  %1 = lathe.layer_norm %x epsilon 1.0e-5 : tensor<2x3x8xf32>
  // CHECK: lathe.layer_norm %{{.*}} gain %{{.*}} bias %{{.*}} epsilon 1.000000e-05 : tensor<2x3x8xf32> gain tensor<8xf32> bias tensor<8xf32>
  %2 = lathe.layer_norm %x gain %g bias %g epsilon 1.0e-5 : tensor<2x3x8xf32> gain tensor<8xf32> bias tensor<8xf32>
  // CHECK: lathe.add_norm rms %{{.*}}, %{{.*}} gain %{{.*}} epsilon 1.000000e-05 rounding before_gain : tensor<2x3x8xf32> gain tensor<8xf32>
  %3:2 = lathe.add_norm rms %x, %x gain %g epsilon 1.0e-5 rounding before_gain : tensor<2x3x8xf32> gain tensor<8xf32>
  // CHECK: lathe.add_norm layer %{{.*}}, %{{.*}} bias %{{.*}} epsilon 1.000000e-05 : tensor<2x3x8xf32> bias tensor<8xf32>
  %4:2 = lathe.add_norm layer %x, %x bias %g epsilon 1.0e-5 : tensor<2x3x8xf32> bias tensor<8xf32>
  // CHECK: lathe.adaln_modulate layer %{{.*}} shift %{{.*}} scale %{{.*}} epsilon 1.000000e-05 : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  %5 = lathe.adaln_modulate layer %x shift %row scale %row epsilon 1.0e-5 : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  // CHECK: lathe.gated_residual %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  %6 = lathe.gated_residual %x, %row, %x : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  return
}

// CHECK-LABEL: @rotations
func.func @rotations(%cache: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %g: tensor<8xf32>, %t: tensor<1x2xf32>, %p: tensor<2xi64>) {
  // CHECK: lathe.norm_rope half %{{.*}} gain %{{.*}}, %{{.*}}, %{{.*}} epsilon 1.000000e-05
  %0 = lathe.norm_rope half %x gain %g, %t, %t epsilon 1.0e-5 : tensor<2x3x1x8xf32>, tensor<8xf32>, tensor<1x2xf32>, tensor<1x2xf32>
  // CHECK: lathe.rope_append interleaved %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} axis 2 :
  %1 = lathe.rope_append interleaved %cache, %x, %t, %t, %p axis 2 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<2xi64>
  return
}
