// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s
// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s --check-prefix=STRICT

!q = tensor<2x4x8xf32>
!s = tensor<2x4x4xf32>

// On the query, on the key in front of its transpose, split on both, as a quotient behind: one
// factor behind the product.
// CHECK-LABEL: @scores
// CHECK-COUNT-4: lathe.mul %{{.*}}, %{{.*}} : tensor<2x4x4xf32>, tensor<f32>
// CHECK-NOT: lathe.mul
// CHECK: return
// STRICT-LABEL: @scores
// STRICT-COUNT-4: lathe.mul %{{.*}}, %{{.*}} : tensor<2x{{[48]}}x{{[48]}}xf32>, tensor<f32>
// STRICT: lathe.mul %{{.*}}, %{{.*}} : tensor<2x4x4xf32>, tensor<f32>
func.func @scores(%q: !q, %k: !q) -> (!s, !s, !s, !s) {
  %quarter = lathe.constant dense<0.25> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %four = lathe.constant dense<4.0> : tensor<f32>
  %kt = lathe.transpose %k [0, 2, 1] : !q
  %q4 = lathe.mul %q, %quarter : !q, tensor<f32>
  %a = lathe.matmul %q4, %kt : !q, tensor<2x8x4xf32>
  %k4 = lathe.mul %quarter, %k : tensor<f32>, !q
  %k4t = lathe.transpose %k4 [0, 2, 1] : !q
  %b = lathe.matmul %q, %k4t : !q, tensor<2x8x4xf32>
  %q2 = lathe.mul %q, %half : !q, tensor<f32>
  %k2 = lathe.mul %k, %half : !q, tensor<f32>
  %k2t = lathe.transpose %k2 [0, 2, 1] : !q
  %c = lathe.matmul %q2, %k2t : !q, tensor<2x8x4xf32>
  %p = lathe.matmul %q, %kt : !q, tensor<2x8x4xf32>
  %d = lathe.div %p, %four : !s, tensor<f32>
  return %a, %b, %c, %d : !s, !s, !s, !s
}

// A factor in front of a layer is the layer's.
// CHECK-LABEL: @layer
// CHECK: %[[X:.*]] = lathe.mul %arg0
// CHECK: lathe.matmul %[[X]]
func.func @layer(%x: tensor<4x8xf32>) -> tensor<4x6xf32> {
  %w = lathe.weight "w" : tensor<8x6xf32>
  %c = lathe.constant dense<3.0> : tensor<f32>
  %s = lathe.mul %x, %c : tensor<4x8xf32>, tensor<f32>
  %y = lathe.matmul %s, %w : tensor<4x8xf32>, tensor<8x6xf32>
  return %y : tensor<4x6xf32>
}

// A factor stands behind what only moves elements: exact.
// STRICT-LABEL: @behind_layout
// STRICT: %[[R:.*]] = lathe.reshape %arg0 to <4, 2, 4>
// STRICT: lathe.mul %[[R]]
func.func @behind_layout(%x: tensor<4x8xf32>) -> tensor<4x2x4xf32> {
  %c = lathe.constant dense<3.0> : tensor<f32>
  %s = lathe.mul %x, %c : tensor<4x8xf32>, tensor<f32>
  %y = lathe.reshape %s to <4, 2, 4> : tensor<4x8xf32>
  return %y : tensor<4x2x4xf32>
}
