// RUN: lathe-opt %s --lathe-shard=ranks=2 --split-input-file | FileCheck %s
// RUN: lathe-opt %s --lathe-shard=ranks=5 --split-input-file | FileCheck %s --check-prefix=FIVE

// What is not cut, or not in the way that one of its readers would have it.

// Weights and numbers alone are computed whole by every rank: there is nothing to share, neither in
// a result's product nor in rows of a table.
// CHECK-LABEL: func.func @of_weights
// CHECK-DAG: lathe.weight "a" : tensor<6x4xf32>
// CHECK-DAG: lathe.weight "b" : tensor<6x4xf32>
// CHECK-DAG: lathe.weight "table" : tensor<64x4xf32>
// CHECK-NOT: lathe.all_reduce
// CHECK: lathe.all_gather %{{.*}} tensor<3x3xf32>
// CHECK-NOT: lathe.all_
// CHECK: return
func.func @of_weights(%x: tensor<3x4xf32>) -> (tensor<6x6xf32>, tensor<2x4xf32>, tensor<3x6xf32>) {
  %a = lathe.weight "a" : tensor<6x4xf32>
  %b = lathe.weight "b" : tensor<6x4xf32>
  %h = lathe.weight "head" : tensor<6x4xf32>
  %t = lathe.weight "table" : tensor<64x4xf32>
  %i = lathe.iota <2> axis 0 dtype i64
  %0 = lathe.linear %a, %b : tensor<6x4xf32>, tensor<6x4xf32>
  %1 = lathe.embedding %i, %t : tensor<2xi64>, tensor<64x4xf32>
  %2 = lathe.linear %x, %h : tensor<3x4xf32>, tensor<6x4xf32>
  return %0, %1, %2 : tensor<6x6xf32>, tensor<2x4xf32>, tensor<3x6xf32>
}

// -----

// A table and a head that are kept whole by hand.
// CHECK-LABEL: func.func @kept
// CHECK-DAG: lathe.weight "table" : tensor<64x4xf32>
// CHECK-DAG: lathe.weight "head" : tensor<6x4xf32>
// CHECK-DAG: lathe.weight "other@0/2" of "other" axis 0 parts 2
// CHECK-NOT: lathe.all_reduce
// CHECK: lathe.all_gather %{{.*}} tensor<3x3xf32>
// CHECK-NOT: lathe.all_
// CHECK: return
lathe.shard_weights "table"
lathe.shard_weights "head"
func.func @kept(%x: tensor<3x4xf32>, %i: tensor<2xi64>) -> (tensor<2x4xf32>, tensor<3x6xf32>, tensor<3x6xf32>) {
  %t = lathe.weight "table" : tensor<64x4xf32>
  %h = lathe.weight "head" : tensor<6x4xf32>
  %o = lathe.weight "other" : tensor<6x4xf32>
  %0 = lathe.embedding %i, %t : tensor<2xi64>, tensor<64x4xf32>
  %1 = lathe.linear %x, %h : tensor<3x4xf32>, tensor<6x4xf32>
  %2 = lathe.linear %x, %o : tensor<3x4xf32>, tensor<6x4xf32>
  return %0, %1, %2 : tensor<2x4xf32>, tensor<3x6xf32>, tensor<3x6xf32>
}

// -----

// Columns are cut once: who would have them in two groups takes them whole.
// CHECK-LABEL: func.func @two_readers
// CHECK: lathe.weight "up@0/2" of "up" axis 0 parts 2 : tensor<4x4xf32>
// CHECK: lathe.all_reduce sum %{{.*}} : tensor<3x4xf32>
// CHECK: lathe.weight "halves@0/2" of "halves" axis 0 parts 2 : tensor<2x4xf32>
// CHECK-NOT: lathe.all_slice
// CHECK-NOT: lathe.all_reduce
// CHECK: return
func.func @two_readers(%x: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<6x4xf32>) {
  %a = lathe.weight "up" : tensor<8x4xf32>
  %b = lathe.weight "down" : tensor<4x8xf32>
  %c = lathe.weight "halves" : tensor<4x4xf32>
  %0 = lathe.linear %x, %a : tensor<3x4xf32>, tensor<8x4xf32>
  %1 = lathe.linear %0, %b : tensor<3x8xf32>, tensor<4x8xf32>
  %2 = lathe.reshape %0 to <6, 4> : tensor<3x8xf32>
  %3 = lathe.linear %2, %c : tensor<6x4xf32>, tensor<4x4xf32>
  return %1, %3 : tensor<3x4xf32>, tensor<6x4xf32>
}

// -----

// Slices of a layer are no layers of their own: under a residual, with a bias that is an input, one
// slice alone, and slices that overlap.
// CHECK-LABEL: func.func @one_layer
// CHECK: lathe.weight "up" : tensor<16x4xf32>
// CHECK: lathe.linear %{{.*}} residual %{{.*}} : tensor<3x4xf32>, tensor<16x4xf32>
// CHECK: lathe.linear %{{.*}} bias %{{.*}} : tensor<3x4xf32>, tensor<16x4xf32>
// CHECK-COUNT-2: lathe.linear %{{.*}} : tensor<3x4xf32>, tensor<16x4xf32>
// CHECK-NOT: "up@
// CHECK: return
func.func @one_layer(%x: tensor<3x4xf32>, %r: tensor<3x16xf32>, %b: tensor<16xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x12xf32>) {
  %w = lathe.weight "up" : tensor<16x4xf32>
  %h = lathe.linear %x, %w residual %r : tensor<3x4xf32>, tensor<16x4xf32> residual tensor<3x16xf32>
  %g0 = lathe.slice %h starts <0, 0> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %g1 = lathe.slice %h starts <0, 8> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %0 = lathe.glu %g0, %g1 : tensor<3x8xf32>, tensor<3x8xf32>
  %i = lathe.linear %x, %w bias %b : tensor<3x4xf32>, tensor<16x4xf32> bias tensor<16xf32>
  %i0 = lathe.slice %i starts <0, 0> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %i1 = lathe.slice %i starts <0, 8> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %1 = lathe.glu %i0, %i1 : tensor<3x8xf32>, tensor<3x8xf32>
  %j = lathe.linear %x, %w : tensor<3x4xf32>, tensor<16x4xf32>
  %2 = lathe.slice %j starts <0, 4> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %k = lathe.linear %x, %w : tensor<3x4xf32>, tensor<16x4xf32>
  %k0 = lathe.slice %k starts <0, 0> sizes <3, 12> strides [1, 1] : tensor<3x16xf32>
  %k1 = lathe.slice %k starts <0, 4> sizes <3, 12> strides [1, 1] : tensor<3x16xf32>
  %3 = lathe.glu %k0, %k1 : tensor<3x12xf32>, tensor<3x12xf32>
  return %0, %1, %2, %3 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x12xf32>
}

// -----

// Pieces of two slices of one weight have names of their own: a checkpoint's tensor is looked up by
// them. A factor that all columns share is no part of the slices.
// CHECK-LABEL: func.func @pieces_of_slices
// CHECK-DAG: lathe.weight "up@0[0:8]/2" of "up" axis 0 parts 2 begin 0 extent 16 : tensor<4x4xf32>
// CHECK-DAG: lathe.weight "up@0[8:16]/2" of "up" axis 0 parts 2 begin 8 extent 16 : tensor<4x4xf32>
// CHECK-DAG: lathe.weight "scale" : tensor<4xf32>
// CHECK: lathe.all_reduce
// CHECK-NOT: lathe.all_
// CHECK: return
func.func @pieces_of_slices(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "up" : tensor<16x4xf32>
  %s = lathe.weight "scale" : tensor<4xf32>
  %d = lathe.weight "down" : tensor<4x8xf32>
  %ws = lathe.mul %w, %s : tensor<16x4xf32>, tensor<4xf32>
  %h = lathe.linear %x, %ws : tensor<3x4xf32>, tensor<16x4xf32>
  %g = lathe.slice %h starts <0, 0> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %i = lathe.slice %h starts <0, 8> sizes <3, 8> strides [1, 1] : tensor<3x16xf32>
  %j = lathe.glu %g, %i : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.linear %j, %d : tensor<3x8xf32>, tensor<4x8xf32>
  return %y : tensor<3x4xf32>
}

// -----

// Four heads of five features on five ranks: no number of neighbours divides the ranks, so that none
// share a piece.
// FIVE-LABEL: func.func @heads_of_five
// FIVE-DAG: lathe.weight "up" : tensor<20x4xf32>
// FIVE-NOT: lathe.all_reduce
// FIVE: return
// CHECK-LABEL: func.func @heads_of_five
// CHECK-DAG: lathe.weight "up@0/2" of "up"
// CHECK: lathe.all_reduce
func.func @heads_of_five(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = lathe.weight "up" : tensor<20x4xf32>
  %b = lathe.weight "down" : tensor<4x20xf32>
  %0 = lathe.linear %x, %a : tensor<3x4xf32>, tensor<20x4xf32>
  %1 = lathe.reshape %0 to <3, 4, 5> : tensor<3x20xf32>
  %2 = lathe.softmax %1 axis 2 : tensor<3x4x5xf32>
  %3 = lathe.reshape %2 to <3, 20> : tensor<3x4x5xf32>
  %4 = lathe.linear %3, %b : tensor<3x20xf32>, tensor<4x20xf32>
  return %4 : tensor<3x4xf32>
}
