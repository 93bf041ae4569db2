// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s

// What another op reads stays: a rewrite that leaves it standing would compute it twice, or make
// more ops than it takes away.

!x = tensor<4x8xf32>
!c = tensor<4x8xi1>
!i = tensor<4x8xi64>
!r = tensor<4xf32>

// CHECK-LABEL: @exponential_and_sum_of_a_sigmoid
// CHECK-NOT: lathe.sigmoid
// CHECK-COUNT-2: lathe.reciprocal
func.func @exponential_and_sum_of_a_sigmoid(%x: !x, %y: !x) -> (!x, !x, !x, !x) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.neg %x : !x
  %e = lathe.exp %n : !x
  %s = lathe.add %e, %one : !x, tensor<f32>
  %a = lathe.div %one, %s : tensor<f32>, !x
  %m = lathe.neg %y : !x
  %f = lathe.exp %m : !x
  %t = lathe.add %f, %one : !x, tensor<f32>
  %b = lathe.div %one, %t : tensor<f32>, !x
  return %a, %e, %b, %t : !x, !x, !x, !x
}

// CHECK-LABEL: @tanh_of_a_sigmoid
// CHECK-NOT: lathe.sigmoid
// CHECK: return
func.func @tanh_of_a_sigmoid(%x: !x, %y: !x) -> (!x, !x, !x, !x) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %h = lathe.mul %x, %half : !x, tensor<f32>
  %t = lathe.tanh %h : !x
  %o = lathe.add %t, %one : !x, tensor<f32>
  %a = lathe.mul %o, %half : !x, tensor<f32>
  %g = lathe.mul %y, %half : !x, tensor<f32>
  %u = lathe.tanh %g : !x
  %v = lathe.mul %u, %half : !x, tensor<f32>
  %b = lathe.add %v, %half : !x, tensor<f32>
  return %a, %t, %b, %v : !x, !x, !x, !x
}

// CHECK-LABEL: @halves_of_a_gelu
// CHECK: %[[T:.*]] = lathe.tanh %arg0
// CHECK-NEXT: %[[H:.*]] = lathe.mul %[[T]]
// CHECK-NEXT: lathe.add %[[H]]
// CHECK: %[[E:.*]] = lathe.erf %arg0
// CHECK-NEXT: %[[O:.*]] = lathe.add %[[E]]
// CHECK-NEXT: %[[G:.*]] = lathe.mul %[[O]]
// CHECK-NEXT: lathe.mul %arg0, %[[G]]
func.func @halves_of_a_gelu(%x: !x) -> (!x, !x, !x, !x) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %t = lathe.tanh %x : !x
  %h = lathe.mul %t, %half : !x, tensor<f32>
  %a = lathe.add %h, %half : !x, tensor<f32>
  %e = lathe.erf %x : !x
  %o = lathe.add %e, %one : !x, tensor<f32>
  %g = lathe.mul %o, %half : !x, tensor<f32>
  %b = lathe.mul %x, %g : !x, !x
  return %a, %h, %b, %g : !x, !x, !x, !x
}

// CHECK-LABEL: @gated_sigmoid
// CHECK: %[[S:.*]] = lathe.sigmoid %arg0
// CHECK-NEXT: %[[G:.*]] = lathe.mul %[[S]], %arg1
// CHECK-NEXT: %[[Y:.*]] = lathe.mul %arg0, %[[G]]
// CHECK-NEXT: return %[[Y]], %[[G]]
func.func @gated_sigmoid(%x: !x, %u: !x) -> (!x, !x) {
  %s = lathe.sigmoid %x : !x
  %g = lathe.mul %s, %u : !x, !x
  %y = lathe.mul %x, %g : !x, !x
  return %y, %g : !x, !x
}

// CHECK-LABEL: @negative_product
// CHECK: %[[P:.*]] = lathe.mul
// CHECK-NEXT: lathe.sub %arg2, %[[P]]
func.func @negative_product(%x: !x, %y: !x, %a: !x) -> (!x, !x) {
  %n = lathe.neg %x : !x
  %p = lathe.mul %n, %y : !x, !x
  %d = lathe.sub %a, %p : !x, !x
  return %d, %p : !x, !x
}

// CHECK-LABEL: @scaled_twice
// CHECK: %[[A:.*]] = lathe.mul %arg0
// CHECK-NEXT: lathe.mul %[[A]]
func.func @scaled_twice(%x: !x) -> (!x, !x) {
  %c = lathe.constant dense<3.0> : tensor<f32>
  %d = lathe.constant dense<5.0> : tensor<f32>
  %a = lathe.mul %x, %c : !x, tensor<f32>
  %b = lathe.mul %a, %d : !x, tensor<f32>
  return %b, %a : !x, !x
}

// CHECK-LABEL: @between_transposes
// CHECK-COUNT-2: lathe.transpose
func.func @between_transposes(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>) {
  %t = lathe.transpose %x [1, 0] : tensor<4x8xf32>
  %e = lathe.exp %t : tensor<8x4xf32>
  %y = lathe.transpose %e [1, 0] : tensor<8x4xf32>
  return %y, %e : tensor<4x8xf32>, tensor<8x4xf32>
}

// CHECK-LABEL: @reductions_put_back
// CHECK: %[[S:.*]] = lathe.reduce_sum %arg0 axes [1] :
// CHECK-NEXT: lathe.reshape %[[S]]
// CHECK: %[[M:.*]] = lathe.reduce_max %arg1 axes [1] :
// CHECK-NEXT: %[[E:.*]] = lathe.exp %[[M]]
// CHECK-NEXT: lathe.reshape %[[E]]
func.func @reductions_put_back(%x: !x, %y: !x) -> (tensor<4x1xf32>, !r, tensor<4x1xf32>, !r) {
  %s = lathe.reduce_sum %x axes [1] keep_dims false : !x
  %a = lathe.reshape %s to <4, 1> : !r
  %m = lathe.reduce_max %y axes [1] keep_dims false : !x
  %e = lathe.exp %m : !r
  %b = lathe.reshape %e to <4, 1> : !r
  return %a, %s, %b, %m : tensor<4x1xf32>, !r, tensor<4x1xf32>, !r
}

// Both operands are of a row: neither reduction takes the axis back.
// CHECK-LABEL: @two_reductions_put_back
// CHECK: lathe.reduce_sum %arg0 axes [1] :
// CHECK-NEXT: lathe.reduce_max %arg0 axes [1] :
// CHECK-NEXT: %[[S:.*]] = lathe.add
// CHECK-NEXT: lathe.reshape %[[S]]
func.func @two_reductions_put_back(%x: !x) -> tensor<4x1xf32> {
  %a = lathe.reduce_sum %x axes [1] keep_dims false : !x
  %b = lathe.reduce_max %x axes [1] keep_dims false : !x
  %s = lathe.add %a, %b : !r, !r
  %y = lathe.reshape %s to <4, 1> : !r
  return %y : tensor<4x1xf32>
}

// CHECK-LABEL: @turned_and_seen_anew
// CHECK: %[[A:.*]] = lathe.reshape %arg0 to <2, 2, 8>
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %[[A]] [1, 0, 2]
// CHECK-NEXT: %[[B:.*]] = lathe.reshape %[[T]] to <4, 8>
// CHECK-NEXT: %[[Y:.*]] = lathe.transpose %[[B]] [1, 0]
// CHECK-NEXT: return %[[Y]], %[[B]]
func.func @turned_and_seen_anew(%x: !x) -> (tensor<8x4xf32>, !x) {
  %a = lathe.reshape %x to <2, 2, 8> : !x
  %t = lathe.transpose %a [1, 0, 2] : tensor<2x2x8xf32>
  %b = lathe.reshape %t to <4, 8> : tensor<2x2x8xf32>
  %y = lathe.transpose %b [1, 0] : !x
  return %y, %b : tensor<8x4xf32>, !x
}

// CHECK-LABEL: @negated_conditions
// CHECK: %[[C:.*]] = lathe.compare lt
// CHECK-NEXT: %[[A:.*]] = lathe.logical_and %[[C]], %arg2
// CHECK-NEXT: lathe.logical_not %[[A]]
// CHECK: %[[N:.*]] = lathe.logical_not %arg2
// CHECK-NEXT: %[[M:.*]] = lathe.logical_not %arg3
// CHECK-NEXT: lathe.logical_and %[[N]], %[[M]]
func.func @negated_conditions(%i: !i, %j: !i, %b: !c, %d: !c) -> (!c, !c, !c, !c) {
  %c = lathe.compare lt %i, %j : !i, !i
  %a = lathe.logical_and %c, %b : !c, !c
  %x = lathe.logical_not %a : !c
  %n = lathe.logical_not %b : !c
  %m = lathe.logical_not %d : !c
  %y = lathe.logical_and %n, %m : !c, !c
  return %x, %c, %y, %n : !c, !c, !c, !c
}

// CHECK-LABEL: @means_and_roots
// CHECK: %[[S:.*]] = lathe.reduce_sum
// CHECK: lathe.mul %[[S]]
// CHECK: %[[R:.*]] = lathe.reciprocal %arg1
// CHECK-NEXT: lathe.mul %arg0, %[[R]]
// CHECK: %[[Q:.*]] = lathe.sqrt %arg1
// CHECK-NEXT: lathe.div %arg0, %[[Q]]
func.func @means_and_roots(%x: !x, %y: !x) -> (tensor<4x1xf32>, tensor<4x1xf32>, !x, !x, !x, !x) {
  %n = lathe.constant dense<8.0> : tensor<f32>
  %s = lathe.reduce_sum %x axes [1] keep_dims true : !x
  %m = lathe.div %s, %n : tensor<4x1xf32>, tensor<f32>
  %r = lathe.reciprocal %y : !x
  %p = lathe.mul %x, %r : !x, !x
  %q = lathe.sqrt %y : !x
  %d = lathe.div %x, %q : !x, !x
  return %m, %s, %p, %r, %d, %q : tensor<4x1xf32>, tensor<4x1xf32>, !x, !x, !x, !x
}

// CHECK-LABEL: @repeated_heads
// CHECK: %[[R:.*]] = lathe.reshape %{{.*}} to <2, 4, 3, 8>
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %[[R]] [0, 2, 1, 3]
// CHECK-NEXT: return %[[T]], %[[R]]
func.func @repeated_heads(%k: tensor<2x2x3x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x4x3x8xf32>) {
  %i = lathe.constant dense<[0, 0, 1, 1]> : tensor<4xi64>
  %r = lathe.gather %k, %i axis 1 : tensor<2x2x3x8xf32>, tensor<4xi64>
  %t = lathe.transpose %r [0, 2, 1, 3] : tensor<2x4x3x8xf32>
  return %t, %r : tensor<2x3x4x8xf32>, tensor<2x4x3x8xf32>
}

// CHECK-LABEL: @scaled_query
// CHECK: %[[S:.*]] = lathe.mul %arg0
// CHECK-NEXT: lathe.matmul %[[S]], %arg1
func.func @scaled_query(%q: tensor<4x8xf32>, %k: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x8xf32>) {
  %c = lathe.constant dense<0.25> : tensor<f32>
  %s = lathe.mul %q, %c : tensor<4x8xf32>, tensor<f32>
  %y = lathe.matmul %s, %k : tensor<4x8xf32>, tensor<8x4xf32>
  return %y, %s : tensor<4x4xf32>, tensor<4x8xf32>
}

// A factor of a weight is a part of the layer, on either side of the product and behind a reshape.
// CHECK-LABEL: @scaled_weights
// CHECK: %[[W:.*]] = lathe.weight
// CHECK-NEXT: %[[S:.*]] = lathe.mul %[[W]]
// CHECK-NEXT: lathe.matmul %[[S]], %arg0
// CHECK: %[[V:.*]] = lathe.weight
// CHECK-NEXT: %[[M:.*]] = lathe.mul %[[V]]
// CHECK-NEXT: lathe.reshape %[[M]]
func.func @scaled_weights(%x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<32xf32>) {
  %c = lathe.constant dense<0.25> : tensor<f32>
  %w = lathe.weight "w" : tensor<4x8xf32>
  %s = lathe.mul %w, %c : tensor<4x8xf32>, tensor<f32>
  %y = lathe.matmul %s, %x : tensor<4x8xf32>, tensor<8x4xf32>
  %v = lathe.weight "v" : tensor<4x8xf32>
  %m = lathe.mul %v, %c : tensor<4x8xf32>, tensor<f32>
  %z = lathe.reshape %m to <32> : tensor<4x8xf32>
  return %y, %z : tensor<4x4xf32>, tensor<32xf32>
}

// The product of a projection is turned behind it.
// CHECK-LABEL: @turned_projection
// CHECK: %[[P:.*]] = lathe.matmul
// CHECK-NEXT: lathe.transpose %[[P]]
func.func @turned_projection(%x: tensor<8x4xf32>) -> tensor<6x4xf32> {
  %w = lathe.weight "w" : tensor<8x6xf32>
  %t = lathe.transpose %x [1, 0] : tensor<8x4xf32>
  %p = lathe.matmul %t, %w : tensor<4x8xf32>, tensor<8x6xf32>
  %y = lathe.transpose %p [1, 0] : tensor<4x6xf32>
  return %y : tensor<6x4xf32>
}
