// RUN: lathe-opt %s --lathe-canonicalize --lathe-fuse | FileCheck %s

// MLA's heads: a part without positions in front of the rotated one.
// CHECK-LABEL: @joined_to_another_part
// CHECK: %[[R:.*]] = lathe.rope half
// CHECK-NEXT: lathe.concat %arg1, %[[R]] axis 1
// CHECK-NEXT: return
func.func @joined_to_another_part(%x: tensor<3x8xf32>, %n: tensor<3x4xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x12xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %bs = lathe.mul %b, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %f = lathe.sub %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %g = lathe.add %bc, %as : tensor<3x4xf32>, tensor<3x4xf32>
  %r = lathe.concat %f, %g axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.concat %n, %r axis 1 : tensor<3x4xf32>, tensor<3x8xf32>
  return %y : tensor<3x12xf32>
}

// The first elements of a head rotate, as in GPT-NeoX: one op takes the head.
// CHECK-LABEL: @first_of_a_head
// CHECK-NEXT: lathe.rope half %arg0
// CHECK-NEXT: return
func.func @first_of_a_head(%x: tensor<3x12xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x12xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x12xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x12xf32>
  %rest = lathe.slice %x starts <0, 8> sizes <3, 4> strides [1, 1] : tensor<3x12xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %bs = lathe.mul %b, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %f = lathe.sub %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %g = lathe.add %bc, %as : tensor<3x4xf32>, tensor<3x4xf32>
  %r = lathe.concat %f, %g axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.concat %r, %rest axis 1 : tensor<3x8xf32>, tensor<3x4xf32>
  return %y : tensor<3x12xf32>
}
