// RUN: lathe-opt %s --lathe-cut-stages='stages=3 stage=0' | FileCheck %s --check-prefix=FIRST
// RUN: lathe-opt %s --lathe-cut-stages='stages=3 stage=1' | FileCheck %s --check-prefix=SECOND
// RUN: lathe-opt %s --lathe-cut-stages='stages=3 stage=2' | FileCheck %s --check-prefix=THIRD
// RUN: not lathe-opt %s --lathe-cut-stages='stages=4 stage=0' 2>&1 | FileCheck %s --check-prefix=FOUR

// What two later stages read is sent to each of them, the nearer one first; a result that is given
// twice comes back once. Three ops are three stages at most.
// FIRST: lathe.weight "a"
// FIRST-NOT: lathe.weight
// FIRST: %[[A:.*]] = lathe.linear
// FIRST: lathe.send %[[A]] to 1
// FIRST: lathe.send %[[A]] to 2
// FIRST: %[[R:.*]] = lathe.receive from 2 over "pp" of 3 result
// FIRST-NOT: lathe.receive
// FIRST: return %[[R]], %[[R]]
// SECOND: lathe.weight "b"
// SECOND-NOT: lathe.weight
// SECOND: %[[A:.*]] = lathe.receive from 0
// SECOND: %[[B:.*]] = lathe.linear %[[A]]
// SECOND: lathe.send %[[B]] to 2
// SECOND-NOT: lathe.send
// SECOND: return{{$}}
// THIRD: lathe.weight "c"
// THIRD-NOT: lathe.weight
// THIRD: lathe.receive from 0
// THIRD: lathe.receive from 1
// THIRD: %[[C:.*]] = lathe.linear
// THIRD: lathe.send %[[C]] to 0 over "pp" of 3 result
// THIRD-NOT: lathe.send
// THIRD: return{{$}}
// FOUR: mesh: expected at most 3 stages, which the ops of entry point 'forward' can be cut into, got 4
func.func @forward(%x: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %a = lathe.weight "a" : tensor<8x8xf32>
  %b = lathe.weight "b" : tensor<8x8xf32>
  %c = lathe.weight "c" : tensor<8x8xf32>
  %0 = lathe.linear %x, %a : tensor<3x8xf32>, tensor<8x8xf32>
  %1 = lathe.linear %0, %b : tensor<3x8xf32>, tensor<8x8xf32>
  %2 = lathe.linear %1, %c residual %0 : tensor<3x8xf32>, tensor<8x8xf32> residual tensor<3x8xf32>
  return %2, %2 : tensor<3x8xf32>, tensor<3x8xf32>
}
