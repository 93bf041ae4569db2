// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=0' | FileCheck %s --check-prefix=FIRST
// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=1' | FileCheck %s --check-prefix=SECOND

// A weight that three layers share counts once, in a stage that has all of them: the other stage has
// two weights, and the shared one is in no other.
// FIRST: lathe.weight "shared"
// FIRST-NOT: lathe.weight
// FIRST-COUNT-3: lathe.linear
// FIRST-NOT: lathe.linear
// FIRST: lathe.send
// SECOND-NOT: "shared"
// SECOND-DAG: lathe.weight "b"
// SECOND-DAG: lathe.weight "c"
// SECOND-COUNT-2: lathe.linear
// SECOND-NOT: "shared"
// SECOND: lathe.send
func.func @forward(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %a = lathe.weight "shared" : tensor<8x8xf32>
  %b = lathe.weight "b" : tensor<8x8xf32>
  %c = lathe.weight "c" : tensor<8x8xf32>
  %0 = lathe.linear %x, %a : tensor<3x8xf32>, tensor<8x8xf32>
  %1 = lathe.linear %0, %a : tensor<3x8xf32>, tensor<8x8xf32>
  %2 = lathe.linear %1, %a : tensor<3x8xf32>, tensor<8x8xf32>
  %3 = lathe.linear %2, %b : tensor<3x8xf32>, tensor<8x8xf32>
  %4 = lathe.linear %3, %c : tensor<3x8xf32>, tensor<8x8xf32>
  return %4 : tensor<3x8xf32>
}
