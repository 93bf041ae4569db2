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
