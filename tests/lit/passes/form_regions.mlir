// RUN: lathe-opt %s --lathe-form-regions | FileCheck %s

// A norm takes the elementwise ops in front of it along; the linear op stays outside.
// CHECK-LABEL: func.func @norm
// CHECK: %[[R:.*]] = lathe.region(%arg0, %arg1
// CHECK: lathe.add
// CHECK: lathe.rms_norm
// CHECK: lathe.yield
// CHECK: lathe.linear %[[R]]
func.func @norm(%x: tensor<3x4xf32>, %r: tensor<3x4xf32>, %w: tensor<8x4xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %s = lathe.add %x, %r : tensor<3x4xf32>, tensor<3x4xf32>
  %n = lathe.rms_norm %s, %g epsilon 1.000000e-05 : tensor<3x4xf32>, tensor<4xf32>
  %y = lathe.linear %n, %w : tensor<3x4xf32>, tensor<8x4xf32>
  return %y : tensor<3x8xf32>
}

// A value with a user outside keeps a region of its own.
// CHECK-LABEL: func.func @two_users
// CHECK-COUNT-2: lathe.region
func.func @two_users(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %e = lathe.exp %x : tensor<3x4xf32>
  %n = lathe.neg %e : tensor<3x4xf32>
  return %e, %n : tensor<3x4xf32>, tensor<3x4xf32>
}

// A lone reshape is a view.
// CHECK-LABEL: func.func @view
// CHECK-NOT: lathe.region
// CHECK: lathe.reshape
func.func @view(%x: tensor<3x4xf32>) -> tensor<12xf32> {
  %y = lathe.reshape %x to <12> : tensor<3x4xf32>
  return %y : tensor<12xf32>
}

// A reshape under a reduction has a size known at run time only.
// CHECK-LABEL: func.func @reshaped_rows
// CHECK: lathe.region
func.func @reshaped_rows(%x: tensor<?x4xf32, #lathe.dims<n, 4>>) -> tensor<1x?x4xf32, #lathe.dims<1, n, 4>> {
  %e = lathe.exp %x : tensor<?x4xf32, #lathe.dims<n, 4>>
  %r = lathe.reshape %e to <1, n, 4> : tensor<?x4xf32, #lathe.dims<n, 4>>
  %y = lathe.softmax %r axis 2 : tensor<1x?x4xf32, #lathe.dims<1, n, 4>>
  return %y : tensor<1x?x4xf32, #lathe.dims<1, n, 4>>
}

// The sum leaves the region of its norm as a second result.
// CHECK-LABEL: func.func @sum_and_norm
// CHECK: %[[R:.*]]:2 = lathe.region
// CHECK: lathe.neg
// CHECK: lathe.add_norm
// CHECK-NOT: lathe.region
func.func @sum_and_norm(%x: tensor<3x4xf32>, %r: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xf32>) {
  %n = lathe.neg %x : tensor<3x4xf32>
  %s, %y = lathe.add_norm rms %n, %r epsilon 1.000000e-05 : tensor<3x4xf32>
  return %s, %y : tensor<3x4xf32>, tensor<3x4xf32>
}

// Heads of a slice of a merged projection are rows of it: norm and rotation read them in place.
// CHECK-LABEL: func.func @heads_of_a_slice
// CHECK: lathe.region
// CHECK: lathe.slice
// CHECK: lathe.reshape
// CHECK: lathe.transpose
// CHECK: lathe.rms_norm
// CHECK: lathe.rope
// CHECK-NOT: lathe.region
func.func @heads_of_a_slice(%qkv: tensor<1x5x24xf32>, %g: tensor<4xf32>, %c: tensor<5x2xf32>) -> tensor<1x2x5x4xf32> {
  %k = lathe.slice %qkv starts <0, 0, 8> sizes <1, 5, 8> strides [1, 1, 1] : tensor<1x5x24xf32>
  %h = lathe.reshape %k to <1, 5, 2, 4> : tensor<1x5x8xf32>
  %t = lathe.transpose %h [0, 2, 1, 3] : tensor<1x5x2x4xf32>
  %n = lathe.rms_norm %t, %g epsilon 1.000000e-05 : tensor<1x2x5x4xf32>, tensor<4xf32>
  %y = lathe.rope half %n, %c, %c : tensor<1x2x5x4xf32>, tensor<5x2xf32>, tensor<5x2xf32>
  return %y : tensor<1x2x5x4xf32>
}

// A row that is read as a column, or from another place on, would be reduced anew for each of its
// elements: it is computed before.
// CHECK-LABEL: func.func @rows_of_others
// CHECK: %[[S:.*]] = lathe.region
// CHECK: lathe.softmax
// CHECK: %[[N:.*]] = lathe.region
// CHECK: lathe.rms_norm
// CHECK: lathe.region({{.*}}%[[S]]
// CHECK: lathe.transpose
// CHECK: lathe.region({{.*}}%[[N]]
// CHECK: lathe.reverse
func.func @rows_of_others(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %s = lathe.softmax %x axis 1 : tensor<4x4xf32>
  %n = lathe.rms_norm %x epsilon 1.000000e-05 : tensor<4x4xf32>
  %t = lathe.transpose %s [1, 0] : tensor<4x4xf32>
  %y = lathe.add %t, %x : tensor<4x4xf32>, tensor<4x4xf32>
  %r = lathe.reverse %n axes [0] : tensor<4x4xf32>
  %z = lathe.mul %r, %x : tensor<4x4xf32>, tensor<4x4xf32>
  return %y, %z : tensor<4x4xf32>, tensor<4x4xf32>
}
