// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s

// CHECK-LABEL: @slice_of_slice
// CHECK-NEXT: lathe.slice %arg0 starts <3> sizes <2> strides [4]
func.func @slice_of_slice(%x: tensor<12xf32>) -> tensor<2xf32> {
  %0 = lathe.slice %x starts <1> sizes <5> strides [2] : tensor<12xf32>
  %1 = lathe.slice %0 starts <1> sizes <2> strides [2] : tensor<5xf32>
  return %1 : tensor<2xf32>
}

// CHECK-LABEL: @slice_of_concat
// CHECK-NEXT: %[[S:.*]] = lathe.slice %arg1 starts <1> sizes <2>
// CHECK-NEXT: return %arg1, %[[S]]
func.func @slice_of_concat(%a: tensor<?xf32, #lathe.dims<past>>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %c = lathe.concat %a, %b axis 0 : tensor<?xf32, #lathe.dims<past>>, tensor<4xf32>
  %0 = lathe.slice %c starts <past> sizes <4> strides [1] : tensor<?xf32, #lathe.dims<past+4>>
  %1 = lathe.slice %c starts <past+1> sizes <2> strides [1] : tensor<?xf32, #lathe.dims<past+4>>
  return %0, %1 : tensor<4xf32>, tensor<2xf32>
}

// Parts in order are the whole, in another order they are not.
// CHECK-LABEL: @concat_of_parts
// CHECK: %[[C:.*]] = lathe.concat
// CHECK-NEXT: return %arg0, %[[C]]
func.func @concat_of_parts(%x: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {
  %a = lathe.slice %x starts <0> sizes <2> strides [1] : tensor<6xf32>
  %b = lathe.slice %x starts <2> sizes <4> strides [1] : tensor<6xf32>
  %0 = lathe.concat %a, %b axis 0 : tensor<2xf32>, tensor<4xf32>
  %1 = lathe.concat %b, %a axis 0 : tensor<4xf32>, tensor<2xf32>
  return %0, %1 : tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: @flatten_concat
// CHECK-NEXT: %[[C:.*]] = lathe.concat %arg0, %arg1, %arg0 axis 0
// CHECK-NEXT: return %[[C]], %arg0
func.func @flatten_concat(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<6xf32>, tensor<2xf32>) {
  %0 = lathe.concat %a, %b axis 0 : tensor<2xf32>, tensor<2xf32>
  %1 = lathe.concat %0, %a axis 0 : tensor<4xf32>, tensor<2xf32>
  %2 = lathe.concat %a axis 0 : tensor<2xf32>
  return %1, %2 : tensor<6xf32>, tensor<2xf32>
}

// The key of a merged projection, by way of a rank-5 view and its transpose, or by a slice.
// CHECK-LABEL: @merged_projection
// CHECK: %[[S:.*]] = lathe.slice %arg0 starts <0, 0, 32> sizes <batch, seq, 32>
// CHECK: %[[R:.*]] = lathe.reshape %[[S]] to <batch, seq, 4, 8>
// CHECK: %[[A:.*]] = lathe.transpose %[[R]] [0, 2, 1, 3]
// CHECK: %[[T:.*]] = lathe.slice %arg0 starts <0, 0, 32> sizes <batch, seq, 32>
// CHECK: %[[U:.*]] = lathe.reshape %[[T]] to <batch, seq, 4, 8>
// CHECK: %[[B:.*]] = lathe.transpose %[[U]] [0, 2, 1, 3]
// CHECK: return %[[A]], %[[B]]
!qkv = tensor<?x?x96xf32, #lathe.dims<batch, seq, 96>>
!v5 = tensor<?x?x3x4x8xf32, #lathe.dims<batch, seq, 3, 4, 8>>
!t5 = tensor<3x?x4x?x8xf32, #lathe.dims<3, batch, 4, seq, 8>>
!h = tensor<?x4x?x8xf32, #lathe.dims<batch, 4, seq, 8>>
func.func @merged_projection(%x: !qkv) -> (!h, !h) {
  %0 = lathe.reshape %x to <batch, seq, 3, 4, 8> : !qkv
  %1 = lathe.transpose %0 [2, 0, 3, 1, 4] : !v5
  %2 = lathe.slice %1 starts <1, 0, 0, 0, 0> sizes <1, batch, 4, seq, 8> strides [1, 1, 1, 1, 1] : !t5
  %a = lathe.reshape %2 to <batch, 4, seq, 8> : tensor<1x?x4x?x8xf32, #lathe.dims<1, batch, 4, seq, 8>>
  %3 = lathe.slice %0 starts <0, 0, 1, 0, 0> sizes <batch, seq, 1, 4, 8> strides [1, 1, 1, 1, 1] : !v5
  %4 = lathe.reshape %3 to <batch, seq, 4, 8> : tensor<?x?x1x4x8xf32, #lathe.dims<batch, seq, 1, 4, 8>>
  %b = lathe.transpose %4 [0, 2, 1, 3] : tensor<?x?x4x8xf32, #lathe.dims<batch, seq, 4, 8>>
  return %a, %b : !h, !h
}

// Every second element of joined parts: inside of one part it is read there, across both it is not,
// nor where its last element alone lies in the next part.
// CHECK-LABEL: @strided_slice_of_concat
// CHECK: %[[C:.*]] = lathe.concat %arg0, %arg1
// CHECK-DAG: %[[A:.*]] = lathe.slice %arg0 starts <1> sizes <2> strides [2]
// CHECK-DAG: %[[B:.*]] = lathe.slice %arg1 starts <0> sizes <2> strides [3]
// CHECK-DAG: %[[D:.*]] = lathe.slice %[[C]] starts <1> sizes <3> strides [2]
// CHECK-DAG: %[[E:.*]] = lathe.slice %[[C]] starts <2> sizes <2> strides [2]
// CHECK: return %[[A]], %[[B]], %[[D]], %[[E]]
func.func @strided_slice_of_concat(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2xf32>) {
  %c = lathe.concat %a, %b axis 0 : tensor<4xf32>, tensor<4xf32>
  %0 = lathe.slice %c starts <1> sizes <2> strides [2] : tensor<8xf32>
  %1 = lathe.slice %c starts <4> sizes <2> strides [3] : tensor<8xf32>
  %2 = lathe.slice %c starts <1> sizes <3> strides [2] : tensor<8xf32>
  %3 = lathe.slice %c starts <2> sizes <2> strides [2] : tensor<8xf32>
  return %0, %1, %2, %3 : tensor<2xf32>, tensor<2xf32>, tensor<3xf32>, tensor<2xf32>
}

// Parts that skip elements of another axis alike are one slice; parts that skip others are not.
// CHECK-LABEL: @strided_parts
// CHECK-DAG: %[[A:.*]] = lathe.slice %arg0 starts <0, 0> sizes <4, 2> strides [1, 2]
// CHECK-DAG: %[[B:.*]] = lathe.concat
// CHECK: return %[[A]], %[[B]]
func.func @strided_parts(%x: tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %a = lathe.slice %x starts <0, 0> sizes <2, 2> strides [1, 2] : tensor<4x4xf32>
  %b = lathe.slice %x starts <2, 0> sizes <2, 2> strides [1, 2] : tensor<4x4xf32>
  %c = lathe.slice %x starts <2, 0> sizes <2, 2> strides [1, 1] : tensor<4x4xf32>
  %0 = lathe.concat %a, %b axis 0 : tensor<2x2xf32>, tensor<2x2xf32>
  %1 = lathe.concat %a, %c axis 0 : tensor<2x2xf32>, tensor<2x2xf32>
  return %0, %1 : tensor<4x2xf32>, tensor<4x2xf32>
}

// Two elements of an axis are no index of it: they stay behind the layout.
// CHECK-LABEL: @two_of_a_layout
// CHECK: %[[T:.*]] = lathe.transpose %arg0 [1, 0, 2]
// CHECK: lathe.slice %[[T]] starts <1, 0, 0> sizes <2, 4, 8>
// CHECK: %[[R:.*]] = lathe.reshape %arg1 to <6, 4>
// CHECK: lathe.slice %[[R]] starts <1, 0> sizes <2, 4>
// CHECK: return
func.func @two_of_a_layout(%x: tensor<4x6x8xf32>, %z: tensor<24xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>) {
  %t = lathe.transpose %x [1, 0, 2] : tensor<4x6x8xf32>
  %y = lathe.slice %t starts <1, 0, 0> sizes <2, 4, 8> strides [1, 1, 1] : tensor<6x4x8xf32>
  %r = lathe.reshape %z to <6, 4> : tensor<24xf32>
  %s = lathe.slice %r starts <1, 0> sizes <2, 4> strides [1, 1] : tensor<6x4xf32>
  return %y, %s : tensor<2x4x8xf32>, tensor<2x4xf32>
}

// Parts that would follow each other are one slice of one value, not of two.
// CHECK-LABEL: @parts_of_two_values
// CHECK: %[[A:.*]] = lathe.slice %arg0 starts <0, 1> sizes <4, 2>
// CHECK: %[[B:.*]] = lathe.slice %arg1 starts <0, 3> sizes <4, 2>
// CHECK: lathe.concat %[[A]], %[[B]] axis 1
func.func @parts_of_two_values(%x: tensor<4x6xf32>, %y: tensor<4x6xf32>) -> tensor<4x4xf32> {
  %a = lathe.slice %x starts <0, 1> sizes <4, 2> strides [1, 1] : tensor<4x6xf32>
  %b = lathe.slice %y starts <0, 3> sizes <4, 2> strides [1, 1] : tensor<4x6xf32>
  %c = lathe.concat %a, %b axis 1 : tensor<4x2xf32>, tensor<4x2xf32>
  return %c : tensor<4x4xf32>
}

// An index of one axis and a part of another that also begins at 0 stay behind the layout.
// CHECK-LABEL: @index_and_part
// CHECK: %[[T:.*]] = lathe.transpose %arg0 [1, 2, 0]
// CHECK: %[[A:.*]] = lathe.slice %[[T]] starts <2, 0, 0> sizes <1, 3, 4>
// CHECK: %[[R:.*]] = lathe.reshape %arg1 to <6, 4, 5>
// CHECK: %[[B:.*]] = lathe.slice %[[R]] starts <2, 0, 0> sizes <1, 2, 5>
// CHECK: return %[[A]], %[[B]]
func.func @index_and_part(%x: tensor<4x6x5xf32>, %y: tensor<24x5xf32>) -> (tensor<1x3x4xf32>, tensor<1x2x5xf32>) {
  %t = lathe.transpose %x [1, 2, 0] : tensor<4x6x5xf32>
  %a = lathe.slice %t starts <2, 0, 0> sizes <1, 3, 4> strides [1, 1, 1] : tensor<6x5x4xf32>
  %r = lathe.reshape %y to <6, 4, 5> : tensor<24x5xf32>
  %b = lathe.slice %r starts <2, 0, 0> sizes <1, 2, 5> strides [1, 1, 1] : tensor<6x4x5xf32>
  return %a, %b : tensor<1x3x4xf32>, tensor<1x2x5xf32>
}

// Half of all rows, laid end to end, is a part of no axis.
// CHECK-LABEL: @index_across_axes
// CHECK: %[[R:.*]] = lathe.reshape %arg0 to <2, 12>
// CHECK: lathe.slice %[[R]] starts <1, 0> sizes <1, 12>
func.func @index_across_axes(%x: tensor<4x6xf32>) -> tensor<1x12xf32> {
  %r = lathe.reshape %x to <2, 12> : tensor<4x6xf32>
  %y = lathe.slice %r starts <1, 0> sizes <1, 12> strides [1, 1] : tensor<2x12xf32>
  return %y : tensor<1x12xf32>
}
