// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// CHECK-LABEL: @half
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2 : tensor<2x3x8xf32>, tensor<3x4xf32>, tensor<3x4xf32>
// CHECK-NEXT: return
func.func @half(%x: tensor<2x3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<2x3x8xf32> {
  %a = lathe.slice %x starts <0, 0, 0> sizes <2, 3, 4> strides [1, 1, 1] : tensor<2x3x8xf32>
  %b = lathe.slice %x starts <0, 0, 4> sizes <2, 3, 4> strides [1, 1, 1] : tensor<2x3x8xf32>
  %ac = lathe.mul %a, %c : tensor<2x3x4xf32>, tensor<3x4xf32>
  %bs = lathe.mul %s, %b : tensor<3x4xf32>, tensor<2x3x4xf32>
  %f = lathe.sub %ac, %bs : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %as = lathe.mul %a, %s : tensor<2x3x4xf32>, tensor<3x4xf32>
  %bc = lathe.mul %b, %c : tensor<2x3x4xf32>, tensor<3x4xf32>
  %g = lathe.add %bc, %as : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %y = lathe.concat %f, %g axis 2 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: @interleaved_bf16
// CHECK-NEXT: lathe.rope interleaved %arg0, %arg1, %arg2 : tensor<2x3x8xbf16>, tensor<3x4xf32>, tensor<3x4xf32>
// CHECK-NEXT: return
func.func @interleaved_bf16(%h: tensor<2x3x8xbf16>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<2x3x8xbf16> {
  %x = lathe.cast %h to f32 : tensor<2x3x8xbf16>
  %a = lathe.slice %x starts <0, 0, 0> sizes <2, 3, 4> strides [1, 1, 2] : tensor<2x3x8xf32>
  %b = lathe.slice %x starts <0, 0, 1> sizes <2, 3, 4> strides [1, 1, 2] : tensor<2x3x8xf32>
  %ac = lathe.mul %a, %c : tensor<2x3x4xf32>, tensor<3x4xf32>
  %bs = lathe.mul %b, %s : tensor<2x3x4xf32>, tensor<3x4xf32>
  %f = lathe.sub %ac, %bs : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %as = lathe.mul %a, %s : tensor<2x3x4xf32>, tensor<3x4xf32>
  %bc = lathe.mul %b, %c : tensor<2x3x4xf32>, tensor<3x4xf32>
  %g = lathe.add %as, %bc : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %f1 = lathe.reshape %f to <2, 3, 4, 1> : tensor<2x3x4xf32>
  %g1 = lathe.reshape %g to <2, 3, 4, 1> : tensor<2x3x4xf32>
  %j = lathe.concat %f1, %g1 axis 3 : tensor<2x3x4x1xf32>, tensor<2x3x4x1xf32>
  %y = lathe.reshape %j to <2, 3, 8> : tensor<2x3x4x2xf32>
  %z = lathe.cast %y to bf16 : tensor<2x3x8xf32>
  return %z : tensor<2x3x8xbf16>
}

// x * cat(c, c) + cat(-b, a) * cat(s, s)
// CHECK-LABEL: @doubled_tables
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2
// CHECK-NEXT: return
func.func @doubled_tables(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %cc = lathe.concat %c, %c axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %ss = lathe.concat %s, %s axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %n = lathe.neg %b : tensor<3x4xf32>
  %r = lathe.concat %n, %a axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %p = lathe.mul %x, %cc : tensor<3x8xf32>, tensor<3x8xf32>
  %q = lathe.mul %r, %ss : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.add %p, %q : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// The slices overlap.
// CHECK-LABEL: @wrong_start
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @wrong_start(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 3> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %bs = lathe.mul %b, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %f = lathe.sub %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %g = lathe.add %as, %bc : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x8xf32>
}

// A rotation by the negative angle: the signs are exchanged.
// CHECK-LABEL: @wrong_sign
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @wrong_sign(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %bs = lathe.mul %b, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %f = lathe.add %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %g = lathe.sub %bc, %as : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x8xf32>
}

// Joined along the rows.
// CHECK-LABEL: @wrong_axis
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @wrong_axis(%x: tensor<4x8xf32>, %c: tensor<4x4xf32>, %s: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <4, 4> strides [1, 1] : tensor<4x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <4, 4> strides [1, 1] : tensor<4x8xf32>
  %ac = lathe.mul %a, %c : tensor<4x4xf32>, tensor<4x4xf32>
  %bs = lathe.mul %b, %s : tensor<4x4xf32>, tensor<4x4xf32>
  %f = lathe.sub %ac, %bs : tensor<4x4xf32>, tensor<4x4xf32>
  %as = lathe.mul %a, %s : tensor<4x4xf32>, tensor<4x4xf32>
  %bc = lathe.mul %b, %c : tensor<4x4xf32>, tensor<4x4xf32>
  %g = lathe.add %as, %bc : tensor<4x4xf32>, tensor<4x4xf32>
  %y = lathe.concat %f, %g axis 0 : tensor<4x4xf32>, tensor<4x4xf32>
  return %y : tensor<8x4xf32>
}

// Partial rotation of neighbours with doubled tables, each part cut out of the value itself.
// CHECK-LABEL: @partial_neighbours
// CHECK: lathe.rope interleaved %arg0
// CHECK-NEXT: return
func.func @partial_neighbours(%x: tensor<2x3x4x12xf32>, %c: tensor<3x1x4xf32>, %s: tensor<3x1x4xf32>) -> tensor<2x3x4x12xf32> {
  %head = lathe.slice %x starts <0, 0, 0, 0> sizes <2, 3, 4, 8> strides [1, 1, 1, 1] : tensor<2x3x4x12xf32>
  %rest = lathe.slice %x starts <0, 0, 0, 8> sizes <2, 3, 4, 4> strides [1, 1, 1, 1] : tensor<2x3x4x12xf32>
  %a = lathe.slice %x starts <0, 0, 0, 0> sizes <2, 3, 4, 4> strides [1, 1, 1, 2] : tensor<2x3x4x12xf32>
  %b = lathe.slice %x starts <0, 0, 0, 1> sizes <2, 3, 4, 4> strides [1, 1, 1, 2] : tensor<2x3x4x12xf32>
  %c0 = lathe.reshape %c to <3, 1, 4, 1> : tensor<3x1x4xf32>
  %c1 = lathe.broadcast %c0 to <3, 1, 4, 2> : tensor<3x1x4x1xf32>
  %c2 = lathe.reshape %c1 to <3, 1, 8> : tensor<3x1x4x2xf32>
  %s0 = lathe.reshape %s to <3, 1, 4, 1> : tensor<3x1x4xf32>
  %s1 = lathe.broadcast %s0 to <3, 1, 4, 2> : tensor<3x1x4x1xf32>
  %s2 = lathe.reshape %s1 to <3, 1, 8> : tensor<3x1x4x2xf32>
  %n = lathe.neg %b : tensor<2x3x4x4xf32>
  %p = lathe.reshape %n to <2, 3, 4, 4, 1> : tensor<2x3x4x4xf32>
  %q = lathe.reshape %a to <2, 3, 4, 4, 1> : tensor<2x3x4x4xf32>
  %j = lathe.concat %p, %q axis 4 : tensor<2x3x4x4x1xf32>, tensor<2x3x4x4x1xf32>
  %r = lathe.reshape %j to <2, 3, 4, 8> : tensor<2x3x4x4x2xf32>
  %u = lathe.mul %head, %c2 : tensor<2x3x4x8xf32>, tensor<3x1x8xf32>
  %v = lathe.mul %r, %s2 : tensor<2x3x4x8xf32>, tensor<3x1x8xf32>
  %w = lathe.add %u, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>
  %y = lathe.concat %w, %rest axis 3 : tensor<2x3x4x8xf32>, tensor<2x3x4x4xf32>
  return %y : tensor<2x3x4x12xf32>
}

// The other factor is the same width of another place.
// CHECK-LABEL: @other_neighbours
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @other_neighbours(%x: tensor<2x3x4x12xf32>, %c: tensor<3x1x4xf32>) -> tensor<2x3x4x8xf32> {
  %late = lathe.slice %x starts <0, 0, 0, 4> sizes <2, 3, 4, 8> strides [1, 1, 1, 1] : tensor<2x3x4x12xf32>
  %a = lathe.slice %x starts <0, 0, 0, 0> sizes <2, 3, 4, 4> strides [1, 1, 1, 2] : tensor<2x3x4x12xf32>
  %b = lathe.slice %x starts <0, 0, 0, 1> sizes <2, 3, 4, 4> strides [1, 1, 1, 2] : tensor<2x3x4x12xf32>
  %c0 = lathe.reshape %c to <3, 1, 4, 1> : tensor<3x1x4xf32>
  %c1 = lathe.broadcast %c0 to <3, 1, 4, 2> : tensor<3x1x4x1xf32>
  %c2 = lathe.reshape %c1 to <3, 1, 8> : tensor<3x1x4x2xf32>
  %n = lathe.neg %b : tensor<2x3x4x4xf32>
  %p = lathe.reshape %n to <2, 3, 4, 4, 1> : tensor<2x3x4x4xf32>
  %q = lathe.reshape %a to <2, 3, 4, 4, 1> : tensor<2x3x4x4xf32>
  %j = lathe.concat %p, %q axis 4 : tensor<2x3x4x4x1xf32>, tensor<2x3x4x4x1xf32>
  %r = lathe.reshape %j to <2, 3, 4, 8> : tensor<2x3x4x4x2xf32>
  %u = lathe.mul %late, %c2 : tensor<2x3x4x8xf32>, tensor<3x1x8xf32>
  %v = lathe.mul %r, %c2 : tensor<2x3x4x8xf32>, tensor<3x1x8xf32>
  %w = lathe.add %u, %v : tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>
  return %w : tensor<2x3x4x8xf32>
}

// The last axis as pairs, as complex numbers are read.
// CHECK-LABEL: @neighbours_of_a_split
// CHECK-NEXT: lathe.rope interleaved %arg0, %arg1, %arg2 : tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
// CHECK-NEXT: return
func.func @neighbours_of_a_split(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %p = lathe.reshape %x to <5, 4, 2> : tensor<5x8xf32>
  %a1 = lathe.slice %p starts <0, 0, 0> sizes <5, 4, 1> strides [1, 1, 1] : tensor<5x4x2xf32>
  %b1 = lathe.slice %p starts <0, 0, 1> sizes <5, 4, 1> strides [1, 1, 1] : tensor<5x4x2xf32>
  %a = lathe.reshape %a1 to <5, 4> : tensor<5x4x1xf32>
  %b = lathe.reshape %b1 to <5, 4> : tensor<5x4x1xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %f1 = lathe.reshape %f to <5, 4, 1> : tensor<5x4xf32>
  %g1 = lathe.reshape %g to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %f1, %g1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %y = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  return %y : tensor<5x8xf32>
}

// The last axis as two rows, one for each half.
// CHECK-LABEL: @halves_of_a_split
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2 : tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
// CHECK-NEXT: return
func.func @halves_of_a_split(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %p = lathe.reshape %x to <5, 2, 4> : tensor<5x8xf32>
  %a1 = lathe.slice %p starts <0, 0, 0> sizes <5, 1, 4> strides [1, 1, 1] : tensor<5x2x4xf32>
  %b1 = lathe.slice %p starts <0, 1, 0> sizes <5, 1, 4> strides [1, 1, 1] : tensor<5x2x4xf32>
  %a = lathe.reshape %a1 to <5, 4> : tensor<5x1x4xf32>
  %b = lathe.reshape %b1 to <5, 4> : tensor<5x1x4xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// Pairs of which the other axis is read are no halves: two of four neighbours each.
// CHECK-LABEL: @other_axis_of_a_split
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @other_axis_of_a_split(%x: tensor<5x4xf32>, %c: tensor<5x2xf32>, %s: tensor<5x2xf32>) -> tensor<5x4xf32> {
  %p = lathe.reshape %x to <5, 2, 2> : tensor<5x4xf32>
  %a1 = lathe.slice %p starts <0, 0, 0> sizes <5, 1, 2> strides [1, 1, 1] : tensor<5x2x2xf32>
  %b1 = lathe.slice %p starts <0, 0, 1> sizes <5, 2, 1> strides [1, 1, 1] : tensor<5x2x2xf32>
  %a = lathe.reshape %a1 to <5, 2> : tensor<5x1x2xf32>
  %b = lathe.reshape %b1 to <5, 2> : tensor<5x2x1xf32>
  %ac = lathe.mul %a, %c : tensor<5x2xf32>, tensor<5x2xf32>
  %bs = lathe.mul %b, %s : tensor<5x2xf32>, tensor<5x2xf32>
  %as = lathe.mul %a, %s : tensor<5x2xf32>, tensor<5x2xf32>
  %bc = lathe.mul %b, %c : tensor<5x2xf32>, tensor<5x2xf32>
  %f = lathe.sub %ac, %bs : tensor<5x2xf32>, tensor<5x2xf32>
  %g = lathe.add %as, %bc : tensor<5x2xf32>, tensor<5x2xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x2xf32>, tensor<5x2xf32>
  return %y : tensor<5x4xf32>
}

// The tables stand in front, and have the size of the halves.
// CHECK-LABEL: @tables_first
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2 : tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
// CHECK-NEXT: return
func.func @tables_first(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %c, %a : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %s, %b : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %s, %a : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %c, %b : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// The first two of three neighbours are no pairs of what they lie in.
// CHECK-LABEL: @two_of_three_neighbours
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @two_of_three_neighbours(%x: tensor<5x12xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %p = lathe.reshape %x to <5, 4, 3> : tensor<5x12xf32>
  %a1 = lathe.slice %p starts <0, 0, 0> sizes <5, 4, 1> strides [1, 1, 1] : tensor<5x4x3xf32>
  %b1 = lathe.slice %p starts <0, 0, 1> sizes <5, 4, 1> strides [1, 1, 1] : tensor<5x4x3xf32>
  %a = lathe.reshape %a1 to <5, 4> : tensor<5x4x1xf32>
  %b = lathe.reshape %b1 to <5, 4> : tensor<5x4x1xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %f1 = lathe.reshape %f to <5, 4, 1> : tensor<5x4xf32>
  %g1 = lathe.reshape %g to <5, 4, 1> : tensor<5x4xf32>
  %j = lathe.concat %f1, %g1 axis 2 : tensor<5x4x1xf32>, tensor<5x4x1xf32>
  %y = lathe.reshape %j to <5, 8> : tensor<5x4x2xf32>
  return %y : tensor<5x8xf32>
}

// The tables are halves of one value, as those of a rotation are, but not of the result's shape.
// CHECK-LABEL: @tables_of_one_value
// CHECK: lathe.rope half %arg0, %{{.*}} : tensor<2x5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
// CHECK-NEXT: return
func.func @tables_of_one_value(%x: tensor<2x5x8xf32>, %t: tensor<5x8xf32>) -> tensor<2x5x8xf32> {
  %c = lathe.slice %t starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %s = lathe.slice %t starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %a = lathe.slice %x starts <0, 0, 0> sizes <2, 5, 4> strides [1, 1, 1] : tensor<2x5x8xf32>
  %b = lathe.slice %x starts <0, 0, 4> sizes <2, 5, 4> strides [1, 1, 1] : tensor<2x5x8xf32>
  %ac = lathe.mul %c, %a : tensor<5x4xf32>, tensor<2x5x4xf32>
  %bs = lathe.mul %s, %b : tensor<5x4xf32>, tensor<2x5x4xf32>
  %as = lathe.mul %s, %a : tensor<5x4xf32>, tensor<2x5x4xf32>
  %bc = lathe.mul %c, %b : tensor<5x4xf32>, tensor<2x5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<2x5x4xf32>, tensor<2x5x4xf32>
  %g = lathe.add %as, %bc : tensor<2x5x4xf32>, tensor<2x5x4xf32>
  %y = lathe.concat %f, %g axis 2 : tensor<2x5x4xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x5x8xf32>
}

// Two halves of the first elements rotate, and all three parts are joined at once.
// CHECK-LABEL: @halves_and_rest
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2 : tensor<5x12xf32>, tensor<5x4xf32>, tensor<5x4xf32>
// CHECK-NEXT: return
func.func @halves_and_rest(%x: tensor<5x12xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x12xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x12xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x12xf32>
  %r = lathe.slice %x starts <0, 8> sizes <5, 4> strides [1, 1] : tensor<5x12xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g, %r axis 1 : tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x12xf32>
}

// Halves of some rows of a value.
// CHECK-LABEL: @halves_of_some_rows
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @halves_of_some_rows(%x: tensor<6x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <1, 0> sizes <5, 4> strides [1, 1] : tensor<6x8xf32>
  %b = lathe.slice %x starts <1, 4> sizes <5, 4> strides [1, 1] : tensor<6x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.sub %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.add %as, %bc : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// Doubled tables of all positions: rows by index and a range of rows, times a factor on either side.
// CHECK-LABEL: @rows_of_doubled_tables
// CHECK-DAG: lathe.gather %arg1, %arg3 axis 0 : tensor<16x4xf32>, tensor<5xi64>
// CHECK-DAG: lathe.slice %arg2 starts <3, 0> sizes <5, 4> strides [1, 1] : tensor<16x4xf32>
// CHECK: lathe.rope half %arg0, %{{.*}}, %{{.*}} : tensor<5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
// CHECK-NEXT: return
func.func @rows_of_doubled_tables(%x: tensor<5x8xf32>, %c: tensor<16x4xf32>, %s: tensor<16x4xf32>, %i: tensor<5xi64>) -> tensor<5x8xf32> {
  %k = lathe.constant dense<0.5> : tensor<f32>
  %cc = lathe.concat %c, %c axis 1 : tensor<16x4xf32>, tensor<16x4xf32>
  %cr = lathe.gather %cc, %i axis 0 : tensor<16x8xf32>, tensor<5xi64>
  %ck = lathe.mul %k, %cr : tensor<f32>, tensor<5x8xf32>
  %ss = lathe.concat %s, %s axis 1 : tensor<16x4xf32>, tensor<16x4xf32>
  %sr = lathe.slice %ss starts <3, 0> sizes <5, 8> strides [1, 1] : tensor<16x8xf32>
  %sk = lathe.mul %sr, %k : tensor<5x8xf32>, tensor<f32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %r = lathe.concat %n, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %x, %ck : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %r, %sk : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// The doubled table stands in front, for one position of all rows.
// CHECK-LABEL: @doubled_tables_first
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2 : tensor<5x8xf32>, tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: return
func.func @doubled_tables_first(%x: tensor<5x8xf32>, %c: tensor<4xf32>, %s: tensor<4xf32>) -> tensor<5x8xf32> {
  %cc = lathe.concat %c, %c axis 0 : tensor<4xf32>, tensor<4xf32>
  %ss = lathe.concat %s, %s axis 0 : tensor<4xf32>, tensor<4xf32>
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %r = lathe.concat %n, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %cc, %x : tensor<8xf32>, tensor<5x8xf32>
  %q = lathe.mul %ss, %r : tensor<8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}
