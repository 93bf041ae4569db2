// RUN: lathe-opt %s --lathe-strip-dims | FileCheck %s

// CHECK-LABEL: @main(%arg0: tensor<?x4xf32>) -> tensor<?x4xf32>
// CHECK: arith.addf %arg0, %arg0 : tensor<?x4xf32>
func.func @main(%x: tensor<?x4xf32, #lathe.dims<seq, 4>>) -> tensor<?x4xf32, #lathe.dims<seq, 4>> {
  %0 = arith.addf %x, %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  return %0 : tensor<?x4xf32, #lathe.dims<seq, 4>>
}
