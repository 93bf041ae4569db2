// RUN: lathe-opt %s --lathe-fuse | FileCheck %s
// RUN: lathe-opt %s --lathe-fuse --log-rewrites 2>&1 >/dev/null | FileCheck %s --check-prefix=LOG
// RUN: lathe-opt %s --lathe-fuse --numerics=strict | FileCheck %s --check-prefix=STRICT

// CHECK-LABEL: @last_axis
// CHECK-NEXT: %[[Y:.*]] = lathe.softmax %arg0 axis 1 : tensor<?x8xf32, #lathe.dims<seq, 8>>
// CHECK-NEXT: return %[[Y]]
func.func @last_axis(%x: tensor<?x8xf32, #lathe.dims<seq, 8>>) -> tensor<?x8xf32, #lathe.dims<seq, 8>> {
  %t = lathe.reduce_max %x axes [1] keep_dims true : tensor<?x8xf32, #lathe.dims<seq, 8>>
  %s = lathe.sub %x, %t : tensor<?x8xf32, #lathe.dims<seq, 8>>, tensor<?x1xf32, #lathe.dims<seq, 1>>
  %e = lathe.exp %s : tensor<?x8xf32, #lathe.dims<seq, 8>>
  %z = lathe.reduce_sum %e axes [1] keep_dims true : tensor<?x8xf32, #lathe.dims<seq, 8>>
  %y = lathe.div %e, %z : tensor<?x8xf32, #lathe.dims<seq, 8>>, tensor<?x1xf32, #lathe.dims<seq, 1>>
  return %y : tensor<?x8xf32, #lathe.dims<seq, 8>>
}

// CHECK-LABEL: @first_axis
// CHECK-NEXT: lathe.softmax %arg0 axis 0 : tensor<4x8xf32>
func.func @first_axis(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %t = lathe.reduce_max %x axes [0] keep_dims true : tensor<4x8xf32>
  %s = lathe.sub %x, %t : tensor<4x8xf32>, tensor<1x8xf32>
  %e = lathe.exp %s : tensor<4x8xf32>
  %z = lathe.reduce_sum %e axes [0] keep_dims true : tensor<4x8xf32>
  %y = lathe.div %e, %z : tensor<4x8xf32>, tensor<1x8xf32>
  return %y : tensor<4x8xf32>
}

// In f32 with casts around, and a masked row as zeros. The select also hides a NaN that comes in
// with the scores, the fused op does not.
// LOG: softmax-nan-to-zero weakens incoming-nan
// STRICT-LABEL: @bf16_nan_to_zero
// STRICT-NOT: masked_row zero
// STRICT: lathe.select
// CHECK-LABEL: @bf16_nan_to_zero
// CHECK-NEXT: lathe.softmax %arg0 axis 1 masked_row zero : tensor<4x8xbf16>
// CHECK-NEXT: return
func.func @bf16_nan_to_zero(%h: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %x = lathe.cast %h to f32 : tensor<4x8xbf16>
  %t = lathe.reduce_max %x axes [1] keep_dims true : tensor<4x8xf32>
  %s = lathe.sub %x, %t : tensor<4x8xf32>, tensor<4x1xf32>
  %e = lathe.exp %s : tensor<4x8xf32>
  %z = lathe.reduce_sum %e axes [1] keep_dims true : tensor<4x8xf32>
  %p = lathe.div %e, %z : tensor<4x8xf32>, tensor<4x1xf32>
  %n = lathe.is_nan %p : tensor<4x8xf32>
  %q = lathe.select %n, %zero, %p : tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32>
  %y = lathe.cast %q to bf16 : tensor<4x8xf32>
  return %y : tensor<4x8xbf16>
}

// The sum runs over another axis than the maximum.
// CHECK-LABEL: @other_axis
// CHECK-NOT: lathe.softmax
// CHECK: return
func.func @other_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %t = lathe.reduce_max %x axes [1] keep_dims true : tensor<8x8xf32>
  %s = lathe.sub %x, %t : tensor<8x8xf32>, tensor<8x1xf32>
  %e = lathe.exp %s : tensor<8x8xf32>
  %z = lathe.reduce_sum %e axes [0] keep_dims true : tensor<8x8xf32>
  %y = lathe.div %e, %z : tensor<8x8xf32>, tensor<1x8xf32>
  return %y : tensor<8x8xf32>
}

// The exponentials are needed elsewhere.
// CHECK-LABEL: @one_more_user
// CHECK-NOT: lathe.softmax
// CHECK: return
func.func @one_more_user(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %t = lathe.reduce_max %x axes [1] keep_dims true : tensor<4x8xf32>
  %s = lathe.sub %x, %t : tensor<4x8xf32>, tensor<4x1xf32>
  %e = lathe.exp %s : tensor<4x8xf32>
  %z = lathe.reduce_sum %e axes [1] keep_dims true : tensor<4x8xf32>
  %y = lathe.div %e, %z : tensor<4x8xf32>, tensor<4x1xf32>
  return %y, %e : tensor<4x8xf32>, tensor<4x8xf32>
}

// select(is_nan(p), 1, p) is no masked row of zeros.
// CHECK-LABEL: @nan_to_one
// CHECK: lathe.softmax %arg0 axis 1 : tensor<4x8xf32>
// CHECK: lathe.select
func.func @nan_to_one(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %p = lathe.softmax %x axis 1 : tensor<4x8xf32>
  %n = lathe.is_nan %p : tensor<4x8xf32>
  %q = lathe.select %n, %one, %p : tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32>
  return %q : tensor<4x8xf32>
}
