// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s
// On a mesh of one rank what the ranks tell each other is what this one has.
// CHECK-LABEL: func.func @one
// CHECK-NOT: lathe.
// CHECK: return %arg0, %arg0, %arg0, %arg0, %arg0
func.func @one(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = lathe.all_reduce sum %x over "tp" of 1 : tensor<4x8xf32>
  %b = lathe.all_gather %x axis 0 parts 1 over "tp" of 1 : tensor<4x8xf32>
  %c = lathe.reduce_scatter max %x axis 1 over "tp" of 1 : tensor<4x8xf32>
  %d = lathe.all_to_all %x split 0 concat 1 over "tp" of 1 : tensor<4x8xf32>
  %e = lathe.all_slice %x axis 1 parts 1 over "tp" of 1 : tensor<4x8xf32>
  return %a, %b, %c, %d, %e : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
