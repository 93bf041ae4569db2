// RUN: lathe-opt %s --lathe-why-not -o /dev/null 2>&1 | FileCheck %s

// Each reason for which what stands between the product and the softmax is not taken in by
// attention.

!s = tensor<2x3x5xf32>
!q = tensor<2x3x4xf32>
!k = tensor<2x5x4xf32>
!t = tensor<2x4x5xf32>

// CHECK: remark: attention: {{.*}}the scores are an argument, wanted lathe.matmul
func.func @argument(%s: !s, %v: !k) -> !q {
  %p = lathe.softmax %s axis 2 : !s
  %y = lathe.matmul %p, %v : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}wanted the product of q and k, found lathe.exp
func.func @other_op(%s: !s, %v: !k) -> !q {
  %e = lathe.exp %s : !s
  %p = lathe.softmax %e axis 2 : !s
  %y = lathe.matmul %p, %v : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.cast from i32 to f32 between the product and the softmax is no rounding
func.func @cast_through_integers(%q: !q, %k: !k) -> !q {
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %i = lathe.cast %s to i32 : !s
  %f = lathe.cast %i to f32 : tensor<2x3x5xi32>
  %z = lathe.constant dense<0.0> : tensor<f32>
  %a = lathe.add %f, %z : !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.mul: the scores are scaled by something else than a positive constant
func.func @scaled_by_a_value(%q: !q, %k: !k, %c: tensor<f32>) -> !q {
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.mul %s, %c : !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.div: the scores are scaled by something else than a positive constant
func.func @negative_scale(%q: !q, %k: !k) -> !q {
  %c = lathe.constant dense<-2.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.div %s, %c : !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// What is hidden comes out of tanh as -c.
// CHECK: remark: attention: {{.*}}the mask lies under the softcap
func.func @mask_under_softcap(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %c = lathe.constant dense<20.0> : tensor<f32>
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %l = lathe.select %m, %s, %low : tensor<3x5xi1>, !s, tensor<f32>
  %d = lathe.div %l, %c : !s, tensor<f32>
  %h = lathe.tanh %d : !s
  %a = lathe.mul %h, %c : !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}the added mask lies under the softcap
func.func @bias_under_softcap(%q: !q, %k: !k, %b: tensor<3x5xf32>) -> !q {
  %c = lathe.constant dense<20.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %l = lathe.add %s, %b : !s, tensor<3x5xf32>
  %d = lathe.div %l, %c : !s, tensor<f32>
  %h = lathe.tanh %d : !s
  %a = lathe.mul %h, %c : !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.add broadcasts the scores
func.func @bias_of_more_batches(%q: tensor<1x3x4xf32>, %k: tensor<1x5x4xf32>, %b: !s, %v: !k) -> !q {
  %t = lathe.transpose %k [0, 2, 1] : tensor<1x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<1x3x4xf32>, tensor<1x4x5xf32>
  %l = lathe.add %s, %b : tensor<1x3x5xf32>, !s
  %p = lathe.softmax %l axis 2 : !s
  %y = lathe.matmul %p, %v : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.add stretches the scores
func.func @zeros_of_more_batches(%q: tensor<1x3x4xf32>, %k: tensor<1x5x4xf32>, %v: !k) -> !q {
  %z = lathe.constant dense<0.0> : tensor<2x1x1xf32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<1x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<1x3x4xf32>, tensor<1x4x5xf32>
  %l = lathe.add %s, %z : tensor<1x3x5xf32>, tensor<2x1x1xf32>
  %p = lathe.softmax %l axis 2 : !s
  %y = lathe.matmul %p, %v : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.select: the mask hides a constant
func.func @hides_a_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %fill = lathe.constant dense<-1.0e30> : !s
  %l = lathe.select %m, %fill, %low : tensor<3x5xi1>, !s, tensor<f32>
  %p = lathe.softmax %l axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.select: two masks put different numbers into the scores
func.func @two_fills(%q: !q, %k: !k, %m: tensor<3x5xi1>, %n: tensor<3x5xi1>) -> !q {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %fill = lathe.constant dense<-1.0e30> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.select %m, %s, %low : tensor<3x5xi1>, !s, tensor<f32>
  %b = lathe.select %n, %a, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %p = lathe.softmax %b axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// A scale behind the mask: -1e9 times 1e-3 may be a score.
// CHECK: remark: attention: {{.*}}lathe.select: the scaled fill is no large negative number
func.func @scaled_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %c = lathe.constant dense<1.0e-3> : tensor<f32>
  %fill = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.select %m, %s, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %b = lathe.mul %a, %c : !s, tensor<f32>
  %p = lathe.softmax %b axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.select: the fill becomes -inf behind the mask
func.func @fill_becomes_infinite(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %c = lathe.constant dense<1.0e3> : tensor<f32>
  %fill = lathe.constant dense<-3.0e38> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.select %m, %s, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %b = lathe.mul %a, %c : !s, tensor<f32>
  %p = lathe.softmax %b axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// The same by a cast: f16 ends at 65504.
// CHECK: remark: attention: {{.*}}lathe.select: the fill becomes -inf behind the mask
func.func @fill_rounds_to_infinity(%q: !q, %k: !k, %v: tensor<2x5x4xf16>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf16> {
  %fill = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.select %m, %s, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %h = lathe.cast %a to f16 : !s
  %p = lathe.softmax %h axis 2 : tensor<2x3x5xf16>
  %y = lathe.matmul %p, %v : tensor<2x3x5xf16>, tensor<2x5x4xf16>
  return %y : tensor<2x3x4xf16>
}

// CHECK: remark: attention: {{.*}}lathe.add: an added mask tells apart what the fill made equal
func.func @bias_behind_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>, %b: tensor<3x5xf32>) -> !q {
  %fill = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.select %m, %s, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %l = lathe.add %a, %b : !s, tensor<3x5xf32>
  %p = lathe.softmax %l axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.add: a mask is added under a finite fill
func.func @bias_under_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>, %b: tensor<3x5xf32>) -> !q {
  %fill = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %l = lathe.add %s, %b : !s, tensor<3x5xf32>
  %a = lathe.select %m, %l, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// A ramp so steep that a hidden key may have more than a visible one.
// CHECK: remark: attention: {{.*}}lathe.add: a mask is added under a finite fill
func.func @steep_under_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %fill = lathe.constant dense<-1.0e9> : tensor<f32>
  %slope = lathe.constant dense<-1.0e8> : tensor<f32>
  %ramp = lathe.iota <5> axis 0 dtype f32
  %b = lathe.mul %ramp, %slope : tensor<5xf32>, tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %l = lathe.add %s, %b : !s, tensor<5xf32>
  %a = lathe.select %m, %l, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// A ramp that f16 may have made infinite.
// CHECK: remark: attention: {{.*}}lathe.add: a mask is added under a finite fill
func.func @half_precision_under_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %fill = lathe.constant dense<-1.0e30> : tensor<f32>
  %ramp = lathe.iota <5> axis 0 dtype f32
  %h = lathe.cast %ramp to f16 : tensor<5xf32>
  %b = lathe.cast %h to f32 : tensor<5xf16>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %l = lathe.add %s, %b : !s, tensor<5xf32>
  %a = lathe.select %m, %l, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// CHECK: remark: attention: {{.*}}lathe.add: the added mask is scaled with the scores
func.func @bias_under_scale(%q: !q, %k: !k, %b: tensor<3x5xf32>) -> !q {
  %c = lathe.constant dense<0.5> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %l = lathe.add %s, %b : !s, tensor<3x5xf32>
  %a = lathe.mul %l, %c : !s, tensor<f32>
  %p = lathe.softmax %a axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// Two products: neither is a mask.
// CHECK: remark: attention: {{.*}}one operand of lathe.add must come from lathe.matmul
func.func @sum_of_products(%q: !q, %k: !k) -> !q {
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %r = lathe.matmul %q, %t : !q, !t
  %l = lathe.add %s, %r : !s, !s
  %p = lathe.softmax %l axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}

// A select of two fills over the scores has been added: -inf + -1e30 is no row of equal weights.
// CHECK: remark: attention: {{.*}}lathe.select: the added fill makes -inf of the selected one
func.func @fill_under_added_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>, %n: tensor<3x5xi1>) -> !q {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %fill = lathe.constant dense<-3.0e38> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, !t
  %a = lathe.select %m, %s, %fill : tensor<3x5xi1>, !s, tensor<f32>
  %b = lathe.select %n, %zero, %fill : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %l = lathe.add %a, %b : !s, tensor<3x5xf32>
  %p = lathe.softmax %l axis 2 : !s
  %y = lathe.matmul %p, %k : !s, !k
  return %y : !q
}
