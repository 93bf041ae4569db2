// RUN: lathe-opt %s --lathe-quantize-weights=formats=int4 | FileCheck %s
// RUN: lathe-opt %s --lathe-quantize-weights=formats=int8:32:asymmetric,head=stored,embedding=stored | FileCheck %s --check-prefix=ASYM
// RUN: lathe-opt %s "--lathe-quantize-weights=formats=int4 packed=true" --lathe-hoist-weights | FileCheck %s --check-prefix=PACKED
// RUN: lathe-opt %s --numerics=strict --lathe-quantize-weights=formats=int4 | FileCheck %s --check-prefix=STRICT
// RUN: lathe-opt %s "--lathe-quantize-weights=formats=int4,activations=int8 packed=true" | FileCheck %s --check-prefix=ROUNDED
// RUN: lathe-opt %s --numerics=strict --lathe-quantize-weights=formats=stored,activations=int8 | FileCheck %s --check-prefix=STRICT
// RUN: not lathe-opt %s --lathe-quantize-weights=formats=int5 2>&1 | FileCheck %s --check-prefix=BAD

// BAD: weight format: expected stored, int8 or int4, got 'int5'

// Blocks of 32 of a row of 80: the last one has 16.
// CHECK-LABEL: func.func @layer
// CHECK: lathe.pad %{{.*}} high [0, 16]
// CHECK: lathe.constant dense<7.000000e+00>
// CHECK: %[[Q:.*]] = lathe.quantize %{{.*}}, %[[S:.*]] axis 1 block 32 to i4 : tensor<48x80xbf16>, tensor<48x3xbf16>
// CHECK: lathe.quantized_linear %arg0, %[[Q]], %[[S]] block 32 bias %{{.*}} : tensor<2x80xbf16>, tensor<48x80xi4>, tensor<48x3xbf16>
// ASYM-LABEL: func.func @layer
// ASYM: lathe.reduce_min
// ASYM: %[[LOW:.*]] = lathe.min {{.*}}
// ASYM: lathe.reduce_max
// ASYM: %[[HIGH:.*]] = lathe.max {{.*}}
// ASYM: lathe.sub %[[HIGH]], %[[LOW]]
// ASYM: lathe.quantize %{{.*}}, %{{.*}} zero %{{.*}} axis 1 block 32 to ui8
// ASYM: lathe.quantized_linear %arg0, %{{.*}}, %{{.*}} zero %{{.*}} block 32
// PACKED-LABEL: func.func @layer
// PACKED-DAG: %[[Q:.*]] = lathe.weight "w:{{.*}}quantize.pack" : tensor<48x80xi4>
// PACKED-DAG: %[[S:.*]] = lathe.weight "w:{{.*}}pack" : tensor<48x3xbf16>
// PACKED: lathe.quantized_linear %arg0, %[[Q]], %[[S]] block 32 bias %{{.*}} layout packed
// ROUNDED-LABEL: func.func @layer
// ROUNDED: lathe.quantized_linear %arg0, %{{.*}}, %{{.*}} block 32 bias %{{.*}} layout packed quantizes_x true
// STRICT-LABEL: func.func @layer
// STRICT-NOT: quantize
// STRICT: lathe.linear
func.func @layer(%x: tensor<2x80xbf16>) -> tensor<2x48xbf16> {
  %w = lathe.weight "w" : tensor<48x80xbf16>
  %b = lathe.weight "b" : tensor<48xbf16>
  %y = lathe.linear %x, %w bias %b : tensor<2x80xbf16>, tensor<48x80xbf16> bias tensor<48xbf16>
  return %y : tensor<2x48xbf16>
}

// A table of 64 rows, and a layer with as many outputs: the head. Both are int8 by rows.
// CHECK-LABEL: func.func @tied
// CHECK: %[[T:.*]] = lathe.quantize %{{.*}}, %[[S:.*]] axis 1 block 80 to i8 : tensor<64x80xf32>, tensor<64x1xf32>
// CHECK-DAG: %[[Q:.*]] = lathe.gather %{{.*}}, %arg0 axis 0 : tensor<64x80xi8>
// CHECK-DAG: %[[R:.*]] = lathe.gather %{{.*}}, %arg0 axis 0 : tensor<64x1xf32>
// CHECK: lathe.dequantize %[[Q]], %[[R]] axis 1 block 80 to f32
// CHECK: lathe.quantized_linear %{{.*}} block 80 : tensor<3x80xf32>, tensor<64x80xi8>, tensor<64x1xf32>
// ASYM-LABEL: func.func @tied
// ASYM-NOT: quantize
// ASYM: lathe.embedding
// ASYM: lathe.linear
func.func @tied(%ids: tensor<3xi64>) -> tensor<3x64xf32> {
  %t = lathe.weight "table" : tensor<64x80xf32>
  %x = lathe.embedding %ids, %t : tensor<3xi64>, tensor<64x80xf32>
  %y = lathe.linear %x, %t : tensor<3x80xf32>, tensor<64x80xf32>
  return %y : tensor<3x64xf32>
}

// Weights of the run are as they come; those that the graph dequantizes are read as integers.
// CHECK-LABEL: func.func @given
// CHECK: lathe.linear %arg0, %arg1
// CHECK: lathe.quantized_linear %arg0, %{{.*}}, %{{.*}} block 16 : tensor<2x32xf32>, tensor<8x32xi4>, tensor<8x2xf32>
// CHECK-NOT: lathe.dequantize
func.func @given(%x: tensor<2x32xf32>, %w: tensor<8x32xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %y = lathe.linear %x, %w : tensor<2x32xf32>, tensor<8x32xf32>
  %q = lathe.weight "q" : tensor<8x32xi4>
  %s = lathe.weight "s" : tensor<8x2xf32>
  %d = lathe.dequantize %q, %s axis 1 block 16 to f32 : tensor<8x32xi4>, tensor<8x2xf32>
  %z = lathe.linear %x, %d : tensor<2x32xf32>, tensor<8x32xf32>
  return %y, %z : tensor<2x8xf32>, tensor<2x8xf32>
}

// What is scaled along the other axis is no operand of a linear op.
// CHECK-LABEL: func.func @columns
// STRICT-LABEL: func.func @columns
// STRICT: lathe.dequantize %{{.*}} axis 0 block 1
// STRICT: lathe.linear
func.func @columns(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {
  %q = lathe.weight "q" : tensor<8x8xi8>
  %s = lathe.weight "s" : tensor<8x8xf32>
  %d = lathe.dequantize %q, %s axis 0 block 1 to f32 : tensor<8x8xi8>, tensor<8x8xf32>
  %y = lathe.linear %x, %d : tensor<2x8xf32>, tensor<8x8xf32>
  return %y : tensor<2x8xf32>
}

// Strict mode keeps the rounding of what the graph dequantizes to bf16.
// CHECK-LABEL: func.func @rounded
// CHECK: lathe.quantized_linear
// STRICT-LABEL: func.func @rounded
// STRICT: lathe.dequantize
// STRICT: lathe.linear
func.func @rounded(%x: tensor<2x32xbf16>) -> tensor<2x8xbf16> {
  %q = lathe.weight "q" : tensor<8x32xi8>
  %s = lathe.weight "s" : tensor<8x2xf32>
  %d = lathe.dequantize %q, %s axis 1 block 16 to bf16 : tensor<8x32xi8>, tensor<8x2xf32>
  %y = lathe.linear %x, %d : tensor<2x32xbf16>, tensor<8x32xbf16>
  return %y : tensor<2x8xbf16>
}

// A head is one too where its probabilities are returned.
// CHECK-LABEL: func.func @probabilities
// CHECK: lathe.quantized_linear %{{.*}} block 80 : tensor<3x80xf32>, tensor<64x80xi8>
func.func @probabilities(%x: tensor<3x80xf32>) -> tensor<3x64xf32> {
  %w = lathe.weight "head" : tensor<64x80xf32>
  %y = lathe.linear %x, %w : tensor<3x80xf32>, tensor<64x80xf32>
  %p = lathe.softmax %y axis 1 : tensor<3x64xf32>
  return %p : tensor<3x64xf32>
}

// What an embedding multiplies its rows with and adds to them comes behind the widened rows, in f32.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[D:.*]] = lathe.dequantize %{{.*}}, %{{.*}} axis 1 block 80 to f32
// CHECK: %[[F:.*]] = lathe.constant dense<8.000000e+00> : tensor<f32>
// CHECK: %[[Y:.*]] = lathe.mul %[[D]], %[[F]]
// CHECK: lathe.cast %[[Y]] to bf16
func.func @scaled(%ids: tensor<3xi64>) -> tensor<3x80xbf16> {
  %t = lathe.weight "scaled" : tensor<32x80xbf16>
  %x = lathe.embedding %ids, %t scale 8.0 : tensor<3xi64>, tensor<32x80xbf16>
  return %x : tensor<3x80xbf16>
}
// CHECK-LABEL: func.func @placed
// CHECK: %[[D:.*]] = lathe.dequantize %{{.*}}, %{{.*}} axis 1 block 80 to f32
// CHECK: %[[P:.*]] = lathe.cast %arg1 to f32
// CHECK: %[[Y:.*]] = lathe.add %[[D]], %[[P]]
// CHECK: lathe.cast %[[Y]] to bf16
func.func @placed(%ids: tensor<3xi64>, %p: tensor<3x80xbf16>) -> tensor<3x80xbf16> {
  %t = lathe.weight "placed" : tensor<32x80xbf16>
  %x = lathe.embedding %ids, %t positions %p : tensor<3xi64>, tensor<32x80xbf16> positions tensor<3x80xbf16>
  return %x : tensor<3x80xbf16>
}
// CHECK-LABEL: func.func @plain_rows
// CHECK: %[[D:.*]] = lathe.dequantize %{{.*}}, %{{.*}} axis 1 block 80 to bf16
// CHECK-NEXT: return %[[D]]
func.func @plain_rows(%ids: tensor<3xi64>) -> tensor<3x80xbf16> {
  %t = lathe.weight "plain" : tensor<32x80xbf16>
  %x = lathe.embedding %ids, %t : tensor<3xi64>, tensor<32x80xbf16>
  return %x : tensor<3x80xbf16>
}

// What was widened is read as it is stored; transposed weights are turned first; f64 stays.
// CHECK-LABEL: func.func @widened
// CHECK-DAG: %[[B:.*]] = lathe.weight "wide.b" : tensor<48x80xbf16>
// CHECK-DAG: lathe.quantize %[[B]], %{{.*}} axis 1 block 32 to i4 : tensor<48x80xbf16>
// CHECK-DAG: %[[H:.*]] = lathe.weight "wide.h" : tensor<48x80xf16>
// CHECK-DAG: lathe.quantize %[[H]], %{{.*}} axis 1 block 32 to i4 : tensor<48x80xf16>
// CHECK-DAG: %[[T:.*]] = lathe.transpose %{{.*}} [1, 0] : tensor<80x48xf32>
// CHECK-DAG: lathe.quantize %[[T]], %{{.*}} axis 1 block 32 to i4 : tensor<48x80xf32>
// CHECK-DAG: lathe.linear %arg1, %{{.*}} : tensor<2x80xf64>
// CHECK: return
func.func @widened(%x: tensor<2x80xf32>, %d: tensor<2x80xf64>) -> (tensor<2x48xf32>, tensor<2x48xf32>, tensor<2x48xf32>, tensor<2x48xf64>) {
  %b = lathe.weight "wide.b" : tensor<48x80xbf16>
  %bf = lathe.cast %b to f32 : tensor<48x80xbf16>
  %0 = lathe.linear %x, %bf : tensor<2x80xf32>, tensor<48x80xf32>
  %h = lathe.weight "wide.h" : tensor<48x80xf16>
  %hf = lathe.cast %h to f32 : tensor<48x80xf16>
  %1 = lathe.linear %x, %hf : tensor<2x80xf32>, tensor<48x80xf32>
  %t = lathe.weight "wide.t" : tensor<80x48xf32>
  %2 = lathe.linear %x, %t layout in_out : tensor<2x80xf32>, tensor<80x48xf32>
  %w = lathe.weight "wide.w" : tensor<48x80xf64>
  %3 = lathe.linear %d, %w : tensor<2x80xf64>, tensor<48x80xf64>
  return %0, %1, %2, %3 : tensor<2x48xf32>, tensor<2x48xf32>, tensor<2x48xf32>, tensor<2x48xf64>
}

// As many outputs as the table has rows make no head of a layer within the model.
// CHECK-LABEL: func.func @inner
// CHECK: lathe.quantize %{{.*}}, %{{.*}} axis 1 block 32 to i4 : tensor<64x80xf32>
// CHECK: lathe.quantized_linear %arg0, %{{.*}} block 32 : tensor<3x80xf32>, tensor<64x80xi4>
func.func @inner(%x: tensor<3x80xf32>) -> tensor<3x16xf32> {
  %w = lathe.weight "inner" : tensor<64x80xf32>
  %y = lathe.linear %x, %w : tensor<3x80xf32>, tensor<64x80xf32>
  %v = lathe.weight "outer" : tensor<16x64xf32>
  %z = lathe.linear %y, %v : tensor<3x64xf32>, tensor<16x64xf32>
  return %z : tensor<3x16xf32>
}
// The likeliest of what a head gives is returned of it.
// CHECK-LABEL: func.func @likeliest
// CHECK: lathe.quantized_linear %{{.*}} block 80 : tensor<3x80xf32>, tensor<64x80xi8>
func.func @likeliest(%x: tensor<3x80xf32>) -> tensor<3xi64> {
  %w = lathe.weight "likeliest" : tensor<64x80xf32>
  %y = lathe.linear %x, %w : tensor<3x80xf32>, tensor<64x80xf32>
  %i = lathe.argmax %y axis 1 : tensor<3x64xf32>
  return %i : tensor<3xi64>
}
