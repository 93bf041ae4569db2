// RUN: lathe-opt %s --lathe-fold-norm-gain --numerics=fast | FileCheck %s
// RUN: lathe-opt %s --lathe-fold-norm-gain --numerics=relaxed | FileCheck %s --check-prefix=RELAXED

// The place of a gain changes what is rounded, which only fast mode allows.
// RELAXED-LABEL: func.func @rms
// RELAXED: lathe.rms_norm %arg0, %{{.*}} epsilon
// RELAXED-LABEL: func.func @layer
// RELAXED: lathe.layer_norm %arg0 gain %{{.*}} bias
// RELAXED-LABEL: func.func @shared

// CHECK-LABEL: func.func @rms
// CHECK: %[[N:.*]] = lathe.rms_norm %arg0 epsilon
// CHECK: %[[W:.*]] = lathe.mul {{.*}} : tensor<8x4xf32>, tensor<4xf32>
// CHECK: lathe.linear %[[N]], %[[W]]
func.func @rms(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %y = lathe.linear %n, %w : tensor<3x4xf32>, tensor<8x4xf32>
  return %y : tensor<3x8xf32>
}
// The norm's bias goes through the weight into the layer's bias.
// CHECK-LABEL: func.func @layer
// CHECK: %[[N:.*]] = lathe.layer_norm %arg0 epsilon
// CHECK: lathe.matmul
// CHECK: lathe.linear %[[N]], {{.*}} bias
func.func @layer(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %b = lathe.weight "bias" : tensor<4xf32>
  %n = lathe.layer_norm %x gain %g bias %b epsilon 1.0e-5 : tensor<3x4xf32> gain tensor<4xf32> bias tensor<4xf32>
  %w = lathe.weight "w" : tensor<4x8xf32>
  %y = lathe.linear %n, %w layout in_out : tensor<3x4xf32>, tensor<4x8xf32>
  return %y : tensor<3x8xf32>
}
// Another reader would see the norm without its gain.
// CHECK-LABEL: func.func @shared
// CHECK: lathe.rms_norm %arg0, %{{.*}} epsilon
func.func @shared(%x: tensor<3x4xf32>) -> (tensor<3x8xf32>, tensor<3x4xf32>) {
  %g = lathe.weight "gain" : tensor<4xf32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %y = lathe.linear %n, %w : tensor<3x4xf32>, tensor<8x4xf32>
  %z = lathe.neg %n : tensor<3x4xf32>
  return %y, %z : tensor<3x8xf32>, tensor<3x4xf32>
}
// A layer that adds the norm to its product is another reader.
// CHECK-LABEL: func.func @added
// CHECK: lathe.rms_norm %arg0, %{{.*}} epsilon
// CHECK: lathe.linear %arg1, %{{.*}} residual
func.func @added(%x: tensor<3x4xf32>, %h: tensor<3x8xf32>) -> tensor<3x4xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %w = lathe.weight "w" : tensor<4x8xf32>
  %y = lathe.linear %h, %w residual %n : tensor<3x8xf32>, tensor<4x8xf32> residual tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}
// The layer has a bias of its own, which the norm's is added to.
// CHECK-LABEL: func.func @own_bias
// CHECK: %[[N:.*]] = lathe.layer_norm %arg0 epsilon
// CHECK-DAG: %[[OWN:.*]] = lathe.weight "c"
// CHECK-DAG: %[[P:.*]] = lathe.matmul
// CHECK: %[[R:.*]] = lathe.reshape %[[P]] to <8>
// CHECK: %[[B:.*]] = lathe.add %[[R]], %[[OWN]]
// CHECK: lathe.linear %[[N]], {{.*}} bias %[[B]]
func.func @own_bias(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %b = lathe.weight "bias" : tensor<4xf32>
  %n = lathe.layer_norm %x gain %g bias %b epsilon 1.0e-5 : tensor<3x4xf32> gain tensor<4xf32> bias tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %c = lathe.weight "c" : tensor<8xf32>
  %y = lathe.linear %n, %w bias %c : tensor<3x4xf32>, tensor<8x4xf32> bias tensor<8xf32>
  return %y : tensor<3x8xf32>
}
// A norm without a gain has only a bias to fold, and a layer behind a norm without bias keeps its own.
// CHECK-LABEL: func.func @one_of_both
// CHECK-DAG: %[[N:.*]] = lathe.layer_norm %arg0 epsilon
// CHECK-DAG: %[[W:.*]] = lathe.weight "w"
// CHECK-DAG: lathe.linear %[[N]], %[[W]] bias
// CHECK-DAG: %[[OWN:.*]] = lathe.weight "c"
// CHECK-DAG: lathe.linear %{{.*}}, %{{.*}} bias %[[OWN]]
// CHECK: return
func.func @one_of_both(%x: tensor<3x4xf32>, %z: tensor<3x4xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %b = lathe.weight "bias" : tensor<4xf32>
  %n = lathe.layer_norm %x bias %b epsilon 1.0e-5 : tensor<3x4xf32> bias tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %y = lathe.linear %n, %w : tensor<3x4xf32>, tensor<8x4xf32>
  %g = lathe.weight "gain" : tensor<4xf32>
  %m = lathe.rms_norm %z, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %c = lathe.weight "c" : tensor<8xf32>
  %k = lathe.linear %m, %w bias %c : tensor<3x4xf32>, tensor<8x4xf32> bias tensor<8xf32>
  return %y, %k : tensor<3x8xf32>, tensor<3x8xf32>
}
// What keeps its gain: one of the run, a weight and a bias of the run, packed bytes, nobody who reads it.
// CHECK-LABEL: func.func @gain_of_the_run
// CHECK: lathe.rms_norm %arg0, %arg1 epsilon
func.func @gain_of_the_run(%x: tensor<3x4xf32>, %g: tensor<4xf32>) -> tensor<3x8xf32> {
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %y = lathe.linear %n, %w : tensor<3x4xf32>, tensor<8x4xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: func.func @norm_bias_of_the_run
// CHECK: lathe.layer_norm %arg0 gain %{{.*}} bias %arg1 epsilon
func.func @norm_bias_of_the_run(%x: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %n = lathe.layer_norm %x gain %g bias %b epsilon 1.0e-5 : tensor<3x4xf32> gain tensor<4xf32> bias tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %y = lathe.linear %n, %w : tensor<3x4xf32>, tensor<8x4xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: func.func @weight_of_the_run
// CHECK: lathe.rms_norm %arg0, %{{.*}} epsilon
func.func @weight_of_the_run(%x: tensor<3x4xf32>, %w: tensor<8x4xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %y = lathe.linear %n, %w : tensor<3x4xf32>, tensor<8x4xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: func.func @bias_of_the_run
// CHECK: lathe.rms_norm %arg0, %{{.*}} epsilon
func.func @bias_of_the_run(%x: tensor<3x4xf32>, %c: tensor<8xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %y = lathe.linear %n, %w bias %c : tensor<3x4xf32>, tensor<8x4xf32> bias tensor<8xf32>
  return %y : tensor<3x8xf32>
}
// CHECK-LABEL: func.func @packed
// CHECK: lathe.rms_norm %arg0, %{{.*}} epsilon
func.func @packed(%x: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<3x4xf32>, tensor<4xf32>
  %w = lathe.weight "w" : tensor<8x4xf32>
  %y = lathe.linear %n, %w layout packed : tensor<3x4xf32>, tensor<8x4xf32>
  return %y : tensor<3x8xf32>
}
// The layer keeps its residual, its activation and what it rounds; a transposed square weight has
// its gain along the inputs, its rows, and gives the norm's bias by its columns.
// CHECK-LABEL: func.func @epilogue
// CHECK: %[[N:.*]] = lathe.rms_norm %arg0 epsilon 2.000000e-05
// CHECK-DAG: lathe.linear %[[N]], %{{.*}} activation relu
// CHECK-DAG: lathe.linear %[[N]], %{{.*}} residual %arg1 unrounded true
// CHECK: return
func.func @epilogue(%x: tensor<3x4xbf16>, %r: tensor<3x8xf32>) -> (tensor<3x8xbf16>, tensor<3x8xf32>) {
  %g = lathe.weight "gain" : tensor<4xbf16>
  %n = lathe.rms_norm %x, %g epsilon 2.0e-5 : tensor<3x4xbf16>, tensor<4xbf16>
  %w = lathe.weight "w" : tensor<8x4xbf16>
  %y = lathe.linear %n, %w activation relu : tensor<3x4xbf16>, tensor<8x4xbf16>
  %z = lathe.linear %n, %w residual %r unrounded true : tensor<3x4xbf16>, tensor<8x4xbf16> residual tensor<3x8xf32>
  return %y, %z : tensor<3x8xbf16>, tensor<3x8xf32>
}
// CHECK-LABEL: func.func @square
// CHECK-DAG: %[[G:.*]] = lathe.weight "gain"
// CHECK-DAG: %[[B:.*]] = lathe.weight "bias"
// CHECK-DAG: %[[W:.*]] = lathe.weight "w"
// CHECK: %[[C:.*]] = lathe.reshape %[[G]] to <4, 1>
// CHECK: %[[S:.*]] = lathe.mul %[[W]], %[[C]]
// CHECK: %[[T:.*]] = lathe.transpose %[[W]] [1, 0]
// CHECK: %[[D:.*]] = lathe.reshape %[[B]] to <4, 1>
// CHECK: lathe.matmul %[[T]], %[[D]]
// CHECK: lathe.linear %{{.*}}, %[[S]] bias
func.func @square(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %g = lathe.weight "gain" : tensor<4xf32>
  %b = lathe.weight "bias" : tensor<4xf32>
  %n = lathe.layer_norm %x gain %g bias %b epsilon 1.0e-5 : tensor<3x4xf32> gain tensor<4xf32> bias tensor<4xf32>
  %w = lathe.weight "w" : tensor<4x4xf32>
  %y = lathe.linear %n, %w layout in_out : tensor<3x4xf32>, tensor<4x4xf32>
  return %y : tensor<3x4xf32>
}
