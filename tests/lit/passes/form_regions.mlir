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
// CHECK-NEXT: lathe.reshape
// CHECK-NEXT: lathe.transpose
// CHECK-NEXT: lathe.rms_norm
// CHECK-NEXT: lathe.rope
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

// A norm reads its row several times: what it would read as a column, or with gaps, is computed
// before, and what keeps rows whole is read in place.
// CHECK-LABEL: func.func @moved_under_a_norm
// CHECK: %[[T:.*]] = lathe.region(%arg0
// CHECK: lathe.transpose
// CHECK: lathe.yield
// CHECK: lathe.region(%[[T]]
// CHECK: lathe.rms_norm
// CHECK: %[[S:.*]] = lathe.region(%arg1
// CHECK: lathe.slice
// CHECK: lathe.yield
// CHECK: lathe.region(%[[S]]
// CHECK: lathe.rms_norm
// CHECK: lathe.region(%arg2
// CHECK-NEXT: ^bb0
// CHECK-NEXT: lathe.exp
// CHECK-NEXT: lathe.transpose
// CHECK-NEXT: lathe.slice
// CHECK-NEXT: lathe.rms_norm
func.func @moved_under_a_norm(%x: tensor<4x4xf32>, %y: tensor<4x8xf32>, %z: tensor<2x3x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<3x2x4xf32>) {
  %e = lathe.exp %x : tensor<4x4xf32>
  %t = lathe.transpose %e [1, 0] : tensor<4x4xf32>
  %a = lathe.rms_norm %t epsilon 1.000000e-05 : tensor<4x4xf32>
  %f = lathe.exp %y : tensor<4x8xf32>
  %s = lathe.slice %f starts <0, 0> sizes <4, 4> strides [1, 2] : tensor<4x8xf32>
  %b = lathe.rms_norm %s epsilon 1.000000e-05 : tensor<4x4xf32>
  %g = lathe.exp %z : tensor<2x3x8xf32>
  %u = lathe.transpose %g [1, 0, 2] : tensor<2x3x8xf32>
  %v = lathe.slice %u starts <0, 0, 4> sizes <3, 2, 4> strides [1, 1, 1] : tensor<3x2x8xf32>
  %c = lathe.rms_norm %v epsilon 1.000000e-05 : tensor<3x2x4xf32>
  return %a, %b, %c : tensor<4x4xf32>, tensor<4x4xf32>, tensor<3x2x4xf32>
}

// Small constants and ramps are copied in, and nothing is left of the ramp outside.
// CHECK-LABEL: func.func @copied_in
// CHECK: %[[C:.*]] = lathe.constant {{.*}} : tensor<1025xf32>
// CHECK: lathe.region(%arg0) :
// CHECK-NEXT: ^bb0
// CHECK-DAG: lathe.constant {{.*}} : tensor<1024xf32>
// CHECK-DAG: lathe.iota
// CHECK: lathe.yield
// CHECK: lathe.region(%arg1, %[[C]]) :
// CHECK-NOT: lathe.region
// CHECK: return
func.func @copied_in(%x: tensor<1024xf32>, %y: tensor<1025xf32>) -> (tensor<1024xf32>, tensor<1025xf32>) {
  %c = lathe.constant dense<2.0> : tensor<1024xf32>
  %d = lathe.constant dense<2.0> : tensor<1025xf32>
  %i = lathe.iota <1024> axis 0 dtype f32
  %s = lathe.add %x, %i : tensor<1024xf32>, tensor<1024xf32>
  %a = lathe.mul %s, %c : tensor<1024xf32>, tensor<1024xf32>
  %b = lathe.mul %y, %d : tensor<1025xf32>, tensor<1025xf32>
  return %a, %b : tensor<1024xf32>, tensor<1025xf32>
}

// Each step doubles the places where the code of those in front of it stands: 16 are the most.
// CHECK-LABEL: func.func @doubled
// CHECK: lathe.region(%arg0
// CHECK-COUNT-1: lathe.exp
// CHECK: lathe.yield
// CHECK: lathe.region
// CHECK-COUNT-4: lathe.reverse
// CHECK: lathe.yield
// CHECK-NOT: lathe.region
// CHECK: return
func.func @doubled(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = lathe.exp %x : tensor<8xf32>
  %r0 = lathe.reverse %0 axes [0] : tensor<8xf32>
  %1 = lathe.add %0, %r0 : tensor<8xf32>, tensor<8xf32>
  %r1 = lathe.reverse %1 axes [0] : tensor<8xf32>
  %2 = lathe.add %1, %r1 : tensor<8xf32>, tensor<8xf32>
  %r2 = lathe.reverse %2 axes [0] : tensor<8xf32>
  %3 = lathe.add %2, %r2 : tensor<8xf32>, tensor<8xf32>
  %r3 = lathe.reverse %3 axes [0] : tensor<8xf32>
  %4 = lathe.add %3, %r3 : tensor<8xf32>, tensor<8xf32>
  %r4 = lathe.reverse %4 axes [0] : tensor<8xf32>
  %5 = lathe.add %4, %r4 : tensor<8xf32>, tensor<8xf32>
  return %5 : tensor<8xf32>
}

// A rotation reads its tables once, a norm in front of it its row in a pass of its own.
// CHECK-LABEL: func.func @table_of_a_rotation
// CHECK: %[[T:.*]] = lathe.region(%arg0
// CHECK: lathe.exp
// CHECK-NEXT: lathe.reverse
// CHECK: lathe.yield
// CHECK: lathe.region({{.*}}%[[T]]
// CHECK: lathe.exp
// CHECK-NEXT: lathe.reverse
// CHECK-NEXT: lathe.norm_rope
func.func @table_of_a_rotation(%x: tensor<2x3x5x8xf32>, %g: tensor<8xf32>, %t: tensor<5x4xf32>) -> tensor<2x3x5x8xf32> {
  %e = lathe.exp %x : tensor<2x3x5x8xf32>
  %r = lathe.reverse %e axes [3] : tensor<2x3x5x8xf32>
  %f = lathe.exp %t : tensor<5x4xf32>
  %c = lathe.reverse %f axes [1] : tensor<5x4xf32>
  %y = lathe.norm_rope half %r gain %g, %c, %c epsilon 1.0e-5 : tensor<2x3x5x8xf32>, tensor<8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
  return %y : tensor<2x3x5x8xf32>
}

// A row that is read along its columns, be it through another op, is computed before.
// CHECK-LABEL: func.func @rows_behind_a_transpose
// CHECK: %[[P:.*]] = lathe.region(%arg0)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: lathe.softmax
// CHECK-NEXT: lathe.yield
// CHECK: lathe.region(%[[P]])
// CHECK: lathe.exp
// CHECK-NEXT: lathe.transpose
// CHECK-NEXT: lathe.neg
func.func @rows_behind_a_transpose(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %p = lathe.softmax %x axis 1 : tensor<8x8xf32>
  %e = lathe.exp %p : tensor<8x8xf32>
  %t = lathe.transpose %e [1, 0] : tensor<8x8xf32>
  %y = lathe.neg %t : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}

// However many elementwise ops lie between, a row that is read in its own place joins.
// CHECK-LABEL: func.func @rows_behind_steps
// CHECK: lathe.region(%arg0)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: lathe.softmax
// CHECK-NEXT: lathe.exp
// CHECK-NEXT: lathe.neg
// CHECK-NEXT: lathe.sin
// CHECK-NEXT: lathe.yield
// CHECK-NOT: lathe.region
// CHECK: return
func.func @rows_behind_steps(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %p = lathe.softmax %x axis 1 : tensor<4x8xf32>
  %e = lathe.exp %p : tensor<4x8xf32>
  %n = lathe.neg %e : tensor<4x8xf32>
  %y = lathe.sin %n : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// A ramp is made where it is read, however long it is.
// CHECK-LABEL: func.func @long_ramp
// CHECK: lathe.region(%arg0) :
// CHECK: lathe.iota
// CHECK: lathe.add
func.func @long_ramp(%x: tensor<2048xf32>) -> tensor<2048xf32> {
  %i = lathe.iota <2048> axis 0 dtype f32
  %y = lathe.add %x, %i : tensor<2048xf32>, tensor<2048xf32>
  return %y : tensor<2048xf32>
}

// A reshape that keeps no rows is a view between regions, of a scalar and to one, too.
// CHECK-LABEL: func.func @views_of_scalars
// CHECK: %[[A:.*]] = lathe.region
// CHECK: %[[B:.*]] = lathe.reshape %[[A]] to <1>
// CHECK: %[[C:.*]] = lathe.region(%[[B]])
// CHECK: %[[D:.*]] = lathe.reshape %[[C]] to <>
// CHECK: lathe.region(%[[D]])
func.func @views_of_scalars(%x: tensor<f32>) -> tensor<f32> {
  %a = lathe.exp %x : tensor<f32>
  %b = lathe.reshape %a to <1> : tensor<f32>
  %c = lathe.neg %b : tensor<1xf32>
  %d = lathe.reshape %c to <> : tensor<1xf32>
  %y = lathe.sin %d : tensor<f32>
  return %y : tensor<f32>
}

// Looked-up rows are read where they are used.
// CHECK-LABEL: func.func @looked_up
// CHECK: lathe.region(%arg0, %arg1)
// CHECK: lathe.embedding
// CHECK-NEXT: lathe.neg
// CHECK-NOT: lathe.region
func.func @looked_up(%i: tensor<4xi64>, %t: tensor<9x6xf32>) -> tensor<4x6xf32> {
  %e = lathe.embedding %i, %t : tensor<4xi64>, tensor<9x6xf32>
  %y = lathe.neg %e : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
