// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s

// What lies next to a rewrite and is not one. canonical_rewrites_test computes all of these before
// and after.

// CHECK-LABEL: @negated_with_ties
// CHECK: lathe.compare lt %arg0, %arg0
// CHECK: lathe.compare lt %arg1, %arg1
func.func @negated_with_ties(%i: tensor<8xi64>, %j: tensor<8xi64>) -> (tensor<8xi1>, tensor<8xi1>) {
  %0 = lathe.compare le %i, %i : tensor<8xi64>, tensor<8xi64>
  %1 = lathe.logical_not %0 : tensor<8xi1>
  %2 = lathe.compare ge %j, %j : tensor<8xi64>, tensor<8xi64>
  %3 = lathe.logical_not %2 : tensor<8xi1>
  return %1, %3 : tensor<8xi1>, tensor<8xi1>
}

// -inf divided by a negative number is inf.
// CHECK-LABEL: @scaled_by_a_negative
// CHECK: lathe.select
// CHECK: lathe.div
// CHECK: lathe.select
// CHECK: lathe.mul
func.func @scaled_by_a_negative(%c: tensor<8xi1>, %x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %three = lathe.constant dense<-3.0> : tensor<f32>
  %0 = lathe.select %c, %x, %inf : tensor<8xi1>, tensor<8xf32>, tensor<f32>
  %1 = lathe.div %0, %three : tensor<8xf32>, tensor<f32>
  %2 = lathe.select %c, %x, %inf : tensor<8xi1>, tensor<8xf32>, tensor<f32>
  %3 = lathe.mul %2, %three : tensor<8xf32>, tensor<f32>
  return %1, %3 : tensor<8xf32>, tensor<8xf32>
}

// i + 1 < j is not i <= j, i < j - 1 is not i <= j, and i <= j + 1 is not i < j.
// CHECK-LABEL: @one_on_the_other_side
// CHECK-COUNT-3: lathe.add
func.func @one_on_the_other_side(%x: tensor<4xf32>) -> (tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>) {
  %i = lathe.iota <4, 1> axis 0 dtype i64
  %j = lathe.iota <1, 4> axis 1 dtype i64
  %one = lathe.constant dense<1> : tensor<i64>
  %less = lathe.constant dense<-1> : tensor<i64>
  %0 = lathe.add %i, %one : tensor<4x1xi64>, tensor<i64>
  %1 = lathe.compare lt %0, %j : tensor<4x1xi64>, tensor<1x4xi64>
  %2 = lathe.add %j, %less : tensor<1x4xi64>, tensor<i64>
  %3 = lathe.compare lt %i, %2 : tensor<4x1xi64>, tensor<1x4xi64>
  %4 = lathe.add %j, %one : tensor<1x4xi64>, tensor<i64>
  %5 = lathe.compare le %i, %4 : tensor<4x1xi64>, tensor<1x4xi64>
  return %1, %3, %5 : tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>
}

// Centred along one axis is not centred along the other.
// CHECK-LABEL: @centered_along_both
// CHECK-COUNT-2: lathe.sub
func.func @centered_along_both(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = lathe.reduce_mean %x axes [1] keep_dims true : tensor<4x4xf32>
  %1 = lathe.sub %x, %0 : tensor<4x4xf32>, tensor<4x1xf32>
  %2 = lathe.reduce_mean %1 axes [0] keep_dims true : tensor<4x4xf32>
  %3 = lathe.sub %1, %2 : tensor<4x4xf32>, tensor<1x4xf32>
  return %3 : tensor<4x4xf32>
}

// A turn of three axes twice is the turn back, not none.
// CHECK-LABEL: @turned_twice
// CHECK: lathe.transpose
func.func @turned_twice(%x: tensor<4x4x4xf32>) -> tensor<4x4x4xf32> {
  %0 = lathe.transpose %x [1, 2, 0] : tensor<4x4x4xf32>
  %1 = lathe.neg %0 : tensor<4x4x4xf32>
  %2 = lathe.transpose %1 [1, 2, 0] : tensor<4x4x4xf32>
  return %2 : tensor<4x4x4xf32>
}

// Towards zero.
// CHECK-LABEL: @negative_to_integer
// CHECK: dense<-1> : tensor<i64>
func.func @negative_to_integer(%i: tensor<8xi64>) -> tensor<8xi64> {
  %c = lathe.constant dense<-1.5> : tensor<f32>
  %0 = lathe.cast %c to i64 : tensor<f32>
  %1 = lathe.add %i, %0 : tensor<8xi64>, tensor<i64>
  return %1 : tensor<8xi64>
}

// The last element is the next part's.
// CHECK-LABEL: @slice_over_the_seam
// CHECK: lathe.concat
func.func @slice_over_the_seam(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %0 = lathe.concat %a, %b axis 0 : tensor<4xf32>, tensor<4xf32>
  %1 = lathe.slice %0 starts <1> sizes <4> strides [1] : tensor<8xf32>
  %2 = lathe.slice %0 starts <2> sizes <2> strides [2] : tensor<8xf32>
  return %1, %2 : tensor<4xf32>, tensor<2xf32>
}

// -1 is 255 on its way through a type without a sign.
// CHECK-LABEL: @through_unsigned
// CHECK: lathe.cast %{{.*}} to ui8
func.func @through_unsigned(%i: tensor<8xi8>) -> (tensor<8xf32>, tensor<8xi32>) {
  %n = lathe.neg %i : tensor<8xi8>
  %u = lathe.cast %n to ui8 : tensor<8xi8>
  %0 = lathe.cast %u to f32 : tensor<8xui8>
  %1 = lathe.cast %u to i32 : tensor<8xui8>
  return %0, %1 : tensor<8xf32>, tensor<8xi32>
}

// -inf over inf is NaN: the mask stays behind the division.
// CHECK-LABEL: @hidden_over_infinity
// CHECK: %[[S:.*]] = lathe.select %arg1, %arg0
// CHECK-NEXT: lathe.div %[[S]]
func.func @hidden_over_infinity(%x: tensor<8x8xf32>, %c: tensor<8x8xi1>) -> tensor<8x8xf32> {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %inf = lathe.constant dense<0x7F800000> : tensor<f32>
  %0 = lathe.select %c, %x, %low : tensor<8x8xi1>, tensor<8x8xf32>, tensor<f32>
  %1 = lathe.div %0, %inf : tensor<8x8xf32>, tensor<f32>
  return %1 : tensor<8x8xf32>
}

// The upper half of an integer without a sign.
// CHECK-LABEL: @constant_without_a_sign
// CHECK: dense<200> : tensor<ui8>
func.func @constant_without_a_sign(%x: tensor<4xui8>) -> tensor<4xui8> {
  %c = lathe.constant dense<200> : tensor<i64>
  %0 = lathe.cast %c to ui8 : tensor<i64>
  %1 = lathe.max %x, %0 : tensor<4xui8>, tensor<ui8>
  return %1 : tensor<4xui8>
}

// A sum over both axes is the mean of neither where it is divided by the size of one.
// CHECK-LABEL: @sum_of_two_over_one
// CHECK-COUNT-4: lathe.reduce_sum
func.func @sum_of_two_over_one(%x: tensor<2x10xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>) {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %ten = lathe.constant dense<10.0> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %tenth = lathe.constant dense<0.1> : tensor<f32>
  %0 = lathe.reduce_sum %x axes [0, 1] keep_dims true : tensor<2x10xf32>
  %a = lathe.div %0, %ten : tensor<1x1xf32>, tensor<f32>
  %1 = lathe.reduce_sum %x axes [0, 1] keep_dims true : tensor<2x10xf32>
  %b = lathe.div %1, %two : tensor<1x1xf32>, tensor<f32>
  %2 = lathe.reduce_sum %x axes [0, 1] keep_dims true : tensor<2x10xf32>
  %c = lathe.mul %2, %tenth : tensor<1x1xf32>, tensor<f32>
  %3 = lathe.reduce_sum %x axes [0, 1] keep_dims true : tensor<2x10xf32>
  %d = lathe.mul %3, %half : tensor<1x1xf32>, tensor<f32>
  return %a, %b, %c, %d : tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}

// Parts that follow each other but skip elements, along the joined axis or another one.
// CHECK-LABEL: @parts_of_other_strides
// CHECK-COUNT-2: lathe.concat
func.func @parts_of_other_strides(%x: tensor<6x4xf32>) -> (tensor<4x2xf32>, tensor<4x4xf32>) {
  %a = lathe.slice %x starts <0, 0> sizes <2, 2> strides [1, 1] : tensor<6x4xf32>
  %b = lathe.slice %x starts <2, 0> sizes <2, 2> strides [1, 2] : tensor<6x4xf32>
  %0 = lathe.concat %a, %b axis 0 : tensor<2x2xf32>, tensor<2x2xf32>
  %c = lathe.slice %x starts <0, 0> sizes <2, 4> strides [1, 1] : tensor<6x4xf32>
  %d = lathe.slice %x starts <2, 0> sizes <2, 4> strides [2, 1] : tensor<6x4xf32>
  %1 = lathe.concat %c, %d axis 0 : tensor<2x4xf32>, tensor<2x4xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: @turned_twice_in_a_row
// CHECK-NEXT: lathe.transpose %arg0 [2, 0, 1]
func.func @turned_twice_in_a_row(%x: tensor<4x4x4xf32>) -> tensor<4x4x4xf32> {
  %0 = lathe.transpose %x [1, 2, 0] : tensor<4x4x4xf32>
  %1 = lathe.transpose %0 [1, 2, 0] : tensor<4x4x4xf32>
  return %1 : tensor<4x4x4xf32>
}

// -0 less -0 is 0, and -0 less 0 is -0.
// CHECK-LABEL: @zeros_subtracted
// CHECK: %[[S:.*]] = lathe.add %arg0
// CHECK: return %[[S]], %arg0
func.func @zeros_subtracted(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %minus = lathe.constant dense<-0.0> : tensor<f32>
  %0 = lathe.sub %x, %minus : tensor<4x8xf32>, tensor<f32>
  %1 = lathe.sub %x, %zero : tensor<4x8xf32>, tensor<f32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// The sign of a part stays where the parts lie along another axis or are of another size.
// CHECK-LABEL: @signs_of_other_parts
// CHECK-DAG: lathe.neg %arg2
// CHECK-DAG: lathe.neg %arg5
// CHECK-NOT: lathe.neg
// CHECK: return
func.func @signs_of_other_parts(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>, %s: tensor<2x4xf32>, %c: tensor<4x1xf32>, %d: tensor<4x3xf32>, %u: tensor<4x2xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %n = lathe.neg %s : tensor<2x4xf32>
  %t = lathe.concat %n, %s axis 0 : tensor<2x4xf32>, tensor<2x4xf32>
  %r = lathe.concat %b, %a axis 1 : tensor<4x2xf32>, tensor<4x2xf32>
  %y = lathe.mul %r, %t : tensor<4x4xf32>, tensor<4x4xf32>
  %m = lathe.neg %u : tensor<4x2xf32>
  %w = lathe.concat %m, %u axis 1 : tensor<4x2xf32>, tensor<4x2xf32>
  %q = lathe.concat %c, %d axis 1 : tensor<4x1xf32>, tensor<4x3xf32>
  %z = lathe.mul %q, %w : tensor<4x4xf32>, tensor<4x4xf32>
  return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}

// The axes in front of the sliced one are others behind the reshape.
// CHECK-LABEL: @slice_behind_other_axes
// CHECK: lathe.reshape
// CHECK: lathe.slice
func.func @slice_behind_other_axes(%x: tensor<4x8x3xf32>) -> tensor<2x1x2x6xf32> {
  %r = lathe.reshape %x to <2, 4, 2, 6> : tensor<4x8x3xf32>
  %y = lathe.slice %r starts <0, 1, 0, 0> sizes <2, 1, 2, 6> strides [1, 1, 1, 1] : tensor<2x4x2x6xf32>
  return %y : tensor<2x1x2x6xf32>
}

// Two whole numbers that are one in double are two: no selected number is the other.
// CHECK-LABEL: @selected_beyond_doubles
// CHECK: lathe.select
// CHECK: lathe.compare eq
func.func @selected_beyond_doubles(%c: tensor<8xi1>) -> tensor<8xi1> {
  %large = lathe.constant dense<9007199254740993> : tensor<i64>
  %zero = lathe.constant dense<0> : tensor<i64>
  %neighbour = lathe.constant dense<9007199254740992> : tensor<i64>
  %s = lathe.select %c, %large, %zero : tensor<8xi1>, tensor<i64>, tensor<i64>
  %y = lathe.compare eq %s, %neighbour : tensor<8xi64>, tensor<i64>
  return %y : tensor<8xi1>
}
