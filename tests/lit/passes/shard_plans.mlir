// RUN: lathe-opt %s --lathe-shard=ranks=2 --split-input-file | FileCheck %s

// Which products are cut, and along what.

// Behind rows come no further rows: the third product is cut for itself, as the result's.
// CHECK-LABEL: func.func @three_in_a_row
// CHECK-DAG: lathe.weight "first@0/2" of "first" axis 0 parts 2
// CHECK-DAG: lathe.weight "second@1/2" of "second" axis 1 parts 2
// CHECK-DAG: lathe.weight "third@0/2" of "third" axis 0 parts 2
// CHECK: lathe.all_gather
func.func @three_in_a_row(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %a = lathe.weight "first" : tensor<8x8xf32>
  %b = lathe.weight "second" : tensor<8x8xf32>
  %c = lathe.weight "third" : tensor<8x8xf32>
  %0 = lathe.linear %x, %a : tensor<3x8xf32>, tensor<8x8xf32>
  %1 = lathe.linear %0, %b : tensor<3x8xf32>, tensor<8x8xf32>
  %2 = lathe.linear %1, %c : tensor<3x8xf32>, tensor<8x8xf32>
  return %2 : tensor<3x8xf32>
}

// -----

// A residual is added to columns where it is made in pieces, too.
// CHECK-LABEL: func.func @residual_of_columns
// CHECK-DAG: lathe.weight "a@0/2" of "a" axis 0 parts 2
// CHECK-DAG: lathe.weight "r@0/2" of "r" axis 0 parts 2
// CHECK-DAG: lathe.weight "b@1/2" of "b" axis 1 parts 2
// CHECK: lathe.all_reduce
// CHECK-NOT: lathe.all_
// CHECK: return
func.func @residual_of_columns(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %a = lathe.weight "a" : tensor<8x4xf32>
  %r = lathe.weight "r" : tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<4x8xf32>
  %0 = lathe.linear %x, %r : tensor<3x4xf32>, tensor<8x4xf32>
  %1 = lathe.linear %x, %a residual %0 : tensor<3x4xf32>, tensor<8x4xf32> residual tensor<3x8xf32>
  %2 = lathe.exp %1 : tensor<3x8xf32>
  %3 = lathe.linear %2, %b : tensor<3x8xf32>, tensor<4x8xf32>
  return %3 : tensor<3x4xf32>
}

// -----

// A result's product is cut along its columns, however its weight lies; not where a residual is
// added to it.
// CHECK-LABEL: func.func @heads
// CHECK-DAG: lathe.weight "head@1/2" of "head" axis 1 parts 2 : tensor<4x3xf32>
// CHECK-DAG: lathe.weight "whole" : tensor<6x4xf32>
// CHECK: lathe.all_gather
// CHECK-NOT: lathe.all_gather
// CHECK: return
func.func @heads(%x: tensor<3x4xf32>, %r: tensor<3x6xf32>) -> (tensor<3x6xf32>, tensor<3x6xf32>) {
  %h = lathe.weight "head" : tensor<4x6xf32>
  %w = lathe.weight "whole" : tensor<6x4xf32>
  %0 = lathe.linear %x, %h layout in_out : tensor<3x4xf32>, tensor<4x6xf32>
  %1 = lathe.linear %x, %w residual %r : tensor<3x4xf32>, tensor<6x4xf32> residual tensor<3x6xf32>
  return %0, %1 : tensor<3x6xf32>, tensor<3x6xf32>
}

// -----

// A table of as many elements as the largest weight that is cut repays the sum.
// CHECK-LABEL: func.func @equal_table
// CHECK: lathe.weight "table@0/2" of "table" axis 0 parts 2
func.func @equal_table(%ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %t = lathe.weight "table" : tensor<8x4xf32>
  %a = lathe.weight "a" : tensor<8x4xf32>
  %b = lathe.weight "b" : tensor<4x8xf32>
  %0 = lathe.embedding %ids, %t : tensor<3xi64>, tensor<8x4xf32>
  %1 = lathe.linear %0, %a : tensor<3x4xf32>, tensor<8x4xf32>
  %2 = lathe.exp %1 : tensor<3x8xf32>
  %3 = lathe.linear %2, %b residual %0 : tensor<3x8xf32>, tensor<4x8xf32> residual tensor<3x4xf32>
  return %3 : tensor<3x4xf32>
}

// -----

// Columns of a table that others read are none: they would be gathered.
// CHECK-LABEL: func.func @table_that_others_read
// CHECK-NOT: lathe.weight "table@
// CHECK: return
func.func @table_that_others_read(%ids: tensor<3xi64>) -> (tensor<3x5xf32>, tensor<3x4xf32>) {
  %t = lathe.weight "table" : tensor<8x4xf32>
  %w = lathe.weight "w" : tensor<5x4xf32>
  %0 = lathe.embedding %ids, %t : tensor<3xi64>, tensor<8x4xf32>
  %1 = lathe.linear %0, %w : tensor<3x4xf32>, tensor<5x4xf32>
  %2 = lathe.exp %0 : tensor<3x4xf32>
  return %1, %2 : tensor<3x5xf32>, tensor<3x4xf32>
}
