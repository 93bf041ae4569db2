// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s

!k = tensor<2x2x?x8xf32, #lathe.dims<2, 2, seq, 8>>
!r = tensor<2x4x?x8xf32, #lathe.dims<2, 4, seq, 8>>

// CHECK-LABEL: @from_gather
// CHECK-NEXT: %[[I:.*]] = lathe.reshape %arg0 to <2, 2, 1, seq, 8>
// CHECK-NEXT: %[[B:.*]] = lathe.broadcast %[[I]] to <2, 2, 2, seq, 8>
// CHECK-NEXT: %[[M:.*]] = lathe.reshape %[[B]] to <2, 4, seq, 8>
// CHECK-NEXT: return %[[M]]
func.func @from_gather(%k: !k) -> !r {
  %i = lathe.constant dense<[0, 0, 1, 1]> : tensor<4xi64>
  %y = lathe.gather %k, %i axis 1 : !k, tensor<4xi64>
  return %y : !r
}

// CHECK-LABEL: @from_computed_gather
// CHECK-NOT: lathe.gather
// CHECK: lathe.broadcast {{.*}} to <2, 2, 2, seq, 8>
func.func @from_computed_gather(%k: !k) -> !r {
  %two = lathe.constant dense<2> : tensor<i64>
  %ramp = lathe.iota <4> axis 0 dtype i64
  %i = lathe.div %ramp, %two : tensor<4xi64>, tensor<i64>
  %y = lathe.gather %k, %i axis 1 : !k, tensor<4xi64>
  return %y : !r
}

// CHECK-LABEL: @from_concat
// CHECK-NEXT: lathe.reshape %arg0 to <2, 2, 1, seq, 8>
// CHECK-NEXT: lathe.broadcast
// CHECK-NEXT: lathe.reshape
// CHECK-NEXT: return
func.func @from_concat(%k: !k) -> !r {
  %a = lathe.slice %k starts <0, 0, 0, 0> sizes <2, 1, seq, 8> strides [1, 1, 1, 1] : !k
  %b = lathe.slice %k starts <0, 1, 0, 0> sizes <2, 1, seq, 8> strides [1, 1, 1, 1] : !k
  %y = lathe.concat %a, %a, %b, %b axis 1 : tensor<2x1x?x8xf32, #lathe.dims<2, 1, seq, 8>>, tensor<2x1x?x8xf32, #lathe.dims<2, 1, seq, 8>>, tensor<2x1x?x8xf32, #lathe.dims<2, 1, seq, 8>>, tensor<2x1x?x8xf32, #lathe.dims<2, 1, seq, 8>>
  return %y : !r
}

// Heads of two values, a part of one, and an order that is another one are no repetition.
// CHECK-LABEL: @from_other_concats
// CHECK-COUNT-3: lathe.concat
// CHECK-NOT: lathe.broadcast
// CHECK: return
!one = tensor<2x1x?x8xf32, #lathe.dims<2, 1, seq, 8>>
func.func @from_other_concats(%k: !k, %v: !k, %w: tensor<2x3x?x8xf32, #lathe.dims<2, 3, seq, 8>>) -> (!r, !r, !r) {
  %a = lathe.slice %k starts <0, 0, 0, 0> sizes <2, 1, seq, 8> strides [1, 1, 1, 1] : !k
  %b = lathe.slice %v starts <0, 1, 0, 0> sizes <2, 1, seq, 8> strides [1, 1, 1, 1] : !k
  %x = lathe.concat %a, %a, %b, %b axis 1 : !one, !one, !one, !one
  %c = lathe.slice %w starts <0, 0, 0, 0> sizes <2, 1, seq, 8> strides [1, 1, 1, 1] : tensor<2x3x?x8xf32, #lathe.dims<2, 3, seq, 8>>
  %d = lathe.slice %w starts <0, 1, 0, 0> sizes <2, 1, seq, 8> strides [1, 1, 1, 1] : tensor<2x3x?x8xf32, #lathe.dims<2, 3, seq, 8>>
  %y = lathe.concat %c, %c, %d, %d axis 1 : !one, !one, !one, !one
  %e = lathe.slice %k starts <0, 1, 0, 0> sizes <2, 1, seq, 8> strides [1, 1, 1, 1] : !k
  %z = lathe.concat %e, %e, %a, %a axis 1 : !one, !one, !one, !one
  return %x, %y, %z : !r, !r, !r
}

// k0 k1 k0 k1 is another grouping.
// CHECK-LABEL: @tiling
// CHECK: lathe.gather
// CHECK: lathe.concat
// CHECK-NOT: lathe.broadcast
func.func @tiling(%k: !k) -> (!r, !r) {
  %i = lathe.constant dense<[0, 1, 0, 1]> : tensor<4xi64>
  %x = lathe.gather %k, %i axis 1 : !k, tensor<4xi64>
  %y = lathe.concat %k, %k axis 1 : !k, !k
  return %x, %y : !r, !r
}

// Repeated before the heads are moved: the transpose comes first, the keys' own swap last.
// CHECK-LABEL: @repeat_then_transpose
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %arg1 [0, 2, 1, 3]
// CHECK-NEXT: %[[I:.*]] = lathe.reshape %[[T]] to <2, 2, 1, seq, 8>
// CHECK-NEXT: %[[B:.*]] = lathe.broadcast %[[I]] to <2, 2, 2, seq, 8>
// CHECK-NEXT: %[[M:.*]] = lathe.reshape %[[B]] to <2, 4, seq, 8>
// CHECK-NEXT: %[[S:.*]] = lathe.transpose %[[M]] [0, 1, 3, 2]
// CHECK-NEXT: lathe.matmul %arg0, %[[S]]
!early = tensor<2x?x2x8xf32, #lathe.dims<2, seq, 2, 8>>
func.func @repeat_then_transpose(%q: !r, %k: !early) -> tensor<2x4x?x?xf32, #lathe.dims<2, 4, seq, seq>> {
  %0 = lathe.reshape %k to <2, seq, 2, 1, 8> : !early
  %1 = lathe.broadcast %0 to <2, seq, 2, 2, 8> : tensor<2x?x2x1x8xf32, #lathe.dims<2, seq, 2, 1, 8>>
  %2 = lathe.reshape %1 to <2, seq, 4, 8> : tensor<2x?x2x2x8xf32, #lathe.dims<2, seq, 2, 2, 8>>
  %3 = lathe.transpose %2 [0, 2, 1, 3] : tensor<2x?x4x8xf32, #lathe.dims<2, seq, 4, 8>>
  %4 = lathe.transpose %3 [0, 1, 3, 2] : !r
  %5 = lathe.matmul %q, %4 : !r, tensor<2x4x8x?xf32, #lathe.dims<2, 4, 8, seq>>
  return %5 : tensor<2x4x?x?xf32, #lathe.dims<2, 4, seq, seq>>
}

// Query heads find the key heads themselves, whatever stood in front of the repetition.
// CHECK-LABEL: @heads_of_attention
// CHECK-NEXT: %[[V:.*]] = lathe.reshape %arg2 to <2, 2, seq, 8>
// CHECK-NEXT: lathe.attention %arg0, %arg1, %[[V]]
// CHECK-SAME: causal top_left
!five = tensor<2x2x1x?x8xf32, #lathe.dims<2, 2, 1, seq, 8>>
!copies = tensor<2x2x2x?x8xf32, #lathe.dims<2, 2, 2, seq, 8>>
func.func @heads_of_attention(%q: !r, %k: !k, %v: !five) -> !r {
  %0 = lathe.reshape %k to <2, 2, 1, seq, 8> : !k
  %1 = lathe.broadcast %0 to <2, 2, 2, seq, 8> : !five
  %2 = lathe.reshape %1 to <2, 4, seq, 8> : !copies
  %3 = lathe.broadcast %v to <2, 2, 2, seq, 8> : !five
  %4 = lathe.reshape %3 to <2, 4, seq, 8> : !copies
  %5 = lathe.attention %q, %2, %4 scale 0.5 causal top_left : !r, !r, !r
  return %5 : !r
}

// The whole list again pairs other heads; values that are not repeated keep the keys' copies.
// CHECK-LABEL: @other_heads_of_attention
// CHECK-COUNT-2: lathe.broadcast
!list = tensor<2x1x2x?x8xf32, #lathe.dims<2, 1, 2, seq, 8>>
func.func @other_heads_of_attention(%q: !r, %k: !k, %v: !r) -> (!r, !r) {
  %0 = lathe.reshape %k to <2, 1, 2, seq, 8> : !k
  %1 = lathe.broadcast %0 to <2, 2, 2, seq, 8> : !list
  %2 = lathe.reshape %1 to <2, 4, seq, 8> : !copies
  %4 = lathe.attention %q, %2, %2 scale 0.5 : !r, !r, !r
  %5 = lathe.reshape %k to <2, 2, 1, seq, 8> : !k
  %6 = lathe.broadcast %5 to <2, 2, 2, seq, 8> : !five
  %7 = lathe.reshape %6 to <2, 4, seq, 8> : !copies
  %9 = lathe.attention %q, %7, %v scale 0.5 : !r, !r, !r
  return %4, %9 : !r, !r
}

// Keys of two heads, each four times, and values of four, each twice: no one grouping is that of
// both.
// CHECK-LABEL: @other_groups_of_values
// CHECK-COUNT-2: lathe.broadcast
!eight = tensor<2x8x?x8xf32, #lathe.dims<2, 8, seq, 8>>
!two = tensor<2x2x1x?x8xf32, #lathe.dims<2, 2, 1, seq, 8>>
!four = tensor<2x4x1x?x8xf32, #lathe.dims<2, 4, 1, seq, 8>>
func.func @other_groups_of_values(%q: !eight, %k: !two, %v: !four) -> !eight {
  %0 = lathe.broadcast %k to <2, 2, 4, seq, 8> : !two
  %1 = lathe.reshape %0 to <2, 8, seq, 8> : tensor<2x2x4x?x8xf32, #lathe.dims<2, 2, 4, seq, 8>>
  %2 = lathe.broadcast %v to <2, 4, 2, seq, 8> : !four
  %3 = lathe.reshape %2 to <2, 8, seq, 8> : tensor<2x4x2x?x8xf32, #lathe.dims<2, 4, 2, seq, 8>>
  %4 = lathe.attention %q, %1, %3 scale 0.5 : !eight, !eight, !eight
  return %4 : !eight
}

// Indices that wrapped are no longer in order.
// CHECK-LABEL: @wrapped_indices
// CHECK: lathe.gather
// CHECK-NOT: lathe.broadcast
func.func @wrapped_indices(%x: tensor<2x3xf32>) -> tensor<300x3xf32> {
  %half = lathe.constant dense<150> : tensor<ui8>
  %ramp = lathe.iota <300> axis 0 dtype i32
  %bytes = lathe.cast %ramp to ui8 : tensor<300xi32>
  %copies = lathe.div %bytes, %half : tensor<300xui8>, tensor<ui8>
  %i = lathe.cast %copies to i64 : tensor<300xui8>
  %y = lathe.gather %x, %i axis 0 : tensor<2x3xf32>, tensor<300xi64>
  return %y : tensor<300x3xf32>
}

// Keys that are repeated as they are stored, and turned for their product at once: the repeat comes
// behind the heads' move, and the product's own turn last.
// CHECK-LABEL: @turned_repeat
// CHECK: lathe.transpose %arg1 [0, 2, 1, 3] : tensor<2x5x2x8xf32>
// CHECK: %[[K:.*]] = lathe.transpose %{{.*}} [0, 1, 3, 2] : tensor<2x4x5x8xf32>
// CHECK-NEXT: lathe.matmul %arg0, %[[K]]
func.func @turned_repeat(%q: tensor<2x4x3x8xf32>, %k: tensor<2x5x2x8xf32>) -> tensor<2x4x3x5xf32> {
  %o = lathe.reshape %k to <2, 5, 2, 1, 8> : tensor<2x5x2x8xf32>
  %b = lathe.broadcast %o to <2, 5, 2, 2, 8> : tensor<2x5x2x1x8xf32>
  %r = lathe.reshape %b to <2, 5, 4, 8> : tensor<2x5x2x2x8xf32>
  %t = lathe.transpose %r [0, 2, 3, 1] : tensor<2x5x4x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x4x3x8xf32>, tensor<2x4x8x5xf32>
  return %s : tensor<2x4x3x5xf32>
}

// The only row several times is repeated; a table of indices repeats no axis.
// CHECK-LABEL: @one_row_and_tables
// CHECK: %[[B:.*]] = lathe.broadcast
// CHECK: %[[Y:.*]] = lathe.reshape %[[B]] to <3, 2>
// CHECK: %[[Z:.*]] = lathe.gather %arg1
// CHECK: return %[[Y]], %[[Z]]
func.func @one_row_and_tables(%x: tensor<1x2xf32>, %t: tensor<4x2xf32>) -> (tensor<3x2xf32>, tensor<4x2x2xf32>) {
  %i = lathe.constant dense<0> : tensor<3xi64>
  %y = lathe.gather %x, %i axis 0 : tensor<1x2xf32>, tensor<3xi64>
  %j = lathe.constant dense<[[0, 0], [1, 1], [2, 2], [3, 3]]> : tensor<4x2xi64>
  %z = lathe.gather %t, %j axis 0 : tensor<4x2xf32>, tensor<4x2xi64>
  return %y, %z : tensor<3x2xf32>, tensor<4x2x2xf32>
}

// In front of a product's right side the repeated heads are turned first, and the keys' own swap
// stays last.
// CHECK-LABEL: @keys_of_a_product
// CHECK: %[[T:.*]] = lathe.transpose %arg1 [0, 2, 1, 3]
// CHECK: lathe.broadcast
// CHECK: %[[R:.*]] = lathe.reshape {{.*}} to <2, 6, 4, 5>
// CHECK: %[[S:.*]] = lathe.transpose %[[R]] [0, 1, 3, 2]
// CHECK: lathe.matmul %arg0, %[[S]]
func.func @keys_of_a_product(%q: tensor<2x6x7x5xf32>, %k: tensor<2x4x3x5xf32>) -> tensor<2x6x7x4xf32> {
  %o = lathe.reshape %k to <2, 4, 3, 1, 5> : tensor<2x4x3x5xf32>
  %b = lathe.broadcast %o to <2, 4, 3, 2, 5> : tensor<2x4x3x1x5xf32>
  %r = lathe.reshape %b to <2, 4, 6, 5> : tensor<2x4x3x2x5xf32>
  %t = lathe.transpose %r [0, 2, 3, 1] : tensor<2x4x6x5xf32>
  %y = lathe.matmul %q, %t : tensor<2x6x7x5xf32>, tensor<2x6x5x4xf32>
  return %y : tensor<2x6x7x4xf32>
}

// A quotient by zero is left to the program, and numbers that were floats are no table of places.
// CHECK-LABEL: @no_indices_of_copies
// CHECK: lathe.div
// CHECK: %[[Y:.*]] = lathe.gather %arg0
// CHECK: %[[Z:.*]] = lathe.gather %arg0
// CHECK: return %[[Y]], %[[Z]]
func.func @no_indices_of_copies(%x: tensor<2x3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %zero = lathe.constant dense<0> : tensor<i64>
  %i = lathe.iota <4> axis 0 dtype i64
  %q = lathe.div %i, %zero : tensor<4xi64>, tensor<i64>
  %y = lathe.gather %x, %q axis 0 : tensor<2x3xf32>, tensor<4xi64>
  %f = lathe.constant dense<[0.0, 0.0, 1.0, 1.0]> : tensor<4xf32>
  %j = lathe.cast %f to i64 : tensor<4xf32>
  %z = lathe.gather %x, %j axis 0 : tensor<2x3xf32>, tensor<4xi64>
  return %y, %z : tensor<4x3xf32>, tensor<4x3xf32>
}

// Repeated rows of a product's right side, whose own two axes nothing turns.
// CHECK-LABEL: @rows_of_a_product
// CHECK: %[[T:.*]] = lathe.transpose %arg1 [1, 0, 2] : tensor<2x4x5xf32>
// CHECK: %[[R:.*]] = lathe.reshape {{.*}} to <4, 4, 5>
// CHECK-NEXT: lathe.matmul %arg0, %[[R]]
func.func @rows_of_a_product(%q: tensor<4x3x4xf32>, %k: tensor<2x4x5xf32>) -> tensor<4x3x5xf32> {
  %o = lathe.reshape %k to <2, 1, 4, 5> : tensor<2x4x5xf32>
  %b = lathe.broadcast %o to <2, 2, 4, 5> : tensor<2x1x4x5xf32>
  %r = lathe.reshape %b to <4, 4, 5> : tensor<2x2x4x5xf32>
  %t = lathe.transpose %r [1, 0, 2] : tensor<4x4x5xf32>
  %y = lathe.matmul %q, %t : tensor<4x3x4xf32>, tensor<4x4x5xf32>
  return %y : tensor<4x3x5xf32>
}
