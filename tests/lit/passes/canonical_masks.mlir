// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s
// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s --check-prefix=STRICT

!s = tensor<8x8xf32>
!m = tensor<8x8xi1>

// What is hidden stands right, -inf and a finite minimum alike, and each keeps its value.
// CHECK-LABEL: @hidden_right
// CHECK-DAG: %[[INF:.*]] = lathe.constant dense<0xFF800000>
// CHECK-DAG: %[[MIN:.*]] = lathe.constant dense<-1.000000e+09>
// CHECK-DAG: %[[N:.*]] = lathe.logical_not %arg1
// CHECK-DAG: lathe.select %[[N]], %arg0, %[[INF]]
// CHECK-DAG: lathe.select {{.*}}, %arg0, %[[MIN]]
func.func @hidden_right(%x: !s, %h: !m) -> (!s, !s) {
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %min = lathe.constant dense<-1.0e9> : tensor<f32>
  %a = lathe.select %h, %inf, %x : !m, tensor<f32>, !s
  %b = lathe.select %h, %min, %x : !m, tensor<f32>, !s
  return %a, %b : !s, !s
}

// CHECK-LABEL: @select_negated
// CHECK-NEXT: lathe.select %arg2, %arg1, %arg0
func.func @select_negated(%x: !s, %y: !s, %c: !m) -> !s {
  %n = lathe.logical_not %c : !m
  %a = lathe.select %n, %x, %y : !m, !s, !s
  return %a : !s
}

// -inf is added away, a finite minimum never.
// CHECK-LABEL: @added_mask
// CHECK-DAG: %[[INF:.*]] = lathe.constant dense<0xFF800000>
// CHECK-DAG: %[[A:.*]] = lathe.select %arg1, %arg0, %[[INF]]
// CHECK-DAG: %[[M:.*]] = lathe.select %arg1, %{{.*}}, %{{.*}} : tensor<8x8xi1>, tensor<f32>, tensor<f32>
// CHECK-DAG: %[[B:.*]] = lathe.add %arg0, %[[M]]
// CHECK: return %[[A]], %[[B]]
// STRICT-LABEL: @added_mask
// STRICT-COUNT-2: lathe.add
func.func @added_mask(%x: !s, %c: !m) -> (!s, !s) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %min = lathe.constant dense<-3.40282347E+38> : tensor<f32>
  %0 = lathe.select %c, %zero, %inf : !m, tensor<f32>, tensor<f32>
  %a = lathe.add %x, %0 : !s, !s
  %1 = lathe.select %c, %zero, %min : !m, tensor<f32>, tensor<f32>
  %b = lathe.add %x, %1 : !s, !s
  return %a, %b : !s, !s
}

// CHECK-LABEL: @join_masks
// CHECK: %[[C:.*]] = lathe.logical_and %arg1, %arg2
// CHECK-NEXT: lathe.select %[[C]], %arg0
// CHECK-NEXT: return
// STRICT-LABEL: @join_masks
// STRICT: lathe.logical_and
func.func @join_masks(%x: !s, %c: !m, %d: tensor<8xi1>) -> !s {
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %0 = lathe.select %c, %x, %inf : !m, !s, tensor<f32>
  %1 = lathe.select %d, %0, %inf : tensor<8xi1>, !s, tensor<f32>
  return %1 : !s
}

// Two different fills are two masks.
// CHECK-LABEL: @different_fills
// CHECK-NOT: lathe.logical_and
// CHECK: return
func.func @different_fills(%x: !s, %c: !m, %d: !m) -> !s {
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %min = lathe.constant dense<-1.0e9> : tensor<f32>
  %0 = lathe.select %c, %x, %inf : !m, !s, tensor<f32>
  %1 = lathe.select %d, %0, %min : !m, !s, tensor<f32>
  return %1 : !s
}

// A positive factor goes under the mask, where the product is; a negative one would turn -inf.
// CHECK-LABEL: @scale_under_mask
// CHECK: %[[P:.*]] = lathe.mul %arg0
// CHECK-NEXT: lathe.select %arg1, %[[P]]
// CHECK: %[[S:.*]] = lathe.select %arg1, %arg0
// CHECK-NEXT: lathe.mul %[[S]]
// STRICT-LABEL: @scale_under_mask
// STRICT: %[[P:.*]] = lathe.mul %arg0
func.func @scale_under_mask(%x: !s, %c: !m) -> (!s, !s) {
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %minus = lathe.constant dense<-0.5> : tensor<f32>
  %0 = lathe.select %c, %x, %inf : !m, !s, tensor<f32>
  %1 = lathe.mul %0, %half : !s, tensor<f32>
  %2 = lathe.select %c, %x, %inf : !m, !s, tensor<f32>
  %3 = lathe.mul %2, %minus : !s, tensor<f32>
  return %1, %3 : !s, !s
}

// Masks of ones go where they are proved: a constant, a ramp that cannot leave its range.
// CHECK-LABEL: @proved
// CHECK-NEXT: return %arg0, %arg0, %arg1
func.func @proved(%x: !s, %c: !m) -> (!s, !s, !m) {
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %true = lathe.constant dense<true> : tensor<i1>
  %ones = lathe.broadcast %true to <8, 8> : tensor<i1>
  %a = lathe.select %ones, %x, %inf : !m, !s, tensor<f32>
  %i = lathe.iota <8, 8> axis 1 dtype i64
  %eight = lathe.constant dense<8> : tensor<i64>
  %in = lathe.compare lt %i, %eight : tensor<8x8xi64>, tensor<i64>
  %b = lathe.select %in, %x, %inf : !m, !s, tensor<f32>
  %d = lathe.logical_and %c, %in : !m, !m
  return %a, %b, %d : !s, !s, !m
}

// A ramp over a named size, or a bound inside the range, proves nothing.
// CHECK-LABEL: @not_proved
// CHECK: lathe.compare
// CHECK: lathe.select
func.func @not_proved(%x: !s) -> !s {
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <8, 8> axis 1 dtype i64
  %seven = lathe.constant dense<7> : tensor<i64>
  %in = lathe.compare lt %i, %seven : tensor<8x8xi64>, tensor<i64>
  %b = lathe.select %in, %x, %inf : !m, !s, tensor<f32>
  return %b : !s
}

// Negations go inside where one is free, and outside where two are paid.
// CHECK-LABEL: @negations
// CHECK-NEXT: %[[G:.*]] = lathe.compare le %arg1, %arg0
// CHECK-NEXT: %[[N:.*]] = lathe.logical_not %arg2
// CHECK-NEXT: %[[A:.*]] = lathe.logical_and %[[G]], %[[N]]
// CHECK-NEXT: %[[O:.*]] = lathe.logical_or %arg2, %arg3
// CHECK-NEXT: %[[B:.*]] = lathe.logical_not %[[O]]
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @negations(%i: tensor<8xi64>, %j: tensor<8xi64>, %c: tensor<8xi1>, %d: tensor<8xi1>) -> (tensor<8xi1>, tensor<8xi1>) {
  %0 = lathe.compare lt %i, %j : tensor<8xi64>, tensor<8xi64>
  %1 = lathe.logical_or %0, %c : tensor<8xi1>, tensor<8xi1>
  %a = lathe.logical_not %1 : tensor<8xi1>
  %2 = lathe.logical_not %c : tensor<8xi1>
  %3 = lathe.logical_not %d : tensor<8xi1>
  %b = lathe.logical_and %2, %3 : tensor<8xi1>, tensor<8xi1>
  return %a, %b : tensor<8xi1>, tensor<8xi1>
}

// With a NaN neither a < b nor a >= b holds.
// CHECK-LABEL: @negated_float_comparison
// CHECK-NEXT: lathe.compare lt
// CHECK-NEXT: lathe.logical_not
func.func @negated_float_comparison(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xi1> {
  %0 = lathe.compare lt %a, %b : tensor<8xf32>, tensor<8xf32>
  %1 = lathe.logical_not %0 : tensor<8xi1>
  return %1 : tensor<8xi1>
}

// CHECK-LABEL: @condition_of_cast
// CHECK-NEXT: %[[N:.*]] = lathe.logical_not %arg0
// CHECK-NEXT: return %arg0, %[[N]]
func.func @condition_of_cast(%c: tensor<8xi1>) -> (tensor<8xi1>, tensor<8xi1>) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %f = lathe.cast %c to f32 : tensor<8xi1>
  %a = lathe.compare ne %f, %zero : tensor<8xf32>, tensor<f32>
  %b = lathe.compare eq %f, %zero : tensor<8xf32>, tensor<f32>
  return %a, %b : tensor<8xi1>, tensor<8xi1>
}

// A mask made by arithmetic is a selection; -1e9 times false is -0, an infinity times false is NaN.
// Other factors stay.
// CHECK-LABEL: @conditions_as_numbers
// CHECK-DAG: %[[LOW:.*]] = lathe.constant dense<-1.000000e+09>
// CHECK-DAG: %[[ZERO:.*]] = lathe.constant dense<-0.000000e+00>
// CHECK-DAG: lathe.select {{.*}}, %[[ZERO]], %[[LOW]]
// CHECK-DAG: lathe.cast %{{.*}} to f32
// CHECK-NOT: lathe.sub
// CHECK-COUNT-2: lathe.mul
// CHECK-NEXT: return
// STRICT-LABEL: @conditions_as_numbers
// STRICT: lathe.select
// STRICT-NOT: lathe.sub
func.func @conditions_as_numbers(%x: !s, %c: !m) -> (!s, !s, !s, !s) {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %inf = lathe.constant dense<0xFF800000> : tensor<f32>
  %n = lathe.cast %c to f32 : !m
  %a = lathe.mul %n, %low : !s, tensor<f32>
  %p = lathe.cast %c to f32 : !m
  %b = lathe.sub %one, %p : tensor<f32>, !s
  %q = lathe.cast %c to f32 : !m
  %d = lathe.mul %q, %inf : !s, tensor<f32>
  %r = lathe.cast %c to f32 : !m
  %two = lathe.constant dense<2.0> : tensor<f32>
  %e = lathe.mul %r, %two : !s, tensor<f32>
  return %a, %b, %d, %e : !s, !s, !s, !s
}

// tril(ones) == 0.
// CHECK-LABEL: @condition_of_select
// CHECK-NEXT: %[[N:.*]] = lathe.logical_not %arg0
// CHECK-NEXT: return %[[N]], %arg0
func.func @condition_of_select(%c: !m) -> (!m, !m) {
  %one = lathe.constant dense<1.0> : !s
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %t = lathe.select %c, %one, %zero : !m, !s, tensor<f32>
  %a = lathe.compare eq %t, %zero : !s, tensor<f32>
  %b = lathe.compare gt %t, %zero : !s, tensor<f32>
  return %a, %b : !m, !m
}
// Neither number is told apart, or the condition is stretched.
// CHECK-LABEL: @no_condition_of_select
// CHECK-COUNT-2: lathe.compare
func.func @no_condition_of_select(%c: !m, %r: tensor<8x1xi1>) -> (!m, !m) {
  %one = lathe.constant dense<1.0> : !s
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %three = lathe.constant dense<3.0> : tensor<f32>
  %t = lathe.select %c, %one, %zero : !m, !s, tensor<f32>
  %a = lathe.compare lt %t, %three : !s, tensor<f32>
  %u = lathe.select %r, %one, %zero : tensor<8x1xi1>, !s, tensor<f32>
  %b = lathe.compare gt %u, %zero : !s, tensor<f32>
  return %a, %b : !m, !m
}

// CHECK-LABEL: @layout_of_select
// CHECK-DAG: %[[R:.*]] = lathe.reshape %arg0 to <1, 8, 8> : tensor<8x8xi1>
// CHECK-DAG: lathe.select %[[R]]
// CHECK-DAG: %[[T:.*]] = lathe.transpose %arg0 [1, 0] : tensor<8x8xi1>
// CHECK-DAG: lathe.select %[[T]]
// CHECK-DAG: %[[S:.*]] = lathe.slice %arg0 starts <0, 0> sizes <3, 8> strides [1, 1] : tensor<8x8xi1>
// CHECK-DAG: lathe.select %[[S]]
func.func @layout_of_select(%c: !m) -> (tensor<1x8x8xf32>, !s, tensor<3x8xf32>) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %a = lathe.select %c, %zero, %low : !m, tensor<f32>, tensor<f32>
  %r = lathe.reshape %a to <1, 8, 8> : !s
  %b = lathe.select %c, %zero, %low : !m, tensor<f32>, tensor<f32>
  %t = lathe.transpose %b [1, 0] : !s
  %d = lathe.select %c, %zero, %low : !m, tensor<f32>, tensor<f32>
  %s = lathe.slice %d starts <0, 0> sizes <3, 8> strides [1, 1] : !s
  return %r, %t, %s : tensor<1x8x8xf32>, !s, tensor<3x8xf32>
}

// (1 - tril) * -1e9 and tril + 2, exact.
// CHECK-LABEL: @arithmetic_of_select
// CHECK: %[[A:.*]] = lathe.select %arg0
// CHECK: %[[B:.*]] = lathe.select %arg0
// CHECK-NEXT: return %[[A]], %[[B]]
// STRICT-LABEL: @arithmetic_of_select
// STRICT-NOT: lathe.sub
// STRICT-NOT: lathe.add
// STRICT: return
func.func @arithmetic_of_select(%c: !m) -> (!s, !s) {
  %one = lathe.constant dense<1.0> : !s
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.select %c, %one, %zero : !m, !s, tensor<f32>
  %n = lathe.sub %one, %t : !s, !s
  %a = lathe.mul %n, %low : !s, tensor<f32>
  %b = lathe.add %t, %two : !s, tensor<f32>
  return %a, %b : !s, !s
}
// A number that would be rounded, and one that stretches the condition.
// CHECK-LABEL: @rounded_arithmetic_of_select
// CHECK-COUNT-2: lathe.add
func.func @rounded_arithmetic_of_select(%c: !m, %r: tensor<8xi1>) -> (!s, !s) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %tiny = lathe.constant dense<1.0e-9> : tensor<f32>
  %all = lathe.constant dense<2.0> : tensor<8x8xf32>
  %t = lathe.select %c, %one, %zero : !m, tensor<f32>, tensor<f32>
  %a = lathe.add %t, %tiny : !s, tensor<f32>
  %u = lathe.select %r, %one, %zero : tensor<8xi1>, tensor<f32>, tensor<f32>
  %b = lathe.add %u, %all : tensor<8xf32>, tensor<8x8xf32>
  return %a, %b : !s, !s
}

// x * tril - 1e10 * (1 - tril)
// CHECK-LABEL: @scores_times_condition
// CHECK: %[[A:.*]] = lathe.select %arg1, %arg0
// CHECK: %[[B:.*]] = lathe.select %arg1, %arg0
// CHECK-NEXT: return %[[A]], %[[B]]
// STRICT-LABEL: @scores_times_condition
// STRICT: lathe.mul
// STRICT: lathe.sub
// STRICT: lathe.mul
// STRICT: lathe.add
func.func @scores_times_condition(%x: !s, %c: !m) -> (!s, !s) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %high = lathe.constant dense<1.0e10> : tensor<f32>
  %low = lathe.constant dense<-1.0e10> : tensor<f32>
  %b = lathe.select %c, %one, %zero : !m, tensor<f32>, tensor<f32>
  %p = lathe.mul %x, %b : !s, !s
  %h = lathe.select %c, %zero, %high : !m, tensor<f32>, tensor<f32>
  %y = lathe.sub %p, %h : !s, !s
  %d = lathe.cast %c to f32 : !m
  %q = lathe.mul %d, %x : !s, !s
  %l = lathe.select %c, %zero, %low : !m, tensor<f32>, tensor<f32>
  %z = lathe.add %l, %q : !s, !s
  return %y, %z : !s, !s
}
// Another condition hides than the one that the scores are multiplied with; what is added is no
// fill.
// CHECK-LABEL: @scores_times_another
// CHECK-COUNT-2: lathe.mul
// CHECK: return
func.func @scores_times_another(%x: !s, %c: !m, %o: !m) -> (!s, !s) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %low = lathe.constant dense<-1.0e10> : tensor<f32>
  %few = lathe.constant dense<-1.0e2> : tensor<f32>
  %b = lathe.cast %c to f32 : !m
  %p = lathe.mul %x, %b : !s, !s
  %h = lathe.select %o, %zero, %low : !m, tensor<f32>, tensor<f32>
  %y = lathe.add %p, %h : !s, !s
  %d = lathe.cast %c to f32 : !m
  %q = lathe.mul %x, %d : !s, !s
  %f = lathe.select %c, %zero, %few : !m, tensor<f32>, tensor<f32>
  %z = lathe.add %q, %f : !s, !s
  return %y, %z : !s, !s
}

// triu(ones) as a condition.
// CHECK-LABEL: @condition_of_numbers
// CHECK-NEXT: %[[N:.*]] = lathe.logical_not %arg0
// CHECK-NEXT: return %arg0, %[[N]]
// STRICT-LABEL: @condition_of_numbers
// STRICT-NOT: lathe.cast
// STRICT: return
func.func @condition_of_numbers(%c: !m) -> (!m, !m) {
  %one = lathe.constant dense<1.0> : !s
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %t = lathe.select %c, %one, %zero : !m, !s, tensor<f32>
  %a = lathe.cast %t to i1 : !s
  %u = lathe.select %c, %zero, %one : !m, tensor<f32>, !s
  %b = lathe.cast %u to i1 : !s
  return %a, %b : !m, !m
}
// Both numbers are true.
// CHECK-LABEL: @condition_of_equal_numbers
// CHECK: lathe.cast
func.func @condition_of_equal_numbers(%c: !m) -> !m {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %t = lathe.select %c, %one, %two : !m, tensor<f32>, tensor<f32>
  %a = lathe.cast %t to i1 : !s
  return %a : !m
}

// 1 - mask[:, None, None, :]
// CHECK-LABEL: @one_minus_laid_out
// CHECK: %[[R:.*]] = lathe.reshape %arg0 to <8, 1, 8> : tensor<8x8xi1>
// CHECK: %[[N:.*]] = lathe.logical_not %[[R]]
// CHECK: lathe.cast %[[N]] to f32
func.func @one_minus_laid_out(%c: !m) -> tensor<8x1x8xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.cast %c to f32 : !m
  %r = lathe.reshape %n to <8, 1, 8> : !s
  %a = lathe.sub %one, %r : tensor<f32>, tensor<8x1x8xf32>
  return %a : tensor<8x1x8xf32>
}

// A difference of a selection of two numbers and a third one, from either side, selects both results.
// CHECK-LABEL: @differences_of_numbers
// CHECK-DAG: %[[A:.*]] = lathe.constant dense<-5.000000e+00>
// CHECK-DAG: %[[B:.*]] = lathe.constant dense<-4.000000e+00>
// CHECK-DAG: %[[X:.*]] = lathe.select %arg0, %[[A]], %[[B]]
// CHECK-DAG: %[[C:.*]] = lathe.constant dense<5.000000e+00>
// CHECK-DAG: %[[D:.*]] = lathe.constant dense<4.000000e+00>
// CHECK-DAG: %[[Y:.*]] = lathe.select %arg0, %[[C]], %[[D]]
// CHECK: return %[[X]], %[[Y]]
func.func @differences_of_numbers(%c: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %six = lathe.constant dense<6.0> : tensor<f32>
  %s = lathe.select %c, %one, %two : tensor<4xi1>, tensor<f32>, tensor<f32>
  %x = lathe.sub %s, %six : tensor<4xf32>, tensor<f32>
  %y = lathe.sub %six, %s : tensor<f32>, tensor<4xf32>
  return %x, %y : tensor<4xf32>, tensor<4xf32>
}

// One minus a condition is its negation, one minus a number is not.
// CHECK-LABEL: @one_minus_numbers
// CHECK: lathe.sub
// CHECK: lathe.logical_not %arg1
// CHECK-NOT: lathe.sub
func.func @one_minus_numbers(%n: tensor<4xi64>, %c: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %a = lathe.cast %n to f32 : tensor<4xi64>
  %x = lathe.sub %one, %a : tensor<f32>, tensor<4xf32>
  %b = lathe.cast %c to f32 : tensor<4xi1>
  %y = lathe.sub %one, %b : tensor<f32>, tensor<4xf32>
  return %x, %y : tensor<4xf32>, tensor<4xf32>
}

// Masked scores that are also read as they are stay in front of the scale.
// CHECK-LABEL: @masked_scores_of_two_users
// CHECK: %[[S:.*]] = lathe.select %arg0, %arg1
// CHECK: %[[Y:.*]] = lathe.mul %[[S]]
// CHECK: return %[[S]], %[[Y]]
func.func @masked_scores_of_two_users(%c: tensor<4xi1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %s = lathe.select %c, %x, %low : tensor<4xi1>, tensor<4xf32>, tensor<f32>
  %y = lathe.mul %s, %two : tensor<4xf32>, tensor<f32>
  return %s, %y : tensor<4xf32>, tensor<4xf32>
}
