// RUN: lathe-opt %s --lathe-canonicalize --lathe-fuse --lathe-why-not --split-input-file -o /dev/null 2>&1 | FileCheck %s

// What an op means is told however little of a pattern matches.

// The weights times the values, with three axes of heads.
// CHECK: remark: attention: lathe.attention takes q, k and v of rank 3 or 4 at {{.*}}.mlir:
func.func @rank6(%q: tensor<2x2x2x3x5x16xf32>, %k: tensor<2x2x2x3x7x16xf32>) -> tensor<2x2x2x3x5x16xf32> {
  %t = lathe.transpose %k [0, 1, 2, 3, 5, 4] : tensor<2x2x2x3x7x16xf32>
  %s = lathe.matmul %q, %t : tensor<2x2x2x3x5x16xf32>, tensor<2x2x2x3x16x7xf32>
  %p = lathe.softmax %s axis 5 : tensor<2x2x2x3x5x7xf32>
  %y = lathe.matmul %p, %k : tensor<2x2x2x3x5x7xf32>, tensor<2x2x2x3x7x16xf32>
  return %y : tensor<2x2x2x3x5x16xf32>
}

// -----

// CHECK: remark: attention: {{.*}}'axis' of the softmax is not that of the keys
func.func @other_axis(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>) -> tensor<2x7x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x7x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x7x4xf32>, tensor<2x4x7xf32>
  %p = lathe.softmax %s axis 1 : tensor<2x7x7xf32>
  %y = lathe.matmul %p, %k : tensor<2x7x7xf32>, tensor<2x7x4xf32>
  return %y : tensor<2x7x4xf32>
}

// -----

// The values come first.
// CHECK: remark: attention: the values are multiplied by the weights
func.func @values_first(%q: tensor<2x4x5xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x4x7xf32>) -> tensor<2x4x5xf32> {
  %s = lathe.matmul %k, %q : tensor<2x7x4xf32>, tensor<2x4x5xf32>
  %p = lathe.softmax %s axis 1 : tensor<2x7x5xf32>
  %y = lathe.matmul %v, %p : tensor<2x4x7xf32>, tensor<2x7x5xf32>
  return %y : tensor<2x4x5xf32>
}

// -----

// Two uses of the scores.
// CHECK-NOT: remark: softmax
// CHECK: remark: attention: {{.*}}lathe.mul between the product and the softmax has another user
func.func @two_uses(%q: tensor<2x5x4xf32>, %k: tensor<2x7x4xf32>, %v: tensor<2x7x4xf32>) -> (tensor<2x5x4xf32>, tensor<2x5x7xf32>) {
  %c = lathe.constant dense<0.5> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x7x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x5x4xf32>, tensor<2x4x7xf32>
  %m = lathe.mul %s, %c : tensor<2x5x7xf32>, tensor<f32>
  %p = lathe.softmax %m axis 2 : tensor<2x5x7xf32>
  %y = lathe.matmul %p, %v : tensor<2x5x7xf32>, tensor<2x7x4xf32>
  return %y, %m : tensor<2x5x4xf32>, tensor<2x5x7xf32>
}

// -----

// Without the maximum.
// CHECK: remark: softmax: {{.*}}wanted lathe.sub, found an argument (pattern softmax.cpp:
func.func @no_maximum(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = lathe.exp %x : tensor<4x8xf32>
  %z = lathe.reduce_sum %e axes [1] keep_dims true : tensor<4x8xf32>
  %y = lathe.div %e, %z : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: softmax: the logarithm of a sum of exponentials: no fused op computes a log-softmax at {{.*}}.mlir:
func.func @log_softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = lathe.reduce_max %x axes [1] keep_dims true : tensor<4x8xf32>
  %d = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %e = lathe.exp %d : tensor<4x8xf32>
  %z = lathe.reduce_sum %e axes [1] keep_dims true : tensor<4x8xf32>
  %l = lathe.log %z : tensor<4x1xf32>
  %y = lathe.sub %d, %l : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// F.normalize: the root is clamped, no epsilon is added.
// CHECK: remark: rms_norm{{[-a-z]*}}: {{.*}}wanted lathe.sqrt, found lathe.max
// CHECK-NOT: glu
func.func @normalize(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %low = lathe.constant dense<1.0e-12> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<4x8xf32>, tensor<4x8xf32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<4x8xf32>
  %r = lathe.sqrt %s : tensor<4x1xf32>
  %c = lathe.max %r, %low : tensor<4x1xf32>, tensor<f32>
  %y = lathe.div %x, %c : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// The norm runs over the first axis.
// CHECK: remark: rms_norm{{[-a-z]*}}: {{.*}}axis
func.func @norm_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<8x8xf32>, tensor<8x8xf32>
  %s = lathe.reduce_mean %q axes [0] keep_dims true : tensor<8x8xf32>
  %a = lathe.add %s, %eps : tensor<1x8xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<1x8xf32>
  %y = lathe.mul %x, %r : tensor<8x8xf32>, tensor<1x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// Whole tables as inputs: nothing says that their halves are equal.
// CHECK: remark: rope-doubled-tables: {{.*}}the halves of the table cannot be proved equal: wanted lathe.concat
func.func @rope_tables(%x: tensor<5x8xf32>, %c: tensor<5x8xf32>, %s: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %n = lathe.neg %b : tensor<5x4xf32>
  %t = lathe.concat %n, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %t, %s : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.add %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// A vector of weights is no matrix.
// CHECK: remark: linear{{[-a-z]*}}: {{.*}}wanted a weight matrix
func.func @weight_rank(%x: tensor<2x5x8xf32>) -> tensor<2x5x4xf32> {
  %w = lathe.weight "w" : tensor<2x8x4xf32>
  %y = lathe.matmul %x, %w : tensor<2x5x8xf32>, tensor<2x8x4xf32>
  return %y : tensor<2x5x4xf32>
}

// -----

// The weight stands in front.
// CHECK: remark: linear{{[-a-z]*}}: {{.*}}wanted an input that is no weight
func.func @weight_first(%x: tensor<8x5xf32>) -> tensor<4x5xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %y = lathe.matmul %w, %x : tensor<4x8xf32>, tensor<8x5xf32>
  return %y : tensor<4x5xf32>
}

// -----

// A modulation whose norm has a gain; its sum alone says nothing.
// CHECK: remark: adaln_modulate: the norm has a gain of its own
func.func @modulated(%x: tensor<2x3x8xf32>, %g: tensor<8xf32>, %s: tensor<2x1x8xf32>, %c: tensor<2x1x8xf32>) -> tensor<2x3x8xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<2x3x8xf32>, tensor<8xf32>
  %k = lathe.add %c, %one : tensor<2x1x8xf32>, tensor<f32>
  %m = lathe.mul %n, %k : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  %y = lathe.add %m, %s : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// One half of a rotation: two products and their sum are no modulation, though its pattern begins so.
// CHECK-NOT: remark
func.func @sum_of_products(%x: tensor<2x3x8xf32>, %z: tensor<2x3x8xf32>, %c: tensor<3x8xf32>, %s: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  %a = lathe.mul %x, %c : tensor<2x3x8xf32>, tensor<3x8xf32>
  %b = lathe.mul %z, %s : tensor<2x3x8xf32>, tensor<3x8xf32>
  %y = lathe.add %a, %b : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// -----

// Ordinary arithmetic is near to nothing.
// CHECK-NOT: remark
func.func @plain(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %a = lathe.mul %x, %z : tensor<4x8xf32>, tensor<4x8xf32>
  %e = lathe.exp %a : tensor<4x8xf32>
  %y = lathe.add %e, %x : tensor<4x8xf32>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Scaled scores, as every model has them: the softmax takes the scale in, and the reason stays.
// CHECK: remark: attention: {{.*}}lathe.transpose: k is not transposed in front of the product
// CHECK-NOT: a softmax without scale
func.func @scaled_keys_lie_turned(%q: tensor<2x3x4xf32>, %t: tensor<2x4x5xf32>, %v: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %c = lathe.constant dense<0.35> : tensor<f32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %m = lathe.mul %s, %c : tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %m axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %v : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// CHECK: remark: attention: {{.*}}'axis' of the softmax is not that of the keys
func.func @scaled_softmax_of_queries(%q: tensor<2x7x4xf32>, %k: tensor<2x7x4xf32>) -> tensor<2x7x4xf32> {
  %c = lathe.constant dense<0.35> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x7x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x7x4xf32>, tensor<2x4x7xf32>
  %m = lathe.mul %s, %c : tensor<2x7x7xf32>, tensor<f32>
  %p = lathe.softmax %m axis 1 : tensor<2x7x7xf32>
  %y = lathe.matmul %p, %k : tensor<2x7x7xf32>, tensor<2x7x4xf32>
  return %y : tensor<2x7x4xf32>
}

// -----

// A mask in front of the softcap: both are the softmax's by now.
// CHECK: remark: attention: {{.*}}the mask lies under the softcap
func.func @mask_under_softcap(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %cap = lathe.constant dense<5.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %a = lathe.select %m, %s, %low : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %d = lathe.div %a, %cap : tensor<2x3x5xf32>, tensor<f32>
  %h = lathe.tanh %d : tensor<2x3x5xf32>
  %u = lathe.mul %h, %cap : tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %u axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// A mask that arithmetic makes of the places of queries and keys may hide some of them.
// CHECK: remark: causal: lathe.attention reads a mask that is made of index ramps alone
!bq = tensor<?x4x?x8xf32, #lathe.dims<batch, 4, seq, 8>>
!bs = tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>
func.func @mask_of_distances(%q: !bq, %k: !bq, %v: !bq) -> !bq {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %keys = lathe.iota <seq> axis 0 dtype f32
  %rows = lathe.reshape %keys to <seq, 1> : tensor<?xf32, #lathe.dims<seq>>
  %far = lathe.sub %keys, %rows : tensor<?xf32, #lathe.dims<seq>>, tensor<?x1xf32, #lathe.dims<seq, 1>>
  %mask = lathe.mul %far, %low : tensor<?x?xf32, #lathe.dims<seq, seq>>, tensor<f32>
  %t = lathe.transpose %k [0, 1, 3, 2] : !bq
  %s = lathe.matmul %q, %t : !bq, tensor<?x4x8x?xf32, #lathe.dims<batch, 4, 8, seq>>
  %l = lathe.add %s, %mask : !bs, tensor<?x?xf32, #lathe.dims<seq, seq>>
  %p = lathe.softmax %l axis 3 : !bs
  %y = lathe.matmul %p, %v : !bs, !bq
  return %y : !bq
}

// -----

// The biases of ALiBi are those of the keys, the same for every query: they hide nothing.
// CHECK-NOT: remark: causal
!bq = tensor<?x4x?x8xf32, #lathe.dims<batch, 4, seq, 8>>
!bs = tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>
func.func @biases_of_keys(%q: !bq, %k: !bq, %v: !bq) -> !bq {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %keys = lathe.iota <seq> axis 0 dtype f32
  %head = lathe.iota <4> axis 0 dtype f32
  %power = lathe.pow %half, %head : tensor<f32>, tensor<4xf32>
  %slope = lathe.reshape %power to <4, 1, 1> : tensor<4xf32>
  %bias = lathe.mul %slope, %keys : tensor<4x1x1xf32>, tensor<?xf32, #lathe.dims<seq>>
  %t = lathe.transpose %k [0, 1, 3, 2] : !bq
  %s = lathe.matmul %q, %t : !bq, tensor<?x4x8x?xf32, #lathe.dims<batch, 4, 8, seq>>
  %l = lathe.add %s, %bias : !bs, tensor<4x1x?xf32, #lathe.dims<4, 1, seq>>
  %p = lathe.softmax %l axis 3 : !bs
  %y = lathe.matmul %p, %v : !bs, !bq
  return %y : !bq
}

// -----

// The keys lie in blocks that a table chooses, the values do not.
// CHECK: remark: paged_attention: {{.*}}wanted lathe.reshape, found an argument
func.func @keys_of_blocks_alone(%q: tensor<2x4x1x16xf32>, %blocks: tensor<9x4x8x16xf32>, %v: tensor<2x4x24x16xf32>, %table: tensor<2x3xi64>, %p: tensor<2xi64>) -> tensor<2x4x1x16xf32> {
  %g = lathe.gather %blocks, %table axis 0 : tensor<9x4x8x16xf32>, tensor<2x3xi64>
  %t = lathe.transpose %g [0, 2, 1, 3, 4] : tensor<2x3x4x8x16xf32>
  %k = lathe.reshape %t to <2, 4, 24, 16> : tensor<2x4x3x8x16xf32>
  %y = lathe.attention %q, %k, %v positions %p scale 0.25 causal positions : tensor<2x4x1x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32> positions tensor<2xi64>
  return %y : tensor<2x4x1x16xf32>
}

// -----

// Blocks in another dtype, made wide once they lie together.
// CHECK: remark: paged_attention: {{.*}}wanted lathe.gather, found lathe.cast
func.func @wide_blocks(%q: tensor<2x4x1x16xf32>, %blocks: tensor<9x4x8x16xbf16>, %table: tensor<2x3xi64>, %p: tensor<2xi64>) -> tensor<2x4x1x16xf32> {
  %g = lathe.gather %blocks, %table axis 0 : tensor<9x4x8x16xbf16>, tensor<2x3xi64>
  %t = lathe.transpose %g [0, 2, 1, 3, 4] : tensor<2x3x4x8x16xbf16>
  %r = lathe.reshape %t to <2, 4, 24, 16> : tensor<2x4x3x8x16xbf16>
  %k = lathe.cast %r to f32 : tensor<2x4x24x16xbf16>
  %y = lathe.attention %q, %k, %k positions %p scale 0.25 causal positions : tensor<2x4x1x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32> positions tensor<2xi64>
  return %y : tensor<2x4x1x16xf32>
}

// -----

// One row of a table for each sequence is no block of it, and keys without positions are no cache.
// CHECK-NOT: remark
func.func @rows_and_no_positions(%q: tensor<2x4x1x16xf32>, %rows: tensor<9x4x24x16xf32>, %i: tensor<2xi64>, %p: tensor<2xi64>, %blocks: tensor<9x4x8x16xf32>, %table: tensor<2x3xi64>) -> (tensor<2x4x1x16xf32>, tensor<2x4x1x16xf32>) {
  %k = lathe.gather %rows, %i axis 0 : tensor<9x4x24x16xf32>, tensor<2xi64>
  %y = lathe.attention %q, %k, %k positions %p scale 0.25 causal positions : tensor<2x4x1x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32> positions tensor<2xi64>
  %g = lathe.gather %blocks, %table axis 0 : tensor<9x4x8x16xf32>, tensor<2x3xi64>
  %t = lathe.transpose %g [0, 2, 1, 3, 4] : tensor<2x3x4x8x16xf32>
  %r = lathe.reshape %t to <2, 4, 24, 16> : tensor<2x4x3x8x16xf32>
  %z = lathe.attention %q, %r, %r scale 0.25 : tensor<2x4x1x16xf32>, tensor<2x4x24x16xf32>, tensor<2x4x24x16xf32>
  return %y, %z : tensor<2x4x1x16xf32>, tensor<2x4x1x16xf32>
}

// -----

// The other factor may come before or behind, and the multiple may be a quotient.
// CHECK-COUNT-2: remark: glu: the sigmoid of a multiple of the value is no activation of lathe.glu: wanted lathe.sigmoid of the value itself at
func.func @scaled_gates(%x: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %c = lathe.constant dense<1.5> : tensor<f32>
  %a = lathe.mul %x, %c : tensor<4x8xf32>, tensor<f32>
  %s = lathe.sigmoid %a : tensor<4x8xf32>
  %m = lathe.mul %x, %s : tensor<4x8xf32>, tensor<4x8xf32>
  %y = lathe.mul %m, %u : tensor<4x8xf32>, tensor<4x8xf32>
  %b = lathe.div %u, %c : tensor<4x8xf32>, tensor<f32>
  %t = lathe.sigmoid %b : tensor<4x8xf32>
  %n = lathe.mul %t, %x : tensor<4x8xf32>, tensor<4x8xf32>
  %z = lathe.mul %u, %n : tensor<4x8xf32>, tensor<4x8xf32>
  return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// The sigmoid of a sum is no multiple, nor that of a product of two values, and that of another value gates nothing.
// CHECK-NOT: a multiple of the value
func.func @other_sigmoids(%x: tensor<4x8xf32>, %u: tensor<4x8xf32>, %w: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %c = lathe.constant dense<1.5> : tensor<f32>
  %a = lathe.add %x, %c : tensor<4x8xf32>, tensor<f32>
  %s = lathe.sigmoid %a : tensor<4x8xf32>
  %m = lathe.mul %x, %s : tensor<4x8xf32>, tensor<4x8xf32>
  %y = lathe.mul %m, %u : tensor<4x8xf32>, tensor<4x8xf32>
  %b = lathe.mul %w, %c : tensor<4x8xf32>, tensor<f32>
  %t = lathe.sigmoid %b : tensor<4x8xf32>
  %n = lathe.mul %t, %x : tensor<4x8xf32>, tensor<4x8xf32>
  %z = lathe.mul %u, %n : tensor<4x8xf32>, tensor<4x8xf32>
  %d = lathe.mul %x, %w : tensor<4x8xf32>, tensor<4x8xf32>
  %r = lathe.sigmoid %d : tensor<4x8xf32>
  %o = lathe.mul %x, %r : tensor<4x8xf32>, tensor<4x8xf32>
  %v = lathe.mul %o, %u : tensor<4x8xf32>, tensor<4x8xf32>
  return %y, %z, %v : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// A gate by mish, which has no pattern.
// CHECK: remark: glu: {{.*}}wanted lathe.sigmoid, found lathe.tanh
func.func @gate_of_mish(%x: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %e = lathe.exp %x : tensor<4x8xf32>
  %p = lathe.add %e, %one : tensor<4x8xf32>, tensor<f32>
  %l = lathe.log %p : tensor<4x8xf32>
  %t = lathe.tanh %l : tensor<4x8xf32>
  %m = lathe.mul %x, %t : tensor<4x8xf32>, tensor<4x8xf32>
  %y = lathe.mul %m, %u : tensor<4x8xf32>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// An activation alone gates nothing, nor do two activations of two values.
// CHECK-NOT: remark
func.func @no_gates(%x: tensor<4x8xf32>, %u: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %e = lathe.exp %x : tensor<4x8xf32>
  %p = lathe.add %e, %one : tensor<4x8xf32>, tensor<f32>
  %l = lathe.log %p : tensor<4x8xf32>
  %t = lathe.tanh %l : tensor<4x8xf32>
  %m = lathe.mul %x, %t : tensor<4x8xf32>, tensor<4x8xf32>
  %s = lathe.sigmoid %x : tensor<4x8xf32>
  %h = lathe.tanh %u : tensor<4x8xf32>
  %y = lathe.mul %s, %h : tensor<4x8xf32>, tensor<4x8xf32>
  return %m, %y : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Matrix products as sums of products: of a factor that broadcasts in the product, or before it.
// CHECK-COUNT-2: remark: linear: a sum of broadcast products computes a matrix product: wanted lathe.matmul at
func.func @sums_of_products(%x: tensor<3x8xf32>, %w: tensor<5x8xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>) {
  %a = lathe.reshape %x to <3, 1, 8> : tensor<3x8xf32>
  %m = lathe.mul %a, %w : tensor<3x1x8xf32>, tensor<5x8xf32>
  %y = lathe.reduce_sum %m axes [2] keep_dims false : tensor<3x5x8xf32>
  %b = lathe.broadcast %a to <3, 5, 8> : tensor<3x1x8xf32>
  %n = lathe.mul %w, %b : tensor<5x8xf32>, tensor<3x5x8xf32>
  %z = lathe.reduce_sum %n axes [2] keep_dims false : tensor<3x5x8xf32>
  return %y, %z : tensor<3x5xf32>, tensor<3x5xf32>
}

// -----

// One factor in its own place, or the multiples of one value, are no matrix product.
// CHECK-NOT: remark: linear
func.func @sums_of_no_matrix(%x: tensor<4x8xf32>, %u: tensor<4x1xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = lathe.constant dense<2.0> : tensor<1x8xf32>
  %m = lathe.mul %x, %u : tensor<4x8xf32>, tensor<4x1xf32>
  %y = lathe.reduce_sum %m axes [1] keep_dims false : tensor<4x8xf32>
  %n = lathe.mul %u, %c : tensor<4x1xf32>, tensor<1x8xf32>
  %z = lathe.reduce_sum %n axes [1] keep_dims false : tensor<4x8xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: remark: embedding: a product with a one-hot matrix computes a look-up: wanted lathe.gather at
func.func @one_hot_rows(%ids: tensor<5xi64>) -> tensor<5x8xf32> {
  %w = lathe.weight "w" : tensor<16x8xf32>
  %i = lathe.iota <16> axis 0 dtype i64
  %r = lathe.reshape %ids to <5, 1> : tensor<5xi64>
  %c = lathe.compare eq %r, %i : tensor<5x1xi64>, tensor<16xi64>
  %h = lathe.cast %c to f32 : tensor<5x16xi1>
  %y = lathe.matmul %h, %w : tensor<5x16xf32>, tensor<16x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// CHECK: remark: embedding: a product with a one-hot matrix
func.func @one_hot_ramp_first(%ids: tensor<5xi64>) -> tensor<5x8xf32> {
  %w = lathe.weight "w" : tensor<16x8xf32>
  %i = lathe.iota <16> axis 0 dtype i64
  %r = lathe.reshape %ids to <5, 1> : tensor<5xi64>
  %c = lathe.compare eq %i, %r : tensor<16xi64>, tensor<5x1xi64>
  %h = lathe.cast %c to f32 : tensor<5x16xi1>
  %y = lathe.matmul %h, %w : tensor<5x16xf32>, tensor<16x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// What is looked up in no weight is no embedding, nor what a comparison of two values picks.
// CHECK-NOT: remark: embedding
func.func @one_hot_inputs(%ids: tensor<5xi64>, %w: tensor<16x8xf32>, %a: tensor<5x16xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
  %e = lathe.exp %a : tensor<5x16xf32>
  %n = lathe.neg %a : tensor<5x16xf32>
  %d = lathe.compare lt %e, %n : tensor<5x16xf32>, tensor<5x16xf32>
  %m = lathe.cast %d to f32 : tensor<5x16xi1>
  %v = lathe.weight "v" : tensor<16x8xf32>
  %z = lathe.matmul %m, %v : tensor<5x16xf32>, tensor<16x8xf32>
  %i = lathe.iota <16> axis 0 dtype i64
  %r = lathe.reshape %ids to <5, 1> : tensor<5xi64>
  %c = lathe.compare eq %r, %i : tensor<5x1xi64>, tensor<16xi64>
  %h = lathe.cast %c to f32 : tensor<5x16xi1>
  %y = lathe.matmul %h, %w : tensor<5x16xf32>, tensor<16x8xf32>
  return %y, %z : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// The difference instead of the sum, of halves that are exchanged without a sign.
// CHECK: remark: rope: wanted the rotation of two halves, or of even and odd elements at
func.func @rope_of_a_difference(%x: tensor<5x8xf32>, %c: tensor<5x8xf32>, %s: tensor<5x8xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %t = lathe.concat %b, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %t, %s : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.sub %q, %p : tensor<5x8xf32>, tensor<5x8xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Joined parts of two values, or beside another value, turn nothing.
// CHECK-NOT: remark
func.func @rope_of_two_values(%x: tensor<5x8xf32>, %z: tensor<5x8xf32>, %c: tensor<5x8xf32>, %s: tensor<5x8xf32>) -> (tensor<5x8xf32>, tensor<5x8xf32>) {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %z starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %t = lathe.concat %b, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %p = lathe.mul %x, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %q = lathe.mul %t, %s : tensor<5x8xf32>, tensor<5x8xf32>
  %y = lathe.sub %p, %q : tensor<5x8xf32>, tensor<5x8xf32>
  %d = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %u = lathe.concat %d, %a axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  %o = lathe.mul %z, %c : tensor<5x8xf32>, tensor<5x8xf32>
  %r = lathe.mul %u, %s : tensor<5x8xf32>, tensor<5x8xf32>
  %w = lathe.sub %o, %r : tensor<5x8xf32>, tensor<5x8xf32>
  return %y, %w : tensor<5x8xf32>, tensor<5x8xf32>
}

// -----

// Parts that are rotated the other way round.
// CHECK: remark: rope{{[-a-z]*}}: {{.*}}found lathe.add
func.func @rope_of_parts(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.add %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.sub %bc, %as : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}

// -----

// Epsilon outside the root.
// CHECK: remark: layer_norm{{[-a-z]*}}: {{.*}}wanted lathe.sqrt, found lathe.add
func.func @layer_norm_of_a_deviation(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %u = lathe.reduce_mean %x axes [1] keep_dims true : tensor<4x8xf32>
  %d = lathe.sub %x, %u : tensor<4x8xf32>, tensor<4x1xf32>
  %q = lathe.mul %d, %d : tensor<4x8xf32>, tensor<4x8xf32>
  %s = lathe.reduce_mean %q axes [1] keep_dims true : tensor<4x8xf32>
  %r = lathe.sqrt %s : tensor<4x1xf32>
  %a = lathe.add %r, %eps : tensor<4x1xf32>, tensor<f32>
  %y = lathe.div %d, %a : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// A softmax as a product with the inverse of the sum.
// CHECK: remark: softmax{{[-a-z]*}}: {{.*}}wanted lathe.sub, found an argument
func.func @softmax_by_the_inverse(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %e = lathe.exp %x : tensor<4x8xf32>
  %z = lathe.reduce_sum %e axes [1] keep_dims true : tensor<4x8xf32>
  %i = lathe.div %one, %z : tensor<f32>, tensor<4x1xf32>
  %y = lathe.mul %i, %e : tensor<4x1xf32>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// Turned the other way: what the halves are made of is told, not that a whole rotation is no part.
// CHECK: remark: rope-half: {{.*}}wanted lathe.sub, found lathe.add at
func.func @rope_turned_back(%x: tensor<5x8xf32>, %c: tensor<5x4xf32>, %s: tensor<5x4xf32>) -> tensor<5x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <5, 4> strides [1, 1] : tensor<5x8xf32>
  %ac = lathe.mul %a, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %bs = lathe.mul %b, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %as = lathe.mul %a, %s : tensor<5x4xf32>, tensor<5x4xf32>
  %bc = lathe.mul %b, %c : tensor<5x4xf32>, tensor<5x4xf32>
  %f = lathe.add %ac, %bs : tensor<5x4xf32>, tensor<5x4xf32>
  %g = lathe.sub %bc, %as : tensor<5x4xf32>, tensor<5x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<5x8xf32>
}
