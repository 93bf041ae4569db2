// RUN: lathe-opt %s --lathe-merge-linears | FileCheck %s

// Queries, keys and values of unequal widths; a missing bias is zeros.
// CHECK-LABEL: func.func @qkv
// CHECK-DAG: %[[W:.*]] = lathe.concat {{.*}} axis 0 {{.*}} tensor<8x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
// CHECK-DAG: %[[B:.*]] = lathe.concat {{.*}} axis 0 {{.*}} tensor<8xf32>, tensor<2xf32>, tensor<2xf32>
// CHECK: %[[Y:.*]] = lathe.linear %arg0, %[[W]] bias %[[B]]
// CHECK-DAG: lathe.slice %[[Y]] starts <0, 0> sizes <3, 8>
// CHECK-DAG: lathe.slice %[[Y]] starts <0, 8> sizes <3, 2>
// CHECK-DAG: lathe.slice %[[Y]] starts <0, 10> sizes <3, 2>
// CHECK-NOT: lathe.linear
func.func @qkv(%x: tensor<3x4xf32>) -> (tensor<3x8xf32>, tensor<3x2xf32>, tensor<3x2xf32>) {
  %wq = lathe.weight "q" : tensor<8x4xf32>
  %bq = lathe.weight "q.bias" : tensor<8xf32>
  %q = lathe.linear %x, %wq bias %bq : tensor<3x4xf32>, tensor<8x4xf32> bias tensor<8xf32>
  %wk = lathe.weight "k" : tensor<2x4xf32>
  %k = lathe.linear %x, %wk : tensor<3x4xf32>, tensor<2x4xf32>
  %wv = lathe.weight "v" : tensor<2x4xf32>
  %v = lathe.linear %x, %wv : tensor<3x4xf32>, tensor<2x4xf32>
  return %q, %k, %v : tensor<3x8xf32>, tensor<3x2xf32>, tensor<3x2xf32>
}
// A transposed weight is joined along its columns.
// CHECK-LABEL: func.func @gate_up
// CHECK: lathe.concat {{.*}} axis 1
// CHECK: lathe.linear {{.*}} layout in_out
// CHECK: lathe.glu
func.func @gate_up(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %wg = lathe.weight "gate" : tensor<4x8xf32>
  %g = lathe.linear %x, %wg layout in_out : tensor<3x4xf32>, tensor<4x8xf32>
  %wu = lathe.weight "up" : tensor<4x8xf32>
  %u = lathe.linear %x, %wu layout in_out : tensor<3x4xf32>, tensor<4x8xf32>
  %y = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// Gate and up of experts, by one choice.
// CHECK-LABEL: func.func @experts
// CHECK: %[[W:.*]] = lathe.concat {{.*}} axis 1 {{.*}} tensor<2x8x4xf32>, tensor<2x8x4xf32>
// CHECK: %[[Y:.*]] = lathe.grouped_linear %arg0, %[[W]] by %arg1
// CHECK-DAG: %[[G:.*]] = lathe.slice %[[Y]] starts <0, 0> sizes <3, 8>
// CHECK-DAG: %[[U:.*]] = lathe.slice %[[Y]] starts <0, 8> sizes <3, 8>
// CHECK: lathe.glu %[[G]], %[[U]]
func.func @experts(%x: tensor<3x4xf32>, %i: tensor<3xi64>) -> tensor<3x8xf32> {
  %wg = lathe.weight "gate" : tensor<2x8x4xf32>
  %g = lathe.grouped_linear %x, %wg by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x8x4xf32>
  %u = lathe.grouped_linear %x, %wu by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %y = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// By another choice, and without a gate.
// CHECK-LABEL: func.func @experts_apart
// CHECK-COUNT-4: lathe.grouped_linear
// CHECK-NOT: lathe.slice
func.func @experts_apart(%x: tensor<3x4xf32>, %i: tensor<3xi64>, %j: tensor<3xi64>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
  %wg = lathe.weight "gate" : tensor<2x8x4xf32>
  %g = lathe.grouped_linear %x, %wg by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x8x4xf32>
  %u = lathe.grouped_linear %x, %wu by %j : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %y = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %wa = lathe.weight "a" : tensor<2x8x4xf32>
  %a = lathe.grouped_linear %x, %wa by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %wb = lathe.weight "b" : tensor<2x8x4xf32>
  %b = lathe.grouped_linear %x, %wb by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  return %y, %a, %b : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
}
// Two that meet in a gate and differ in one thing alone: the choice, the layout, a weight of the run.
// CHECK-LABEL: func.func @experts_of_another_choice
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @experts_of_another_choice(%x: tensor<3x4xf32>, %i: tensor<3xi64>, %j: tensor<3xi64>) -> tensor<3x8xf32> {
  %wg = lathe.weight "gate" : tensor<2x8x4xf32>
  %g = lathe.grouped_linear %x, %wg by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x8x4xf32>
  %u = lathe.grouped_linear %x, %wu by %j : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %y = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: func.func @experts_of_another_layout
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @experts_of_another_layout(%x: tensor<3x4xf32>, %i: tensor<3xi64>) -> tensor<3x4xf32> {
  %wg = lathe.weight "gate" : tensor<2x4x4xf32>
  %g = lathe.grouped_linear %x, %wg by %i : tensor<3x4xf32>, tensor<2x4x4xf32>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x4x4xf32>
  %u = lathe.grouped_linear %x, %wu by %i layout in_out : tensor<3x4xf32>, tensor<2x4x4xf32>, tensor<3xi64>
  %y = lathe.glu %g, %u : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
// CHECK-LABEL: func.func @experts_of_the_run
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @experts_of_the_run(%x: tensor<3x4xf32>, %i: tensor<3xi64>, %run: tensor<2x8x4xf32>) -> tensor<3x8xf32> {
  %wg = lathe.weight "gate" : tensor<2x8x4xf32>
  %g = lathe.grouped_linear %x, %wg by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %u = lathe.grouped_linear %x, %run by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %y = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// Another layout, a residual, a weight of the run: each stays by itself.
// CHECK-LABEL: func.func @apart
// CHECK-COUNT-4: lathe.linear %arg0
// CHECK-NOT: lathe.slice
func.func @apart(%x: tensor<3x4xf32>, %r: tensor<3x8xf32>, %run: tensor<8x4xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
  %a = lathe.weight "a" : tensor<8x4xf32>
  %0 = lathe.linear %x, %a : tensor<3x4xf32>, tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<4x8xf32>
  %1 = lathe.linear %x, %b layout in_out : tensor<3x4xf32>, tensor<4x8xf32>
  %2 = lathe.linear %x, %a residual %r : tensor<3x4xf32>, tensor<8x4xf32> residual tensor<3x8xf32>
  %3 = lathe.linear %x, %run : tensor<3x4xf32>, tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
}
// An activation is part of its layer, a bias of the run cannot be joined at load time, and packed
// bytes have no columns.
// CHECK-LABEL: func.func @own_epilogues
// CHECK-DAG: lathe.linear %arg0, {{.*}} activation relu
// CHECK-DAG: lathe.linear %arg0, {{.*}} activation silu
// CHECK-DAG: lathe.linear %arg0, {{.*}} bias %arg1
// CHECK-DAG: lathe.linear %arg0, {{.*}} layout packed
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @own_epilogues(%x: tensor<3x4xf32>, %run: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>) {
  %a = lathe.weight "a" : tensor<8x4xf32>
  %0 = lathe.linear %x, %a activation relu : tensor<3x4xf32>, tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<8x4xf32>
  %1 = lathe.linear %x, %b activation silu : tensor<3x4xf32>, tensor<8x4xf32>
  %c = lathe.weight "c" : tensor<8x4xf32>
  %2 = lathe.linear %x, %c bias %run : tensor<3x4xf32>, tensor<8x4xf32> bias tensor<8xf32>
  %d = lathe.weight "d" : tensor<8x4xf32>
  %3 = lathe.linear %x, %d layout packed : tensor<3x4xf32>, tensor<8x4xf32>
  return %0, %1, %2, %3 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
}
// Each of them beside a layer that could be joined: what is not rounded, a bias of the run, packed bytes.
// CHECK-LABEL: func.func @unrounded
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @unrounded(%x: tensor<3x4xbf16>) -> (tensor<3x8xbf16>, tensor<3x8xf32>) {
  %a = lathe.weight "a" : tensor<8x4xbf16>
  %0 = lathe.linear %x, %a : tensor<3x4xbf16>, tensor<8x4xbf16>
  %b = lathe.weight "b" : tensor<8x4xbf16>
  %1 = lathe.linear %x, %b unrounded true : tensor<3x4xbf16>, tensor<8x4xbf16>
  return %0, %1 : tensor<3x8xbf16>, tensor<3x8xf32>
}
// CHECK-LABEL: func.func @bias_of_the_run
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @bias_of_the_run(%x: tensor<3x4xf32>, %run: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %a = lathe.weight "a" : tensor<8x4xf32>
  %0 = lathe.linear %x, %a : tensor<3x4xf32>, tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<8x4xf32>
  %1 = lathe.linear %x, %b bias %run : tensor<3x4xf32>, tensor<8x4xf32> bias tensor<8xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}
// CHECK-LABEL: func.func @packed
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @packed(%x: tensor<3x4xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %a = lathe.weight "a" : tensor<8x4xf32>
  %0 = lathe.linear %x, %a layout packed : tensor<3x4xf32>, tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<8x4xf32>
  %1 = lathe.linear %x, %b layout packed : tensor<3x4xf32>, tensor<8x4xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}
// Experts that differ in the rounding alone, and packed ones.
// CHECK-LABEL: func.func @unrounded_experts
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @unrounded_experts(%x: tensor<3x4xbf16>, %i: tensor<3xi64>) -> tensor<3x8xf32> {
  %wg = lathe.weight "gate" : tensor<2x8x4xbf16>
  %g = lathe.grouped_linear %x, %wg by %i : tensor<3x4xbf16>, tensor<2x8x4xbf16>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x8x4xbf16>
  %u = lathe.grouped_linear %x, %wu by %i unrounded true : tensor<3x4xbf16>, tensor<2x8x4xbf16>, tensor<3xi64>
  %c = lathe.cast %g to f32 : tensor<3x8xbf16>
  %y = lathe.glu %c, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: func.func @packed_experts
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @packed_experts(%x: tensor<3x4xf32>, %i: tensor<3xi64>) -> tensor<3x8xf32> {
  %wg = lathe.weight "gate" : tensor<2x8x4xf32>
  %g = lathe.grouped_linear %x, %wg by %i layout packed : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x8x4xf32>
  %u = lathe.grouped_linear %x, %wu by %i layout packed : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %y = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// Transposed experts are joined along their last axis, and keep what their products are.
// CHECK-LABEL: func.func @transposed_experts
// CHECK: %[[W:.*]] = lathe.concat {{.*}} axis 2 {{.*}} tensor<2x4x8xbf16>, tensor<2x4x8xbf16>
// CHECK: lathe.grouped_linear %arg0, %[[W]] by %arg1 layout in_out unrounded true
// CHECK-NOT: lathe.grouped_linear
// CHECK: lathe.glu
func.func @transposed_experts(%x: tensor<3x4xbf16>, %i: tensor<3xi64>) -> tensor<3x8xf32> {
  %wg = lathe.weight "gate" : tensor<2x4x8xbf16>
  %g = lathe.grouped_linear %x, %wg by %i layout in_out unrounded true : tensor<3x4xbf16>, tensor<2x4x8xbf16>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x4x8xbf16>
  %u = lathe.grouped_linear %x, %wu by %i layout in_out unrounded true : tensor<3x4xbf16>, tensor<2x4x8xbf16>, tensor<3xi64>
  %y = lathe.glu %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// The missing bias of a layer is zeros of its own width, at its own place.
// CHECK-LABEL: func.func @second_bias
// CHECK: %[[OWN:.*]] = lathe.weight "b.bias"
// CHECK: %[[ZERO:.*]] = lathe.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[NONE:.*]] = lathe.broadcast %[[ZERO]] to <8>
// CHECK: lathe.concat %[[NONE]], %[[OWN]] axis 0 : tensor<8xf32>, tensor<2xf32>
func.func @second_bias(%x: tensor<3x4xf32>) -> (tensor<3x8xf32>, tensor<3x2xf32>) {
  %a = lathe.weight "a" : tensor<8x4xf32>
  %0 = lathe.linear %x, %a : tensor<3x4xf32>, tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<2x4xf32>
  %bb = lathe.weight "b.bias" : tensor<2xf32>
  %1 = lathe.linear %x, %b bias %bb : tensor<3x4xf32>, tensor<2x4xf32> bias tensor<2xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x2xf32>
}
// Layers without a bias get none.
// CHECK-LABEL: func.func @no_bias
// CHECK: lathe.linear %arg0, %{{[0-9]+}} : tensor<3x4xf32>, tensor<10x4xf32>
func.func @no_bias(%x: tensor<3x4xf32>) -> (tensor<3x8xf32>, tensor<3x2xf32>) {
  %a = lathe.weight "a" : tensor<8x4xf32>
  %0 = lathe.linear %x, %a : tensor<3x4xf32>, tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<2x4xf32>
  %1 = lathe.linear %x, %b : tensor<3x4xf32>, tensor<2x4xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x2xf32>
}
// Experts of which one alone meets a gate.
// CHECK-LABEL: func.func @experts_of_two_gates
// CHECK-NOT: lathe.concat
// CHECK: return
func.func @experts_of_two_gates(%x: tensor<3x4xf32>, %i: tensor<3xi64>, %h: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %wg = lathe.weight "gate" : tensor<2x8x4xf32>
  %g = lathe.grouped_linear %x, %wg by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %wu = lathe.weight "up" : tensor<2x8x4xf32>
  %u = lathe.grouped_linear %x, %wu by %i : tensor<3x4xf32>, tensor<2x8x4xf32>, tensor<3xi64>
  %y = lathe.glu %g, %h : tensor<3x8xf32>, tensor<3x8xf32>
  %z = lathe.glu %u, %h : tensor<3x8xf32>, tensor<3x8xf32>
  return %y, %z : tensor<3x8xf32>, tensor<3x8xf32>
}
