// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// RUN: lathe-opt %s --mlir-print-op-generic | lathe-opt | FileCheck %s

// CHECK-LABEL: @reduce
func.func @reduce(%x: tensor<2x4xf32>, %b: tensor<2x4xi1>) {
  // CHECK: lathe.reduce_sum %{{.*}} axes [1] keep_dims true : tensor<2x4xf32>
  %0 = lathe.reduce_sum %x axes [1] keep_dims true : tensor<2x4xf32>
  // CHECK: lathe.reduce_mean %{{.*}} axes [0, 1] : tensor<2x4xf32>
  %1 = lathe.reduce_mean %x axes [0, 1] : tensor<2x4xf32>
  // CHECK: lathe.reduce_max
  %2 = lathe.reduce_max %x axes [0] : tensor<2x4xf32>
  // CHECK: lathe.reduce_min
  %3 = lathe.reduce_min %x axes [0] : tensor<2x4xf32>
  // CHECK: lathe.reduce_prod
  %4 = lathe.reduce_prod %x axes [0] : tensor<2x4xf32>
  // CHECK: lathe.reduce_any
  %5 = lathe.reduce_any %b axes [0] : tensor<2x4xi1>
  // CHECK: lathe.reduce_all
  %6 = lathe.reduce_all %b axes [0] : tensor<2x4xi1>
  // CHECK: lathe.argmax %{{.*}} axis 1 : tensor<2x4xf32>
  %7 = lathe.argmax %x axis 1 : tensor<2x4xf32>
  // CHECK: lathe.argmin
  %8 = lathe.argmin %x axis 1 : tensor<2x4xf32>
  // CHECK: lathe.cumsum %{{.*}} axis 0 : tensor<2x4xf32>
  %9 = lathe.cumsum %x axis 0 : tensor<2x4xf32>
  // CHECK: lathe.top_k %{{.*}} k 3 : tensor<2x4xf32>
  %10, %11 = lathe.top_k %x k 3 : tensor<2x4xf32>
  return
}

// CHECK-LABEL: @shape
func.func @shape(%x: tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>, %v: tensor<f32>) {
  // CHECK: lathe.transpose %{{.*}} [1, 0, 2] : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>
  %0 = lathe.transpose %x [1, 0, 2] : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>
  // CHECK: lathe.reshape %{{.*}} to <24*seq>
  %1 = lathe.reshape %x to <24*seq> : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>
  // CHECK: lathe.broadcast %{{.*}} to <2, seq, 4, 6>
  %2 = lathe.broadcast %x to <2, seq, 4, 6> : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>
  // CHECK: lathe.slice %{{.*}} starts <0, 1, 0> sizes <seq, 2, 3> strides [1, 1, 2]
  %3 = lathe.slice %x starts <0, 1, 0> sizes <seq, 2, 3> strides [1, 1, 2] : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>
  // CHECK: lathe.concat %{{.*}}, %{{.*}} axis 0
  %4 = lathe.concat %x, %x axis 0 : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>, tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>
  // CHECK: lathe.pad %{{.*}}, %{{.*}} low [0, 1, 0] high [2, 0, 0]
  %5 = lathe.pad %x, %v low [0, 1, 0] high [2, 0, 0] : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>, tensor<f32>
  // CHECK: lathe.reverse %{{.*}} axes [1, 2]
  %6 = lathe.reverse %x axes [1, 2] : tensor<?x4x6xf32, #lathe.dims<seq, 4, 6>>
  return
}

// A size without a name leaves the type without names.
// CHECK-LABEL: func.func @unnamed
// CHECK: lathe.transpose %{{.*}} [1, 0] : tensor<?x4xf32>
// CHECK: return %{{.*}} : tensor<4x?xf32>
func.func @unnamed(%a: tensor<?x4xf32>) -> tensor<4x?xf32> {
  %0 = lathe.transpose %a [1, 0] : tensor<?x4xf32>
  return %0 : tensor<4x?xf32>
}
