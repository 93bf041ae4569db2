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
// CHECK-LABEL: func.func @load()
// What is made of large weights comes first: "a" is the smallest.
// CHECK-SAME: -> (tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<4x2xf32>, tensor<4xf32>)
// CHECK-SAME: attributes {lathe.derived = ["proj:cast.pack", "both:slice", "both:slice.1", "both:slice.transpose", "a:neg.1"]}
// CHECK: lathe.weight "proj" : tensor<8x4xbf16>
// CHECK: lathe.cast
// CHECK: lathe.pack %{{.*}} out_in
