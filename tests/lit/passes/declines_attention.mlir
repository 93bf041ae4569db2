// RUN: lathe-opt %s --lathe-why-not -o /dev/null 2>&1 | FileCheck %s

// Each reason for which a pattern of attention refuses the operands around the scores; those of the
// scores are in declines_scores.mlir.

!q = tensor<2x3x4xf32>
!k = tensor<2x5x4xf32>
!t = tensor<2x4x5xf32>
!s = tensor<2x3x5xf32>

// CHECK: remark: attention: {{.*}}'axis' of the softmax is not that of the keys
func.func @softmax_of_queries(%q: !q, %k: !k) -> !q {
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %p = lathe.softmax %s axis 1 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.transpose: k is not transposed in front of the product
func.func @keys_lie_turned(%q: !q, %t: !t, %v: !k) -> !q {
  %s = lathe.matmul %q, %t : !q, !t
  %p = lathe.softmax %s axis 2 : !s
  %y = lathe.matmul %p, %v : !s, !k
  return %y : !q
}

// The scores of 6 heads of one batch, the mask of 2 x 3; the values have but 2 x 2.
// CHECK: remark: attention: {{.*}}queries, keys and values do not have the heads of the scores: f32[1, 5, 4]
func.func @values_of_all_heads(%q: tensor<6x3x4xf32>, %k: tensor<6x5x4xf32>, %v: tensor<1x5x4xf32>, %m: tensor<2x1x3x5xi1>) -> tensor<6x3x4xf32> {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<6x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<6x3x4xf32>, tensor<6x4x5xf32>
  %a = lathe.reshape %s to <2, 3, 3, 5> : tensor<6x3x5xf32>
  %b = lathe.select %m, %a, %low : tensor<2x1x3x5xi1>, tensor<2x3x3x5xf32>, tensor<f32>
  %c = lathe.reshape %b to <6, 3, 5> : tensor<2x3x3x5xf32>
  %p = lathe.softmax %c axis 2 : tensor<6x3x5xf32>
  %y = lathe.matmul %p, %v : tensor<6x3x5xf32>, tensor<1x5x4xf32>
  return %y : tensor<6x3x4xf32>
}

// CHECK: remark: attention: {{.*}}a matrix of scores has no batch for the positions
func.func @matrix_at_positions(%q: tensor<1x4xf32>, %k: tensor<5x4xf32>, %at: tensor<1xi64>) -> tensor<1x4xf32> {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %m = lathe.compare le %j, %at : tensor<1x5xi64>, tensor<1xi64>
  %t = lathe.transpose %k [1, 0] : tensor<5x4xf32>
  %s = lathe.matmul %q, %t : tensor<1x4xf32>, tensor<4x5xf32>
  %a = lathe.select %m, %s, %low : tensor<1x5xi1>, tensor<1x5xf32>, tensor<f32>
  %p = lathe.softmax %a axis 1 : tensor<1x5xf32>
  %y = lathe.matmul %p, %k : tensor<1x5xf32>, tensor<5x4xf32>
  return %y : tensor<1x4xf32>
}

// CHECK: remark: attention: {{.*}}a size has no name: f32[?, 4]
func.func @queries_without_name(%q: tensor<?x4xf32>, %k: tensor<5x4xf32>) -> tensor<?x4xf32> {
  %t = lathe.transpose %k [1, 0] : tensor<5x4xf32>
  %s = lathe.matmul %q, %t : tensor<?x4xf32>, tensor<4x5xf32>
  %p = lathe.softmax %s axis 1 : tensor<?x5xf32>
  %y = lathe.matmul %p, %k : tensor<?x5xf32>, tensor<5x4xf32>
  return %y : tensor<?x4xf32>
}

// The rows of the weights of another batch lie between those of a head.
// CHECK: remark: attention-folded: {{.*}}lathe.reshape: the weights are not those of batch and heads in one axis
func.func @weights_laid_out_anew(%q: tensor<2x3x4x4xf32>, %k: tensor<2x3x5x4xf32>, %v: tensor<3x5x4xf32>) -> tensor<3x8x4xf32> {
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4x4xf32>, tensor<2x3x4x5xf32>
  %p = lathe.softmax %s axis 3 : tensor<2x3x4x5xf32>
  %r = lathe.reshape %p to <3, 8, 5> : tensor<2x3x4x5xf32>
  %y = lathe.matmul %r, %v : tensor<3x8x5xf32>, tensor<3x5x4xf32>
  return %y : tensor<3x8x4xf32>
}

// CHECK: remark: attention-mask: {{.*}}'causal' of lathe.attention is set
func.func @causal_is_set(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %y = lathe.attention %q, %k, %k mask %m scale 0.5 causal top_left : !q, !k, !k mask tensor<3x5xi1>
  return %y : !q
}

// CHECK: remark: attention-mask: {{.*}}a size has no name: f32[2, ?, 4], f32[2, 5, 4]
func.func @masked_queries_without_name(%q: tensor<2x?x4xf32>, %k: !k, %m: tensor<1x5xi1>) -> tensor<2x?x4xf32> {
  %y = lathe.attention %q, %k, %k mask %m scale 0.5 : tensor<2x?x4xf32>, !k, !k mask tensor<1x5xi1>
  return %y : tensor<2x?x4xf32>
}

// CHECK: remark: attention-mask: {{.*}}the mask compares no index ramps of queries and keys
func.func @mask_is_an_input(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %y = lathe.attention %q, %k, %k mask %m scale 0.5 : !q, !k, !k mask tensor<3x5xi1>
  return %y : !q
}

// CHECK: remark: attention-mask: {{.*}}the added mask is not 0 and -inf by a condition
func.func @mask_is_a_bias(%q: !q, %k: !k, %m: tensor<3x5xf32>) -> !q {
  %y = lathe.attention %q, %k, %k mask %m scale 0.5 : !q, !k, !k mask tensor<3x5xf32>
  return %y : !q
}

// One where hidden, not 0 where visible.
// CHECK: remark: attention-mask: {{.*}}the added mask is not 0 and -inf by a condition
func.func @mask_adds_one(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %a = lathe.select %m, %one, %low : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %y = lathe.attention %q, %k, %k mask %a scale 0.5 : !q, !k, !k mask tensor<3x5xf32>
  return %y : !q
}

!q5 = tensor<1x2x3x3x4xf32>
!k5 = tensor<1x2x1x5x4xf32>
!s5 = tensor<1x2x3x3x5xf32>

// Each query head has keys of its own.
// CHECK: remark: attention: {{.*}}the heads of a group do not share keys and values: wanted an axis of 1
func.func @own_keys(%q: !q5, %k: tensor<1x2x3x5x4xf32>, %v: !k5) -> !q5 {
  %t = lathe.transpose %k [0, 1, 2, 4, 3] : tensor<1x2x3x5x4xf32>
  %s = lathe.matmul %q, %t : !q5, tensor<1x2x3x4x5xf32>
  %p = lathe.softmax %s axis 4 : !s5
  %y = lathe.matmul %p, %v : !s5, !k5
  return %y : !q5
}

// CHECK: remark: attention: {{.*}}the heads of a group do not share keys and values: wanted an axis of 1
func.func @own_values(%q: !q5, %k: !k5, %v: tensor<1x2x3x5x4xf32>) -> !q5 {
  %t = lathe.transpose %k [0, 1, 2, 4, 3] : !k5
  %s = lathe.matmul %q, %t : !q5, tensor<1x2x1x4x5xf32>
  %p = lathe.softmax %s axis 4 : !s5
  %y = lathe.matmul %p, %v : !s5, tensor<1x2x3x5x4xf32>
  return %y : !q5
}

// CHECK: remark: attention: {{.*}}the mask of bool[2, 1, 3, 5] tells heads of a group apart
func.func @mask_of_groups(%q: !q5, %k: !k5, %m: tensor<2x1x3x5xi1>) -> !q5 {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %t = lathe.transpose %k [0, 1, 2, 4, 3] : !k5
  %s = lathe.matmul %q, %t : !q5, tensor<1x2x1x4x5xf32>
  %a = lathe.select %m, %s, %low : tensor<2x1x3x5xi1>, !s5, tensor<f32>
  %p = lathe.softmax %a axis 4 : !s5
  %y = lathe.matmul %p, %k : !s5, !k5
  return %y : !q5
}

// CHECK: remark: attention: {{.*}}the number of heads has no name
func.func @group_size_without_name(%q: tensor<1x2x?x3x4xf32>, %k: !k5) -> tensor<1x2x?x3x4xf32> {
  %t = lathe.transpose %k [0, 1, 2, 4, 3] : !k5
  %s = lathe.matmul %q, %t : tensor<1x2x?x3x4xf32>, tensor<1x2x1x4x5xf32>
  %p = lathe.softmax %s axis 4 : tensor<1x2x?x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<1x2x?x3x5xf32>, !k5
  return %y : tensor<1x2x?x3x4xf32>
}

// A table of rank 1 gives blocks of one sequence only.
// CHECK: remark: paged_attention: {{.*}}lathe.gather: wanted blocks [blocks, heads, keys, depth] by a table [batch, entries], found f32[6, 2, 4, 8]
func.func @table_of_one_sequence(%q: tensor<2x2x3x8xf32>, %b: tensor<9x2x4x8xf32>, %table: tensor<6xi64>, %at: tensor<2xi64>) -> tensor<2x2x3x8xf32> {
  %g = lathe.gather %b, %table axis 0 : tensor<9x2x4x8xf32>, tensor<6xi64>
  %k = lathe.reshape %g to <2, 2, 12, 8> : tensor<6x2x4x8xf32>
  %y = lathe.attention %q, %k, %k positions %at scale 0.5 causal positions : tensor<2x2x3x8xf32>, tensor<2x2x12x8xf32>, tensor<2x2x12x8xf32> positions tensor<2xi64>
  return %y : tensor<2x2x3x8xf32>
}

// Without the transposition heads and blocks change places.
// CHECK: remark: paged_attention: {{.*}}lathe.reshape: the keys of a head do not lie in the order of the table
func.func @heads_not_in_front(%q: tensor<2x2x3x8xf32>, %b: tensor<9x2x4x8xf32>, %table: tensor<2x6xi64>, %at: tensor<2xi64>) -> tensor<2x2x3x8xf32> {
  %g = lathe.gather %b, %table axis 0 : tensor<9x2x4x8xf32>, tensor<2x6xi64>
  %k = lathe.reshape %g to <2, 2, 24, 8> : tensor<2x6x2x4x8xf32>
  %y = lathe.attention %q, %k, %k positions %at scale 0.5 causal positions : tensor<2x2x3x8xf32>, tensor<2x2x24x8xf32>, tensor<2x2x24x8xf32> positions tensor<2xi64>
  return %y : tensor<2x2x3x8xf32>
}
