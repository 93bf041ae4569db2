// RUN: lathe-opt %s --lathe-fuse --lathe-why-not --split-input-file -o /dev/null 2>&1 | FileCheck %s
// RUN: lathe-opt %s --lathe-fuse --split-input-file | FileCheck %s --check-prefix=LEFT

// Products with chosen weights that are not one row for each index stay as they are, and it is told
// why.

// Two rows of one weight.
// CHECK: remark: grouped_linear-kept: {{.*}}lathe.matmul: wanted one row for each index, found 2
// LEFT-LABEL: @two_columns
// LEFT: lathe.matmul
func.func @two_columns(%x: tensor<5x8x2xf32>, %i: tensor<5xi64>) -> tensor<5x6x2xf32> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<5xi64>
  %y = lathe.matmul %c, %x : tensor<5x6x8xf32>, tensor<5x8x2xf32>
  return %y : tensor<5x6x2xf32>
}

// -----

// Each of the chosen weights meets four rows.
// CHECK: remark: grouped_linear-kept: {{.*}}lathe.matmul: the axes in front of the product are not those of the indices
// LEFT-LABEL: @stretched
// LEFT: lathe.matmul
func.func @stretched(%x: tensor<4x5x8x1xf32>, %i: tensor<5xi64>) -> tensor<4x5x6x1xf32> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<5xi64>
  %y = lathe.matmul %c, %x : tensor<5x6x8xf32>, tensor<4x5x8x1xf32>
  return %y : tensor<4x5x6x1xf32>
}

// -----

// The choice moves to the front of the rows.
// CHECK: remark: grouped_linear-kept: {{.*}}lathe.transpose: wanted the last two axes of the weights swapped
// LEFT-LABEL: @turned_otherwise
// LEFT: lathe.matmul
func.func @turned_otherwise(%x: tensor<8x5x1xf32>, %i: tensor<5xi64>) -> tensor<8x8x1xf32> {
  %w = lathe.weight "w" : tensor<3x8x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x8x8xf32>, tensor<5xi64>
  %t = lathe.transpose %c [1, 2, 0] : tensor<5x8x8xf32>
  %y = lathe.matmul %t, %x : tensor<8x8x5xf32>, tensor<8x5x1xf32>
  return %y : tensor<8x8x1xf32>
}

// -----

// The last two axes of what is turned are the choice and the columns.
// CHECK: remark: grouped_linear-rows-kept: {{.*}}lathe.transpose: wanted the last two axes of the weights swapped
// LEFT-LABEL: @turned_round
// LEFT: lathe.matmul
func.func @turned_round(%x: tensor<4x1x4xf32>, %i: tensor<4xi64>) -> tensor<4x1x4xf32> {
  %w = lathe.weight "w" : tensor<3x4x4xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x4x4xf32>, tensor<4xi64>
  %t = lathe.transpose %c [2, 0, 1] : tensor<4x4x4xf32>
  %y = lathe.matmul %x, %t : tensor<4x1x4xf32>, tensor<4x4x4xf32>
  return %y : tensor<4x1x4xf32>
}

// -----

// Columns of every weight are chosen, not weights.
// CHECK: remark: grouped_linear-kept: {{.*}}lathe.gather differs in 'axis': wanted 0
// LEFT-LABEL: @other_axis
// LEFT: lathe.matmul
func.func @other_axis(%x: tensor<3x5x1xf32>, %i: tensor<5xi64>) -> tensor<3x6x1xf32> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 2 : tensor<3x6x8xf32>, tensor<5xi64>
  %y = lathe.matmul %c, %x : tensor<3x6x5xf32>, tensor<3x5x1xf32>
  return %y : tensor<3x6x1xf32>
}

// -----

// A table of the run is no weight.
// CHECK: remark: grouped_linear-kept: {{.*}}wanted weights of a checkpoint, of rank 3
// LEFT-LABEL: @no_weight
// LEFT: lathe.matmul
func.func @no_weight(%w: tensor<3x6x8xf32>, %x: tensor<5x8x1xf32>, %i: tensor<5xi64>) -> tensor<5x6x1xf32> {
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<5xi64>
  %y = lathe.matmul %c, %x : tensor<5x6x8xf32>, tensor<5x8x1xf32>
  return %y : tensor<5x6x1xf32>
}

// -----

// The columns are not taken apart as they were joined.
// CHECK: remark: grouped_linear-joined: {{.*}}lathe.reshape: the axes in front of the columns are not those of the indices
// LEFT-LABEL: @taken_apart_otherwise
// LEFT: lathe.matmul
func.func @taken_apart_otherwise(%x: tensor<5x8x1xf32>, %i: tensor<5x2xi64>) -> tensor<5x3x4xf32> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<5x2xi64>
  %j = lathe.reshape %c to <5, 12, 8> : tensor<5x2x6x8xf32>
  %p = lathe.matmul %j, %x : tensor<5x12x8xf32>, tensor<5x8x1xf32>
  %y = lathe.reshape %p to <5, 3, 4> : tensor<5x12x1xf32>
  return %y : tensor<5x3x4xf32>
}

// -----

// Inner axes side by side, not columns.
// CHECK: remark: grouped_linear-joined: {{.*}}lathe.reshape: the columns of the chosen weights are not side by side
// LEFT-LABEL: @inner_axes_joined
// LEFT: lathe.matmul
func.func @inner_axes_joined(%x: tensor<5x8x1xf32>, %i: tensor<5x2xi64>) -> tensor<5x2x8xf32> {
  %w = lathe.weight "w" : tensor<3x8x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x8x8xf32>, tensor<5x2xi64>
  %t = lathe.transpose %c [0, 2, 1, 3] : tensor<5x2x8x8xf32>
  %j = lathe.reshape %t to <5, 16, 8> : tensor<5x8x2x8xf32>
  %p = lathe.matmul %j, %x : tensor<5x16x8xf32>, tensor<5x8x1xf32>
  %y = lathe.reshape %p to <5, 2, 8> : tensor<5x16x1xf32>
  return %y : tensor<5x2x8xf32>
}

// -----

// Inner axes again, as nothing turns the weights.
// CHECK: remark: grouped_linear-joined-rows: {{.*}}lathe.reshape: the columns of the chosen weights are not side by side
// LEFT-LABEL: @joined_as_they_lie
// LEFT: lathe.matmul
func.func @joined_as_they_lie(%x: tensor<5x1x8xf32>, %i: tensor<5x2xi64>) -> tensor<5x2x8xf32> {
  %w = lathe.weight "w" : tensor<3x4x16xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x4x16xf32>, tensor<5x2xi64>
  %j = lathe.reshape %c to <5, 8, 16> : tensor<5x2x4x16xf32>
  %p = lathe.matmul %x, %j : tensor<5x1x8xf32>, tensor<5x8x16xf32>
  %y = lathe.reshape %p to <5, 2, 8> : tensor<5x1x16xf32>
  return %y : tensor<5x2x8xf32>
}

// -----

// The columns are those of other rows.
// CHECK: remark: grouped_linear-joined-rows: {{.*}}lathe.reshape: the columns of the chosen weights are not side by side
// LEFT-LABEL: @joined_across_rows
// LEFT: lathe.matmul
func.func @joined_across_rows(%x: tensor<2x1x8xf32>, %i: tensor<2x2xi64>) -> tensor<2x2x6xf32> {
  %w = lathe.weight "w" : tensor<3x8x6xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x8x6xf32>, tensor<2x2xi64>
  %t = lathe.transpose %c [1, 2, 0, 3] : tensor<2x2x8x6xf32>
  %j = lathe.reshape %t to <2, 8, 12> : tensor<2x8x2x6xf32>
  %p = lathe.matmul %x, %j : tensor<2x1x8xf32>, tensor<2x8x12xf32>
  %y = lathe.reshape %p to <2, 2, 6> : tensor<2x1x12xf32>
  return %y : tensor<2x2x6xf32>
}
