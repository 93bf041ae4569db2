// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=0' | FileCheck %s --check-prefix=FIRST
// RUN: lathe-opt %s --lathe-cut-stages='stages=2 stage=1' | FileCheck %s --check-prefix=SECOND
// RUN: not lathe-opt %s --lathe-cut-stages='stages=60 stage=0' 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not lathe-opt %s --lathe-cut-stages='stages=65 stage=0' 2>&1 | FileCheck %s --check-prefix=NONE

// A layer in each stage, with its state. What is made of inputs alone a stage computes for itself;
// the first has the output, which the second sends back.
// FIRST: lathe.state @first
// FIRST-NOT: lathe.state @second
// FIRST: func.func @step
// FIRST-SAME: lathe.state = @first
// FIRST-NOT: lathe.state = @second
// FIRST-NOT: lathe.mul
// FIRST: lathe.weight "a"
// FIRST-NOT: lathe.weight "b"
// FIRST: lathe.send %{{.*}} to 1 over "pp" of 2 : tensor<4x4xf32>
// FIRST-NEXT: %[[Y:.*]] = lathe.receive from 1 over "pp" of 2 result : tensor<4x4xf32>
// FIRST-NEXT: return %{{.*}}, %[[Y]] : tensor<4x4xf32>, tensor<4x4xf32>
// SECOND-NOT: lathe.state @first
// SECOND: func.func @step
// SECOND-NOT: lathe.state = @first
// SECOND-NOT: lathe.weight "a"
// SECOND: %[[M:.*]] = lathe.mul
// SECOND: lathe.receive from 0 over "pp" of 2 : tensor<4x4xf32>
// SECOND: lathe.weight "b"
// SECOND: lathe.add %{{.*}}, %[[M]]
// SECOND: lathe.send %{{.*}} to 0 over "pp" of 2 result : tensor<4x4xf32>
// SECOND-NEXT: return %{{[0-9]+}} : tensor<4x4xf32>
// MANY: mesh: expected at most 8 stages, which the ops of entry point 'step' can be cut into, got 60
// NONE: mesh: expected from 1 to 64 stages, got 65
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
