// RUN: lathe-opt %s --lathe-shard='ranks=2 split-rows=true' --split-input-file | FileCheck %s
// RUN: lathe-opt %s --lathe-shard='ranks=2 split-rows=true simulate=true' --split-input-file | FileCheck %s --check-prefix=SIM

// A rank has half of the rows behind the sum, and the last one padding where their number is odd.
// CHECK: lathe.dim @rows 1 to 64
// CHECK-NEXT: lathe.dim_part @rows_part of <rows> parts 2
// CHECK-LABEL: func.func @mlp
// CHECK: %[[P:.*]] = lathe.linear
// CHECK: %[[P:.*]] = lathe.linear
// CHECK: %[[S:.*]] = lathe.reduce_scatter sum %[[P]] axis 0 part <rows_part> over "tp" of 2 : tensor<?x4xf32, #lathe.dims<rows, 4>>
// CHECK: %[[X:.*]] = lathe.all_slice %arg0 axis 0 parts 2 part <rows_part> over "tp" of 2
// CHECK: %[[A:.*]] = lathe.add %[[S]], %[[X]] : tensor<?x4xf32, #lathe.dims<rows_part, 4>>
// CHECK: %[[N:.*]] = lathe.rms_norm %[[A]] {{.*}} : tensor<?x4xf32, #lathe.dims<rows_part, 4>>
// CHECK: %[[Y:.*]] = lathe.all_gather %[[N]] axis 0 parts 2 whole <rows> over "tp" of 2
// CHECK: return %[[Y]]
// In one graph zeros stand behind the rows, and what lies there is left out again.
// SIM-LABEL: func.func @mlp
// SIM: %[[Z:.*]] = lathe.broadcast {{.*}} to <2*rows_part minus rows, 4>
// SIM: lathe.concat {{.*}}%[[Z]] axis 0
// SIM: lathe.slice {{.*}} starts <rows_part, 0> sizes <rows_part, 4>
// SIM-COUNT-2: lathe.rms_norm
// SIM: %[[B:.*]] = lathe.concat
// SIM: %[[I:.*]] = lathe.iota <rows> axis 0
// SIM: lathe.gather %[[B]], %[[I]] axis 0 : tensor<?x4xf32, #lathe.dims<2*rows_part, 4>>
lathe.dim @rows 1 to 64
func.func @mlp(%x: tensor<?x4xf32, #lathe.dims<rows, 4>>) -> tensor<?x4xf32, #lathe.dims<rows, 4>> {
  %up = lathe.weight "up" : tensor<8x4xf32>
  %down = lathe.weight "down" : tensor<4x8xf32>
  %h = lathe.linear %x, %up : tensor<?x4xf32, #lathe.dims<rows, 4>>, tensor<8x4xf32>
  %y = lathe.linear %h, %down residual %x : tensor<?x8xf32, #lathe.dims<rows, 8>>, tensor<4x8xf32> residual tensor<?x4xf32, #lathe.dims<rows, 4>>
  %n = lathe.rms_norm %y epsilon 1.0e-5 : tensor<?x4xf32, #lathe.dims<rows, 4>>
  return %n : tensor<?x4xf32, #lathe.dims<rows, 4>>
}

// -----

// A number that the ranks divide has equal parts, of whatever axis; one that they do not, padding.
// CHECK-LABEL: func.func @numbers
// CHECK: lathe.reduce_scatter sum %{{.*}} axis 0 over "tp" of 2 : tensor<4x5x4xf32>
// CHECK: lathe.reduce_scatter sum %{{.*}} axis 0 part <3> over "tp" of 2 : tensor<5x4xf32>
// SIM-LABEL: func.func @numbers
func.func @numbers(%x: tensor<4x5x8xf32>, %r: tensor<5x8xf32>) -> (tensor<4x5x4xf32>, tensor<5x4xf32>) {
  %up = lathe.weight "up" : tensor<8x8xf32>
  %down = lathe.weight "down" : tensor<4x8xf32>
  %0 = lathe.linear %x, %up : tensor<4x5x8xf32>, tensor<8x8xf32>
  %1 = lathe.linear %0, %down : tensor<4x5x8xf32>, tensor<4x8xf32>
  %2 = lathe.linear %r, %up : tensor<5x8xf32>, tensor<8x8xf32>
  %3 = lathe.linear %2, %down : tensor<5x8xf32>, tensor<4x8xf32>
  return %1, %3 : tensor<4x5x4xf32>, tensor<5x4xf32>
}

// -----

// One row of each text: the sum stays one message. So does one whose size has no range.
// CHECK-LABEL: func.func @step
// CHECK: lathe.all_reduce sum %{{.*}} : tensor<?x1x4xf32, #lathe.dims<batch, 1, 4>>
// CHECK: lathe.all_reduce sum %{{.*}} : tensor<?x4xf32, #lathe.dims<n, 4>>
// SIM-LABEL: func.func @step
lathe.dim @batch 1 to 64
func.func @step(%x: tensor<?x1x4xf32, #lathe.dims<batch, 1, 4>>, %r: tensor<?x4xf32, #lathe.dims<n, 4>>) -> (tensor<?x1x4xf32, #lathe.dims<batch, 1, 4>>, tensor<?x4xf32, #lathe.dims<n, 4>>) {
  %up = lathe.weight "up" : tensor<8x4xf32>
  %down = lathe.weight "down" : tensor<4x8xf32>
  %0 = lathe.linear %x, %up : tensor<?x1x4xf32, #lathe.dims<batch, 1, 4>>, tensor<8x4xf32>
  %1 = lathe.linear %0, %down : tensor<?x1x8xf32, #lathe.dims<batch, 1, 8>>, tensor<4x8xf32>
  %2 = lathe.linear %r, %up : tensor<?x4xf32, #lathe.dims<n, 4>>, tensor<8x4xf32>
  %3 = lathe.linear %2, %down : tensor<?x8xf32, #lathe.dims<n, 8>>, tensor<4x8xf32>
  return %1, %3 : tensor<?x1x4xf32, #lathe.dims<batch, 1, 4>>, tensor<?x4xf32, #lathe.dims<n, 4>>
}

// -----

// Sizes of parts have names that nothing else has.
// CHECK: lathe.dim @rows 1 to 64
// CHECK: lathe.dim_part @rows_part_ of <rows> parts 2
// CHECK: lathe.dim @rows_part 1 to 64
// CHECK-LABEL: func.func @taken_names
// CHECK: lathe.reduce_scatter sum %{{.*}} axis 0 part <rows_part_>
// SIM-LABEL: func.func @taken_names
lathe.dim @rows 1 to 64
lathe.dim @rows_part 1 to 64
func.func @taken_names(%x: tensor<?x4xf32, #lathe.dims<rows, 4>>, %z: tensor<?x4xf32, #lathe.dims<rows_part, 4>>) -> (tensor<?x4xf32, #lathe.dims<rows, 4>>, tensor<?x4xf32, #lathe.dims<rows_part, 4>>) {
  %up = lathe.weight "up" : tensor<8x4xf32>
  %down = lathe.weight "down" : tensor<4x8xf32>
  %h = lathe.linear %x, %up : tensor<?x4xf32, #lathe.dims<rows, 4>>, tensor<8x4xf32>
  %y = lathe.linear %h, %down residual %x : tensor<?x8xf32, #lathe.dims<rows, 8>>, tensor<4x8xf32> residual tensor<?x4xf32, #lathe.dims<rows, 4>>
  return %y, %z : tensor<?x4xf32, #lathe.dims<rows, 4>>, tensor<?x4xf32, #lathe.dims<rows_part, 4>>
}

// -----

// A bias is that of every row.
// CHECK-LABEL: func.func @bias_of_rows
// CHECK: %[[S:.*]] = lathe.reduce_scatter sum %{{.*}} axis 0 over "tp" of 2 : tensor<6x4xf32>
// CHECK: lathe.add %[[S]], %{{.*}} : tensor<3x4xf32>, tensor<4xf32>
// SIM-LABEL: func.func @bias_of_rows
func.func @bias_of_rows(%x: tensor<6x8xf32>) -> tensor<6x4xf32> {
  %up = lathe.weight "up" : tensor<8x8xf32>
  %down = lathe.weight "down" : tensor<4x8xf32>
  %bias = lathe.weight "bias" : tensor<4xf32>
  %0 = lathe.linear %x, %up : tensor<6x8xf32>, tensor<8x8xf32>
  %1 = lathe.linear %0, %down bias %bias : tensor<6x8xf32>, tensor<4x8xf32> bias tensor<4xf32>
  return %1 : tensor<6x4xf32>
}
