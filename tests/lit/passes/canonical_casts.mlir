// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s

// CHECK-LABEL: @cast_of_cast
// CHECK-NEXT: %[[A:.*]] = lathe.cast %arg0 to f16
// CHECK-NEXT: %[[N:.*]] = lathe.cast %arg1 to bf16
// CHECK-NEXT: %[[B:.*]] = lathe.cast %[[N]] to f32
// CHECK-NEXT: %[[I:.*]] = lathe.cast %arg2 to i32
// CHECK-NEXT: %[[C:.*]] = lathe.cast %[[I]] to i64
// CHECK-NEXT: return %arg0, %[[A]], %[[B]], %[[C]]
func.func @cast_of_cast(%h: tensor<4xbf16>, %x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>, tensor<4xi64>) {
  %0 = lathe.cast %h to f32 : tensor<4xbf16>
  %1 = lathe.cast %0 to f64 : tensor<4xf32>
  %2 = lathe.cast %1 to bf16 : tensor<4xf64>
  %3 = lathe.cast %0 to f16 : tensor<4xf32>
  %4 = lathe.cast %x to bf16 : tensor<4xf32>
  %5 = lathe.cast %4 to f32 : tensor<4xbf16>
  %6 = lathe.cast %i to i32 : tensor<4xi64>
  %7 = lathe.cast %6 to i64 : tensor<4xi32>
  return %2, %3, %5, %7 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>, tensor<4xi64>
}

// f16 does not hold every bf16, nor bf16 every f16.
// CHECK-LABEL: @other_sixteen_bits
// CHECK-NEXT: lathe.cast %arg0 to f16
// CHECK-NEXT: lathe.cast %{{.*}} to bf16
func.func @other_sixteen_bits(%h: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = lathe.cast %h to f16 : tensor<4xbf16>
  %1 = lathe.cast %0 to bf16 : tensor<4xf16>
  return %1 : tensor<4xbf16>
}

// In front of the transpose and behind the reshape, wherever it was recorded.
// CHECK-LABEL: @hoist_cast
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %arg0 to <2, 3, 2>
// CHECK-NEXT: %[[C:.*]] = lathe.cast %[[R]] to f32
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %[[C]] [1, 0, 2]
// CHECK-NEXT: %[[S:.*]] = lathe.reshape %arg0 to <2, 3, 2>
// CHECK-NEXT: %[[D:.*]] = lathe.cast %[[S]] to f32
// CHECK-NEXT: %[[U:.*]] = lathe.transpose %[[D]] [1, 0, 2]
// CHECK-NEXT: return %[[T]], %[[U]]
func.func @hoist_cast(%x: tensor<2x6xbf16>) -> (tensor<3x2x2xf32>, tensor<3x2x2xf32>) {
  %r = lathe.reshape %x to <2, 3, 2> : tensor<2x6xbf16>
  %t = lathe.transpose %r [1, 0, 2] : tensor<2x3x2xbf16>
  %a = lathe.cast %t to f32 : tensor<3x2x2xbf16>
  %c = lathe.cast %x to f32 : tensor<2x6xbf16>
  %s = lathe.reshape %c to <2, 3, 2> : tensor<2x6xf32>
  %b = lathe.transpose %s [1, 0, 2] : tensor<2x3x2xf32>
  return %a, %b : tensor<3x2x2xf32>, tensor<3x2x2xf32>
}

// What is repeated is cast first.
// CHECK-LABEL: @cast_before_repeat
// CHECK-NEXT: %[[C:.*]] = lathe.cast %arg0 to f32
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %[[C]] to <2, 1, 3>
// CHECK-NEXT: %[[B:.*]] = lathe.broadcast %[[R]] to <2, 4, 3>
// CHECK-NEXT: lathe.reshape %[[B]] to <8, 3>
func.func @cast_before_repeat(%x: tensor<2x3xbf16>) -> tensor<8x3xf32> {
  %r = lathe.reshape %x to <2, 1, 3> : tensor<2x3xbf16>
  %b = lathe.broadcast %r to <2, 4, 3> : tensor<2x1x3xbf16>
  %m = lathe.reshape %b to <8, 3> : tensor<2x4x3xbf16>
  %c = lathe.cast %m to f32 : tensor<8x3xbf16>
  return %c : tensor<8x3xf32>
}

// Halves that are both cast are halves of one cast; a last row is cut before it is cast.
// CHECK-LABEL: @hoist_cast_over_slice
// CHECK-NEXT: %[[C:.*]] = lathe.cast %arg0 to f32 : tensor<2x6xbf16>
// CHECK-NEXT: lathe.slice %[[C]] starts <0, 0>
// CHECK-NEXT: lathe.slice %[[C]] starts <0, 3>
// CHECK-NEXT: %[[L:.*]] = lathe.slice %arg1
// CHECK-NEXT: lathe.cast %[[L]] to f32 : tensor<1x6xbf16>
func.func @hoist_cast_over_slice(%x: tensor<2x6xbf16>, %y: tensor<2x6xbf16>) -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x6xf32>) {
  %a = lathe.slice %x starts <0, 0> sizes <2, 3> strides [1, 1] : tensor<2x6xbf16>
  %b = lathe.slice %x starts <0, 3> sizes <2, 3> strides [1, 1] : tensor<2x6xbf16>
  %p = lathe.cast %a to f32 : tensor<2x3xbf16>
  %q = lathe.cast %b to f32 : tensor<2x3xbf16>
  %l = lathe.slice %y starts <1, 0> sizes <1, 6> strides [1, 1] : tensor<2x6xbf16>
  %r = lathe.cast %l to f32 : tensor<1x6xbf16>
  return %p, %q, %r : tensor<2x3xf32>, tensor<2x3xf32>, tensor<1x6xf32>
}

// A reshape alone leaves a widening cast with its reader, a narrowing one with its value.
// CHECK-LABEL: @reshapes_and_casts
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %arg0 to <3, 4>
// CHECK-NEXT: %[[W:.*]] = lathe.cast %[[R]] to f32
// CHECK-NEXT: %[[E:.*]] = lathe.exp %[[W]]
// CHECK-NEXT: %[[N:.*]] = lathe.cast %[[E]] to bf16
// CHECK-NEXT: %[[S:.*]] = lathe.reshape %[[N]] to <12>
// CHECK-NEXT: return %[[S]]
func.func @reshapes_and_casts(%x: tensor<2x6xbf16>) -> tensor<12xbf16> {
  %w = lathe.cast %x to f32 : tensor<2x6xbf16>
  %r = lathe.reshape %w to <3, 4> : tensor<2x6xf32>
  %e = lathe.exp %r : tensor<3x4xf32>
  %s = lathe.reshape %e to <12> : tensor<3x4xf32>
  %n = lathe.cast %s to bf16 : tensor<12xf32>
  return %n : tensor<12xbf16>
}

// A reshape on its way to its reduction passes casts, which do not pass it back.
// CHECK-LABEL: @cast_between_reduction_and_reshape
// CHECK: lathe.reduce_mean %arg0 axes [0] keep_dims true
// CHECK-NEXT: lathe.min
// CHECK-NEXT: lathe.cast {{.*}} to i32
// CHECK-NEXT: lathe.cast {{.*}} to f32
// CHECK-NEXT: return
func.func @cast_between_reduction_and_reshape(%x: tensor<2x4xf32>) -> tensor<1x4xf32> {
  %c = lathe.constant dense<8.0> : tensor<f32>
  %mean = lathe.reduce_mean %x axes [0] : tensor<2x4xf32>
  %low = lathe.min %mean, %c : tensor<4xf32>, tensor<f32>
  %whole = lathe.cast %low to i32 : tensor<4xf32>
  %back = lathe.cast %whole to f32 : tensor<4xi32>
  %row = lathe.reshape %back to <1, 4> : tensor<4xf32>
  return %row : tensor<1x4xf32>
}

// What a narrower or an unsigned type makes of a number is not undone; a wider one of its sign
// holds all.
// CHECK-LABEL: @integers_between
// CHECK: lathe.cast %arg0 to ui8
// CHECK: lathe.cast %{{.*}} to i32
// CHECK: lathe.cast %arg1 to i8
// CHECK: lathe.cast %{{.*}} to f32
// CHECK: lathe.cast %arg1 to i64
// CHECK: lathe.cast %arg0 to f32
// CHECK-NOT: lathe.cast
func.func @integers_between(%i: tensor<4xi8>, %u: tensor<4xui8>) -> (tensor<4xi32>, tensor<4xf32>, tensor<4xi64>, tensor<4xf32>) {
  %0 = lathe.cast %i to ui8 : tensor<4xi8>
  %1 = lathe.cast %0 to i32 : tensor<4xui8>
  %2 = lathe.cast %u to i8 : tensor<4xui8>
  %3 = lathe.cast %2 to f32 : tensor<4xi8>
  %4 = lathe.cast %u to i16 : tensor<4xui8>
  %5 = lathe.cast %4 to i64 : tensor<4xi16>
  %6 = lathe.cast %i to i16 : tensor<4xi8>
  %7 = lathe.cast %6 to f32 : tensor<4xi16>
  return %1, %3, %5, %7 : tensor<4xi32>, tensor<4xf32>, tensor<4xi64>, tensor<4xf32>
}

// A float on the way saturates where an integer would wrap; one of a shorter range or of fewer
// digits keeps less than what comes and what goes hold.
// CHECK-LABEL: @floats_between
// CHECK: lathe.cast %arg0 to f32
// CHECK: lathe.cast %{{.*}} to i8
// CHECK: lathe.cast %arg1 to f16
// CHECK: lathe.cast %{{.*}} to f32
// CHECK: lathe.cast %arg2 to bf16
// CHECK: lathe.cast %{{.*}} to f32
// CHECK: lathe.cast %arg0 to bf16
// CHECK: lathe.cast %arg3 to f32
// CHECK: lathe.cast %{{.*}} to i64
func.func @floats_between(%u: tensor<4xui8>, %b: tensor<4xbf16>, %h: tensor<4xf16>, %i: tensor<4xi32>) -> (tensor<4xi8>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xi64>) {
  %0 = lathe.cast %u to f32 : tensor<4xui8>
  %1 = lathe.cast %0 to i8 : tensor<4xf32>
  %2 = lathe.cast %b to f16 : tensor<4xbf16>
  %3 = lathe.cast %2 to f32 : tensor<4xf16>
  %4 = lathe.cast %h to bf16 : tensor<4xf16>
  %5 = lathe.cast %4 to f32 : tensor<4xbf16>
  %6 = lathe.cast %u to f32 : tensor<4xui8>
  %7 = lathe.cast %6 to bf16 : tensor<4xf32>
  %8 = lathe.cast %i to f32 : tensor<4xi32>
  %9 = lathe.cast %8 to i64 : tensor<4xf32>
  return %1, %3, %5, %7, %9 : tensor<4xi8>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<4xi64>
}
