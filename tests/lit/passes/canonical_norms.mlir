// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s
// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s --check-prefix=STRICT

// CHECK-LABEL: @means
// CHECK-NOT: lathe.reduce_sum
// CHECK-COUNT-2: lathe.reduce_mean %arg0 axes [1] keep_dims true
// CHECK-NEXT: return
// STRICT-LABEL: @means
// STRICT-COUNT-2: lathe.reduce_sum
func.func @means(%x: tensor<2x10xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %n = lathe.constant dense<10.0> : tensor<f32>
  %r = lathe.constant dense<0.1> : tensor<f32>
  %s = lathe.reduce_sum %x axes [1] keep_dims true : tensor<2x10xf32>
  %a = lathe.div %s, %n : tensor<2x1xf32>, tensor<f32>
  %t = lathe.reduce_sum %x axes [1] keep_dims true : tensor<2x10xf32>
  %b = lathe.mul %t, %r : tensor<2x1xf32>, tensor<f32>
  return %a, %b : tensor<2x1xf32>, tensor<2x1xf32>
}

// CHECK-LABEL: @not_means
// CHECK-COUNT-2: lathe.reduce_sum
// CHECK-NOT: lathe.reduce_mean
func.func @not_means(%x: tensor<2x10xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %n = lathe.constant dense<9.0> : tensor<f32>
  %r = lathe.constant dense<0.1001> : tensor<f32>
  %s = lathe.reduce_sum %x axes [1] keep_dims true : tensor<2x10xf32>
  %a = lathe.div %s, %n : tensor<2x1xf32>, tensor<f32>
  %t = lathe.reduce_sum %x axes [1] keep_dims true : tensor<2x10xf32>
  %b = lathe.mul %t, %r : tensor<2x1xf32>, tensor<f32>
  return %a, %b : tensor<2x1xf32>, tensor<2x1xf32>
}

// Four spellings of y / sqrt(x).
// CHECK-LABEL: @roots
// CHECK-COUNT-4: lathe.rsqrt
// CHECK-NOT: lathe.div
// CHECK-NOT: lathe.sqrt
// CHECK-NOT: lathe.reciprocal
// STRICT-LABEL: @roots
// STRICT-COUNT-3: lathe.sqrt
func.func @roots(%y: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %r0 = lathe.sqrt %x : tensor<4xf32>
  %a = lathe.div %y, %r0 : tensor<4xf32>, tensor<4xf32>
  %r1 = lathe.sqrt %x : tensor<4xf32>
  %i1 = lathe.div %one, %r1 : tensor<f32>, tensor<4xf32>
  %b = lathe.mul %y, %i1 : tensor<4xf32>, tensor<4xf32>
  %r2 = lathe.sqrt %x : tensor<4xf32>
  %i2 = lathe.reciprocal %r2 : tensor<4xf32>
  %c = lathe.mul %i2, %y : tensor<4xf32>, tensor<4xf32>
  %r3 = lathe.rsqrt %x : tensor<4xf32>
  %d = lathe.mul %y, %r3 : tensor<4xf32>, tensor<4xf32>
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @root_of_reciprocal
// CHECK: lathe.exp
// CHECK-NEXT: lathe.rsqrt
func.func @root_of_reciprocal(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = lathe.exp %x : tensor<4xf32>
  %i = lathe.reciprocal %e : tensor<4xf32>
  %r = lathe.sqrt %i : tensor<4xf32>
  return %r : tensor<4xf32>
}

// 1 / x is the reciprocal, bit by bit; times a reciprocal is a quotient.
// CHECK-LABEL: @reciprocals
// CHECK-NEXT: %[[A:.*]] = lathe.reciprocal %arg1
// CHECK-NEXT: %[[B:.*]] = lathe.div %arg0, %arg1
// CHECK-NEXT: return %[[A]], %[[B]]
// STRICT-LABEL: @reciprocals
// STRICT: %[[A:.*]] = lathe.reciprocal %arg1
// STRICT: lathe.mul %arg0
func.func @reciprocals(%y: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %a = lathe.div %one, %x : tensor<f32>, tensor<4xf32>
  %i = lathe.reciprocal %x : tensor<4xf32>
  %b = lathe.mul %y, %i : tensor<4xf32>, tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @twice
// CHECK-NEXT: lathe.reduce_mean
// CHECK-NEXT: lathe.sub
// CHECK-NEXT: lathe.reduce_max
// CHECK-NEXT: lathe.sub
// CHECK-NEXT: return
// STRICT-LABEL: @twice
// STRICT-COUNT-4: lathe.sub
func.func @twice(%x: tensor<2x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<2x8xf32>
  %c = lathe.sub %x, %m : tensor<2x8xf32>, tensor<2x1xf32>
  %n = lathe.reduce_mean %c axes [1] keep_dims true : tensor<2x8xf32>
  %a = lathe.sub %c, %n : tensor<2x8xf32>, tensor<2x1xf32>
  %t = lathe.reduce_max %x axes [1] keep_dims true : tensor<2x8xf32>
  %d = lathe.sub %x, %t : tensor<2x8xf32>, tensor<2x1xf32>
  %u = lathe.reduce_max %d axes [1] keep_dims true : tensor<2x8xf32>
  %b = lathe.sub %d, %u : tensor<2x8xf32>, tensor<2x1xf32>
  return %a, %b : tensor<2x8xf32>, tensor<2x8xf32>
}

// The other variance cancels and stays itself.
// CHECK-LABEL: @other_variance
// CHECK-COUNT-2: lathe.reduce_mean
// CHECK: lathe.mul
// CHECK: lathe.sub
func.func @other_variance(%x: tensor<2x8xf32>) -> tensor<2x1xf32> {
  %q = lathe.mul %x, %x : tensor<2x8xf32>, tensor<2x8xf32>
  %a = lathe.reduce_mean %q axes [1] keep_dims true : tensor<2x8xf32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<2x8xf32>
  %p = lathe.mul %m, %m : tensor<2x1xf32>, tensor<2x1xf32>
  %v = lathe.sub %a, %p : tensor<2x1xf32>, tensor<2x1xf32>
  return %v : tensor<2x1xf32>
}

// The means of rows, taken from the columns: what is left has other means.
// CHECK-LABEL: @means_taken_from_the_other_axis
// CHECK-COUNT-2: lathe.sub
func.func @means_taken_from_the_other_axis(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %m = lathe.reduce_mean %x axes [1] keep_dims false : tensor<4x4xf32>
  %y = lathe.sub %x, %m : tensor<4x4xf32>, tensor<4xf32>
  %n = lathe.reduce_mean %y axes [1] keep_dims false : tensor<4x4xf32>
  %z = lathe.sub %y, %n : tensor<4x4xf32>, tensor<4xf32>
  return %z : tensor<4x4xf32>
}
