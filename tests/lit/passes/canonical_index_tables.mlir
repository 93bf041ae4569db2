// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --numerics=strict | FileCheck %s

// What follows from places and sizes alone, read through tables, running sums and flattened axes.

!ids = tensor<?x?xi64, #lathe.dims<batch, seq>>
!flat = tensor<?xi64, #lathe.dims<batch*seq>>
!row = tensor<1x?xi64, #lathe.dims<1, seq>>
!q = tensor<?x1x?x1xi64, #lathe.dims<batch, 1, seq, 1>>
!k = tensor<?x1x1x?xi64, #lathe.dims<batch, 1, 1, seq>>
!c = tensor<?x1x?x?xi1, #lathe.dims<batch, 1, seq, seq>>
!b = tensor<?x1x1x1xi64, #lathe.dims<batch, 1, 1, 1>>

// A mask as transformers write it for sequences that might be packed: where positions do not rise by
// one a sequence begins, and the keys of one's own are seen. Positions that are a ramp are one.
// CHECK-LABEL: @packed_sequences
// CHECK-NOT: lathe.cumsum
// CHECK-NOT: lathe.gather
// CHECK-NOT: lathe.compare eq
// CHECK-NOT: lathe.logical_and
// CHECK: %[[M:.*]] = lathe.compare le
// CHECK-NEXT: return %[[M]]
func.func @packed_sequences() -> !c {
  %one = lathe.constant dense<1> : tensor<i64>
  %ramp = lathe.iota <seq> axis 0 dtype i64
  %flatRamp = lathe.reshape %ramp to <1, seq> : tensor<?xi64, #lathe.dims<seq>>
  %positions = lathe.broadcast %flatRamp to <batch, seq> : !row
  %first = lathe.slice %positions starts <0, 0> sizes <batch, 1> strides [1, 1] : !ids
  %before = lathe.sub %first, %one : tensor<?x1xi64, #lathe.dims<batch, 1>>, tensor<i64>
  %longer = lathe.concat %before, %positions axis 1 : tensor<?x1xi64, #lathe.dims<batch, 1>>, !ids
  %shifted = lathe.slice %longer starts <0, 0> sizes <batch, seq> strides [1, 1] : tensor<?x?xi64, #lathe.dims<batch, seq+1>>
  %step = lathe.sub %positions, %shifted : !ids, !ids
  %begins = lathe.compare ne %step, %one : !ids, tensor<i64>
  %counted = lathe.cast %begins to i64 : tensor<?x?xi1, #lathe.dims<batch, seq>>
  %sequence = lathe.cumsum %counted axis 1 : !ids
  %rows = lathe.iota <batch> axis 0 dtype i64
  %row = lathe.reshape %rows to <batch, 1, 1, 1> : tensor<?xi64, #lathe.dims<batch>>
  %ones = lathe.broadcast %one to <seq> : tensor<i64>
  %length = lathe.reduce_sum %ones axes [0] : tensor<?xi64, #lathe.dims<seq>>
  %start = lathe.mul %row, %length : !b, tensor<i64>
  %query = lathe.reshape %ramp to <1, 1, seq, 1> : tensor<?xi64, #lathe.dims<seq>>
  %key = lathe.reshape %ramp to <1, 1, 1, seq> : tensor<?xi64, #lathe.dims<seq>>
  %atQuery = lathe.add %start, %query : !b, tensor<1x1x?x1xi64, #lathe.dims<1, 1, seq, 1>>
  %atKey = lathe.add %start, %key : !b, tensor<1x1x1x?xi64, #lathe.dims<1, 1, 1, seq>>
  %sequences = lathe.reshape %sequence to <batch*seq> : !ids
  %ofQuery = lathe.gather %sequences, %atQuery axis 0 : !flat, !q
  %ofKey = lathe.gather %sequences, %atKey axis 0 : !flat, !k
  %same = lathe.compare eq %ofQuery, %ofKey : !q, !k
  %places = lathe.reshape %positions to <batch*seq> : !ids
  %queryPlace = lathe.gather %places, %atQuery axis 0 : !flat, !q
  %keyPlace = lathe.gather %places, %atKey axis 0 : !flat, !k
  %past = lathe.compare le %keyPlace, %queryPlace : !k, !q
  %mask = lathe.logical_and %same, %past : !c, !c
  return %mask : !c
}

// A table of numbers by a ramp is the table; in 32 bits, too, and with a number added.
// CHECK-LABEL: @ramps
// CHECK: %[[R:.*]] = lathe.iota <9> axis 0 dtype i32
// CHECK: %[[S:.*]] = lathe.add %[[R]]
// CHECK-NEXT: return %[[R]], %[[S]]
func.func @ramps() -> (tensor<9xi32>, tensor<9xi32>) {
  %three = lathe.constant dense<3> : tensor<i32>
  %i = lathe.iota <9> axis 0 dtype i64
  %t = lathe.iota <9> axis 0 dtype i32
  %u = lathe.add %t, %three : tensor<9xi32>, tensor<i32>
  %x = lathe.gather %t, %i axis 0 : tensor<9xi32>, tensor<9xi64>
  %y = lathe.gather %u, %i axis 0 : tensor<9xi32>, tensor<9xi64>
  return %x, %y : tensor<9xi32>, tensor<9xi32>
}

// The first element is not the one before the ramp; the table is an input; no polynomial of the form
// of a ramp holds.
// CHECK-LABEL: @not_known
// CHECK-COUNT-3: lathe.gather
func.func @not_known(%t: tensor<8xi64>) -> (tensor<8xi64>, tensor<8xi64>, tensor<8xi64>) {
  %zero = lathe.constant dense<0> : tensor<1xi64>
  %i = lathe.iota <8> axis 0 dtype i64
  %seven = lathe.iota <7> axis 0 dtype i64
  %joined = lathe.concat %zero, %seven axis 0 : tensor<1xi64>, tensor<7xi64>
  %b = lathe.gather %joined, %i axis 0 : tensor<8xi64>, tensor<8xi64>
  %c = lathe.gather %t, %i axis 0 : tensor<8xi64>, tensor<8xi64>
  %square = lathe.mul %i, %i : tensor<8xi64>, tensor<8xi64>
  %d = lathe.gather %square, %i axis 0 : tensor<8xi64>, tensor<8xi64>
  return %b, %c, %d : tensor<8xi64>, tensor<8xi64>, tensor<8xi64>
}

// A row number read as a column would be another number; a running sum of a ramp is no ramp.
// CHECK-LABEL: @other_places
// CHECK-COUNT-2: lathe.gather
func.func @other_places() -> (tensor<12xi64>, tensor<8xi64>) {
  %columns = lathe.iota <3, 4> axis 1 dtype i64
  %flat = lathe.reshape %columns to <12> : tensor<3x4xi64>
  %twelve = lathe.iota <12> axis 0 dtype i64
  %a = lathe.gather %flat, %twelve axis 0 : tensor<12xi64>, tensor<12xi64>
  %i = lathe.iota <8> axis 0 dtype i64
  %sums = lathe.cumsum %i axis 0 : tensor<8xi64>
  %b = lathe.gather %sums, %i axis 0 : tensor<8xi64>, tensor<8xi64>
  return %a, %b : tensor<12xi64>, tensor<8xi64>
}

// A running sum of ones counts from 1 on.
// CHECK-LABEL: @counted
// CHECK-NEXT: return %arg0, %arg1
func.func @counted(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %one = lathe.constant dense<1> : tensor<i64>
  %ones = lathe.broadcast %one to <8> : tensor<i64>
  %sums = lathe.cumsum %ones axis 0 : tensor<8xi64>
  %i = lathe.iota <8> axis 0 dtype i64
  %next = lathe.add %i, %one : tensor<8xi64>, tensor<i64>
  %more = lathe.compare gt %sums, %i : tensor<8xi64>, tensor<8xi64>
  %other = lathe.compare ne %sums, %next : tensor<8xi64>, tensor<8xi64>
  %a = lathe.select %more, %x, %y : tensor<8xi1>, tensor<8xf32>, tensor<8xf32>
  %b = lathe.select %other, %x, %y : tensor<8xi1>, tensor<8xf32>, tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// Conditions that hold everywhere or nowhere, and one that does not.
// CHECK-LABEL: @conditions
// CHECK: %[[E:.*]] = lathe.compare
// CHECK: %[[S:.*]] = lathe.select %[[E]], %arg0, %arg1
// CHECK-NEXT: return %arg0, %arg1, %arg0, %[[S]]
!x = tensor<?xf32, #lathe.dims<seq>>
func.func @conditions(%x: !x, %y: !x) -> (!x, !x, !x, !x) {
  %one = lathe.constant dense<1> : tensor<i64>
  %i = lathe.iota <seq> axis 0 dtype i64
  %next = lathe.add %i, %one : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %ones = lathe.broadcast %one to <seq> : tensor<i64>
  %length = lathe.reduce_sum %ones axes [0] : tensor<?xi64, #lathe.dims<seq>>
  %inside = lathe.compare lt %i, %length : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %equal = lathe.compare eq %next, %i : tensor<?xi64, #lathe.dims<seq>>, tensor<?xi64, #lathe.dims<seq>>
  %ends = lathe.compare le %next, %length : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %both = lathe.logical_and %inside, %ends : tensor<?xi1, #lathe.dims<seq>>, tensor<?xi1, #lathe.dims<seq>>
  %last = lathe.compare eq %next, %length : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %a = lathe.select %inside, %x, %y : tensor<?xi1, #lathe.dims<seq>>, !x, !x
  %b = lathe.select %equal, %x, %y : tensor<?xi1, #lathe.dims<seq>>, !x, !x
  %c = lathe.select %both, %x, %y : tensor<?xi1, #lathe.dims<seq>>, !x, !x
  %d = lathe.select %last, %x, %y : tensor<?xi1, #lathe.dims<seq>>, !x, !x
  return %a, %b, %c, %d : !x, !x, !x, !x
}

// What is chosen is stretched as the selection was.
// CHECK-LABEL: @stretched
// CHECK: %[[B:.*]] = lathe.broadcast %arg0 to <2, 17>
// CHECK-NEXT: return %[[B]]
func.func @stretched(%x: tensor<f32>, %y: tensor<f32>) -> tensor<2x17xf32> {
  %zero = lathe.constant dense<0> : tensor<i64>
  %i = lathe.iota <17> axis 0 dtype i64
  %c = lathe.compare ge %i, %zero : tensor<17xi64>, tensor<i64>
  %r = lathe.reshape %c to <1, 17> : tensor<17xi1>
  %w = lathe.broadcast %r to <2, 17> : tensor<1x17xi1>
  %s = lathe.select %w, %x, %y : tensor<2x17xi1>, tensor<f32>, tensor<f32>
  return %s : tensor<2x17xf32>
}

// Numbers that are computed from sizes: a cast keeps them, a condition is whether they are 0; sums
// along one axis of two, and rows that are chosen from a table.
// CHECK-LABEL: @numbers
// CHECK-NEXT: return %arg0, %arg0, %arg0, %arg0
func.func @numbers(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = lathe.constant dense<1> : tensor<i64>
  %two = lathe.constant dense<2> : tensor<i64>
  %three = lathe.constant dense<3> : tensor<i32>
  %i = lathe.iota <4> axis 0 dtype i64
  %ones = lathe.broadcast %one to <4, 3> : tensor<i64>
  %sums = lathe.reduce_sum %ones axes [1] : tensor<4x3xi64>
  %n = lathe.cast %sums to i32 : tensor<4xi64>
  %c0 = lathe.compare eq %n, %three : tensor<4xi32>, tensor<i32>
  %c1 = lathe.cast %sums to i1 : tensor<4xi64>
  %t = lathe.iota <2, 4> axis 1 dtype i64
  %r = lathe.reduce_sum %t axes [0] : tensor<2x4xi64>
  %i2 = lathe.mul %i, %two : tensor<4xi64>, tensor<i64>
  %c2 = lathe.compare eq %r, %i2 : tensor<4xi64>, tensor<4xi64>
  %at = lathe.iota <1> axis 0 dtype i64
  %row = lathe.gather %t, %at axis 0 : tensor<2x4xi64>, tensor<1xi64>
  %flat = lathe.reshape %row to <4> : tensor<1x4xi64>
  %c3 = lathe.compare eq %flat, %i : tensor<4xi64>, tensor<4xi64>
  %a = lathe.select %c0, %x, %y : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
  %b = lathe.select %c1, %x, %y : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
  %c = lathe.select %c2, %x, %y : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
  %d = lathe.select %c3, %x, %y : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Of two places one is not above 0. A sum of sizes may have an element though one of them is 0.
// CHECK-LABEL: @not_everywhere
// CHECK: %[[A:.*]] = lathe.select
// CHECK: %[[B:.*]] = lathe.select
// CHECK: return %[[A]], %[[B]]
!z = tensor<?xf32, #lathe.dims<seq+past>>
func.func @not_everywhere(%x: tensor<2xf32>, %y: tensor<2xf32>, %u: !z, %v: !z) -> (tensor<2xf32>, !z) {
  %zero = lathe.constant dense<0> : tensor<i64>
  %one = lathe.constant dense<1> : tensor<i64>
  %i = lathe.iota <2> axis 0 dtype i64
  %c = lathe.compare le %i, %zero : tensor<2xi64>, tensor<i64>
  %a = lathe.select %c, %x, %y : tensor<2xi1>, tensor<2xf32>, tensor<2xf32>
  %ones = lathe.broadcast %one to <seq+past, seq> : tensor<i64>
  %sums = lathe.reduce_sum %ones axes [1] : tensor<?x?xi64, #lathe.dims<seq+past, seq>>
  %d = lathe.compare gt %sums, %zero : tensor<?xi64, #lathe.dims<seq+past>>, tensor<i64>
  %b = lathe.select %d, %u, %v : tensor<?xi1, #lathe.dims<seq+past>>, !z, !z
  return %a, %b : tensor<2xf32>, !z
}

// One condition that always holds, or two that never do, decide for both.
// CHECK-LABEL: @either
// CHECK-NEXT: return %arg0, %arg1
func.func @either(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = lathe.constant dense<0> : tensor<i64>
  %i = lathe.iota <4> axis 0 dtype i64
  %one = lathe.constant dense<1> : tensor<i64>
  %next = lathe.add %i, %one : tensor<4xi64>, tensor<i64>
  %always = lathe.compare gt %next, %i : tensor<4xi64>, tensor<4xi64>
  %never = lathe.compare eq %next, %i : tensor<4xi64>, tensor<4xi64>
  %below = lathe.compare lt %i, %zero : tensor<4xi64>, tensor<i64>
  %o = lathe.logical_or %c, %always : tensor<4xi1>, tensor<4xi1>
  %p = lathe.logical_or %never, %below : tensor<4xi1>, tensor<4xi1>
  %a = lathe.select %o, %x, %y : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
  %b = lathe.select %p, %x, %y : tensor<4xi1>, tensor<4xf32>, tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
