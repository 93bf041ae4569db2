// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// x * rsqrt(mean + eps) * gain
// CHECK-LABEL: @rsqrt_mean
// CHECK-NEXT: lathe.rms_norm %arg0, %arg1 epsilon 1.000000e-03 : tensor<2x8xf32>, tensor<8xf32>
// CHECK-NEXT: return
func.func @rsqrt_mean(%x: tensor<2x8xf32>, %g: tensor<8xf32>) -> tensor<2x8xf32> {
  %eps = lathe.constant dense<1.0e-3> : tensor<f64>
  %e = lathe.cast %eps to f32 : tensor<f64>
  %q = lathe.mul %x, %x : tensor<2x8xf32>, tensor<2x8xf32>
  %m = lathe.reduce_mean %q axes [1] keep_dims true : tensor<2x8xf32>
  %a = lathe.add %e, %m : tensor<f32>, tensor<2x1xf32>
  %r = lathe.rsqrt %a : tensor<2x1xf32>
  %n = lathe.mul %r, %x : tensor<2x1xf32>, tensor<2x8xf32>
  %y = lathe.mul %g, %n : tensor<8xf32>, tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// x / sqrt(sum(x^2) / n + eps), rounded before the gain
// CHECK-LABEL: @divide_sum_bf16
// CHECK-NEXT: lathe.rms_norm %arg0, %arg1 epsilon {{.*}} rounding before_gain : tensor<2x8xbf16>, tensor<8xbf16>
// CHECK-NEXT: return
func.func @divide_sum_bf16(%h: tensor<2x8xbf16>, %g: tensor<8xbf16>) -> tensor<2x8xbf16> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %n = lathe.constant dense<8.0> : tensor<f32>
  %x = lathe.cast %h to f32 : tensor<2x8xbf16>
  %q = lathe.pow %x, %two : tensor<2x8xf32>, tensor<f32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<2x8xf32>
  %m = lathe.div %s, %n : tensor<2x1xf32>, tensor<f32>
  %a = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<2x1xf32>
  %d = lathe.div %x, %r : tensor<2x8xf32>, tensor<2x1xf32>
  %c = lathe.cast %d to bf16 : tensor<2x8xf32>
  %y = lathe.mul %c, %g : tensor<2x8xbf16>, tensor<8xbf16>
  return %y : tensor<2x8xbf16>
}

// The gain in f32, then one rounding.
// CHECK-LABEL: @gain_before_cast_bf16
// CHECK-NEXT: lathe.rms_norm %arg0, %arg1 epsilon {{[^ ]*}} : tensor<2x8xbf16>, tensor<8xbf16>
// CHECK-NEXT: return
func.func @gain_before_cast_bf16(%h: tensor<2x8xbf16>, %g: tensor<8xbf16>) -> tensor<2x8xbf16> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %x = lathe.cast %h to f32 : tensor<2x8xbf16>
  %q = lathe.mul %x, %x : tensor<2x8xf32>, tensor<2x8xf32>
  %m = lathe.reduce_mean %q axes [1] keep_dims true : tensor<2x8xf32>
  %a = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<2x1xf32>
  %n = lathe.mul %x, %r : tensor<2x8xf32>, tensor<2x1xf32>
  %w = lathe.cast %g to f32 : tensor<8xbf16>
  %p = lathe.mul %n, %w : tensor<2x8xf32>, tensor<8xf32>
  %y = lathe.cast %p to bf16 : tensor<2x8xf32>
  return %y : tensor<2x8xbf16>
}

// The count is not the size of the axis.
// CHECK-LABEL: @wrong_count
// CHECK-NOT: lathe.rms_norm
// CHECK: return
func.func @wrong_count(%x: tensor<2x8xf32>, %g: tensor<8xf32>) -> tensor<2x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %n = lathe.constant dense<7.0> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<2x8xf32>, tensor<2x8xf32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<2x8xf32>
  %m = lathe.div %s, %n : tensor<2x1xf32>, tensor<f32>
  %a = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<2x1xf32>
  %d = lathe.div %x, %r : tensor<2x8xf32>, tensor<2x1xf32>
  %y = lathe.mul %d, %g : tensor<2x8xf32>, tensor<8xf32>
  return %y : tensor<2x8xf32>
}

// The mean runs over another axis.
// CHECK-LABEL: @wrong_axis
// CHECK-NOT: lathe.rms_norm
// CHECK: return
func.func @wrong_axis(%x: tensor<8x8xf32>, %g: tensor<8xf32>) -> tensor<8x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<8x8xf32>, tensor<8x8xf32>
  %m = lathe.reduce_mean %q axes [0] keep_dims true : tensor<8x8xf32>
  %a = lathe.add %m, %eps : tensor<1x8xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<1x8xf32>
  %n = lathe.mul %x, %r : tensor<8x8xf32>, tensor<1x8xf32>
  %y = lathe.mul %n, %g : tensor<8x8xf32>, tensor<8xf32>
  return %y : tensor<8x8xf32>
}

// The squares are of another value.
// CHECK-LABEL: @two_values
// CHECK-NOT: lathe.rms_norm
// CHECK: return
func.func @two_values(%x: tensor<2x8xf32>, %z: tensor<2x8xf32>, %g: tensor<8xf32>) -> tensor<2x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %q = lathe.mul %x, %z : tensor<2x8xf32>, tensor<2x8xf32>
  %m = lathe.reduce_mean %q axes [1] keep_dims true : tensor<2x8xf32>
  %a = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<2x1xf32>
  %n = lathe.mul %x, %r : tensor<2x8xf32>, tensor<2x1xf32>
  %y = lathe.mul %n, %g : tensor<2x8xf32>, tensor<8xf32>
  return %y : tensor<2x8xf32>
}
