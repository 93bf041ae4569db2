// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt %s --mlir-print-op-generic | lathe-opt | FileCheck %s

// CHECK: lathe.dim @seq 1 to 64 multiple 16
lathe.dim @seq 1 to 64 multiple 16
// CHECK: lathe.dim @batch 1 to 8
lathe.dim @batch 1 to 8
// CHECK: lathe.state @cache : tensor<2x3x8x4xf32>
lathe.state @cache : tensor<2x3x8x4xf32>

// CHECK-LABEL: @contraction
func.func @contraction(%a: tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>, %b: tensor<4x8xf32>,
                       %x: tensor<1x3x8x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // CHECK: lathe.matmul %{{.*}}, %{{.*}} : tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>, tensor<4x8xf32>
  %0 = lathe.matmul %a, %b : tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>, tensor<4x8xf32>
  // CHECK: lathe.convolution %{{.*}}, %{{.*}} strides [2, 1] padding [1, 1, 0, 0]
  %1 = lathe.convolution %x, %w strides [2, 1] padding [1, 1, 0, 0] : tensor<1x3x8x8xf32>, tensor<2x3x3x3xf32>
  return
}

// Each side has a padding of its own.
// CHECK-LABEL: @padded
func.func @padded(%x: tensor<1x3x7x9xf32>, %w: tensor<4x3x3x2xf32>) -> tensor<1x4x5x10xf32> {
  // CHECK: lathe.convolution %{{.*}}, %{{.*}} strides [2, 1] padding [1, 3, 0, 2]
  %0 = lathe.convolution %x, %w strides [2, 1] padding [1, 3, 0, 2] : tensor<1x3x7x9xf32>, tensor<4x3x3x2xf32>
  return %0 : tensor<1x4x5x10xf32>
}

// CHECK-LABEL: @index
func.func @index(%x: tensor<2x3x8x4xf32>, %value: tensor<2x3x?x4xf32, #lathe.dims<2, 3, seq, 4>>,
                 %positions: tensor<2xi64>, %ids: tensor<5x6xi32>, %seed: tensor<i64>,
                 %blocks: tensor<9x3x8x4xf32>, %table: tensor<2x5xi64>) {
  // CHECK: lathe.iota <seq, 1> axis 0 dtype i64
  %0 = lathe.iota <seq, 1> axis 0 dtype i64
  // CHECK: lathe.gather %{{.*}}, %{{.*}} axis 2 : tensor<2x3x8x4xf32>, tensor<5x6xi32>
  %1 = lathe.gather %x, %ids axis 2 : tensor<2x3x8x4xf32>, tensor<5x6xi32>
  // CHECK: lathe.update %{{.*}}, %{{.*}}, %{{.*}} axis 2
  %2 = lathe.update %x, %value, %positions axis 2 : tensor<2x3x8x4xf32>, tensor<2x3x?x4xf32, #lathe.dims<2, 3, seq, 4>>, tensor<2xi64>
  // CHECK: lathe.paged_update %{{.*}}, %{{.*}} table %{{.*}} positions %{{.*}} axis 2 : tensor<9x3x8x4xf32>, tensor<2x3x?x4xf32, #lathe.dims<2, 3, seq, 4>> table tensor<2x5xi64> positions tensor<2xi64>
  %4 = lathe.paged_update %blocks, %value table %table positions %positions axis 2 : tensor<9x3x8x4xf32>, tensor<2x3x?x4xf32, #lathe.dims<2, 3, seq, 4>> table tensor<2x5xi64> positions tensor<2xi64>
  // CHECK: lathe.random_bits %{{.*}} to <seq, 4> : tensor<i64>
  %3 = lathe.random_bits %seed to <seq, 4> : tensor<i64>
  return
}

// CHECK-LABEL: @state
func.func @state() {
  // CHECK: lathe.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %0 = lathe.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // CHECK: lathe.weight "blocks.0.w" : tensor<4x8xbf16>
  %1 = lathe.weight "blocks.0.w" : tensor<4x8xbf16>
  return
}
