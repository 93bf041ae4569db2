// RUN: not lathe-opt %s --lathe-check-locations --split-input-file -o /dev/null 2>&1 | FileCheck %s

// CHECK: error: [L1] {{.*}} has an origin that is no recorded line: loc(unknown)
func.func @constant() -> tensor<f32> {
  %0 = lathe.constant dense<1.0> : tensor<f32> loc(unknown)
  return %0 : tensor<f32>
}

// -----

// Every leaf counts.
// CHECK: error: [L1] {{.*}} has an origin that is no recorded line: loc(fused["blocks.0", "model.cc":1:1])
func.func @one_leaf(%x: tensor<f32>) -> tensor<f32> {
  %0 = lathe.exp %x : tensor<f32> loc(fused["blocks.0", "model.cc":1:1])
  return %0 : tensor<f32>
}

// -----

// A path alone is no line.
// CHECK: [L1] {{.*}} has an origin that is no recorded line: loc("blocks.0")
func.func @path(%x: tensor<f32>) -> tensor<f32> {
  %0 = lathe.exp %x : tensor<f32> loc("blocks.0")
  return %0 : tensor<f32>
}

// -----

// CHECK-NOT: error
func.func @good(%x: tensor<f32>) -> tensor<f32> {
  %0 = lathe.exp %x : tensor<f32> loc("blocks.0"("model.cc":1:1))
  %1 = lathe.neg %0 : tensor<f32> loc(fused<"neg">["model.cc":1:1, "model.cc":2:1])
  return %1 : tensor<f32>
}
