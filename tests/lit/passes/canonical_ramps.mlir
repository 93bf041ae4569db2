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

// Floats lie between whole numbers, and narrow integers wrap: of neither a range proves anything.
// CHECK-LABEL: @no_indices
// CHECK: %[[A:.*]] = lathe.compare ge %{{.*}} : tensor<3xf32>, tensor<f32>
// CHECK: %[[X:.*]] = lathe.logical_and %[[A]], %arg0
// CHECK: %[[B:.*]] = lathe.compare ge %{{.*}} : tensor<3xi8>, tensor<i8>
// CHECK: %[[Y:.*]] = lathe.logical_and %[[B]], %arg0
// CHECK: return %[[X]], %[[Y]]
func.func @no_indices(%x: tensor<3xi1>) -> (tensor<3xi1>, tensor<3xi1>) {
  %f = lathe.iota <3> axis 0 dtype f32
  %half = lathe.constant dense<0.5> : tensor<f32>
  %a = lathe.compare ge %f, %half : tensor<3xf32>, tensor<f32>
  %y = lathe.logical_and %a, %x : tensor<3xi1>, tensor<3xi1>
  %i = lathe.iota <3> axis 0 dtype i8
  %high = lathe.constant dense<126> : tensor<i8>
  %s = lathe.add %i, %high : tensor<3xi8>, tensor<i8>
  %b = lathe.compare ge %s, %high : tensor<3xi8>, tensor<i8>
  %z = lathe.logical_and %b, %x : tensor<3xi1>, tensor<3xi1>
  return %y, %z : tensor<3xi1>, tensor<3xi1>
}

// A ramp of a named size is at least 0; taken off a number it has no lowest value. Of numbers only
// some are above the one in their middle.
// CHECK-LABEL: @ends_of_ramps
// CHECK: %[[N:.*]] = lathe.compare {{.*}} : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
// CHECK: %[[B:.*]] = lathe.logical_and %[[N]], %arg0
// CHECK: %[[M:.*]] = lathe.compare gt {{.*}} : tensor<5xi64>, tensor<i64>
// CHECK: %[[C:.*]] = lathe.logical_and %[[M]], %arg1
// CHECK: return %arg0, %[[B]], %[[C]]
!s = tensor<?xi1, #lathe.dims<seq>>
func.func @ends_of_ramps(%x: !s, %y: tensor<5xi1>) -> (!s, !s, tensor<5xi1>) {
  %zero = lathe.constant dense<0> : tensor<i64>
  %i = lathe.iota <seq> axis 0 dtype i64
  %p = lathe.compare ge %i, %zero : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %a = lathe.logical_and %p, %x : !s, !s
  %far = lathe.constant dense<-600000000> : tensor<i64>
  %five = lathe.constant dense<5> : tensor<i64>
  %turned = lathe.sub %five, %i : tensor<i64>, tensor<?xi64, #lathe.dims<seq>>
  %n = lathe.compare ge %turned, %far : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %b = lathe.logical_and %n, %x : !s, !s
  %two = lathe.constant dense<2> : tensor<i64>
  %j = lathe.iota <5> axis 0 dtype i64
  %m = lathe.compare gt %j, %two : tensor<5xi64>, tensor<i64>
  %c = lathe.logical_and %m, %y : tensor<5xi1>, tensor<5xi1>
  return %a, %b, %c : !s, !s, tensor<5xi1>
}

// A ramp reaches its ends: its last number is not below itself, nor its first above. What is no
// number of a double is compared when the program runs.
// CHECK-LABEL: @at_the_ends_of_ramps
// CHECK: lathe.compare ge
// CHECK: lathe.select
// CHECK: %[[B:.*]] = lathe.compare gt
// CHECK: lathe.logical_and %[[B]], %arg0
// CHECK: lathe.compare lt
// CHECK: lathe.select
// CHECK: lathe.compare le
// CHECK: lathe.select
func.func @at_the_ends_of_ramps(%x: tensor<8xi1>, %a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xi1>, tensor<8xf32>, tensor<8xf32>) {
  %i = lathe.iota <8> axis 0 dtype i64
  %zero = lathe.constant dense<0> : tensor<i64>
  %seven = lathe.constant dense<7> : tensor<i64>
  %most = lathe.constant dense<9223372036854775807> : tensor<i64>
  %last = lathe.compare ge %i, %seven : tensor<8xi64>, tensor<i64>
  %u = lathe.select %last, %a, %b : tensor<8xi1>, tensor<8xf32>, tensor<8xf32>
  %later = lathe.compare gt %i, %zero : tensor<8xi64>, tensor<i64>
  %v = lathe.logical_and %later, %x : tensor<8xi1>, tensor<8xi1>
  %any = lathe.compare lt %i, %most : tensor<8xi64>, tensor<i64>
  %w = lathe.select %any, %a, %b : tensor<8xi1>, tensor<8xf32>, tensor<8xf32>
  %first = lathe.compare le %i, %zero : tensor<8xi64>, tensor<i64>
  %z = lathe.select %first, %b, %a : tensor<8xi1>, tensor<8xf32>, tensor<8xf32>
  return %u, %v, %w, %z : tensor<8xf32>, tensor<8xi1>, tensor<8xf32>, tensor<8xf32>
}

// In 32 bits a product of a place wraps, and so may the sum of four places.
// CHECK-LABEL: @products_that_wrap
// CHECK: %[[P:.*]] = lathe.compare
// CHECK: lathe.logical_and %[[P]], %arg0
// CHECK: %[[S:.*]] = lathe.compare
// CHECK: lathe.logical_and %[[S]], %arg1
!q = tensor<?x?x?x?xi1, #lathe.dims<seq, seq, seq, seq>>
!qi = tensor<?x?x?x?xi32, #lathe.dims<seq, seq, seq, seq>>
!front = tensor<?x?x1x1xi32, #lathe.dims<seq, seq, 1, 1>>
!back = tensor<?x?xi32, #lathe.dims<seq, seq>>
func.func @products_that_wrap(%x: tensor<4096xi1>, %y: !q) -> (tensor<4096xi1>, !q) {
  %zero = lathe.constant dense<0> : tensor<i32>
  %million = lathe.constant dense<1048576> : tensor<i32>
  %i = lathe.iota <4096> axis 0 dtype i32
  %p = lathe.mul %i, %million : tensor<4096xi32>, tensor<i32>
  %u = lathe.compare ge %p, %zero : tensor<4096xi32>, tensor<i32>
  %v = lathe.logical_and %u, %x : tensor<4096xi1>, tensor<4096xi1>
  %a = lathe.iota <seq, 1, 1, 1> axis 0 dtype i32
  %b = lathe.iota <seq, 1, 1> axis 0 dtype i32
  %c = lathe.iota <seq, 1> axis 0 dtype i32
  %d = lathe.iota <seq> axis 0 dtype i32
  %ab = lathe.add %a, %b : tensor<?x1x1x1xi32, #lathe.dims<seq, 1, 1, 1>>, tensor<?x1x1xi32, #lathe.dims<seq, 1, 1>>
  %cd = lathe.add %c, %d : tensor<?x1xi32, #lathe.dims<seq, 1>>, tensor<?xi32, #lathe.dims<seq>>
  %s = lathe.add %ab, %cd : !front, !back
  %e = lathe.compare ge %s, %zero : !qi, tensor<i32>
  %w = lathe.logical_and %e, %y : !q, !q
  return %v, %w : tensor<4096xi1>, !q
}
