// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=0' | FileCheck %s --check-prefix=FIRST
// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=1' | FileCheck %s --check-prefix=SECOND

// A state that no op reads is kept by the first stage, and by no other.
// FIRST: lathe.state @idle
// FIRST: func.func @step(%{{.*}}: tensor<4x4xf32>, %[[I:.*]]: tensor<4xf32> {lathe.state = @idle})
// FIRST: return %[[I]]
// SECOND-NOT: @idle
// SECOND: lathe.weight "b"
// SECOND-NOT: @idle
lathe.state @idle : tensor<4xf32>
func.func @step(%x: tensor<4x4xf32>, %i: tensor<4xf32> {lathe.state = @idle}) -> (tensor<4xf32> {lathe.state = @idle}, tensor<4x4xf32> {lathe.name = "y"}) {
  %a = lathe.weight "a" : tensor<4x4xf32>
  %h = lathe.linear %x, %a : tensor<4x4xf32>, tensor<4x4xf32>
  %b = lathe.weight "b" : tensor<4x4xf32>
  %y = lathe.linear %h, %b : tensor<4x4xf32>, tensor<4x4xf32>
  return %i, %y : tensor<4xf32>, tensor<4x4xf32>
}
