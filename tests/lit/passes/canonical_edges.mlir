// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s

// The last case that is one of a rewrite, and the first that is not.

!x = tensor<4x8xf32>
!c = tensor<4x8xi1>
!i = tensor<4x8xi64>

// CHECK-LABEL: @powers
// CHECK-NEXT: %[[S:.*]] = lathe.mul %arg0, %arg0
// CHECK-NEXT: %[[C:.*]] = lathe.mul %[[S]], %arg0
// CHECK-NEXT: %[[R:.*]] = lathe.reciprocal %arg0
// CHECK-NEXT: return %[[C]], %[[R]]
func.func @powers(%x: !x) -> (!x, !x) {
  %three = lathe.constant dense<3.0> : tensor<f32>
  %inverse = lathe.constant dense<-1.0> : tensor<f32>
  %a = lathe.pow %x, %three : !x, tensor<f32>
  %b = lathe.pow %x, %inverse : !x, tensor<f32>
  return %a, %b : !x, !x
}

// A root of what may be negative, and a falling exponential.
// CHECK-LABEL: @other_functions
// CHECK: lathe.reciprocal %arg0
// CHECK-NEXT: lathe.sqrt
// CHECK: lathe.pow
func.func @other_functions(%x: !x) -> (!x, !x) {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %log = lathe.constant dense<-1.44269502> : tensor<f32>
  %r = lathe.reciprocal %x : !x
  %a = lathe.sqrt %r : !x
  %e = lathe.mul %x, %log : !x, tensor<f32>
  %b = lathe.pow %half, %e : tensor<f32>, !x
  return %a, %b : !x, !x
}

// Of integers: a difference without a sign, a magnitude, a negative product.
// CHECK-LABEL: @integers
// CHECK: lathe.sub %arg0
// CHECK: %[[A:.*]] = lathe.abs %arg1
// CHECK-NEXT: lathe.mul %[[A]], %[[A]]
// CHECK: %[[P:.*]] = lathe.mul %arg1
// CHECK-NEXT: lathe.neg %[[P]]
func.func @integers(%u: tensor<4xui8>, %i: !i) -> (tensor<4xui8>, !i, !i) {
  %c = lathe.constant dense<3> : tensor<ui8>
  %three = lathe.constant dense<3> : tensor<i64>
  %0 = lathe.sub %u, %c : tensor<4xui8>, tensor<ui8>
  %a = lathe.abs %i : !i
  %1 = lathe.mul %a, %a : !i, !i
  %p = lathe.mul %i, %three : !i, tensor<i64>
  %2 = lathe.neg %p : !i
  return %0, %1, %2 : tensor<4xui8>, !i, !i
}

// Four bits become bytes before anything else.
// CHECK-LABEL: @through_bytes
// CHECK-NEXT: %[[B:.*]] = lathe.cast %arg0 to i8
// CHECK-NEXT: %[[W:.*]] = lathe.cast %[[B]] to i32
// CHECK-NEXT: %[[T:.*]] = lathe.cast %arg1 to i1
// CHECK-NEXT: return %[[W]], %[[T]]
func.func @through_bytes(%q: tensor<4xi4>, %b: tensor<4xi8>) -> (tensor<4xi32>, tensor<4xi1>) {
  %0 = lathe.cast %q to i8 : tensor<4xi4>
  %1 = lathe.cast %0 to i32 : tensor<4xi8>
  %2 = lathe.cast %b to f32 : tensor<4xi8>
  %3 = lathe.cast %2 to i1 : tensor<4xf32>
  return %1, %3 : tensor<4xi32>, tensor<4xi1>
}

// What the type does not hold is not folded.
// CHECK-LABEL: @numbers_between_numbers
// CHECK-DAG: lathe.mul %{{.*}} : tensor<f16>, tensor<f16>
// CHECK-DAG: lathe.cast %{{.*}} to f32 : tensor<i64>
// CHECK-DAG: lathe.cast %{{.*}} to i1 : tensor<f32>
func.func @numbers_between_numbers() -> (tensor<f16>, tensor<f32>, tensor<i1>) {
  %a = lathe.constant dense<1.0009765625> : tensor<f16>
  %big = lathe.constant dense<16777217> : tensor<i64>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %0 = lathe.mul %a, %a : tensor<f16>, tensor<f16>
  %1 = lathe.cast %big to f32 : tensor<i64>
  %2 = lathe.cast %one to i1 : tensor<f32>
  return %0, %1, %2 : tensor<f16>, tensor<f32>, tensor<i1>
}

// Zeros behind a convolution are no bias.
// CHECK-LABEL: @convolution_without_a_bias
// CHECK: lathe.convolution
// CHECK-NEXT: return
func.func @convolution_without_a_bias(%x: tensor<1x2x4x4xf32>, %w: tensor<3x2x2x2xf32>) -> tensor<1x3x3x3xf32> {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %0 = lathe.convolution %x, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x2x4x4xf32>, tensor<3x2x2x2xf32>
  %1 = lathe.add %0, %zero : tensor<1x3x3x3xf32>, tensor<f32>
  return %1 : tensor<1x3x3x3xf32>
}

// CHECK-LABEL: @one_taken_off
// CHECK-COUNT-1: lathe.compare lt
// CHECK: lathe.compare le
// CHECK-NOT: lathe.add
// CHECK-NOT: lathe.sub
// CHECK: return
func.func @one_taken_off() -> (tensor<4x4xi1>, tensor<4x4xi1>) {
  %i = lathe.iota <4, 1> axis 0 dtype i64
  %j = lathe.iota <1, 4> axis 1 dtype i64
  %less = lathe.constant dense<-1> : tensor<i64>
  %0 = lathe.add %j, %less : tensor<1x4xi64>, tensor<i64>
  %1 = lathe.compare le %i, %0 : tensor<4x1xi64>, tensor<1x4xi64>
  %2 = lathe.add %i, %less : tensor<4x1xi64>, tensor<i64>
  %3 = lathe.compare lt %2, %j : tensor<4x1xi64>, tensor<1x4xi64>
  return %1, %3 : tensor<4x4xi1>, tensor<4x4xi1>
}

// A difference against 1 and -1 is a comparison of its sides: i >= j, i < j, i > j, i <= j.
// CHECK-LABEL: @differences
// CHECK-DAG: %[[I:.*]] = lathe.iota <4, 1>
// CHECK-DAG: %[[J:.*]] = lathe.iota <1, 4>
// CHECK: %[[A:.*]] = lathe.compare le %[[J]], %[[I]]
// CHECK: %[[B:.*]] = lathe.compare lt %[[I]], %[[J]]
// CHECK: %[[C:.*]] = lathe.compare lt %[[J]], %[[I]]
// CHECK: %[[D:.*]] = lathe.compare le %[[I]], %[[J]]
// CHECK: return %[[A]], %[[B]], %[[C]], %[[D]]
func.func @differences() -> (tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>) {
  %i = lathe.iota <4, 1> axis 0 dtype i64
  %j = lathe.iota <1, 4> axis 1 dtype i64
  %one = lathe.constant dense<1> : tensor<i64>
  %less = lathe.constant dense<-1> : tensor<i64>
  %d = lathe.sub %i, %j : tensor<4x1xi64>, tensor<1x4xi64>
  %0 = lathe.compare gt %d, %less : tensor<4x4xi64>, tensor<i64>
  %1 = lathe.compare le %d, %less : tensor<4x4xi64>, tensor<i64>
  %2 = lathe.compare ge %d, %one : tensor<4x4xi64>, tensor<i64>
  %3 = lathe.compare lt %d, %one : tensor<4x4xi64>, tensor<i64>
  return %0, %1, %2, %3 : tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>
}

// Even numbers, running sums of a ramp and its sum are no ramps.
// CHECK-LABEL: @other_tables
// CHECK-COUNT-3: lathe.gather
// CHECK: return
func.func @other_tables() -> (tensor<4xi64>, tensor<4xi64>, tensor<3xi64>) {
  %t = lathe.iota <16> axis 0 dtype i64
  %two = lathe.constant dense<2> : tensor<i64>
  %r = lathe.iota <4> axis 0 dtype i64
  %e = lathe.mul %r, %two : tensor<4xi64>, tensor<i64>
  %0 = lathe.gather %t, %e axis 0 : tensor<16xi64>, tensor<4xi64>
  %s = lathe.cumsum %r axis 0 : tensor<4xi64>
  %1 = lathe.gather %t, %s axis 0 : tensor<16xi64>, tensor<4xi64>
  %m = lathe.iota <3, 4> axis 1 dtype i64
  %u = lathe.reduce_sum %m axes [1] keep_dims false : tensor<3x4xi64>
  %2 = lathe.gather %t, %u axis 0 : tensor<16xi64>, tensor<3xi64>
  return %0, %1, %2 : tensor<4xi64>, tensor<4xi64>, tensor<3xi64>
}

// A count along an axis that is kept, and indices of two axes.
// CHECK-LABEL: @tables_of_two_axes
// CHECK-NOT: lathe.gather
// CHECK-NOT: lathe.reduce_sum
// CHECK: return
func.func @tables_of_two_axes() -> (tensor<2x3x5xi64>, tensor<1x4xi64>) {
  %t = lathe.iota <8, 5> axis 1 dtype i64
  %i = lathe.iota <2, 3> axis 1 dtype i64
  %0 = lathe.gather %t, %i axis 0 : tensor<8x5xi64>, tensor<2x3xi64>
  %u = lathe.iota <4> axis 0 dtype i64
  %m = lathe.iota <2, 4> axis 1 dtype i64
  %one = lathe.constant dense<1> : tensor<i64>
  %z = lathe.sub %m, %m : tensor<2x4xi64>, tensor<2x4xi64>
  %o = lathe.iota <1, 4> axis 1 dtype i64
  %s = lathe.reduce_sum %z axes [0] keep_dims true : tensor<2x4xi64>
  %p = lathe.add %s, %o : tensor<1x4xi64>, tensor<1x4xi64>
  %1 = lathe.gather %u, %p axis 0 : tensor<4xi64>, tensor<1x4xi64>
  return %0, %1 : tensor<2x3x5xi64>, tensor<1x4xi64>
}

// CHECK-LABEL: @same_sides
// CHECK-NEXT: return %arg0, %arg0, %arg1
func.func @same_sides(%c: !c, %x: !x) -> (!c, !c, !x) {
  %0 = lathe.logical_and %c, %c : !c, !c
  %1 = lathe.logical_or %c, %c : !c, !c
  %2 = lathe.select %c, %x, %x : !c, !x, !x
  return %0, %1, %2 : !c, !c, !x
}

// Both sides hide, one of two hides nothing, what is added where it is seen is no zero.
// CHECK-LABEL: @other_masks
// CHECK: lathe.select %arg0, %{{.*}}, %{{.*}} : tensor<4x8xi1>, tensor<f32>, tensor<f32>
// CHECK: %[[S:.*]] = lathe.select %arg1, %arg2
// CHECK-NEXT: lathe.select %arg0, %[[S]]
// CHECK: lathe.add %arg2
func.func @other_masks(%c: !c, %d: !c, %x: !x) -> (!x, !x, !x) {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %three = lathe.constant dense<3.0> : tensor<f32>
  %0 = lathe.select %c, %inf, %low : !c, tensor<f32>, tensor<f32>
  %1 = lathe.select %d, %x, %zero : !c, !x, tensor<f32>
  %2 = lathe.select %c, %1, %zero : !c, !x, tensor<f32>
  %3 = lathe.select %c, %three, %inf : !c, tensor<f32>, tensor<f32>
  %4 = lathe.add %x, %3 : !x, !x
  return %0, %2, %4 : !x, !x, !x
}

// Infinite factors move nothing.
// CHECK-LABEL: @infinite_factors
// CHECK: %[[S:.*]] = lathe.select %arg1, %arg0
// CHECK-NEXT: lathe.mul %[[S]]
// CHECK: %[[M:.*]] = lathe.mul %arg0
// CHECK-NEXT: lathe.matmul %[[M]]
func.func @infinite_factors(%x: !x, %c: !c, %k: tensor<8x4xf32>) -> (!x, tensor<4x4xf32>) {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %inf = lathe.constant dense<0x7F800000> : tensor<f32>
  %s = lathe.select %c, %x, %low : !c, !x, tensor<f32>
  %0 = lathe.mul %s, %inf : !x, tensor<f32>
  %m = lathe.mul %x, %inf : !x, tensor<f32>
  %1 = lathe.matmul %m, %k : !x, tensor<8x4xf32>
  return %0, %1 : !x, tensor<4x4xf32>
}

// Scores times a number that is no 0 where they are hidden, and what is added where they are seen.
// CHECK-LABEL: @scores_times_other_numbers
// CHECK-COUNT-2: lathe.add
// CHECK: return
func.func @scores_times_other_numbers(%x: !x, %c: !c) -> (!x, !x) {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %f = lathe.select %c, %one, %two : !c, tensor<f32>, tensor<f32>
  %p = lathe.mul %x, %f : !x, !x
  %h = lathe.select %c, %zero, %low : !c, tensor<f32>, tensor<f32>
  %0 = lathe.add %p, %h : !x, !x
  %g = lathe.cast %c to f32 : !c
  %q = lathe.mul %x, %g : !x, !x
  %k = lathe.select %c, %two, %low : !c, tensor<f32>, tensor<f32>
  %1 = lathe.add %q, %k : !x, !x
  return %0, %1 : !x, !x
}

// Parts that skip elements from the first one on, a part of another width, elements of rows.
// CHECK-LABEL: @parts
// CHECK: lathe.concat
// CHECK: lathe.concat
// CHECK: %[[T:.*]] = lathe.transpose
// CHECK-NEXT: lathe.slice %[[T]]
func.func @parts(%x: tensor<8x4xf32>, %y: tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x1xf32>) {
  %a = lathe.slice %x starts <0, 0> sizes <2, 4> strides [2, 1] : tensor<8x4xf32>
  %b = lathe.slice %x starts <2, 0> sizes <2, 4> strides [2, 1] : tensor<8x4xf32>
  %0 = lathe.concat %a, %b axis 0 : tensor<2x4xf32>, tensor<2x4xf32>
  %p = lathe.slice %y starts <0, 0> sizes <1, 2> strides [1, 1] : tensor<2x4xf32>
  %q = lathe.slice %y starts <1, 0> sizes <1, 2> strides [1, 1] : tensor<2x4xf32>
  %1 = lathe.concat %p, %p, %q, %q axis 0 : tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>, tensor<1x2xf32>
  %t = lathe.transpose %x [1, 0] : tensor<8x4xf32>
  %2 = lathe.slice %t starts <0, 3> sizes <4, 1> strides [1, 1] : tensor<4x8xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x2xf32>, tensor<4x1xf32>
}

// A stack of one weight gives the product its axis, and turned stacks are no turned matrices.
// CHECK-LABEL: @products_of_stacks
// CHECK: lathe.matmul %arg0, %{{.*}} : tensor<4x8xf32>, tensor<1x8x6xf32>
// CHECK: %[[P:.*]] = lathe.matmul
// CHECK-NEXT: lathe.transpose %[[P]] [1, 0, 3, 2]
func.func @products_of_stacks(%x: !x, %a: tensor<2x2x8x4xf32>, %b: tensor<2x2x8x4xf32>) -> (tensor<1x4x6xf32>, tensor<2x2x4x4xf32>) {
  %w = lathe.weight "w" : tensor<1x8x6xf32>
  %0 = lathe.matmul %x, %w : !x, tensor<1x8x6xf32>
  %t = lathe.transpose %a [0, 1, 3, 2] : tensor<2x2x8x4xf32>
  %p = lathe.matmul %t, %b : tensor<2x2x4x8xf32>, tensor<2x2x8x4xf32>
  %1 = lathe.transpose %p [1, 0, 3, 2] : tensor<2x2x4x4xf32>
  return %0, %1 : tensor<1x4x6xf32>, tensor<2x2x4x4xf32>
}

// Models in 16 bits hide with -1e4, which is the highest number that does.
// CHECK-LABEL: @hidden_by_ten_thousand
// CHECK: %[[N:.*]] = lathe.logical_not %arg1
// CHECK-NEXT: lathe.select %[[N]], %arg0
// CHECK-NOT: lathe.logical_not
// CHECK: lathe.select %arg1, %{{.*}}, %arg0
func.func @hidden_by_ten_thousand(%x: !x, %c: !c) -> (!x, !x) {
  %hidden = lathe.constant dense<-1.0e4> : tensor<f32>
  %low = lathe.constant dense<-9.999e3> : tensor<f32>
  %0 = lathe.select %c, %hidden, %x : !c, tensor<f32>, !x
  %1 = lathe.select %c, %low, %x : !c, tensor<f32>, !x
  return %0, %1 : !x, !x
}
