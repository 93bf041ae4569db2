// RUN: lathe-opt %s --lathe-fuse --log-rewrites -o /dev/null 2>&1 | FileCheck %s --check-prefix=LOG
// RUN: lathe-opt %s --lathe-fuse --skip-attempt=0 | FileCheck %s --check-prefix=SKIP

// The gate of the first attempt is left out, also when the driver tries it again; the other stays.
// LOG: rewrite #1 attempt 0 relu_gate
// LOG: rewrite #2 attempt {{[1-9][0-9]*}} relu_gate
// SKIP-LABEL: @two
// SKIP: lathe.max
// SKIP: lathe.mul
// SKIP: lathe.silu_gate
func.func @two(%g: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %a = lathe.max %g, %zero : tensor<4xf32>, tensor<f32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  %b = lathe.max %u, %zero : tensor<4xf32>, tensor<f32>
  %z = lathe.mul %b, %g : tensor<4xf32>, tensor<4xf32>
  return %y, %z : tensor<4xf32>, tensor<4xf32>
}
