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
