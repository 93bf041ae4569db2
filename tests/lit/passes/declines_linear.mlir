// RUN: lathe-opt %s --lathe-why-not --split-input-file -o /dev/null 2>&1 | FileCheck %s

// Each reason for which a pattern of layers, tables of rows and patches refuses a match.

// CHECK: remark: linear-bias: {{.*}}the bias is not one element per last dim
func.func @bias_of_rows(%x: tensor<3x8xf32>, %b: tensor<3x1xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %p = lathe.linear %x, %w : tensor<3x8xf32>, tensor<4x8xf32>
  %y = lathe.add %p, %b : tensor<3x4xf32>, tensor<3x1xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: linear-bias-subtracted: {{.*}}the bias is not one element per last dim
func.func @subtracted_bias_of_rows(%x: tensor<3x8xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %b = lathe.weight "b" : tensor<3x1xf32>
  %p = lathe.linear %x, %w : tensor<3x8xf32>, tensor<4x8xf32>
  %y = lathe.sub %p, %b : tensor<3x4xf32>, tensor<3x1xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: linear-residual-bias: {{.*}}'activation' of lathe.linear: it comes behind the bias
func.func @bias_behind_activation(%x: tensor<3x8xf32>, %r: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %b = lathe.weight "b" : tensor<4xf32>
  %p = lathe.linear %x, %w activation relu residual %r : tensor<3x8xf32>, tensor<4x8xf32> residual tensor<3x4xf32>
  %y = lathe.add %p, %b : tensor<3x4xf32>, tensor<4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: linear-residual-bias: {{.*}}the bias is not one element per last dim
func.func @bias_of_rows_behind_residual(%x: tensor<3x8xf32>, %r: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %b = lathe.weight "b" : tensor<3x1xf32>
  %p = lathe.linear %x, %w residual %r : tensor<3x8xf32>, tensor<4x8xf32> residual tensor<3x4xf32>
  %y = lathe.add %p, %b : tensor<3x4xf32>, tensor<3x1xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: linear-bias-of-parts: {{.*}}the bias has not the axes that the columns are split into
func.func @bias_of_heads(%x: tensor<3x8xf32>) -> tensor<3x2x2xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %b = lathe.weight "b" : tensor<2x1xf32>
  %p = lathe.linear %x, %w : tensor<3x8xf32>, tensor<4x8xf32>
  %s = lathe.reshape %p to <3, 2, 2> : tensor<3x4xf32>
  %y = lathe.add %s, %b : tensor<3x2x2xf32>, tensor<2x1xf32>
  return %y : tensor<3x2x2xf32>
}

// -----

// Rows are split as well as columns.
// CHECK: remark: linear-bias-of-parts: {{.*}}the bias has not the axes that the columns are split into
func.func @rows_in_parts(%x: tensor<4x8xf32>) -> tensor<2x2x2x2xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %b = lathe.weight "b" : tensor<2x2xf32>
  %p = lathe.linear %x, %w : tensor<4x8xf32>, tensor<4x8xf32>
  %s = lathe.reshape %p to <2, 2, 2, 2> : tensor<4x4xf32>
  %y = lathe.add %s, %b : tensor<2x2x2x2xf32>, tensor<2x2xf32>
  return %y : tensor<2x2x2x2xf32>
}

// -----

// CHECK: remark: linear-residual: {{.*}}the residual is f32[1, 4], the product f32[3, 4]
func.func @residual_of_one_row(%x: tensor<3x8xf32>, %r: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %b = lathe.weight "b" : tensor<4xf32>
  %p = lathe.linear %x, %w bias %b : tensor<3x8xf32>, tensor<4x8xf32> bias tensor<4xf32>
  %y = lathe.add %p, %r : tensor<3x4xf32>, tensor<1x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: embedding-positions: {{.*}}lathe.linear takes the rows as its residual
func.func @layer_of_rows(%ids: tensor<3xi64>, %x: tensor<3x8xf32>) -> tensor<3x4xf32> {
  %t = lathe.weight "t" : tensor<6x4xf32>
  %w = lathe.weight "w" : tensor<4x8xf32>
  %b = lathe.weight "b" : tensor<4xf32>
  %e = lathe.embedding %ids, %t : tensor<3xi64>, tensor<6x4xf32>
  %p = lathe.linear %x, %w bias %b activation relu : tensor<3x8xf32>, tensor<4x8xf32> bias tensor<4xf32>
  %m = lathe.neg %p : tensor<3x4xf32>
  %q = lathe.linear %x, %w residual %m : tensor<3x8xf32>, tensor<4x8xf32> residual tensor<3x4xf32>
  %y = lathe.add %e, %q : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: embedding-positions: {{.*}}lathe.add: the rows are broadcast to the positions
func.func @rows_are_broadcast(%ids: tensor<1xi64>, %p: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %t = lathe.weight "t" : tensor<6x4xf32>
  %e = lathe.embedding %ids, %t : tensor<1xi64>, tensor<6x4xf32>
  %y = lathe.add %e, %p : tensor<1x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: embedding-widened: {{.*}}the positions are not a cast from the table's type
func.func @wide_positions(%ids: tensor<3xi64>, %p: tensor<3x4xf32>) -> tensor<3x4xbf16> {
  %c = lathe.constant dense<2.0> : tensor<f32>
  %t = lathe.weight "t" : tensor<6x4xbf16>
  %e = lathe.embedding %ids, %t : tensor<3xi64>, tensor<6x4xbf16>
  %w = lathe.cast %e to f32 : tensor<3x4xbf16>
  %m = lathe.mul %w, %c : tensor<3x4xf32>, tensor<f32>
  %s = lathe.add %m, %p : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.cast %s to bf16 : tensor<3x4xf32>
  return %y : tensor<3x4xbf16>
}

// -----

// CHECK: remark: patchify: {{.*}}the kernel of lathe.convolution is no weight
func.func @kernel_is_an_input(%x: tensor<2x3x8x8xf32>, %w: tensor<6x3x2x2xf32>) -> tensor<2x6x4x4xf32> {
  %y = lathe.convolution %x, %w strides [2, 2] padding [0, 0, 0, 0] : tensor<2x3x8x8xf32>, tensor<6x3x2x2xf32>
  return %y : tensor<2x6x4x4xf32>
}

// -----

// CHECK: remark: patchify: {{.*}}'strides' of lathe.convolution are not the kernel's size: patches overlap or leave pixels out
func.func @patches_overlap(%x: tensor<2x3x8x8xf32>) -> tensor<2x6x4x7xf32> {
  %w = lathe.weight "w" : tensor<6x3x2x2xf32>
  %y = lathe.convolution %x, %w strides [2, 1] padding [0, 0, 0, 0] : tensor<2x3x8x8xf32>, tensor<6x3x2x2xf32>
  return %y : tensor<2x6x4x7xf32>
}

// -----

// CHECK: remark: patchify: {{.*}}'strides' of lathe.convolution are not the kernel's size: patches overlap or leave pixels out
func.func @pixels_left_out(%x: tensor<2x3x8x8xf32>) -> tensor<2x6x3x4xf32> {
  %w = lathe.weight "w" : tensor<6x3x2x2xf32>
  %y = lathe.convolution %x, %w strides [3, 2] padding [0, 0, 0, 0] : tensor<2x3x8x8xf32>, tensor<6x3x2x2xf32>
  return %y : tensor<2x6x3x4xf32>
}

// -----

// CHECK: remark: patchify: {{.*}}'padding' of lathe.convolution is not 0
func.func @padded_at_the_end(%x: tensor<2x3x8x8xf32>) -> tensor<2x6x4x5xf32> {
  %w = lathe.weight "w" : tensor<6x3x2x2xf32>
  %y = lathe.convolution %x, %w strides [2, 2] padding [0, 0, 0, 2] : tensor<2x3x8x8xf32>, tensor<6x3x2x2xf32>
  return %y : tensor<2x6x4x5xf32>
}

// -----

// CHECK: remark: patchify: {{.*}}the image of lathe.convolution is not provably whole patches
func.func @column_left_over(%x: tensor<2x3x8x9xf32>) -> tensor<2x6x4x4xf32> {
  %w = lathe.weight "w" : tensor<6x3x2x2xf32>
  %y = lathe.convolution %x, %w strides [2, 2] padding [0, 0, 0, 0] : tensor<2x3x8x9xf32>, tensor<6x3x2x2xf32>
  return %y : tensor<2x6x4x4xf32>
}

// -----

// CHECK: remark: patchify-bias: {{.*}}the bias is not one element per feature
func.func @bias_of_columns(%x: tensor<2x4x4x12xf32>, %b: tensor<4xf32>) -> tensor<2x6x4x4xf32> {
  %w = lathe.weight "w" : tensor<6x12xf32>
  %p = lathe.linear %x, %w : tensor<2x4x4x12xf32>, tensor<6x12xf32>
  %t = lathe.transpose %p [0, 3, 1, 2] : tensor<2x4x4x6xf32>
  %y = lathe.add %t, %b : tensor<2x6x4x4xf32>, tensor<4xf32>
  return %y : tensor<2x6x4x4xf32>
}

// -----

// The activation of the layer comes behind its bias.
// CHECK: remark: patchify-bias: {{.*}}the bias is not one element per feature
func.func @patches_bias_behind_activation(%x: tensor<2x4x4x12xf32>, %b: tensor<6x1x1xf32>) -> tensor<2x6x4x4xf32> {
  %w = lathe.weight "w" : tensor<6x12xf32>
  %p = lathe.linear %x, %w activation relu : tensor<2x4x4x12xf32>, tensor<6x12xf32>
  %t = lathe.transpose %p [0, 3, 1, 2] : tensor<2x4x4x6xf32>
  %y = lathe.add %t, %b : tensor<2x6x4x4xf32>, tensor<6x1x1xf32>
  return %y : tensor<2x6x4x4xf32>
}

// -----

// CHECK: remark: slice-before-linear-0: {{.*}}'sizes' of lathe.slice cut the last axis, not rows
func.func @columns_cut(%x: tensor<3x8xf32>) -> tensor<3x2xf32> {
  %w = lathe.weight "w" : tensor<4x8xf32>
  %p = lathe.linear %x, %w : tensor<3x8xf32>, tensor<4x8xf32>
  %y = lathe.slice %p starts <0, 0> sizes <3, 2> strides [1, 1] : tensor<3x4xf32>
  return %y : tensor<3x2xf32>
}

// -----

// CHECK: remark: slice-before-rms_norm-1: {{.*}}'sizes' of lathe.slice cut the last axis, not rows
func.func @every_other_column(%x: tensor<3x8xf32>, %g: tensor<8xf32>) -> tensor<3x4xf32> {
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x8xf32>, tensor<8xf32>
  %y = lathe.slice %n starts <0, 0> sizes <3, 4> strides [1, 2] : tensor<3x8xf32>
  return %y : tensor<3x4xf32>
}

// -----

// CHECK: remark: slice-before-layer_norm-0: {{.*}}'sizes' of lathe.slice cut the last axis, not rows
func.func @first_column_cut(%x: tensor<3x8xf32>) -> tensor<1x7xf32> {
  %n = lathe.layer_norm %x epsilon 1.0e-5 : tensor<3x8xf32>
  %y = lathe.slice %n starts <1, 1> sizes <1, 7> strides [1, 1] : tensor<3x8xf32>
  return %y : tensor<1x7xf32>
}
