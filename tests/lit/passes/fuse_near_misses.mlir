// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --lathe-fuse | FileCheck %s
// Graphs that differ from a fusion's in one place that is easy to overlook. What they compute is
// compared in tests/conformance/fused_files_test.cpp.

// Casts through integers and booleans are steps of the computation.
// CHECK-LABEL: @scores_through_i32
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @scores_through_i32(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %i = lathe.cast %s to i32 : tensor<2x3x5xf32>
  %f = lathe.cast %i to f32 : tensor<2x3x5xi32>
  %p = lathe.softmax %f axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// CHECK-LABEL: @scores_through_i1
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @scores_through_i1(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %i = lathe.cast %s to i1 : tensor<2x3x5xf32>
  %f = lathe.cast %i to f32 : tensor<2x3x5xi1>
  %p = lathe.softmax %f axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// CHECK-LABEL: @softcap_through_i8
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @softcap_through_i8(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %cap = lathe.constant dense<3.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %d = lathe.div %s, %cap : tensor<2x3x5xf32>, tensor<f32>
  %h = lathe.tanh %d : tensor<2x3x5xf32>
  %i = lathe.cast %h to i8 : tensor<2x3x5xf32>
  %f = lathe.cast %i to f32 : tensor<2x3x5xi8>
  %c = lathe.mul %f, %cap : tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %c axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// CHECK-LABEL: @weights_through_i32
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @weights_through_i32(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x4xi32>) -> tensor<2x3x4xi32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %p = lathe.softmax %s axis 2 : tensor<2x3x5xf32>
  %i = lathe.cast %p to i32 : tensor<2x3x5xf32>
  %y = lathe.matmul %i, %v : tensor<2x3x5xi32>, tensor<2x5x4xi32>
  return %y : tensor<2x3x4xi32>
}
// CHECK-LABEL: @relu_of_i32
// CHECK: lathe.linear
// CHECK-NOT: activation
// CHECK: lathe.max
func.func @relu_of_i32(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %zero = lathe.constant dense<0> : tensor<i32>
  %p = lathe.matmul %x, %w : tensor<3x4xf32>, tensor<4x8xf32>
  %i = lathe.cast %p to i32 : tensor<3x8xf32>
  %r = lathe.max %i, %zero : tensor<3x8xi32>, tensor<i32>
  %y = lathe.cast %r to f32 : tensor<3x8xi32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: @gate_of_i32
// CHECK-NOT: lathe.glu
// CHECK: return
func.func @gate_of_i32(%x: tensor<3x8xf32>, %u: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %zero = lathe.constant dense<0> : tensor<i32>
  %i = lathe.cast %x to i32 : tensor<3x8xf32>
  %r = lathe.max %i, %zero : tensor<3x8xi32>, tensor<i32>
  %f = lathe.cast %r to f32 : tensor<3x8xi32>
  %y = lathe.mul %f, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: @embedding_of_i32
// CHECK: lathe.embedding {{.*}} : tensor<4xi64>, tensor<9x8xf32>
// CHECK: lathe.mul
func.func @embedding_of_i32(%ids: tensor<4xi64>) -> tensor<4x8xf32> {
  %w = lathe.weight "table" : tensor<9x8xf32>
  %three = lathe.constant dense<3> : tensor<i32>
  %e = lathe.gather %w, %ids axis 0 : tensor<9x8xf32>, tensor<4xi64>
  %i = lathe.cast %e to i32 : tensor<4x8xf32>
  %s = lathe.mul %i, %three : tensor<4x8xi32>, tensor<i32>
  %y = lathe.cast %s to f32 : tensor<4x8xi32>
  return %y : tensor<4x8xf32>
}
// -1e9 is -inf in f16: a masked row is NaN, not uniform.
// CHECK-LABEL: @fill_rounded_to_infinity
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @fill_rounded_to_infinity(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %m, %s, %low : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %h = lathe.cast %l to f16 : tensor<2x3x5xf32>
  %f = lathe.cast %h to f32 : tensor<2x3x5xf16>
  %p = lathe.softmax %f axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// A bias that is finite in f32 and infinite in f16: beside it the fill, which is added as well, is lost.
// CHECK-LABEL: @bias_rounded_to_infinity
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @bias_rounded_to_infinity(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %low = lathe.constant dense<-1.0e30> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %far = lathe.constant dense<30000.0> : tensor<f32>
  %i = lathe.iota <3, 5> axis 1 dtype f32
  %b = lathe.mul %i, %far : tensor<3x5xf32>, tensor<f32>
  %h = lathe.cast %b to f16 : tensor<3x5xf32>
  %w = lathe.cast %h to f32 : tensor<3x5xf16>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %a = lathe.add %s, %w : tensor<2x3x5xf32>, tensor<3x5xf32>
  %l = lathe.select %m, %zero, %low : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %f = lathe.add %a, %l : tensor<2x3x5xf32>, tensor<3x5xf32>
  %p = lathe.softmax %f axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// One cosine and one sine for all pairs: the width of a table says what rotates.
// CHECK-LABEL: @one_angle_half
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @one_angle_half(%x: tensor<3x8xf32>, %c: tensor<3x1xf32>, %s: tensor<3x1xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<3x1xf32>
  %bs = lathe.mul %b, %s : tensor<3x4xf32>, tensor<3x1xf32>
  %f = lathe.sub %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<3x1xf32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<3x1xf32>
  %g = lathe.add %as, %bc : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: @one_angle_and_rest
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @one_angle_and_rest(%x: tensor<3x8xf32>, %c: tensor<3x1xf32>, %s: tensor<3x1xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 2> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 2> sizes <3, 2> strides [1, 1] : tensor<3x8xf32>
  %r = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %ac = lathe.mul %a, %c : tensor<3x2xf32>, tensor<3x1xf32>
  %bs = lathe.mul %b, %s : tensor<3x2xf32>, tensor<3x1xf32>
  %f = lathe.sub %ac, %bs : tensor<3x2xf32>, tensor<3x2xf32>
  %as = lathe.mul %a, %s : tensor<3x2xf32>, tensor<3x1xf32>
  %bc = lathe.mul %b, %c : tensor<3x2xf32>, tensor<3x1xf32>
  %g = lathe.add %as, %bc : tensor<3x2xf32>, tensor<3x2xf32>
  %y = lathe.concat %f, %g, %r axis 1 : tensor<3x2xf32>, tensor<3x2xf32>, tensor<3x4xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: @one_angle_interleaved
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @one_angle_interleaved(%x: tensor<3x8xf32>, %c: tensor<3x1xf32>, %s: tensor<3x1xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 2] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <3, 4> strides [1, 2] : tensor<3x8xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<3x1xf32>
  %bs = lathe.mul %b, %s : tensor<3x4xf32>, tensor<3x1xf32>
  %f = lathe.sub %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<3x1xf32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<3x1xf32>
  %g = lathe.add %as, %bc : tensor<3x4xf32>, tensor<3x4xf32>
  %f1 = lathe.reshape %f to <3, 4, 1> : tensor<3x4xf32>
  %g1 = lathe.reshape %g to <3, 4, 1> : tensor<3x4xf32>
  %j = lathe.concat %f1, %g1 axis 2 : tensor<3x4x1xf32>, tensor<3x4x1xf32>
  %y = lathe.reshape %j to <3, 8> : tensor<3x4x2xf32>
  return %y : tensor<3x8xf32>
}
// A number is one angle for everything, too.
// CHECK-LABEL: @angle_of_a_number
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @angle_of_a_number(%x: tensor<3x8xf32>, %c: tensor<f32>, %s: tensor<f32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<f32>
  %bs = lathe.mul %b, %s : tensor<3x4xf32>, tensor<f32>
  %f = lathe.sub %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<f32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<f32>
  %g = lathe.add %as, %bc : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x8xf32>
}
// Two elements have one pair: its one angle is the whole table.
// CHECK-LABEL: @one_pair
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2
func.func @one_pair(%x: tensor<3x2xf32>, %c: tensor<3x1xf32>, %s: tensor<3x1xf32>) -> tensor<3x2xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 1> strides [1, 1] : tensor<3x2xf32>
  %b = lathe.slice %x starts <0, 1> sizes <3, 1> strides [1, 1] : tensor<3x2xf32>
  %ac = lathe.mul %a, %c : tensor<3x1xf32>, tensor<3x1xf32>
  %bs = lathe.mul %b, %s : tensor<3x1xf32>, tensor<3x1xf32>
  %f = lathe.sub %ac, %bs : tensor<3x1xf32>, tensor<3x1xf32>
  %as = lathe.mul %a, %s : tensor<3x1xf32>, tensor<3x1xf32>
  %bc = lathe.mul %b, %c : tensor<3x1xf32>, tensor<3x1xf32>
  %g = lathe.add %as, %bc : tensor<3x1xf32>, tensor<3x1xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<3x1xf32>, tensor<3x1xf32>
  return %y : tensor<3x2xf32>
}

// Integers wrap and lose their remainder.
// CHECK-LABEL: @argmax_of_integers
// CHECK: lathe.mul
// CHECK: lathe.div
func.func @argmax_of_integers(%x: tensor<3x8xi32>) -> (tensor<3xi64>, tensor<3xi64>) {
  %c = lathe.constant dense<3> : tensor<i32>
  %p = lathe.mul %x, %c : tensor<3x8xi32>, tensor<i32>
  %a = lathe.argmax %p axis 1 : tensor<3x8xi32>
  %q = lathe.div %x, %c : tensor<3x8xi32>, tensor<i32>
  %b = lathe.argmax %q axis 1 : tensor<3x8xi32>
  return %a, %b : tensor<3xi64>, tensor<3xi64>
}
// So small a factor makes zeros of elements that differ.
// CHECK-LABEL: @argmax_of_zeros
// CHECK: lathe.mul
func.func @argmax_of_zeros(%x: tensor<3x8xf32>) -> tensor<3xi64> {
  %c = lathe.constant dense<1.0e-44> : tensor<f32>
  %p = lathe.mul %x, %c : tensor<3x8xf32>, tensor<f32>
  %y = lathe.argmax %p axis 1 : tensor<3x8xf32>
  return %y : tensor<3xi64>
}

// The sum over one element less is no mean.
// CHECK-LABEL: @unbiased_sum
// CHECK-NOT: lathe.rms_norm
// CHECK: return
func.func @unbiased_sum(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %inverse = lathe.constant dense<0.06666667> : tensor<f32>
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<3x16xf32>, tensor<3x16xf32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<3x16xf32>
  %m = lathe.mul %s, %inverse : tensor<3x1xf32>, tensor<f32>
  %e = lathe.add %m, %eps : tensor<3x1xf32>, tensor<f32>
  %r = lathe.rsqrt %e : tensor<3x1xf32>
  %y = lathe.mul %x, %r : tensor<3x16xf32>, tensor<3x1xf32>
  return %y : tensor<3x16xf32>
}
// A thousandth is another constant: of a half, of 1 / sqrt(2), of 1.
// CHECK-LABEL: @constants_a_thousandth_off
// CHECK-NOT: lathe.glu
// CHECK: return
func.func @constants_a_thousandth_off(%x: tensor<3x8xf32>, %u: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %root = lathe.constant dense<0.707106769> : tensor<f32>
  %otherRoot = lathe.constant dense<0.707813876> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %otherHalf = lathe.constant dense<0.5005> : tensor<f32>
  %s = lathe.mul %x, %root : tensor<3x8xf32>, tensor<f32>
  %e = lathe.erf %s : tensor<3x8xf32>
  %g = lathe.add %e, %one : tensor<3x8xf32>, tensor<f32>
  %h = lathe.mul %x, %otherHalf : tensor<3x8xf32>, tensor<f32>
  %a = lathe.mul %h, %g : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.mul %a, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %s2 = lathe.mul %x, %otherRoot : tensor<3x8xf32>, tensor<f32>
  %e2 = lathe.erf %s2 : tensor<3x8xf32>
  %g2 = lathe.add %e2, %one : tensor<3x8xf32>, tensor<f32>
  %h2 = lathe.mul %x, %half : tensor<3x8xf32>, tensor<f32>
  %a2 = lathe.mul %h2, %g2 : tensor<3x8xf32>, tensor<3x8xf32>
  %z = lathe.mul %a2, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y, %z : tensor<3x8xf32>, tensor<3x8xf32>
}

// Two vectors of positions: the window counts from the other one.
// CHECK-LABEL: @window_of_other_positions
// CHECK: %[[W:.*]] = lathe.compare {{.*}}
// CHECK: lathe.attention {{.*}} mask {{.*}} positions
// CHECK-NOT: window
// CHECK: return
func.func @window_of_other_positions(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x12x8xf32>, %p: tensor<2xi64>, %o: tensor<2xi64>) -> tensor<2x3x4x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %three = lathe.constant dense<3> : tensor<i64>
  %i = lathe.iota <1, 1, 4, 1> axis 2 dtype i64
  %j = lathe.iota <1, 1, 1, 12> axis 3 dtype i64
  %pp = lathe.reshape %p to <2, 1, 1, 1> : tensor<2xi64>
  %oo = lathe.reshape %o to <2, 1, 1, 1> : tensor<2xi64>
  %up = lathe.add %i, %pp : tensor<1x1x4x1xi64>, tensor<2x1x1x1xi64>
  %io = lathe.add %i, %oo : tensor<1x1x4x1xi64>, tensor<2x1x1x1xi64>
  %low = lathe.sub %io, %three : tensor<2x1x4x1xi64>, tensor<i64>
  %a = lathe.compare le %j, %up : tensor<1x1x1x12xi64>, tensor<2x1x4x1xi64>
  %b = lathe.compare gt %j, %low : tensor<1x1x1x12xi64>, tensor<2x1x4x1xi64>
  %c = lathe.logical_and %a, %b : tensor<2x1x4x12xi1>, tensor<2x1x4x12xi1>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x12x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4x8xf32>, tensor<2x3x8x12xf32>
  %l = lathe.select %c, %s, %lowest : tensor<2x1x4x12xi1>, tensor<2x3x4x12xf32>, tensor<f32>
  %w = lathe.softmax %l axis 3 : tensor<2x3x4x12xf32>
  %y = lathe.matmul %w, %k : tensor<2x3x4x12xf32>, tensor<2x3x12x8xf32>
  return %y : tensor<2x3x4x8xf32>
}
// As many heads as sequences: the positions are those of heads.
// CHECK-LABEL: @positions_of_heads
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal positions
// CHECK: return
func.func @positions_of_heads(%q: tensor<2x2x4x8xf32>, %k: tensor<2x2x12x8xf32>, %p: tensor<2xi64>) -> tensor<2x2x4x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <1, 1, 4, 1> axis 2 dtype i64
  %j = lathe.iota <1, 1, 1, 12> axis 3 dtype i64
  %pp = lathe.reshape %p to <1, 2, 1, 1> : tensor<2xi64>
  %up = lathe.add %i, %pp : tensor<1x1x4x1xi64>, tensor<1x2x1x1xi64>
  %a = lathe.compare le %j, %up : tensor<1x1x1x12xi64>, tensor<1x2x4x1xi64>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x2x12x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x2x4x8xf32>, tensor<2x2x8x12xf32>
  %l = lathe.select %a, %s, %lowest : tensor<1x2x4x12xi1>, tensor<2x2x4x12xf32>, tensor<f32>
  %w = lathe.softmax %l axis 3 : tensor<2x2x4x12xf32>
  %y = lathe.matmul %w, %k : tensor<2x2x4x12xf32>, tensor<2x2x12x8xf32>
  return %y : tensor<2x2x4x8xf32>
}
// The batch's numbers move the keys, not the queries.
// CHECK-LABEL: @shifted_keys
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: positions
// CHECK: return
func.func @shifted_keys(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x12x8xf32>, %p: tensor<2xi64>) -> tensor<2x3x4x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <1, 1, 4, 1> axis 2 dtype i64
  %j = lathe.iota <1, 1, 1, 12> axis 3 dtype i64
  %pp = lathe.reshape %p to <2, 1, 1, 1> : tensor<2xi64>
  %jp = lathe.add %j, %pp : tensor<1x1x1x12xi64>, tensor<2x1x1x1xi64>
  %a = lathe.compare le %jp, %i : tensor<2x1x1x12xi64>, tensor<1x1x4x1xi64>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x12x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4x8xf32>, tensor<2x3x8x12xf32>
  %l = lathe.select %a, %s, %lowest : tensor<2x1x4x12xi1>, tensor<2x3x4x12xf32>, tensor<f32>
  %w = lathe.softmax %l axis 3 : tensor<2x3x4x12xf32>
  %y = lathe.matmul %w, %k : tensor<2x3x4x12xf32>, tensor<2x3x12x8xf32>
  return %y : tensor<2x3x4x8xf32>
}
// Queries two apart see two keys more each.
// CHECK-LABEL: @every_other_row
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @every_other_row(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x12x8xf32>) -> tensor<2x3x4x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <1, 1, 8, 1> axis 2 dtype i64
  %j = lathe.iota <1, 1, 1, 12> axis 3 dtype i64
  %all = lathe.compare le %j, %i : tensor<1x1x1x12xi64>, tensor<1x1x8x1xi64>
  %a = lathe.slice %all starts <0, 0, 0, 0> sizes <1, 1, 4, 12> strides [1, 1, 2, 1] : tensor<1x1x8x12xi1>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x12x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4x8xf32>, tensor<2x3x8x12xf32>
  %l = lathe.select %a, %s, %lowest : tensor<1x1x4x12xi1>, tensor<2x3x4x12xf32>, tensor<f32>
  %w = lathe.softmax %l axis 3 : tensor<2x3x4x12xf32>
  %y = lathe.matmul %w, %k : tensor<2x3x4x12xf32>, tensor<2x3x12x8xf32>
  return %y : tensor<2x3x4x8xf32>
}
// What scales the capped scores is no part of the cap: it stays the softmax's.
// CHECK-LABEL: @scale_over_the_softcap
// CHECK: lathe.softmax {{.*}} scale 16.6
func.func @scale_over_the_softcap(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %cap = lathe.constant dense<50.0> : tensor<f32>
  %three = lathe.constant dense<3.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %d = lathe.div %s, %cap : tensor<2x3x5xf32>, tensor<f32>
  %h = lathe.tanh %d : tensor<2x3x5xf32>
  %c = lathe.mul %h, %cap : tensor<2x3x5xf32>, tensor<f32>
  %a = lathe.div %c, %three : tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %a axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// lathe.attention adds its mask to the capped scores.
// CHECK-LABEL: @bias_under_the_softcap
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @bias_under_the_softcap(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xf32>) -> tensor<2x3x4xf32> {
  %cap = lathe.constant dense<2.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %b = lathe.add %s, %m : tensor<2x3x5xf32>, tensor<3x5xf32>
  %d = lathe.div %b, %cap : tensor<2x3x5xf32>, tensor<f32>
  %h = lathe.tanh %d : tensor<2x3x5xf32>
  %c = lathe.mul %h, %cap : tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %c axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Between casts nothing is rounded before the gain; the narrow norm would.
// CHECK-LABEL: @gain_after_no_rounding
// CHECK: lathe.rms_norm {{.*}} rounding before_gain : tensor<3x8xf32>, tensor<8xf32>
func.func @gain_after_no_rounding(%x: tensor<3x8xbf16>, %g: tensor<8xbf16>) -> tensor<3x8xbf16> {
  %w = lathe.cast %x to f32 : tensor<3x8xbf16>
  %h = lathe.cast %g to f32 : tensor<8xbf16>
  %n = lathe.rms_norm %w, %h epsilon 1.0e-5 rounding before_gain : tensor<3x8xf32>, tensor<8xf32>
  %y = lathe.cast %n to bf16 : tensor<3x8xf32>
  return %y : tensor<3x8xbf16>
}

// A negative factor turns the order, and a large one makes infinities.
// CHECK-LABEL: @argmax_of_other_factors
// CHECK-COUNT-2: lathe.mul
// CHECK: lathe.div
// CHECK: lathe.mul
func.func @argmax_of_other_factors(%x: tensor<3x8xf32>) -> (tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>) {
  %less = lathe.constant dense<-0.7> : tensor<f32>
  %large = lathe.constant dense<70000.3> : tensor<f32>
  %small = lathe.constant dense<1.5e-5> : tensor<f32>
  %p = lathe.mul %x, %less : tensor<3x8xf32>, tensor<f32>
  %a = lathe.argmax %p axis 1 : tensor<3x8xf32>
  %q = lathe.mul %x, %large : tensor<3x8xf32>, tensor<f32>
  %b = lathe.argmax %q axis 1 : tensor<3x8xf32>
  %r = lathe.div %x, %less : tensor<3x8xf32>, tensor<f32>
  %c = lathe.argmax %r axis 1 : tensor<3x8xf32>
  %s = lathe.mul %x, %small : tensor<3x8xf32>, tensor<f32>
  %d = lathe.argmax %s axis 1 : tensor<3x8xf32>
  return %a, %b, %c, %d : tensor<3xi64>, tensor<3xi64>, tensor<3xi64>, tensor<3xi64>
}
// Of a long axis one element more or less is a small part, and no mean either.
// CHECK-LABEL: @long_means_but_one
// CHECK-NOT: lathe.rms_norm
// CHECK-NOT: lathe.layer_norm
// CHECK: return
func.func @long_means_but_one(%x: tensor<2x64xf32>) -> (tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>) {
  %above = lathe.constant dense<0.015384615> : tensor<f32>
  %below = lathe.constant dense<0.015873017> : tensor<f32>
  %less = lathe.constant dense<63.0> : tensor<f32>
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<2x64xf32>, tensor<2x64xf32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<2x64xf32>
  %m = lathe.mul %s, %above : tensor<2x1xf32>, tensor<f32>
  %e = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.rsqrt %e : tensor<2x1xf32>
  %0 = lathe.mul %x, %r : tensor<2x64xf32>, tensor<2x1xf32>
  %n = lathe.mul %s, %below : tensor<2x1xf32>, tensor<f32>
  %f = lathe.add %n, %eps : tensor<2x1xf32>, tensor<f32>
  %t = lathe.rsqrt %f : tensor<2x1xf32>
  %1 = lathe.mul %x, %t : tensor<2x64xf32>, tensor<2x1xf32>
  %mean = lathe.reduce_mean %x axes [1] keep_dims true : tensor<2x64xf32>
  %d = lathe.sub %x, %mean : tensor<2x64xf32>, tensor<2x1xf32>
  %dd = lathe.mul %d, %d : tensor<2x64xf32>, tensor<2x64xf32>
  %v = lathe.reduce_sum %dd axes [1] keep_dims true : tensor<2x64xf32>
  %u = lathe.div %v, %less : tensor<2x1xf32>, tensor<f32>
  %g = lathe.add %u, %eps : tensor<2x1xf32>, tensor<f32>
  %w = lathe.rsqrt %g : tensor<2x1xf32>
  %2 = lathe.mul %d, %w : tensor<2x64xf32>, tensor<2x1xf32>
  return %0, %1, %2 : tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x64xf32>
}

// Positions of 64 bits wrap on their way through 32: what is compared is another number.
// CHECK-LABEL: @positions_that_wrap
// CHECK-NOT: causal positions
// CHECK: return
func.func @positions_that_wrap(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x12x8xf32>, %p: tensor<2xi64>) -> tensor<2x3x4x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <1, 1, 4, 1> axis 2 dtype i64
  %j = lathe.iota <1, 1, 1, 12> axis 3 dtype i64
  %n = lathe.cast %p to i32 : tensor<2xi64>
  %f = lathe.cast %n to i64 : tensor<2xi32>
  %pp = lathe.reshape %f to <2, 1, 1, 1> : tensor<2xi64>
  %up = lathe.add %i, %pp : tensor<1x1x4x1xi64>, tensor<2x1x1x1xi64>
  %a = lathe.compare le %j, %up : tensor<1x1x1x12xi64>, tensor<2x1x4x1xi64>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x12x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4x8xf32>, tensor<2x3x8x12xf32>
  %l = lathe.select %a, %s, %lowest : tensor<2x1x4x12xi1>, tensor<2x3x4x12xf32>, tensor<f32>
  %w = lathe.softmax %l axis 3 : tensor<2x3x4x12xf32>
  %y = lathe.matmul %w, %k : tensor<2x3x4x12xf32>, tensor<2x3x12x8xf32>
  return %y : tensor<2x3x4x8xf32>
}
