// RUN: lathe-opt %s --lathe-fuse | FileCheck %s
// RUN: lathe-opt %s --lathe-fuse --lathe-why-not -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHY

// WHY: remark: layer_norm-of-moments{{.*}} then the variance is E[x^2] - E[x]^2, which cancels in f32

// CHECK-LABEL: @two_pass
// CHECK-NEXT: lathe.layer_norm %arg0 gain %arg1 bias %arg1 epsilon
// CHECK-NEXT: return
func.func @two_pass(%x: tensor<2x8xf32>, %g: tensor<8xf32>) -> tensor<2x8xf32> {
  %eps = lathe.constant dense<1.0e-3> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<2x8xf32>
  %c = lathe.sub %x, %m : tensor<2x8xf32>, tensor<2x1xf32>
  %q = lathe.mul %c, %c : tensor<2x8xf32>, tensor<2x8xf32>
  %v = lathe.reduce_mean %q axes [1] keep_dims true : tensor<2x8xf32>
  %a = lathe.add %v, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<2x1xf32>
  %n = lathe.div %c, %r : tensor<2x8xf32>, tensor<2x1xf32>
  %s = lathe.mul %n, %g : tensor<2x8xf32>, tensor<8xf32>
  %y = lathe.add %g, %s : tensor<8xf32>, tensor<2x8xf32>
  return %y : tensor<2x8xf32>
}

// CHECK-LABEL: @moments
// CHECK-NOT: lathe.layer_norm
// CHECK: return
func.func @moments(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %eps = lathe.constant dense<1.0e-3> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<2x8xf32>
  %q = lathe.mul %x, %x : tensor<2x8xf32>, tensor<2x8xf32>
  %e = lathe.reduce_mean %q axes [1] keep_dims true : tensor<2x8xf32>
  %mm = lathe.mul %m, %m : tensor<2x1xf32>, tensor<2x1xf32>
  %v = lathe.sub %e, %mm : tensor<2x1xf32>, tensor<2x1xf32>
  %a = lathe.add %v, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<2x1xf32>
  %c = lathe.sub %x, %m : tensor<2x8xf32>, tensor<2x1xf32>
  %n = lathe.mul %c, %r : tensor<2x8xf32>, tensor<2x1xf32>
  return %n : tensor<2x8xf32>
}

// As a batch norm does, whose mean and variance are those of the columns.
// CHECK-LABEL: @mean_of_columns_behind_the_factor
// CHECK-NOT: lathe.layer_norm
// CHECK: return
func.func @mean_of_columns_behind_the_factor(%x: tensor<8x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [0] keep_dims true : tensor<8x8xf32>
  %c = lathe.sub %x, %m : tensor<8x8xf32>, tensor<1x8xf32>
  %q = lathe.mul %c, %c : tensor<8x8xf32>, tensor<8x8xf32>
  %v = lathe.reduce_mean %q axes [0] keep_dims true : tensor<8x8xf32>
  %a = lathe.add %v, %eps : tensor<1x8xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<1x8xf32>
  %f = lathe.mul %r, %g : tensor<1x8xf32>, tensor<8xf32>
  %p = lathe.mul %x, %f : tensor<8x8xf32>, tensor<1x8xf32>
  %n = lathe.mul %m, %f : tensor<1x8xf32>, tensor<1x8xf32>
  %s = lathe.sub %b, %n : tensor<8xf32>, tensor<1x8xf32>
  %y = lathe.add %p, %s : tensor<8x8xf32>, tensor<1x8xf32>
  return %y : tensor<8x8xf32>
}

// CHECK-LABEL: @squared_by_a_power
// CHECK-NEXT: lathe.layer_norm %arg0 epsilon
// CHECK-NEXT: return
func.func @squared_by_a_power(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %eps = lathe.constant dense<1.0e-3> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<2x8xf32>
  %c = lathe.sub %x, %m : tensor<2x8xf32>, tensor<2x1xf32>
  %q = lathe.pow %c, %two : tensor<2x8xf32>, tensor<f32>
  %v = lathe.reduce_mean %q axes [1] keep_dims true : tensor<2x8xf32>
  %a = lathe.add %v, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<2x1xf32>
  %y = lathe.div %c, %r : tensor<2x8xf32>, tensor<2x1xf32>
  return %y : tensor<2x8xf32>
}
