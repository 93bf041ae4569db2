// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt %s --mlir-print-op-generic | lathe-opt | FileCheck %s

// CHECK-LABEL: @unary
func.func @unary(%x: tensor<?x4xf32, #lathe.dims<seq, 4>>, %b: tensor<4xi1>) {
  // CHECK: lathe.neg %{{.*}} : tensor<?x4xf32, #lathe.dims<seq, 4>>
  %0 = lathe.neg %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.abs
  %1 = lathe.abs %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.sign
  %2 = lathe.sign %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.exp
  %3 = lathe.exp %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.log
  %4 = lathe.log %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.sqrt
  %5 = lathe.sqrt %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.rsqrt
  %6 = lathe.rsqrt %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.reciprocal
  %7 = lathe.reciprocal %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.sin
  %8 = lathe.sin %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.cos
  %9 = lathe.cos %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.tanh
  %10 = lathe.tanh %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.erf
  %11 = lathe.erf %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.sigmoid
  %12 = lathe.sigmoid %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.floor
  %13 = lathe.floor %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.ceil
  %14 = lathe.ceil %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.round
  %15 = lathe.round %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  // CHECK: lathe.logical_not %{{.*}} : tensor<4xi1>
  %16 = lathe.logical_not %b : tensor<4xi1>
  // CHECK: lathe.is_nan %{{.*}} : tensor<?x4xf32, #lathe.dims<seq, 4>>
  %17 = lathe.is_nan %x : tensor<?x4xf32, #lathe.dims<seq, 4>>
  return
}

// CHECK-LABEL: @binary
func.func @binary(%x: tensor<2x4xf32>, %y: tensor<4xf32>, %i: tensor<4xi32>, %b: tensor<4xi1>) {
  // CHECK: lathe.add %{{.*}}, %{{.*}} : tensor<2x4xf32>, tensor<4xf32>
  %0 = lathe.add %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.sub
  %1 = lathe.sub %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.mul
  %2 = lathe.mul %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.div
  %3 = lathe.div %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.max
  %4 = lathe.max %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.min
  %5 = lathe.min %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.pow
  %6 = lathe.pow %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.mod
  %7 = lathe.mod %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.logical_and
  %8 = lathe.logical_and %b, %b : tensor<4xi1>, tensor<4xi1>
  // CHECK: lathe.logical_or
  %9 = lathe.logical_or %b, %b : tensor<4xi1>, tensor<4xi1>
  // CHECK: lathe.bitwise_and
  %10 = lathe.bitwise_and %i, %i : tensor<4xi32>, tensor<4xi32>
  // CHECK: lathe.bitwise_or
  %11 = lathe.bitwise_or %i, %i : tensor<4xi32>, tensor<4xi32>
  // CHECK: lathe.bitwise_xor
  %12 = lathe.bitwise_xor %i, %i : tensor<4xi32>, tensor<4xi32>
  // CHECK: lathe.shift_left
  %13 = lathe.shift_left %i, %i : tensor<4xi32>, tensor<4xi32>
  // CHECK: lathe.shift_right
  %14 = lathe.shift_right %i, %i : tensor<4xi32>, tensor<4xi32>
  // CHECK: lathe.compare le %{{.*}}, %{{.*}} : tensor<2x4xf32>, tensor<4xf32>
  %15 = lathe.compare le %x, %y : tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xi1>, tensor<2x4xf32>, tensor<4xf32>
  %16 = lathe.select %b, %x, %y : tensor<4xi1>, tensor<2x4xf32>, tensor<4xf32>
  // CHECK: lathe.cast %{{.*}} to bf16 : tensor<4xf32>
  %17 = lathe.cast %y to bf16 : tensor<4xf32>
  // CHECK: lathe.bitcast %{{.*}} to f32 : tensor<4xi32>
  %18 = lathe.bitcast %i to f32 : tensor<4xi32>
  return
}
