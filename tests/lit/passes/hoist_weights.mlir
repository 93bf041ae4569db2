// RUN: lathe-opt %s --lathe-choose-weight-layout --lathe-hoist-weights | FileCheck %s

// Packing and casting happen once, in @load; both entry points share the derived weight.
// CHECK-LABEL: func.func @prefill
// CHECK: %[[W:.*]] = lathe.weight "proj:cast.pack" : tensor<8x4xf32>
// CHECK: lathe.linear %arg0, %[[W]] layout packed
func.func @prefill(%x: tensor<?x4xf32, #lathe.dims<seq, 4>>) -> tensor<?x8xf32, #lathe.dims<seq, 8>> {
  %w = lathe.weight "proj" : tensor<8x4xbf16>
  %c = lathe.cast %w to f32 : tensor<8x4xbf16>
  %y = lathe.linear %x, %c : tensor<?x4xf32, #lathe.dims<seq, 4>>, tensor<8x4xf32>
  return %y : tensor<?x8xf32, #lathe.dims<seq, 8>>
}
// CHECK-LABEL: func.func @decode
// CHECK: lathe.weight "proj:cast.pack"
func.func @decode(%x: tensor<1x4xf32>) -> tensor<1x8xf32> {
  %w = lathe.weight "proj" : tensor<8x4xbf16>
  %c = lathe.cast %w to f32 : tensor<8x4xbf16>
  %y = lathe.linear %x, %c : tensor<1x4xf32>, tensor<8x4xf32>
  return %y : tensor<1x8xf32>
}
// A mask is cheaper to make than to read, and a value of the input cannot move.
// CHECK-LABEL: func.func @stays
// CHECK: lathe.iota
// CHECK: lathe.add
func.func @stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %i = lathe.iota <4> axis 0 dtype f32
  %y = lathe.add %x, %i : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
// A checkpoint may have a tensor of the name that a derived one would get.
// CHECK-LABEL: func.func @taken
// CHECK-DAG: lathe.weight "a:neg" : tensor<4xf32>
// CHECK-DAG: lathe.weight "a:neg.1" : tensor<4xf32>
func.func @taken(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = lathe.weight "a" : tensor<4xf32>
  %n = lathe.neg %a : tensor<4xf32>
  %o = lathe.weight "a:neg" : tensor<4xf32>
  %y = lathe.mul %x, %n : tensor<4xf32>, tensor<4xf32>
  %z = lathe.mul %x, %o : tensor<4xf32>, tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}
// Values of one tensor that differ in an attribute alone are two derived weights.
// CHECK-LABEL: func.func @slices
// CHECK-DAG: lathe.weight "both:slice" : tensor<2x4xf32>
// CHECK-DAG: lathe.weight "both:slice.1" : tensor<2x4xf32>
// CHECK-DAG: lathe.weight "both:slice.transpose" : tensor<4x2xf32>
func.func @slices(%x: tensor<2x4xf32>, %z: tensor<4x2xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2xf32>) {
  %w = lathe.weight "both" : tensor<4x4xf32>
  %a = lathe.slice %w starts <0, 0> sizes <2, 4> strides [1, 1] : tensor<4x4xf32>
  %b = lathe.slice %w starts <2, 0> sizes <2, 4> strides [1, 1] : tensor<4x4xf32>
  %t = lathe.transpose %b [1, 0] : tensor<2x4xf32>
  %p = lathe.mul %x, %a : tensor<2x4xf32>, tensor<2x4xf32>
  %q = lathe.mul %x, %b : tensor<2x4xf32>, tensor<2x4xf32>
  %r = lathe.mul %z, %t : tensor<4x2xf32>, tensor<4x2xf32>
  return %p, %q, %r : tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2xf32>
}
// A broadcast makes more than it reads: what it reads is hoisted, and it stays.
// CHECK-LABEL: func.func @stretched
// CHECK: %[[N:.*]] = lathe.weight "row:neg" : tensor<4xf32>
// CHECK: %[[B:.*]] = lathe.broadcast %[[N]] to <3, 4>
// CHECK: lathe.mul %arg0, %[[B]]
func.func @stretched(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %r = lathe.weight "row" : tensor<4xf32>
  %n = lathe.neg %r : tensor<4xf32>
  %b = lathe.broadcast %n to <3, 4> : tensor<4xf32>
  %y = lathe.mul %x, %b : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
// An angle is worth keeping although no weight is in it; of a size that a run sets it stays.
// CHECK-LABEL: func.func @angles
// CHECK: lathe.weight "table:iota.cos" : tensor<4xf32>
// CHECK-NOT: lathe.cos
func.func @angles(%x: tensor<4xf32>) -> tensor<4xf32> {
  %i = lathe.iota <4> axis 0 dtype f32
  %c = lathe.cos %i : tensor<4xf32>
  %y = lathe.mul %x, %c : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func.func @angles_of_the_run
// CHECK: lathe.cos
func.func @angles_of_the_run(%x: tensor<?xf32, #lathe.dims<seq>>) -> tensor<?xf32, #lathe.dims<seq>> {
  %i = lathe.iota <seq> axis 0 dtype f32
  %c = lathe.cos %i : tensor<?xf32, #lathe.dims<seq>>
  %y = lathe.mul %x, %c : tensor<?xf32, #lathe.dims<seq>>, tensor<?xf32, #lathe.dims<seq>>
  return %y : tensor<?xf32, #lathe.dims<seq>>
}
// A weight of the run, and what is packed already, stay as they are.
// CHECK-LABEL: func.func @not_packed
// CHECK: lathe.linear %arg0, %arg1 : tensor<3x4xf32>
// CHECK: %[[P:.*]] = lathe.weight "p" : tensor<8x4xf32>
// CHECK: lathe.linear %arg0, %[[P]] layout packed
func.func @not_packed(%x: tensor<3x4xf32>, %run: tensor<8x4xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %y = lathe.linear %x, %run : tensor<3x4xf32>, tensor<8x4xf32>
  %p = lathe.weight "p" : tensor<8x4xf32>
  %z = lathe.linear %x, %p layout packed : tensor<3x4xf32>, tensor<8x4xf32>
  return %y, %z : tensor<3x8xf32>, tensor<3x8xf32>
}
// Experts are packed like layers, whichever way they lie.
// CHECK-LABEL: func.func @experts
// CHECK: lathe.grouped_linear %arg0, %{{.*}} by %arg1 layout packed
func.func @experts(%x: tensor<3x4xf32>, %i: tensor<3xi64>) -> tensor<3x8xf32> {
  %w = lathe.weight "experts" : tensor<2x4x8xf32>
  %y = lathe.grouped_linear %x, %w by %i layout in_out : tensor<3x4xf32>, tensor<2x4x8xf32>, tensor<3xi64>
  return %y : tensor<3x8xf32>
}
// What ranks say to each other is said when the program runs.
// CHECK-LABEL: func.func @sum_over_ranks
// CHECK: %[[W:.*]] = lathe.weight "shard:neg"
// CHECK-NEXT: lathe.all_reduce sum %[[W]]
func.func @sum_over_ranks(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = lathe.weight "shard" : tensor<4xf32>
  %n = lathe.neg %w : tensor<4xf32>
  %r = lathe.all_reduce sum %n over "tp" of 2 : tensor<4xf32>
  %y = lathe.add %x, %r : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: func.func @load()
// What is made of large weights comes first: the experts are the largest, a table reads none.
// CHECK-SAME: -> (tensor<2x8x4xf32>, tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK-SAME: attributes {lathe.derived = ["experts:pack", "proj:cast.pack", "both:slice", "both:slice.1", "both:slice.transpose", "a:neg.1", "row:neg", "shard:neg", "table:iota.cos"]}
// CHECK: lathe.pack %{{.*}} in_out
// CHECK: lathe.weight "proj" : tensor<8x4xbf16>
// CHECK: lathe.cast
// CHECK: lathe.pack %{{.*}} out_in
