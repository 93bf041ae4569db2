// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=0' | FileCheck %s --check-prefix=FIRST
// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=1' | FileCheck %s --check-prefix=SECOND
// RUN: sed 's|lathe.name = "kept"|lathe.state = @first|' %s | not lathe-opt --lathe-cut-stages='stages=2 stage=0' 2>&1 | FileCheck %s --check-prefix=MOVED

// What a state of the second stage holds is an output, too: the stage sends it. It is not put into a
// state of another stage.
// FIRST: func.func @peek()
// FIRST-NEXT: %[[Y:.*]] = lathe.receive from 1 over "pp" of 2 result : tensor<4x4xf32>
// FIRST-NEXT: return %[[Y]] : tensor<4x4xf32>
// SECOND: func.func @peek(%[[S:.*]]: tensor<4x4xf32> {lathe.state = @second})
// SECOND-NEXT: lathe.send %[[S]] to 0 over "pp" of 2 result : tensor<4x4xf32>
// SECOND-NEXT: return
// MOVED: stages of a pipeline: what the state 'second' holds is kept as it is in a state of another stage; take one stage
lathe.state @first : tensor<4x4xf32>
lathe.state @second : tensor<4x4xf32>
func.func @step(%x: tensor<4x2xf32>, %p: tensor<4x4xf32>, %s1: tensor<4x4xf32> {lathe.state = @first}, %s2: tensor<4x4xf32> {lathe.state = @second}) -> (tensor<4x4xf32> {lathe.state = @first}, tensor<4x4xf32> {lathe.state = @second}, tensor<4x4xf32> {lathe.name = "y"}) {
  %m = lathe.mul %p, %p : tensor<4x4xf32>, tensor<4x4xf32>
  %in = lathe.weight "in" : tensor<4x2xf32>
  %y0 = lathe.linear %x, %in : tensor<4x2xf32>, tensor<4x2xf32>
  %a = lathe.weight "a" : tensor<4x4xf32>
  %h = lathe.linear %y0, %a : tensor<4x4xf32>, tensor<4x4xf32>
  %n1 = lathe.add %s1, %h : tensor<4x4xf32>, tensor<4x4xf32>
  %y1 = lathe.add %n1, %y0 : tensor<4x4xf32>, tensor<4x4xf32>
  %b = lathe.weight "b" : tensor<4x4xf32>
  %g = lathe.linear %y1, %b : tensor<4x4xf32>, tensor<4x4xf32>
  %n2 = lathe.add %s2, %g : tensor<4x4xf32>, tensor<4x4xf32>
  %k = lathe.add %n2, %m : tensor<4x4xf32>, tensor<4x4xf32>
  %y2 = lathe.add %k, %y1 : tensor<4x4xf32>, tensor<4x4xf32>
  return %n1, %n2, %y2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
func.func @peek(%s: tensor<4x4xf32> {lathe.state = @second}) -> (tensor<4x4xf32> {lathe.name = "kept"}) {
  return %s : tensor<4x4xf32>
}
