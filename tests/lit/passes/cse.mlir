// RUN: lathe-opt %s --lathe-cse --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

// The survivor carries the origins of all, each once.
// CHECK-LABEL: @cse
// CHECK-NEXT: lathe.constant dense<2.000000e+00> : tensor<f32> loc(fused["model.cc":1:1, "model.cc":3:1])
// CHECK-NEXT: lathe.mul %{{.*}} loc(fused["model.cc":2:1, "mlp"("model.cc":4:1)])
// CHECK-NEXT: lathe.add
// CHECK-NOT: lathe.mul
func.func @cse(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = lathe.constant dense<2.0> : tensor<f32> loc("model.cc":1:1)
  %a = lathe.mul %x, %c : tensor<4xf32>, tensor<f32> loc("model.cc":2:1)
  %d = lathe.constant dense<2.0> : tensor<f32> loc("model.cc":3:1)
  %b = lathe.mul %x, %d : tensor<4xf32>, tensor<f32> loc("mlp"("model.cc":4:1))
  %y = lathe.add %a, %b : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
