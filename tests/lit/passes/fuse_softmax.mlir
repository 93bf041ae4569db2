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

// Zeros for masked rows keep all else that the softmax does.
// CHECK-LABEL: @masked_nan_to_zero
// CHECK-NEXT: lathe.softmax %arg0 mask %arg1 axis 1 scale 2.500000e-01 softcap 5.000000e+00 masked_row zero
// CHECK-NEXT: return
func.func @masked_nan_to_zero(%x: tensor<4x8xf32>, %m: tensor<4x8xi1>) -> tensor<4x8xf32> {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %p = lathe.softmax %x mask %m axis 1 scale 2.5e-01 softcap 5.0 : tensor<4x8xf32> mask tensor<4x8xi1>
  %n = lathe.is_nan %p : tensor<4x8xf32>
  %q = lathe.select %n, %zero, %p : tensor<4x8xi1>, tensor<f32>, tensor<4x8xf32>
  return %q : tensor<4x8xf32>
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

// PyTorch's guard for rows without a visible score.
// CHECK-LABEL: @where_any
// CHECK-NEXT: lathe.softmax %arg0 axis 1 masked_row zero : tensor<4x8xf32>
// CHECK-NEXT: return
func.func @where_any(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %p = lathe.softmax %x axis 1 : tensor<4x8xf32>
  %v = lathe.compare ne %x, %lowest : tensor<4x8xf32>, tensor<f32>
  %a = lathe.reduce_any %v axes [1] keep_dims true : tensor<4x8xi1>
  %y = lathe.select %a, %p, %zero : tensor<4x1xi1>, tensor<4x8xf32>, tensor<f32>
  return %y : tensor<4x8xf32>
}

// Another axis, another number, another value: not the guard.
// CHECK-LABEL: @where_another
// CHECK-COUNT-3: lathe.softmax %arg0 axis 1 : tensor<8x8xf32>
// CHECK: return
func.func @where_another(%x: tensor<8x8xf32>, %z: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %low = lathe.constant dense<-3.0e38> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %v = lathe.compare ne %x, %lowest : tensor<8x8xf32>, tensor<f32>
  %p0 = lathe.softmax %x axis 1 : tensor<8x8xf32>
  %a0 = lathe.reduce_any %v axes [0] keep_dims true : tensor<8x8xi1>
  %y0 = lathe.select %a0, %p0, %zero : tensor<1x8xi1>, tensor<8x8xf32>, tensor<f32>
  %w = lathe.compare ne %x, %low : tensor<8x8xf32>, tensor<f32>
  %p1 = lathe.softmax %x axis 1 : tensor<8x8xf32>
  %a1 = lathe.reduce_any %w axes [1] keep_dims true : tensor<8x8xi1>
  %y1 = lathe.select %a1, %p1, %zero : tensor<8x1xi1>, tensor<8x8xf32>, tensor<f32>
  %u = lathe.compare ne %z, %lowest : tensor<8x8xf32>, tensor<f32>
  %p2 = lathe.softmax %x axis 1 : tensor<8x8xf32>
  %a2 = lathe.reduce_any %u axes [1] keep_dims true : tensor<8x8xi1>
  %y2 = lathe.select %a2, %p2, %zero : tensor<8x1xi1>, tensor<8x8xf32>, tensor<f32>
  return %y0, %y1, %y2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// A row of which nothing is left has ones in front of the quotient.
// CHECK-LABEL: @empty_rows_of_ones
// CHECK-NEXT: lathe.softmax %arg0 axis 1 masked_row uniform : tensor<4x8xf32>
// CHECK-NEXT: return
func.func @empty_rows_of_ones(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %t = lathe.reduce_max %x axes [1] keep_dims true : tensor<4x8xf32>
  %c = lathe.compare eq %t, %low : tensor<4x1xf32>, tensor<f32>
  %m = lathe.select %c, %zero, %t : tensor<4x1xi1>, tensor<f32>, tensor<4x1xf32>
  %s = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %e = lathe.exp %s : tensor<4x8xf32>
  %f = lathe.select %c, %one, %e : tensor<4x1xi1>, tensor<f32>, tensor<4x8xf32>
  %z = lathe.reduce_sum %f axes [1] keep_dims true : tensor<4x8xf32>
  %y = lathe.div %f, %z : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// In f32 between casts from and to f16, under a mask that has no dtype to narrow.
// CHECK-LABEL: @masked_between_casts
// CHECK-NEXT: lathe.softmax %arg0 mask %arg1 axis 1 : tensor<4x8xf16> mask tensor<4x8xi1>
// CHECK-NEXT: return
func.func @masked_between_casts(%h: tensor<4x8xf16>, %m: tensor<4x8xi1>) -> tensor<4x8xf16> {
  %x = lathe.cast %h to f32 : tensor<4x8xf16>
  %p = lathe.softmax %x mask %m axis 1 : tensor<4x8xf32> mask tensor<4x8xi1>
  %y = lathe.cast %p to f16 : tensor<4x8xf32>
  return %y : tensor<4x8xf16>
}

// A softmax of f64 is not one of f32, and a rounded input is no fused op.
// CHECK-LABEL: @wider_between_casts
// CHECK: lathe.softmax %{{.*}} axis 1 : tensor<4x8xf64>
// CHECK: lathe.cast %arg1 to bf16
func.func @wider_between_casts(%h: tensor<4x8xbf16>, %o: tensor<4x8xf32>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %x = lathe.cast %h to f64 : tensor<4x8xbf16>
  %p = lathe.softmax %x axis 1 : tensor<4x8xf64>
  %y = lathe.cast %p to bf16 : tensor<4x8xf64>
  %z = lathe.cast %o to bf16 : tensor<4x8xf32>
  return %y, %z : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// The layout between the cast and the op moves to the narrow value.
// CHECK-LABEL: @laid_out_between_casts
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %arg0 to <2, 2, 8> : tensor<4x8xbf16>
// CHECK-NEXT: lathe.softmax %[[R]] axis 2 : tensor<2x2x8xbf16>
// CHECK-NEXT: return
func.func @laid_out_between_casts(%h: tensor<4x8xbf16>) -> tensor<2x2x8xbf16> {
  %x = lathe.cast %h to f32 : tensor<4x8xbf16>
  %r = lathe.reshape %x to <2, 2, 8> : tensor<4x8xf32>
  %p = lathe.softmax %r axis 2 : tensor<2x2x8xf32>
  %y = lathe.cast %p to bf16 : tensor<2x2x8xf32>
  return %y : tensor<2x2x8xbf16>
}

// A mask that is added, on either side, to scores of which nobody knows where they come from.
// CHECK-LABEL: @added_to_an_argument
// CHECK: lathe.softmax %arg0 mask %arg1 axis 2
// CHECK-NEXT: lathe.softmax %arg0 mask %arg1 axis 2
// CHECK-NEXT: return
func.func @added_to_an_argument(%x: tensor<2x3x5xf32>, %c: tensor<3x5xi1>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>) {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %b = lathe.select %c, %zero, %lowest : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %r = lathe.add %x, %b : tensor<2x3x5xf32>, tensor<3x5xf32>
  %l = lathe.add %b, %x : tensor<3x5xf32>, tensor<2x3x5xf32>
  %y = lathe.softmax %r axis 2 : tensor<2x3x5xf32>
  %z = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  return %y, %z : tensor<2x3x5xf32>, tensor<2x3x5xf32>
}
