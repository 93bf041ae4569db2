// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s

// Every spelling of "key j is not after query i" is le(j, i).
// CHECK-LABEL: @causal
// CHECK: %[[I:.*]] = lathe.iota <seq, 1> axis 0
// CHECK: %[[J:.*]] = lathe.iota <1, seq> axis 1
// CHECK-COUNT-6: lathe.compare le %[[J]], %[[I]]
// CHECK-NOT: lathe.compare
!c = tensor<?x?xi1, #lathe.dims<seq, seq>>
!i = tensor<?x1xi64, #lathe.dims<seq, 1>>
!j = tensor<1x?xi64, #lathe.dims<1, seq>>
!d = tensor<?x?xi64, #lathe.dims<seq, seq>>
func.func @causal() -> (!c, !c, !c, !c, !c, !c) {
  %i = lathe.iota <seq, 1> axis 0 dtype i64
  %j = lathe.iota <1, seq> axis 1 dtype i64
  %one = lathe.constant dense<1> : tensor<i64>
  %zero = lathe.constant dense<0> : tensor<i64>
  %0 = lathe.compare le %j, %i : !j, !i
  %1 = lathe.compare ge %i, %j : !i, !j
  %next = lathe.add %i, %one : !i, tensor<i64>
  %2 = lathe.compare lt %j, %next : !j, !i
  %after = lathe.compare gt %j, %i : !j, !i
  %3 = lathe.logical_not %after : !c
  %difference = lathe.sub %i, %j : !i, !j
  %4 = lathe.compare ge %difference, %zero : !d, tensor<i64>
  %5 = lathe.compare gt %next, %j : !i, !j
  return %0, %1, %2, %3, %4, %5 : !c, !c, !c, !c, !c, !c
}

// Constants right of ramps, ramps right of other values.
// CHECK-LABEL: @order_sides
// CHECK: lathe.compare gt %{{.*}}, %{{.*}} : tensor<8xi64>, tensor<i64>
// CHECK: lathe.compare lt %arg0, %{{.*}}
// CHECK: lathe.compare lt %arg1, %arg0
func.func @order_sides(%x: tensor<8xi64>, %y: tensor<8xi64>) -> (tensor<8xi1>, tensor<8xi1>, tensor<8xi1>) {
  %i = lathe.iota <8> axis 0 dtype i64
  %three = lathe.constant dense<3> : tensor<i64>
  %a = lathe.compare lt %three, %i : tensor<i64>, tensor<8xi64>
  %b = lathe.compare gt %i, %x : tensor<8xi64>, tensor<8xi64>
  %c = lathe.compare gt %x, %y : tensor<8xi64>, tensor<8xi64>
  return %a, %b, %c : tensor<8xi1>, tensor<8xi1>, tensor<8xi1>
}

// Values that may wrap keep their 1.
// CHECK-LABEL: @no_ramps
// CHECK: lathe.compare lt
func.func @no_ramps(%x: tensor<8xi64>, %y: tensor<8xi64>) -> tensor<8xi1> {
  %one = lathe.constant dense<1> : tensor<i64>
  %n = lathe.add %y, %one : tensor<8xi64>, tensor<i64>
  %c = lathe.compare lt %x, %n : tensor<8xi64>, tensor<8xi64>
  return %c : tensor<8xi1>
}

// Sums of ramps and numbers that leave their 32 bits keep their 1, and prove nothing.
// CHECK-LABEL: @wrapping_ramps
// CHECK: %[[C:.*]] = lathe.compare gt
// CHECK: %[[D:.*]] = lathe.compare gt
// CHECK: %[[S:.*]] = lathe.logical_and %[[D]], %arg0
// CHECK: return %[[C]], %[[S]]
func.func @wrapping_ramps(%x: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>) {
  %i = lathe.iota <4> axis 0 dtype i32
  %one = lathe.constant dense<1> : tensor<i32>
  %zero = lathe.constant dense<0> : tensor<i32>
  %half = lathe.constant dense<1073741823> : tensor<i32>
  %a = lathe.add %i, %half : tensor<4xi32>, tensor<i32>
  %b = lathe.add %a, %half : tensor<4xi32>, tensor<i32>
  %n = lathe.add %b, %one : tensor<4xi32>, tensor<i32>
  %c = lathe.compare lt %i, %n : tensor<4xi32>, tensor<4xi32>
  %far = lathe.add %n, %half : tensor<4xi32>, tensor<i32>
  %d = lathe.compare gt %far, %zero : tensor<4xi32>, tensor<i32>
  %s = lathe.logical_and %d, %x : tensor<4xi1>, tensor<4xi1>
  return %c, %s : tensor<4xi1>, tensor<4xi1>
}
