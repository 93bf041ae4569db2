// RUN: lathe-opt %s --lathe-fuse --lathe-why-not --split-input-file -o /dev/null 2>&1 | FileCheck %s
// RUN: lathe-opt %s --lathe-fuse --lathe-why-not --split-input-file 2>/dev/null | FileCheck %s --check-prefix=SAME

// The report changes nothing.
// SAME-LABEL: @one_more_user
// SAME-NEXT: lathe.sigmoid
// SAME-NEXT: lathe.mul
// SAME-NEXT: lathe.mul
// SAME-NEXT: return

// CHECK: remark: glu: 3 of 3 ops, then lathe.sigmoid has another user at {{.*}}why_not.mlir:{{[0-9]+}} (pattern {{[a-z_]+}}.cpp:{{[0-9]+}})
func.func @one_more_user(%g: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = lathe.sigmoid %g : tensor<4xf32>
  %a = lathe.mul %s, %g : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %u, %a : tensor<4xf32>, tensor<4xf32>
  return %y, %s : tensor<4xf32>, tensor<4xf32>
}

// -----

// CHECK: remark: softmax: 5 of 5 ops, then the maximum and the sum run over different axes
func.func @other_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %t = lathe.reduce_max %x axes [1] keep_dims true : tensor<8x8xf32>
  %s = lathe.sub %x, %t : tensor<8x8xf32>, tensor<8x1xf32>
  %e = lathe.exp %s : tensor<8x8xf32>
  %z = lathe.reduce_sum %e axes [0] keep_dims true : tensor<8x8xf32>
  %y = lathe.div %e, %z : tensor<8x8xf32>, tensor<1x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// CHECK: remark: rms_norm-quotient: {{.*}} ops, then the sum is multiplied by something else than 1 / 16
func.func @wrong_inverse(%x: tensor<2x16xf32>, %g: tensor<16xf32>) -> tensor<2x16xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %n = lathe.constant dense<0.06666667> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<2x16xf32>, tensor<2x16xf32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<2x16xf32>
  %m = lathe.mul %s, %n : tensor<2x1xf32>, tensor<f32>
  %a = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<2x1xf32>
  %y = lathe.div %x, %r : tensor<2x16xf32>, tensor<2x1xf32>
  %z = lathe.mul %y, %g : tensor<2x16xf32>, tensor<16xf32>
  return %z : tensor<2x16xf32>
}

// -----

// CHECK: remark: rms_norm-quotient: {{.*}} ops, then the sum is multiplied by something else than 1 / 768
func.func @wrong_inverse_of_many(%x: tensor<2x768xf32>, %g: tensor<768xf32>) -> tensor<2x768xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %n = lathe.constant dense<0.00130378094> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<2x768xf32>, tensor<2x768xf32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<2x768xf32>
  %m = lathe.mul %s, %n : tensor<2x1xf32>, tensor<f32>
  %a = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<2x1xf32>
  %y = lathe.div %x, %r : tensor<2x768xf32>, tensor<2x1xf32>
  %z = lathe.mul %y, %g : tensor<2x768xf32>, tensor<768xf32>
  return %z : tensor<2x768xf32>
}

// -----

// CHECK: remark: rms_norm-quotient: {{.*}} ops, then the sum is divided by 7, the last axis is 8
func.func @wrong_count(%x: tensor<2x8xf32>, %g: tensor<8xf32>) -> tensor<2x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %n = lathe.constant dense<7.0> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<2x8xf32>, tensor<2x8xf32>
  %s = lathe.reduce_sum %q axes [1] keep_dims true : tensor<2x8xf32>
  %m = lathe.div %s, %n : tensor<2x1xf32>, tensor<f32>
  %a = lathe.add %m, %eps : tensor<2x1xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<2x1xf32>
  %d = lathe.div %x, %r : tensor<2x8xf32>, tensor<2x1xf32>
  %y = lathe.mul %d, %g : tensor<2x8xf32>, tensor<8xf32>
  return %y : tensor<2x8xf32>
}

// -----

// CHECK: remark: glu: {{.*}} then wanted the constant 1
func.func @constant(%g: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %n = lathe.neg %g : tensor<4xf32>
  %e = lathe.exp %n : tensor<4xf32>
  %d = lathe.add %e, %two : tensor<4xf32>, tensor<f32>
  %a = lathe.div %g, %d : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// CHECK: remark: attention: 2 of 2 ops, then lathe.select: the mask puts neither -inf nor a large negative number into the scores
func.func @finite_mask(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %low = lathe.constant dense<-1.0e4> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %m, %s, %low : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// A batch of one broadcasts in the product: the replacement's own constraint is the reason.
// CHECK: remark: attention: 2 of 2 ops, then the replacement does not hold: lathe.attention: [C2]
func.func @batches(%q: tensor<2x3x4xf32>, %k: tensor<1x5x4xf32>, %v: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<1x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<1x4x5xf32>
  %p = lathe.softmax %s axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %v : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
