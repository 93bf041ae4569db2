// RUN: lathe-opt %s --lathe-shard=ranks=2 --split-input-file | FileCheck %s
// RUN: lathe-opt %s --lathe-shard='ranks=2 simulate=true' --split-input-file | FileCheck %s --check-prefix=SIM
// RUN: lathe-opt %s --lathe-shard=ranks=1 --split-input-file | FileCheck %s --check-prefix=ONE

// ONE-NOT: all_reduce
// ONE-NOT: lathe.shard
// Columns of gate and up, rows of down; bias and residual are added once, behind the sum.
// CHECK-LABEL: func.func @mlp
// CHECK: %[[G:.*]] = lathe.weight "gate@0/2" of "gate" axis 0 parts 2 : tensor<4x4xf32>
// CHECK: lathe.linear %arg0, %[[G]] : tensor<3x4xf32>, tensor<4x4xf32>
// CHECK: %[[H:.*]] = lathe.glu {{.*}} : tensor<3x4xf32>, tensor<3x4xf32>
// CHECK: %[[D:.*]] = lathe.weight "down@1/2" of "down" axis 1 parts 2 : tensor<4x4xf32>
// CHECK: %[[P:.*]] = lathe.linear %[[H]], %[[D]] : tensor<3x4xf32>, tensor<4x4xf32>
// CHECK: %[[S:.*]] = lathe.all_reduce sum %[[P]] over "tp" of 2
// CHECK: %[[B:.*]] = lathe.add %[[S]], %{{.*}} : tensor<3x4xf32>, tensor<4xf32>
// CHECK: %[[Y:.*]] = lathe.add %[[B]], %arg0
// CHECK: return %[[Y]]
// SIM-LABEL: func.func @mlp
// SIM-COUNT-2: lathe.glu {{.*}} : tensor<3x4xf32>
// SIM-COUNT-2: lathe.linear
// SIM-COUNT-3: lathe.add
// SIM-NOT: all_reduce
func.func @mlp(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %wg = lathe.weight "gate" : tensor<8x4xf32>
  %wu = lathe.weight "up" : tensor<8x4xf32>
  %wd = lathe.weight "down" : tensor<4x8xf32>
  %bias = lathe.weight "down.bias" : tensor<4xf32>
  %g = lathe.linear %x, %wg : tensor<3x4xf32>, tensor<8x4xf32>
  %u = lathe.linear %x, %wu : tensor<3x4xf32>, tensor<8x4xf32>
  %h = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.linear %h, %wd bias %bias residual %x : tensor<3x8xf32>, tensor<4x8xf32> bias tensor<4xf32> residual tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// A norm of a sum that others read needs whole rows: nothing is cut but what the result reads alone.
// CHECK-LABEL: func.func @norm_between
// CHECK: lathe.weight "first" : tensor<8x4xf32>
// CHECK-NOT: all_reduce
// CHECK: lathe.all_gather %{{.*}} axis 1 parts 2 over "tp" of 2 : tensor<3x2xf32>
func.func @norm_between(%x: tensor<3x4xf32>, %r: tensor<3x8xf32>) -> tensor<3x4xf32> {
  %a = lathe.weight "first" : tensor<8x4xf32>
  %b = lathe.weight "second" : tensor<4x8xf32>
  %h = lathe.linear %x, %a residual %r : tensor<3x4xf32>, tensor<8x4xf32> residual tensor<3x8xf32>
  %n = lathe.rms_norm %h epsilon 1.0e-5 : tensor<3x8xf32>
  %y = lathe.linear %n, %b : tensor<3x8xf32>, tensor<4x8xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Of a layer's own columns the ranks sum the squares, a number a row.
// CHECK-LABEL: func.func @norm_of_a_layer
// CHECK: %[[H:.*]] = lathe.linear %arg0, %{{.*}} : tensor<3x4xf32>, tensor<4x4xf32>
// CHECK: %[[Q:.*]] = lathe.mul %[[H]], %[[H]] : tensor<3x4xf32>
// CHECK: %[[P:.*]] = lathe.reduce_sum %[[Q]] axes [1] keep_dims true
// CHECK: lathe.all_reduce sum %[[P]] over "tp" of 2 : tensor<3x1xf32>
// CHECK: lathe.weight "gain@0/2" of "gain" axis 0 parts 2 : tensor<4xf32>
// CHECK: lathe.all_reduce sum %{{.*}} over "tp" of 2 : tensor<3x4xf32>
// CHECK-NOT: all_gather
func.func @norm_of_a_layer(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = lathe.weight "first" : tensor<8x4xf32>
  %b = lathe.weight "second" : tensor<4x8xf32>
  %gain = lathe.weight "gain" : tensor<8xf32>
  %h = lathe.linear %x, %a : tensor<3x4xf32>, tensor<8x4xf32>
  %n = lathe.rms_norm %h, %gain epsilon 1.0e-5 : tensor<3x8xf32>, tensor<8xf32>
  %y = lathe.linear %n, %b : tensor<3x8xf32>, tensor<4x8xf32>
  return %y : tensor<3x4xf32>
}

// -----

// An activation behind the second product is applied to the sum, which no piece has: it is not cut
// by rows. The transposed weight is cut along its other axis.
// CHECK-LABEL: func.func @activation_behind
// CHECK-NOT: all_reduce
func.func @activation_behind(%x: tensor<3x4xf32>) -> tensor<3x5xf32> {
  %a = lathe.weight "first" : tensor<4x8xf32>
  %b = lathe.weight "second" : tensor<5x8xf32>
  %h = lathe.linear %x, %a layout in_out : tensor<3x4xf32>, tensor<4x8xf32>
  %y = lathe.linear %h, %b activation relu : tensor<3x8xf32>, tensor<5x8xf32>
  return %y : tensor<3x5xf32>
}

// -----

// What is made of a weight is made of its pieces.
// CHECK-LABEL: func.func @cast_weight
// CHECK: %[[W:.*]] = lathe.weight "first@1/2" of "first" axis 1 parts 2 : tensor<4x4xbf16>
// CHECK: %[[C:.*]] = lathe.cast %[[W]] to f32
// CHECK: lathe.linear %arg0, %[[C]] layout in_out
// CHECK: lathe.all_reduce
func.func @cast_weight(%x: tensor<3x4xf32>) -> tensor<3x5xf32> {
  %a = lathe.weight "first" : tensor<4x8xbf16>
  %c = lathe.cast %a to f32 : tensor<4x8xbf16>
  %b = lathe.weight "second" : tensor<5x8xf32>
  %h = lathe.linear %x, %c layout in_out : tensor<3x4xf32>, tensor<4x8xf32>
  %r = lathe.tanh %h : tensor<3x8xf32>
  %y = lathe.linear %r, %b : tensor<3x8xf32>, tensor<5x8xf32>
  return %y : tensor<3x5xf32>
}

// -----

// A table as large as the weights that are cut: a rank finds the ids of its rows. The head's columns
// are the same piece.
// CHECK-LABEL: func.func @table
// CHECK: %[[T:.*]] = lathe.weight "table@0/2" of "table" axis 0 parts 2 : tensor<3x4xf32>
// An id that no rank has is asked for everywhere: it is the error that it is on one rank.
// CHECK: lathe.compare ge %arg0
// CHECK: lathe.constant dense<6> : tensor<i64>
// CHECK: lathe.compare lt %arg0
// CHECK: %[[KNOWN:.*]] = lathe.logical_and
// CHECK: %[[S:.*]] = lathe.all_slice %{{.*}} axis 0 parts 2 over "tp" of 2 : tensor<2xi64>
// CHECK: %[[O:.*]] = lathe.sub %arg0, %[[S]]
// CHECK: %[[OTHER:.*]] = lathe.logical_not
// CHECK: %[[E:.*]] = lathe.logical_and %[[KNOWN]], %[[OTHER]]
// CHECK: %[[I:.*]] = lathe.select %[[E]], %{{.*}}, %[[O]]
// CHECK: %[[X:.*]] = lathe.embedding %[[I]], %[[T]]
// CHECK: %[[Z:.*]] = lathe.select %{{.*}}, %{{.*}}, %[[X]]
// CHECK: lathe.all_reduce sum %[[Z]] over "tp" of 2
// CHECK: lathe.linear %{{.*}}, %[[T]]
// SIM-LABEL: func.func @table
// SIM-COUNT-2: lathe.embedding {{.*}} tensor<3x4xf32>
// SIM-NOT: all_
func.func @table(%ids: tensor<5xi64>) -> tensor<5x6xf32> {
  %t = lathe.weight "table" : tensor<6x4xf32>
  %x = lathe.embedding %ids, %t : tensor<5xi64>, tensor<6x4xf32>
  %n = lathe.rms_norm %x epsilon 1.0e-5 : tensor<5x4xf32>
  %y = lathe.linear %n, %t : tensor<5x4xf32>, tensor<6x4xf32>
  return %y : tensor<5x6xf32>
}

// -----

// Two experts side by side in one product: each is cut, because a stack of them has no piece of one
// name. What has to be whole is gathered within each.
// CHECK-LABEL: func.func @experts
// CHECK-DAG: lathe.weight "up.0@0/2" of "up.0" axis 0 parts 2 : tensor<2x4xf32>
// CHECK-DAG: lathe.weight "up.1@0/2" of "up.1" axis 0 parts 2 : tensor<2x4xf32>
// CHECK: %[[H:.*]] = lathe.matmul %arg0, %{{.*}} : tensor<3x4xf32>, tensor<4x4xf32>
// CHECK: %[[G:.*]] = lathe.reshape %[[H]] to <3, 2, 2>
// CHECK: %[[M:.*]] = lathe.mul %[[G]], %arg1 : tensor<3x2x2xf32>, tensor<3x2x1xf32>
// CHECK: lathe.matmul {{.*}} : tensor<3x4xf32>, tensor<4x4xf32>
// CHECK: lathe.all_reduce sum
// CHECK: lathe.all_gather %{{.*}} axis 2 parts 2 over "tp" of 2 : tensor<3x2x2xf32>
func.func @experts(%x: tensor<3x4xf32>, %share: tensor<3x2x1xf32>) -> (tensor<3x4xf32>, tensor<3x8xf32>) {
  %a = lathe.weight "up.0" : tensor<4x4xf32>
  %b = lathe.weight "up.1" : tensor<4x4xf32>
  %0 = lathe.reshape %a to <1, 4, 4> : tensor<4x4xf32>
  %1 = lathe.reshape %b to <1, 4, 4> : tensor<4x4xf32>
  %2 = lathe.concat %0, %1 axis 0 : tensor<1x4x4xf32>, tensor<1x4x4xf32>
  %3 = lathe.reshape %2 to <8, 4> : tensor<2x4x4xf32>
  %4 = lathe.transpose %3 [1, 0] : tensor<8x4xf32>
  %h = lathe.matmul %x, %4 : tensor<3x4xf32>, tensor<4x8xf32>
  %g = lathe.reshape %h to <3, 2, 4> : tensor<3x8xf32>
  %m = lathe.mul %g, %share : tensor<3x2x4xf32>, tensor<3x2x1xf32>
  %f = lathe.reshape %m to <3, 8> : tensor<3x2x4xf32>
  %d = lathe.weight "down" : tensor<8x4xf32>
  %y = lathe.matmul %f, %d : tensor<3x8xf32>, tensor<8x4xf32>
  return %y, %f : tensor<3x4xf32>, tensor<3x8xf32>
}

// -----

// What the user says goes before the plan: the second product's columns, which nothing reads but the
// result, and a value. Nothing else is cut then.
// CHECK-NOT: lathe.shard
// CHECK-LABEL: func.func @by_hand
// CHECK: lathe.weight "first" : tensor<8x4xf32>
// CHECK: %[[P:.*]] = lathe.all_slice %arg0 axis 0 parts 2 over "tp" of 2 : tensor<4x4xf32>
// CHECK: %[[E:.*]] = lathe.exp %[[P]] : tensor<2x4xf32>
// CHECK: %[[H:.*]] = lathe.linear %[[E]], %{{.*}} : tensor<2x4xf32>, tensor<8x4xf32>
// CHECK: %[[W:.*]] = lathe.weight "second@0/2" of "second" axis 0 parts 2 : tensor<3x8xf32>
// CHECK: lathe.all_gather
lathe.shard_weights "sec?nd" axis 0 over "tp"
func.func @by_hand(%x: tensor<4x4xf32>) -> tensor<4x6xf32> {
  %a = lathe.weight "first" : tensor<8x4xf32>
  %b = lathe.weight "second" : tensor<6x8xf32>
  %s = lathe.shard %x axis 0 over "tp" : tensor<4x4xf32>
  %e = lathe.exp %s : tensor<4x4xf32>
  %h = lathe.linear %e, %a : tensor<4x4xf32>, tensor<8x4xf32>
  %y = lathe.linear %h, %b : tensor<4x8xf32>, tensor<6x8xf32>
  return %y : tensor<4x6xf32>
}

// -----

// What is made of weights may be cut by hand as they are: along its inputs here, and then the layer
// is a sum and has no columns for the one behind it.
// CHECK-LABEL: func.func @value_of_weights
// CHECK: %[[X:.*]] = lathe.all_slice %arg0 axis 1 parts 2 over "tp" of 2
// CHECK: %[[W:.*]] = lathe.weight "up@1/2" of "up" axis 1 parts 2 : tensor<8x2xf32>
// CHECK: %[[N:.*]] = lathe.neg %[[W]]
// CHECK: %[[P:.*]] = lathe.linear %[[X]], %[[N]]
// CHECK: lathe.all_reduce sum %[[P]] over "tp" of 2 : tensor<3x8xf32>
// CHECK: lathe.weight "down@0/2" of "down" axis 0 parts 2
// CHECK: lathe.all_gather
// CHECK-NOT: lathe.all_
// CHECK: return
func.func @value_of_weights(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "up" : tensor<8x4xf32>
  %d = lathe.weight "down" : tensor<4x8xf32>
  %n = lathe.neg %w : tensor<8x4xf32>
  %s = lathe.shard %n axis 1 over "tp" : tensor<8x4xf32>
  %0 = lathe.linear %x, %s : tensor<3x4xf32>, tensor<8x4xf32>
  %1 = lathe.linear %0, %d : tensor<3x8xf32>, tensor<4x8xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// Addends of bf16 are rounded once, behind their sum and the residual; the rows that a rank keeps are
// all that it gets.
// CHECK-LABEL: func.func @rows
// CHECK: %[[A:.*]] = lathe.linear {{.*}} unrounded true : tensor<4x4xbf16>, tensor<4x4xbf16>
// CHECK: %[[S:.*]] = lathe.reduce_scatter sum %[[A]] axis 0 over "tp" of 2 : tensor<4x4xf32>
// CHECK: %[[X:.*]] = lathe.all_slice %arg0 axis 0 parts 2
// CHECK: %[[W:.*]] = lathe.cast %[[X]] to f32 : tensor<2x4xbf16>
// CHECK: %[[T:.*]] = lathe.add %[[S]], %[[W]] : tensor<2x4xf32>
// CHECK: %[[Y:.*]] = lathe.cast %[[T]] to bf16 : tensor<2x4xf32>
// CHECK: %[[E:.*]] = lathe.exp %[[Y]] : tensor<2x4xbf16>
// CHECK: lathe.all_gather %[[E]] axis 0 parts 2
// SIM-LABEL: func.func @rows
// SIM: lathe.add {{.*}} : tensor<4x4xf32>
// SIM-COUNT-2: lathe.exp {{.*}} : tensor<2x4xbf16>
func.func @rows(%x: tensor<4x4xbf16>) -> tensor<4x4xbf16> {
  %a = lathe.weight "first" : tensor<8x4xbf16>
  %b = lathe.weight "second" : tensor<4x8xbf16>
  %h = lathe.linear %x, %a : tensor<4x4xbf16>, tensor<8x4xbf16>
  %y = lathe.linear %h, %b residual %x : tensor<4x8xbf16>, tensor<4x8xbf16> residual tensor<4x4xbf16>
  %s = lathe.shard %y axis 0 over "tp" : tensor<4x4xbf16>
  %e = lathe.exp %s : tensor<4x4xbf16>
  return %e : tensor<4x4xbf16>
}

// -----

// Columns one beside the other are layers of their own; every other column is none.
// CHECK-LABEL: func.func @columns_side_by_side
// CHECK: lathe.glu {{.*}} : tensor<3x4xf32>, tensor<3x4xf32>
// CHECK: lathe.all_reduce
func.func @columns_side_by_side(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "gate_up" : tensor<16x4xf32>
  %wd = lathe.weight "down" : tensor<4x8xf32>
  %m = lathe.linear %x, %w : tensor<3x4xf32>, tensor<16x4xf32>
  %g = lathe.slice %m starts <0, 0> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %u = lathe.slice %m starts <0, 8> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %h = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.linear %h, %wd : tensor<3x8xf32>, tensor<4x8xf32>
  return %y : tensor<3x4xf32>
}
// CHECK-LABEL: func.func @every_other_column
// CHECK: lathe.linear %arg0, %{{.*}} : tensor<3x4xf32>, tensor<16x4xf32>
// CHECK: lathe.glu {{.*}} : tensor<3x8xf32>, tensor<3x8xf32>
func.func @every_other_column(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "gate_up" : tensor<16x4xf32>
  %wd = lathe.weight "down" : tensor<4x8xf32>
  %m = lathe.linear %x, %w : tensor<3x4xf32>, tensor<16x4xf32>
  %g = lathe.slice %m starts <0, 0> sizes <3, 8> strides [1, 2] : tensor<3x16xf32>
  %u = lathe.slice %m starts <0, 1> sizes <3, 8> strides [1, 2] : tensor<3x16xf32>
  %h = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.linear %h, %wd : tensor<3x8xf32>, tensor<4x8xf32>
  return %y : tensor<3x4xf32>
}
