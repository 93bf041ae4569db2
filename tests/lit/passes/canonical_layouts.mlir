// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s

// Heads are split by a reshape and a transpose, however it is spelled.
// CHECK-LABEL: @split_heads
// CHECK: %[[R:.*]] = lathe.reshape %arg0 to <batch, seq, 4, 8>
// CHECK: %[[A:.*]] = lathe.transpose %[[R]] [0, 2, 1, 3]
// CHECK: %[[S:.*]] = lathe.reshape %arg0 to <batch, seq, 4, 8>
// CHECK: %[[B:.*]] = lathe.transpose %[[S]] [0, 2, 1, 3]
// CHECK: return %[[A]], %[[B]]
!x = tensor<?x?x32xf32, #lathe.dims<batch, seq, 32>>
!h = tensor<?x4x?x8xf32, #lathe.dims<batch, 4, seq, 8>>
func.func @split_heads(%x: !x) -> (!h, !h) {
  %0 = lathe.reshape %x to <batch*seq, 32> : !x
  %1 = lathe.reshape %0 to <batch, seq, 4, 8> : tensor<?x32xf32, #lathe.dims<batch*seq, 32>>
  %a = lathe.transpose %1 [0, 2, 1, 3] : tensor<?x?x4x8xf32, #lathe.dims<batch, seq, 4, 8>>
  %2 = lathe.transpose %x [0, 2, 1] : !x
  %3 = lathe.reshape %2 to <batch, 4, 8, seq> : tensor<?x32x?xf32, #lathe.dims<batch, 32, seq>>
  %b = lathe.transpose %3 [0, 1, 3, 2] : tensor<?x4x8x?xf32, #lathe.dims<batch, 4, 8, seq>>
  return %a, %b : !h, !h
}

// CHECK-LABEL: @merge_heads
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %arg0 [0, 2, 1, 3]
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %[[T]] to <batch, seq, 32>
// CHECK-NEXT: return %[[R]]
func.func @merge_heads(%h: !h) -> !x {
  %0 = lathe.transpose %h [0, 1, 3, 2] : !h
  %1 = lathe.reshape %0 to <batch, 32, seq> : tensor<?x4x8x?xf32, #lathe.dims<batch, 4, 8, seq>>
  %2 = lathe.transpose %1 [0, 2, 1] : tensor<?x32x?xf32, #lathe.dims<batch, 32, seq>>
  return %2 : !x
}

// A batch of one turns as any batch does, though the result does not have its axis.
// CHECK-LABEL: @merge_heads_of_one
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %arg0 [0, 2, 1, 3]
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %[[T]] to <seq, 32>
// CHECK-NEXT: return %[[R]]
!h1 = tensor<1x4x?x8xf32, #lathe.dims<1, 4, seq, 8>>
func.func @merge_heads_of_one(%h: !h1) -> tensor<?x32xf32, #lathe.dims<seq, 32>> {
  %0 = lathe.transpose %h [0, 2, 1, 3] : !h1
  %1 = lathe.reshape %0 to <1, seq, 32> : tensor<1x?x4x8xf32, #lathe.dims<1, seq, 4, 8>>
  %2 = lathe.reshape %1 to <seq, 32> : tensor<1x?x32xf32, #lathe.dims<1, seq, 32>>
  return %2 : tensor<?x32xf32, #lathe.dims<seq, 32>>
}

// Ones that a result does not have are never its last axis while it is turned.
// CHECK-LABEL: @ones_between
// CHECK-NEXT: %[[A:.*]] = lathe.transpose %arg0 [2, 3, 0, 1, 4]
// CHECK-NEXT: lathe.reshape %[[A]] to <4, 3, 10>
func.func @ones_between(%x: tensor<3x2x1x4x5xf32>) -> tensor<4x3x10xf32> {
  %0 = lathe.transpose %x [3, 0, 1, 2, 4] : tensor<3x2x1x4x5xf32>
  %1 = lathe.reshape %0 to <4, 3, 10> : tensor<4x3x2x1x5xf32>
  return %1 : tensor<4x3x10xf32>
}

// Splitting and merging again is nothing.
// CHECK-LABEL: @round_trip
// CHECK-NEXT: return %arg0
func.func @round_trip(%x: !x) -> !x {
  %0 = lathe.reshape %x to <batch, seq, 4, 8> : !x
  %1 = lathe.transpose %0 [0, 2, 1, 3] : tensor<?x?x4x8xf32, #lathe.dims<batch, seq, 4, 8>>
  %2 = lathe.transpose %1 [0, 2, 1, 3] : !h
  %3 = lathe.reshape %2 to <batch, seq, 32> : tensor<?x?x4x8xf32, #lathe.dims<batch, seq, 4, 8>>
  return %3 : !x
}

// 4 heads of 8 and 8 heads of 4 are not each other's transpose.
// CHECK-LABEL: @not_a_transpose
// CHECK-NEXT: lathe.transpose
// CHECK-NEXT: lathe.reshape
// CHECK-NEXT: return
func.func @not_a_transpose(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = lathe.transpose %x [1, 0] : tensor<4x8xf32>
  %1 = lathe.reshape %0 to <4, 8> : tensor<8x4xf32>
  return %1 : tensor<4x8xf32>
}

// 6 x 4 seen as 4 x 6 cuts no axis at a place that both know.
// CHECK-LABEL: @no_common_cut
// CHECK-NEXT: lathe.reshape
// CHECK-NEXT: lathe.transpose
func.func @no_common_cut(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %0 = lathe.reshape %x to <4, 6> : tensor<6x4xf32>
  %1 = lathe.transpose %0 [1, 0] : tensor<4x6xf32>
  return %1 : tensor<6x4xf32>
}

// CHECK-LABEL: @cancel_transposes
// CHECK-NEXT: %[[E:.*]] = lathe.exp %arg0
// CHECK-NEXT: return %[[E]]
func.func @cancel_transposes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = lathe.transpose %x [1, 0] : tensor<2x3xf32>
  %1 = lathe.exp %0 : tensor<3x2xf32>
  %2 = lathe.transpose %1 [1, 0] : tensor<3x2xf32>
  return %2 : tensor<2x3xf32>
}

// CHECK-LABEL: @keep_dims
// CHECK-NEXT: lathe.reduce_mean %arg0 axes [1] keep_dims true
// CHECK-NEXT: return
func.func @keep_dims(%x: tensor<2x3xf32>) -> tensor<2x1xf32> {
  %0 = lathe.reduce_mean %x axes [1] : tensor<2x3xf32>
  %1 = lathe.reshape %0 to <2, 1> : tensor<2xf32>
  return %1 : tensor<2x1xf32>
}

// CHECK-LABEL: @compose
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %arg0 [2, 0, 1]
// CHECK-NEXT: %[[B:.*]] = lathe.broadcast %arg1 to <5, 2, 4>
// CHECK-NEXT: return %[[T]], %[[B]]
func.func @compose(%x: tensor<2x3x4xf32>, %y: tensor<1x4xf32>) -> (tensor<4x2x3xf32>, tensor<5x2x4xf32>) {
  %0 = lathe.transpose %x [0, 2, 1] : tensor<2x3x4xf32>
  %1 = lathe.transpose %0 [1, 0, 2] : tensor<2x4x3xf32>
  %2 = lathe.broadcast %y to <2, 4> : tensor<1x4xf32>
  %3 = lathe.broadcast %2 to <5, 2, 4> : tensor<2x4xf32>
  return %1, %3 : tensor<4x2x3xf32>, tensor<5x2x4xf32>
}

// The axis is put back in front of what is done to the reduction.
// CHECK-LABEL: @keep_dims_behind
// CHECK: lathe.reduce_mean %arg0 axes [1] keep_dims true
// CHECK: lathe.rsqrt {{.*}} : tensor<8x1xf32>
// CHECK-NOT: lathe.reshape
// CHECK: return
func.func @keep_dims_behind(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] : tensor<8x4xf32>
  %e = lathe.add %m, %eps : tensor<8xf32>, tensor<f32>
  %r = lathe.rsqrt %e : tensor<8xf32>
  %k = lathe.reshape %r to <8, 1> : tensor<8xf32>
  %y = lathe.mul %x, %k : tensor<8x4xf32>, tensor<8x1xf32>
  return %y : tensor<8x4xf32>
}
// Another axis is made, or another value comes in.
// CHECK-LABEL: @other_axis_behind
// CHECK-COUNT-2: lathe.reshape
func.func @other_axis_behind(%x: tensor<8x4xf32>, %b: tensor<8xf32>) -> (tensor<1x8xf32>, tensor<8x1xf32>) {
  %m = lathe.reduce_mean %x axes [1] : tensor<8x4xf32>
  %r = lathe.rsqrt %m : tensor<8xf32>
  %k = lathe.reshape %r to <1, 8> : tensor<8xf32>
  %n = lathe.reduce_sum %x axes [1] : tensor<8x4xf32>
  %s = lathe.add %n, %b : tensor<8xf32>, tensor<8xf32>
  %l = lathe.reshape %s to <8, 1> : tensor<8xf32>
  return %k, %l : tensor<1x8xf32>, tensor<8x1xf32>
}

// W x^T, transposed, is x W^T.
// CHECK-LABEL: @transpose_of_product
// CHECK: %[[T:.*]] = lathe.transpose %arg0 [1, 0]
// CHECK: %[[Y:.*]] = lathe.matmul %arg1, %[[T]]
// CHECK: return %[[Y]]
func.func @transpose_of_product(%w: tensor<6x4xf32>, %x: tensor<2x3x4xf32>) -> tensor<2x3x6xf32> {
  %t = lathe.transpose %x [0, 2, 1] : tensor<2x3x4xf32>
  %p = lathe.matmul %w, %t : tensor<6x4xf32>, tensor<2x4x3xf32>
  %y = lathe.transpose %p [0, 2, 1] : tensor<2x6x3xf32>
  return %y : tensor<2x3x6xf32>
}
// No transpose goes; the product has another reader.
// CHECK-LABEL: @transpose_stays
// CHECK: lathe.matmul %arg0, %arg1
// CHECK: lathe.matmul %arg0, %{{[0-9]+}}
func.func @transpose_stays(%a: tensor<3x4xf32>, %b: tensor<4x3xf32>) -> (tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>) {
  %p = lathe.matmul %a, %b : tensor<3x4xf32>, tensor<4x3xf32>
  %y = lathe.transpose %p [1, 0] : tensor<3x3xf32>
  %t = lathe.transpose %a [1, 0] : tensor<3x4xf32>
  %q = lathe.matmul %a, %t : tensor<3x4xf32>, tensor<4x3xf32>
  %z = lathe.transpose %q [1, 0] : tensor<3x3xf32>
  return %y, %q, %z : tensor<3x3xf32>, tensor<3x3xf32>, tensor<3x3xf32>
}

// CHECK-LABEL: @weight_matrix
// CHECK: %[[W:.*]] = lathe.weight
// CHECK: %[[M:.*]] = lathe.reshape %[[W]] to <4, 6>
// CHECK: lathe.matmul %arg0, %[[M]]
// CHECK: lathe.matmul %arg0, %arg1
func.func @weight_matrix(%x: tensor<2x3x4xf32>, %k: tensor<1x4x6xf32>) -> (tensor<2x3x6xf32>, tensor<2x3x6xf32>) {
  %w = lathe.weight "w" : tensor<1x4x6xf32>
  %y = lathe.matmul %x, %w : tensor<2x3x4xf32>, tensor<1x4x6xf32>
  %z = lathe.matmul %x, %k : tensor<2x3x4xf32>, tensor<1x4x6xf32>
  return %y, %z : tensor<2x3x6xf32>, tensor<2x3x6xf32>
}

// A matrix stretched over the batch is the matrix, with an axis of 1 too.
// CHECK-LABEL: @stretched_matrix
// CHECK-NEXT: lathe.matmul %arg0, %arg1 : tensor<2x3x4xf32>, tensor<4x6xf32>
// CHECK-NEXT: %[[M:.*]] = lathe.reshape %arg2 to <4, 6>
// CHECK-NEXT: lathe.matmul %arg0, %[[M]] : tensor<2x3x4xf32>, tensor<4x6xf32>
func.func @stretched_matrix(%x: tensor<2x3x4xf32>, %w: tensor<4x6xf32>, %v: tensor<1x4x6xf32>) -> (tensor<2x3x6xf32>, tensor<2x3x6xf32>) {
  %a = lathe.broadcast %w to <2, 4, 6> : tensor<4x6xf32>
  %y = lathe.matmul %x, %a : tensor<2x3x4xf32>, tensor<2x4x6xf32>
  %b = lathe.broadcast %v to <2, 4, 6> : tensor<1x4x6xf32>
  %z = lathe.matmul %x, %b : tensor<2x3x4xf32>, tensor<2x4x6xf32>
  return %y, %z : tensor<2x3x6xf32>, tensor<2x3x6xf32>
}

// The batch comes from the matrix; a vector is stretched to one; the matrices differ.
// CHECK-LABEL: @stretched_and_needed
// CHECK-COUNT-2: lathe.broadcast
// CHECK: lathe.matmul %{{.*}}, %arg3
func.func @stretched_and_needed(%x: tensor<1x3x4xf32>, %w: tensor<4x6xf32>, %v: tensor<6xf32>, %m: tensor<2x4x6xf32>) -> (tensor<2x3x6xf32>, tensor<1x3x6xf32>, tensor<2x3x6xf32>) {
  %a = lathe.broadcast %w to <2, 4, 6> : tensor<4x6xf32>
  %y = lathe.matmul %x, %a : tensor<1x3x4xf32>, tensor<2x4x6xf32>
  %b = lathe.broadcast %v to <1, 4, 6> : tensor<6xf32>
  %z = lathe.matmul %x, %b : tensor<1x3x4xf32>, tensor<1x4x6xf32>
  %u = lathe.matmul %x, %m : tensor<1x3x4xf32>, tensor<2x4x6xf32>
  return %y, %z, %u : tensor<2x3x6xf32>, tensor<1x3x6xf32>, tensor<2x3x6xf32>
}

// Three axes turned around and back; turned around twice they are a third order.
// CHECK-LABEL: @cancel_turns
// CHECK-DAG: %[[E:.*]] = lathe.exp %arg0
// CHECK-DAG: %[[T:.*]] = lathe.transpose {{.*}} [1, 2, 0]
// CHECK: lathe.transpose
// CHECK: return %[[E]],
func.func @cancel_turns(%x: tensor<3x3x3xf32>) -> (tensor<3x3x3xf32>, tensor<3x3x3xf32>) {
  %0 = lathe.transpose %x [1, 2, 0] : tensor<3x3x3xf32>
  %1 = lathe.exp %0 : tensor<3x3x3xf32>
  %2 = lathe.transpose %1 [2, 0, 1] : tensor<3x3x3xf32>
  %3 = lathe.transpose %x [1, 2, 0] : tensor<3x3x3xf32>
  %4 = lathe.tanh %3 : tensor<3x3x3xf32>
  %5 = lathe.transpose %4 [1, 2, 0] : tensor<3x3x3xf32>
  return %2, %5 : tensor<3x3x3xf32>, tensor<3x3x3xf32>
}

// Where the weight has more axes than what it is multiplied with, the product has them from it.
// CHECK-LABEL: @weight_with_an_axis
// CHECK: lathe.matmul %arg0, %{{.*}} : tensor<3x4xf32>, tensor<1x4x5xf32>
// CHECK: lathe.matmul %arg1, %{{.*}} : tensor<2x3x4xf32>, tensor<4x5xf32>
// CHECK: return %{{.*}}, %{{.*}} : tensor<1x3x5xf32>, tensor<2x3x5xf32>
func.func @weight_with_an_axis(%x: tensor<3x4xf32>, %y: tensor<2x3x4xf32>) -> (tensor<1x3x5xf32>, tensor<2x3x5xf32>) {
  %w = lathe.weight "w" : tensor<1x4x5xf32>
  %0 = lathe.matmul %x, %w : tensor<3x4xf32>, tensor<1x4x5xf32>
  %1 = lathe.matmul %y, %w : tensor<2x3x4xf32>, tensor<1x4x5xf32>
  return %0, %1 : tensor<1x3x5xf32>, tensor<2x3x5xf32>
}
