// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s
// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s --check-prefix=STRICT

!x = tensor<4xf32>
!x2 = tensor<4xi1>

// CHECK-LABEL: @sigmoids
// CHECK-COUNT-3: lathe.sigmoid %arg0
// CHECK-NEXT: return
// STRICT-LABEL: @sigmoids
// STRICT-NOT: lathe.sigmoid
// STRICT: return
func.func @sigmoids(%x: !x) -> (!x, !x, !x) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %n = lathe.neg %x : !x
  %e = lathe.exp %n : !x
  %s = lathe.add %one, %e : tensor<f32>, !x
  %a = lathe.div %one, %s : tensor<f32>, !x
  %h = lathe.mul %x, %half : !x, tensor<f32>
  %t = lathe.tanh %h : !x
  %o = lathe.add %t, %one : !x, tensor<f32>
  %b = lathe.mul %half, %o : tensor<f32>, !x
  %g = lathe.mul %x, %half : !x, tensor<f32>
  %u = lathe.tanh %g : !x
  %v = lathe.mul %u, %half : !x, tensor<f32>
  %c = lathe.add %v, %half : !x, tensor<f32>
  return %a, %b, %c : !x, !x, !x
}

// CHECK-LABEL: @silus
// CHECK-NEXT: %[[S:.*]] = lathe.sigmoid %arg0
// CHECK-NEXT: lathe.mul %arg0, %[[S]]
// CHECK-NEXT: %[[T:.*]] = lathe.sigmoid %arg0
// CHECK-NEXT: lathe.mul %arg0, %[[T]]
func.func @silus(%x: !x) -> (!x, !x) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.neg %x : !x
  %e = lathe.exp %n : !x
  %s = lathe.add %e, %one : !x, tensor<f32>
  %a = lathe.div %x, %s : !x, !x
  %m = lathe.neg %x : !x
  %f = lathe.exp %m : !x
  %t = lathe.add %f, %one : !x, tensor<f32>
  %i = lathe.div %one, %t : tensor<f32>, !x
  %b = lathe.mul %x, %i : !x, !x
  return %a, %b : !x, !x
}

// inf / inf is NaN where a sigmoid is 1.
// CHECK-LABEL: @overflowing
// CHECK-NOT: lathe.sigmoid
// CHECK: lathe.div
func.func @overflowing(%x: !x) -> !x {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %e = lathe.exp %x : !x
  %s = lathe.add %e, %one : !x, tensor<f32>
  %a = lathe.div %e, %s : !x, !x
  return %a : !x
}

// CHECK-LABEL: @gelus
// CHECK: %[[H:.*]] = lathe.mul %arg0, %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK: lathe.mul %[[H]], %{{.*}} : tensor<4xf32>, tensor<4xf32>
// CHECK: %[[G:.*]] = lathe.mul %arg0, %{{.*}} : tensor<4xf32>, tensor<f32>
// CHECK: lathe.mul %[[G]], %{{.*}} : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: return
func.func @gelus(%x: !x) -> (!x, !x) {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %e = lathe.erf %x : !x
  %s = lathe.add %e, %one : !x, tensor<f32>
  %p = lathe.mul %x, %s : !x, !x
  %a = lathe.mul %p, %half : !x, tensor<f32>
  %f = lathe.erf %x : !x
  %t = lathe.add %one, %f : tensor<f32>, !x
  %h = lathe.mul %t, %half : !x, tensor<f32>
  %b = lathe.mul %h, %x : !x, !x
  return %a, %b : !x, !x
}

// CHECK-LABEL: @relu
// CHECK: lathe.max %arg0
// STRICT-LABEL: @relu
// STRICT: lathe.select
func.func @relu(%x: !x) -> !x {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %c = lathe.compare gt %x, %zero : !x, tensor<f32>
  %a = lathe.select %c, %x, %zero : !x2, !x, tensor<f32>
  return %a : !x
}

// CHECK-LABEL: @silu_first
// CHECK: %[[S:.*]] = lathe.sigmoid %arg0
// CHECK: %[[A:.*]] = lathe.mul {{.*}}%arg0
// CHECK: lathe.mul %[[A]], %arg1
// CHECK: %[[B:.*]] = lathe.mul {{.*}}%arg0
// CHECK: lathe.mul %[[B]], %arg1
// STRICT-LABEL: @silu_first
// STRICT: lathe.mul %arg0, %arg1
func.func @silu_first(%x: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = lathe.sigmoid %x : tensor<4xf32>
  %p = lathe.mul %x, %u : tensor<4xf32>, tensor<4xf32>
  %a = lathe.mul %p, %s : tensor<4xf32>, tensor<4xf32>
  %q = lathe.mul %s, %u : tensor<4xf32>, tensor<4xf32>
  %b = lathe.mul %x, %q : tensor<4xf32>, tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
// The sigmoid of another value.
// CHECK-LABEL: @sigmoid_of_another
// CHECK: %[[P:.*]] = lathe.mul %arg0, %arg1
// CHECK: lathe.mul %[[P]]
func.func @sigmoid_of_another(%x: tensor<4xf32>, %u: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %s = lathe.sigmoid %z : tensor<4xf32>
  %p = lathe.mul %x, %u : tensor<4xf32>, tensor<4xf32>
  %a = lathe.mul %p, %s : tensor<4xf32>, tensor<4xf32>
  return %a : tensor<4xf32>
}
// There is no maximum of booleans.
// CHECK-LABEL: @positive_booleans
// CHECK-NOT: lathe.max
// CHECK: return
func.func @positive_booleans(%x: tensor<4xi1>) -> tensor<4xi1> {
  %z = lathe.constant dense<false> : tensor<i1>
  %p = lathe.compare gt %x, %z : tensor<4xi1>, tensor<i1>
  %y = lathe.select %p, %x, %z : tensor<4xi1>, tensor<4xi1>, tensor<i1>
  return %y : tensor<4xi1>
}

// Half of a bounded value plus a half: both are halves of a sum, bit for bit.
// CHECK-LABEL: @half_plus_half
// CHECK: %[[E:.*]] = lathe.erf
// CHECK: %[[S:.*]] = lathe.add %[[E]]
// CHECK: lathe.mul %[[S]]
// CHECK-NEXT: return
// STRICT-LABEL: @half_plus_half
// STRICT: %[[E:.*]] = lathe.erf
// STRICT: %[[S:.*]] = lathe.add %[[E]]
// STRICT: lathe.mul %[[S]]
func.func @half_plus_half(%x: !x) -> !x {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %e = lathe.erf %x : !x
  %h = lathe.mul %e, %half : !x, tensor<f32>
  %a = lathe.add %h, %half : !x, tensor<f32>
  return %a : !x
}
// Another number is added.
// CHECK-LABEL: @half_plus_quarter
// CHECK: %[[E:.*]] = lathe.erf
// CHECK: %[[H:.*]] = lathe.mul %[[E]]
// CHECK: lathe.add %[[H]]
func.func @half_plus_quarter(%x: !x) -> !x {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %quarter = lathe.constant dense<0.25> : tensor<f32>
  %e = lathe.erf %x : !x
  %h = lathe.mul %e, %half : !x, tensor<f32>
  %a = lathe.add %h, %quarter : !x, tensor<f32>
  return %a : !x
}

// CHECK-LABEL: @relu_predicates
// CHECK-COUNT-3: lathe.max %arg0
// CHECK-NEXT: return
// STRICT-LABEL: @relu_predicates
// STRICT-COUNT-2: lathe.select
// STRICT: lathe.max %arg0
func.func @relu_predicates(%x: !x) -> (!x, !x, !x) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %c = lathe.compare ge %x, %zero : !x, tensor<f32>
  %a = lathe.select %c, %x, %zero : !x2, !x, tensor<f32>
  %d = lathe.compare lt %x, %zero : !x, tensor<f32>
  %b = lathe.select %d, %zero, %x : !x2, tensor<f32>, !x
  %e = lathe.compare le %x, %zero : !x, tensor<f32>
  %f = lathe.select %e, %zero, %x : !x2, tensor<f32>, !x
  return %a, %b, %f : !x, !x, !x
}
// What is below 0 stays, or another value is chosen.
// CHECK-LABEL: @no_relu
// CHECK-NOT: lathe.max
// CHECK: return
func.func @no_relu(%x: !x, %z: !x) -> (!x, !x) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %c = lathe.compare lt %x, %zero : !x, tensor<f32>
  %a = lathe.select %c, %x, %zero : !x2, !x, tensor<f32>
  %d = lathe.compare lt %z, %zero : !x, tensor<f32>
  %b = lathe.select %d, %zero, %x : !x2, tensor<f32>, !x
  return %a, %b : !x, !x
}

// Each comparison that picks x above 0: those that give x for 0 give -0 for -0, where the maximum
// with 0 is 0. A chosen -0 is another number, and so is the other operand's sign.
// CHECK-LABEL: @relus
// CHECK-COUNT-4: lathe.max %arg0
// CHECK-NOT: lathe.max
// CHECK: return
// STRICT-LABEL: @relus
// STRICT: lathe.select
// STRICT: lathe.select
// STRICT: lathe.select
// STRICT: %[[L:.*]] = lathe.max %arg0
// STRICT-NOT: lathe.max
// STRICT: return
func.func @relus(%x: !x) -> (!x, !x, !x, !x, !x, !x) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %minus = lathe.constant dense<-0.0> : tensor<f32>
  %0 = lathe.compare gt %x, %zero : !x, tensor<f32>
  %1 = lathe.compare ge %x, %zero : !x, tensor<f32>
  %2 = lathe.compare lt %x, %zero : !x, tensor<f32>
  %3 = lathe.compare le %x, %zero : !x, tensor<f32>
  %a = lathe.select %0, %x, %zero : !x2, !x, tensor<f32>
  %b = lathe.select %1, %x, %zero : !x2, !x, tensor<f32>
  %c = lathe.select %2, %zero, %x : !x2, tensor<f32>, !x
  %d = lathe.select %3, %zero, %x : !x2, tensor<f32>, !x
  %e = lathe.select %0, %x, %minus : !x2, !x, tensor<f32>
  %f = lathe.select %0, %zero, %x : !x2, tensor<f32>, !x
  return %a, %b, %c, %d, %e, %f : !x, !x, !x, !x, !x, !x
}
