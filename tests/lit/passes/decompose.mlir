// RUN: lathe-opt %s --lathe-decompose --lathe-check-locations | FileCheck %s
// RUN: lathe-opt %s --lathe-decompose --lathe-fuse | FileCheck %s --check-prefix=BACK
// RUN: lathe-opt %s --lathe-decompose --lathe-canonicalize --lathe-cse --lathe-fuse | FileCheck %s --check-prefix=BACK

// What a fused op stands for is found again.
// CHECK-LABEL: @softmax
// CHECK-NOT: lathe.softmax
// CHECK: return
// BACK-LABEL: @softmax
// BACK-DAG: lathe.softmax %arg0 axis 1 : tensor<2x8xf32>
// BACK-DAG: lathe.softmax %arg1 axis 0 masked_row zero : tensor<2x8xbf16>
// BACK-DAG: lathe.softmax %arg0 axis 0 masked_row uniform : tensor<2x8xf32>
// BACK-NEXT: return
func.func @softmax(%x: tensor<2x8xf32>, %h: tensor<2x8xbf16>) -> (tensor<2x8xf32>, tensor<2x8xbf16>, tensor<2x8xf32>) {
  %0 = lathe.softmax %x axis 1 : tensor<2x8xf32>
  %1 = lathe.softmax %h axis 0 masked_row zero : tensor<2x8xbf16>
  %2 = lathe.softmax %x axis 0 masked_row uniform : tensor<2x8xf32>
  return %0, %1, %2 : tensor<2x8xf32>, tensor<2x8xbf16>, tensor<2x8xf32>
}

// CHECK-LABEL: @rms_norm
// CHECK-NOT: lathe.rms_norm
// CHECK: return
// BACK-LABEL: @rms_norm
// BACK-DAG: lathe.rms_norm %arg0, %arg1 epsilon {{[^ ]+}} : tensor<2x8xf32>, tensor<8xf32>
// BACK-DAG: lathe.rms_norm %arg2, %arg3 epsilon {{[^ ]+}} : tensor<2x8xbf16>, tensor<8xbf16>
// BACK-DAG: lathe.rms_norm %arg4, %arg3 epsilon {{[^ ]+}} rounding before_gain : tensor<2x8xbf16>, tensor<8xbf16>
// BACK-NEXT: return
func.func @rms_norm(%x: tensor<2x8xf32>, %g: tensor<8xf32>, %h: tensor<2x8xbf16>, %i: tensor<8xbf16>, %h2: tensor<2x8xbf16>) -> (tensor<2x8xf32>, tensor<2x8xbf16>, tensor<2x8xbf16>) {
  %0 = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<2x8xf32>, tensor<8xf32>
  %1 = lathe.rms_norm %h, %i epsilon 1.0e-5 : tensor<2x8xbf16>, tensor<8xbf16>
  %2 = lathe.rms_norm %h2, %i epsilon 1.0e-5 rounding before_gain : tensor<2x8xbf16>, tensor<8xbf16>
  return %0, %1, %2 : tensor<2x8xf32>, tensor<2x8xbf16>, tensor<2x8xbf16>
}

// CHECK-LABEL: @rope
// CHECK-NOT: lathe.rope
// CHECK: return
// BACK-LABEL: @rope
// BACK-DAG: lathe.rope half %arg0, %arg1, %arg2
// BACK-DAG: lathe.rope interleaved %arg0, %arg1, %arg2
// BACK-NEXT: return
func.func @rope(%x: tensor<2x8xbf16>, %c: tensor<2x4xf32>, %s: tensor<2x4xf32>) -> (tensor<2x8xbf16>, tensor<2x8xbf16>) {
  %0 = lathe.rope half %x, %c, %s : tensor<2x8xbf16>, tensor<2x4xf32>, tensor<2x4xf32>
  %1 = lathe.rope interleaved %x, %c, %s : tensor<2x8xbf16>, tensor<2x4xf32>, tensor<2x4xf32>
  return %0, %1 : tensor<2x8xbf16>, tensor<2x8xbf16>
}

// CHECK-LABEL: @glu
// CHECK-NOT: lathe.glu
// CHECK: return
// BACK-LABEL: @glu
// BACK-DAG: lathe.glu %arg0, %arg1 : tensor<4xbf16>
// BACK-DAG: lathe.glu %arg0, %arg1 activation gelu : tensor<4xbf16>
// BACK-DAG: lathe.glu %arg2, %arg2 activation gelu_tanh : tensor<4xf32>
// BACK-DAG: lathe.glu %arg2, %arg2 activation relu : tensor<4xf32>
// BACK-NEXT: return
func.func @glu(%g: tensor<4xbf16>, %u: tensor<4xbf16>, %x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>) {
  %0 = lathe.glu %g, %u : tensor<4xbf16>, tensor<4xbf16>
  %1 = lathe.glu %g, %u activation gelu : tensor<4xbf16>, tensor<4xbf16>
  %2 = lathe.glu %x, %x activation gelu_tanh : tensor<4xf32>, tensor<4xf32>
  %3 = lathe.glu %x, %x activation relu : tensor<4xf32>, tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xbf16>, tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @attention
// CHECK-NOT: lathe.attention
// CHECK: return
// BACK-LABEL: @attention
// BACK-DAG: lathe.attention %arg0, %arg1, %arg1 mask %arg2 scale 5.000000e-01 causal top_left masked_row zero
// BACK-DAG: lathe.attention %arg3, %arg4, %arg4 positions %arg5 scale 2.500000e-01 causal positions : tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>
// BACK-NEXT: return
func.func @attention(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %m: tensor<3x5xi1>,
                     %q4: tensor<2x4x3x8xbf16>, %k4: tensor<2x2x5x8xbf16>, %p: tensor<2xi64>) -> (tensor<2x3x8xf32>, tensor<2x4x3x8xbf16>) {
  %0 = lathe.attention %q, %k, %k mask %m scale 0.5 causal top_left masked_row zero : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32> mask tensor<3x5xi1>
  %1 = lathe.attention %q4, %k4, %k4 positions %p scale 0.25 causal positions : tensor<2x4x3x8xbf16>, tensor<2x2x5x8xbf16>, tensor<2x2x5x8xbf16> positions tensor<2xi64>
  return %0, %1 : tensor<2x3x8xf32>, tensor<2x4x3x8xbf16>
}

// CHECK-LABEL: @linear
// CHECK-NOT: lathe.linear
// CHECK: return
// BACK-LABEL: @linear
// BACK: %[[Y:.*]] = lathe.linear %arg0, %{{.*}} bias %arg1 residual %arg2 : tensor<2x8xbf16>, tensor<6x8xbf16> bias tensor<6xbf16> residual tensor<2x6xbf16>
// BACK-NEXT: return %[[Y]]
func.func @linear(%x: tensor<2x8xbf16>, %b: tensor<6xbf16>, %r: tensor<2x6xbf16>) -> tensor<2x6xbf16> {
  %w = lathe.weight "w" : tensor<6x8xbf16>
  %0 = lathe.linear %x, %w bias %b residual %r : tensor<2x8xbf16>, tensor<6x8xbf16> bias tensor<6xbf16> residual tensor<2x6xbf16>
  return %0 : tensor<2x6xbf16>
}

// CHECK-LABEL: @embedding
// CHECK: lathe.gather
// BACK-LABEL: @embedding
// BACK: lathe.embedding
func.func @embedding(%ids: tensor<3xi64>) -> tensor<3x8xf32> {
  %w = lathe.weight "w" : tensor<6x8xf32>
  %0 = lathe.embedding %ids, %w : tensor<3xi64>, tensor<6x8xf32>
  return %0 : tensor<3x8xf32>
}

// Packed bytes have no elementary form.
// CHECK-LABEL: @packed
// CHECK: lathe.linear
func.func @packed(%x: tensor<2x8xf32>) -> tensor<2x6xf32> {
  %w = lathe.weight "w" : tensor<6x8xf32>
  %p = lathe.pack %w out_in : tensor<6x8xf32>
  %0 = lathe.linear %x, %p layout packed : tensor<2x8xf32>, tensor<6x8xf32>
  return %0 : tensor<2x6xf32>
}

// What is not rounded is summed in the compute type, as what has a bias is.
// CHECK-LABEL: @unrounded_linear
// CHECK: lathe.matmul {{.*}} : tensor<2x3xf32>, tensor<3x5xf32>
// CHECK: return
// BACK-LABEL: @unrounded_linear
func.func @unrounded_linear(%x: tensor<2x3xbf16>, %w: tensor<5x3xbf16>) -> tensor<2x5xf32> {
  %0 = lathe.linear %x, %w unrounded true : tensor<2x3xbf16>, tensor<5x3xbf16>
  return %0 : tensor<2x5xf32>
}

// An activation is of the sums in the compute type.
// CHECK-LABEL: @activated_linear
// CHECK: lathe.matmul {{.*}} : tensor<2x3xf32>, tensor<3x5xf32>
// CHECK: lathe.max {{.*}} : tensor<2x5xf32>
// CHECK: lathe.cast %{{.*}} to bf16
// BACK-LABEL: @activated_linear
func.func @activated_linear(%x: tensor<2x3xbf16>, %w: tensor<5x3xbf16>) -> tensor<2x5xbf16> {
  %0 = lathe.linear %x, %w activation relu : tensor<2x3xbf16>, tensor<5x3xbf16>
  return %0 : tensor<2x5xbf16>
}

// What comes behind the product is computed in f32 and rounded once; a product alone is rounded.
// CHECK-LABEL: @activation_rounds_once
// CHECK: lathe.matmul %{{.*}} : tensor<2x8xf32>, tensor<8x4xf32>
// CHECK: lathe.sigmoid %{{.*}} : tensor<2x4xf32>
// CHECK: lathe.matmul %arg0, %{{.*}} : tensor<2x8xbf16>, tensor<8x4xbf16>
// CHECK: return
func.func @activation_rounds_once(%x: tensor<2x8xbf16>, %w: tensor<4x8xbf16>) -> (tensor<2x4xbf16>, tensor<2x4xbf16>) {
  %y = lathe.linear %x, %w activation silu : tensor<2x8xbf16>, tensor<4x8xbf16>
  %z = lathe.linear %x, %w : tensor<2x8xbf16>, tensor<4x8xbf16>
  return %y, %z : tensor<2x4xbf16>, tensor<2x4xbf16>
}
