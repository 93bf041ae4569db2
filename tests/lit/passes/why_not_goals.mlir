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
