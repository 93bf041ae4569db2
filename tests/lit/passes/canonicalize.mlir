// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s

// CHECK-LABEL: @folds
// CHECK-NEXT: return %arg0, %arg1, %arg0
func.func @folds(%x: tensor<4xf32>, %b: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xi1>, tensor<4xf32>) {
  %n = lathe.neg %x : tensor<4xf32>
  %p = lathe.neg %n : tensor<4xf32>
  %c = lathe.logical_not %b : tensor<4xi1>
  %d = lathe.logical_not %c : tensor<4xi1>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %m = lathe.mul %one, %x : tensor<f32>, tensor<4xf32>
  return %p, %d, %m : tensor<4xf32>, tensor<4xi1>, tensor<4xf32>
}

// Widening and coming back is exact, narrowing first is not.
// CHECK-LABEL: @casts
// CHECK-NEXT: %[[N:.*]] = lathe.cast %arg1 to bf16
// CHECK-NEXT: %[[W:.*]] = lathe.cast %[[N]] to f32
// CHECK-NEXT: return %arg0, %[[W]]
func.func @casts(%h: tensor<4xbf16>, %x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf32>) {
  %0 = lathe.cast %h to f32 : tensor<4xbf16>
  %1 = lathe.cast %0 to bf16 : tensor<4xf32>
  %2 = lathe.cast %x to bf16 : tensor<4xf32>
  %3 = lathe.cast %2 to f32 : tensor<4xbf16>
  return %1, %3 : tensor<4xbf16>, tensor<4xf32>
}

// x + 0 is not x for x = -0, and x / c is not x * (1 / c).
// CHECK-LABEL: @stays
// CHECK: lathe.add
// CHECK: lathe.div
func.func @stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %three = lathe.constant dense<3.0> : tensor<f32>
  %0 = lathe.add %x, %zero : tensor<4xf32>, tensor<f32>
  %1 = lathe.div %0, %three : tensor<4xf32>, tensor<f32>
  return %1 : tensor<4xf32>
}

// A broadcasting x * 1 has another type than x.
// CHECK-LABEL: @broadcasts
// CHECK: lathe.mul
func.func @broadcasts(%x: tensor<4xf32>) -> tensor<2x4xf32> {
  %one = lathe.constant dense<1.0> : tensor<2x1xf32>
  %0 = lathe.mul %x, %one : tensor<4xf32>, tensor<2x1xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: @reshapes
// CHECK-NEXT: %[[R:.*]] = lathe.reshape %arg0 to <4*seq>
// CHECK-NEXT: return %[[R]], %arg0
func.func @reshapes(%x: tensor<?x2x2xf32, #lathe.dims<seq, 2, 2>>)
    -> (tensor<?xf32, #lathe.dims<4*seq>>, tensor<?x2x2xf32, #lathe.dims<seq, 2, 2>>) {
  %0 = lathe.reshape %x to <seq, 4> : tensor<?x2x2xf32, #lathe.dims<seq, 2, 2>>
  %1 = lathe.reshape %0 to <4*seq> : tensor<?x4xf32, #lathe.dims<seq, 4>>
  %2 = lathe.reshape %0 to <seq, 2, 2> : tensor<?x4xf32, #lathe.dims<seq, 4>>
  return %1, %2 : tensor<?xf32, #lathe.dims<4*seq>>, tensor<?x2x2xf32, #lathe.dims<seq, 2, 2>>
}

// CHECK-LABEL: @transposes
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %arg0 [2, 0, 1]
// CHECK-NEXT: return %[[T]], %arg0
func.func @transposes(%x: tensor<2x3x4xf32>) -> (tensor<4x2x3xf32>, tensor<2x3x4xf32>) {
  %0 = lathe.transpose %x [0, 2, 1] : tensor<2x3x4xf32>
  %1 = lathe.transpose %0 [1, 0, 2] : tensor<2x4x3xf32>
  %2 = lathe.transpose %0 [0, 2, 1] : tensor<2x4x3xf32>
  return %1, %2 : tensor<4x2x3xf32>, tensor<2x3x4xf32>
}

// CHECK-LABEL: @broadcast_chain
// CHECK-NEXT: %[[B:.*]] = lathe.broadcast %arg0 to <5, 2, 4> : tensor<1x4xf32>
// CHECK-NEXT: return %[[B]], %arg0
func.func @broadcast_chain(%x: tensor<1x4xf32>) -> (tensor<5x2x4xf32>, tensor<1x4xf32>) {
  %0 = lathe.broadcast %x to <2, 4> : tensor<1x4xf32>
  %1 = lathe.broadcast %0 to <5, 2, 4> : tensor<2x4xf32>
  %2 = lathe.broadcast %x to <1, 4> : tensor<1x4xf32>
  return %1, %2 : tensor<5x2x4xf32>, tensor<1x4xf32>
}

// CHECK-LABEL: @slices
// CHECK-NEXT: %[[S:.*]] = lathe.slice
// CHECK-NEXT: return %arg0, %[[S]]
func.func @slices(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<3xf32>) {
  %0 = lathe.slice %x starts <0> sizes <4> strides [1] : tensor<4xf32>
  %1 = lathe.slice %x starts <1> sizes <3> strides [1] : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<3xf32>
}
