// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt %s --mlir-print-op-generic | lathe-opt | FileCheck %s

// CHECK-LABEL: @four_bits
// CHECK-SAME: tensor<3x5xi4>
func.func @four_bits(%q: tensor<3x5xi4>, %u: tensor<3x5xui4>) -> (tensor<3x5xi8>, tensor<3x5xui8>) {
  // CHECK: lathe.weight "w" : tensor<3x5xi4>
  %w = lathe.weight "w" : tensor<3x5xi4>
  // CHECK: lathe.cast %{{.*}} to i8 : tensor<3x5xi4>
  %0 = lathe.cast %q to i8 : tensor<3x5xi4>
  // CHECK: lathe.cast %{{.*}} to i4 : tensor<3x5xi8>
  %1 = lathe.cast %0 to i4 : tensor<3x5xi8>
  // CHECK: lathe.cast %{{.*}} to ui8 : tensor<3x5xui4>
  %2 = lathe.cast %u to ui8 : tensor<3x5xui4>
  return %0, %2 : tensor<3x5xi8>, tensor<3x5xui8>
}

// CHECK-LABEL: @quantized
func.func @quantized(%w: tensor<6x10xbf16>, %s: tensor<6x3xbf16>, %z: tensor<6x3xui8>,
                     %x: tensor<2x10xbf16>, %b: tensor<6xbf16>, %r: tensor<2x6xbf16>) {
  // CHECK: %[[Q:.*]] = lathe.quantize %{{.*}}, %{{.*}} axis 1 block 4 to i4 : tensor<6x10xbf16>, tensor<6x3xbf16>
  %q = lathe.quantize %w, %s axis 1 block 4 to i4 : tensor<6x10xbf16>, tensor<6x3xbf16>
  // CHECK: %[[U:.*]] = lathe.quantize %{{.*}}, %{{.*}} zero %{{.*}} axis 1 block 4 to ui4 : tensor<6x10xbf16>, tensor<6x3xbf16> zero tensor<6x3xui8>
  %u = lathe.quantize %w, %s zero %z axis 1 block 4 to ui4 : tensor<6x10xbf16>, tensor<6x3xbf16> zero tensor<6x3xui8>
  // CHECK: lathe.dequantize %[[Q]], %{{.*}} axis 1 block 4 to bf16 : tensor<6x10xi4>, tensor<6x3xbf16>
  %d = lathe.dequantize %q, %s axis 1 block 4 to bf16 : tensor<6x10xi4>, tensor<6x3xbf16>
  // CHECK: lathe.dequantize %[[U]], %{{.*}} zero %{{.*}} axis 1 block 4 to f32
  %e = lathe.dequantize %u, %s zero %z axis 1 block 4 to f32 : tensor<6x10xui4>, tensor<6x3xbf16> zero tensor<6x3xui8>
  // CHECK: lathe.quantized_linear %{{.*}}, %[[Q]], %{{.*}} block 4 : tensor<2x10xbf16>, tensor<6x10xi4>, tensor<6x3xbf16>
  %y = lathe.quantized_linear %x, %q, %s block 4 : tensor<2x10xbf16>, tensor<6x10xi4>, tensor<6x3xbf16>
  // CHECK: lathe.quantized_linear %{{.*}}, %[[U]], %{{.*}} zero %{{.*}} block 4 bias %{{.*}} activation silu residual %{{.*}} layout packed
  %v = lathe.quantized_linear %x, %u, %s zero %z block 4 bias %b activation silu residual %r layout packed : tensor<2x10xbf16>, tensor<6x10xui4>, tensor<6x3xbf16> zero tensor<6x3xui8> bias tensor<6xbf16> residual tensor<2x6xbf16>
  // CHECK: lathe.quantized_linear %{{.*}}, %[[Q]], %{{.*}} block 4 layout packed quantizes_x true : tensor<2x10xbf16>
  %t = lathe.quantized_linear %x, %q, %s block 4 layout packed quantizes_x true : tensor<2x10xbf16>, tensor<6x10xi4>, tensor<6x3xbf16>
  // CHECK: lathe.pack %[[Q]] out_in : tensor<6x10xi4>
  %p = lathe.pack %q out_in : tensor<6x10xi4>
  return
}

// A block may be longer than the axis.
// CHECK-LABEL: @one_block
func.func @one_block(%x: tensor<2x10xbf16>, %q: tensor<6x10xi4>, %s: tensor<6x1xbf16>) {
  // CHECK: lathe.quantized_linear %{{.*}}, %{{.*}}, %{{.*}} block 2147483647
  %y = lathe.quantized_linear %x, %q, %s block 2147483647 : tensor<2x10xbf16>, tensor<6x10xi4>, tensor<6x1xbf16>
  // CHECK: lathe.dequantize %{{.*}}, %{{.*}} axis 1 block 2147483647 to bf16
  %d = lathe.dequantize %q, %s axis 1 block 2147483647 to bf16 : tensor<6x10xi4>, tensor<6x1xbf16>
  return
}
