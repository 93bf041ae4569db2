// RUN: lathe-opt %s | lathe-opt | FileCheck %s
// CHECK: lathe.mesh "tp" of 4
lathe.mesh "tp" of 4
// CHECK: lathe.shard_weights "blocks.*.mlp.*" axis -1 over "tp"
lathe.shard_weights "blocks.*.mlp.*" axis -1 over "tp"
// CHECK: lathe.shard_weights "head"{{$}}
lathe.shard_weights "head"
// CHECK-LABEL: func.func @collectives
func.func @collectives(%x: tensor<?x8xbf16, #lathe.dims<rows, 8>>) -> tensor<?x4xbf16, #lathe.dims<rows, 4>> {
  // CHECK: lathe.weight "w@0/4" of "w" axis 0 parts 4 : tensor<2x8xbf16>
  %w = lathe.weight "w@0/4" of "w" axis 0 parts 4 : tensor<2x8xbf16>
  // CHECK: lathe.weight "w@0x2[8:12]/4" of "w" axis 0 parts 4 groups 2 begin 8 extent 12 : tensor<2x8xbf16>
  %v = lathe.weight "w@0x2[8:12]/4" of "w" axis 0 parts 4 groups 2 begin 8 extent 12 : tensor<2x8xbf16>
  // CHECK: lathe.all_reduce sum %{{.*}} over "tp" of 4 : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  %s = lathe.all_reduce sum %x over "tp" of 4 : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  // CHECK: lathe.all_reduce max
  %m = lathe.all_reduce max %s over "tp" of 4 : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  // CHECK: lathe.all_gather %{{.*}} axis 1 parts 2 over "tp" of 4 : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  %g = lathe.all_gather %m axis 1 parts 2 over "tp" of 4 : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  // CHECK: lathe.all_slice %{{.*}} axis 1 parts 4 over "tp" of 4 : tensor<?x16xbf16, #lathe.dims<rows, 16>>
  %p = lathe.all_slice %g axis 1 parts 4 over "tp" of 4 : tensor<?x16xbf16, #lathe.dims<rows, 16>>
  return %p : tensor<?x4xbf16, #lathe.dims<rows, 4>>
}
// CHECK-LABEL: func.func @rows
func.func @rows(%x: tensor<8x3xbf16>) -> tensor<8x3xbf16> {
  // CHECK: lathe.reduce_scatter sum %{{.*}} axis 0 over "tp" of 4 : tensor<8x3xbf16>
  %r = lathe.reduce_scatter sum %x axis 0 over "tp" of 4 : tensor<8x3xbf16>
  // CHECK: lathe.all_gather %{{.*}} axis 0 parts 4 over "tp" of 4 : tensor<2x3xbf16>
  %g = lathe.all_gather %r axis 0 parts 4 over "tp" of 4 : tensor<2x3xbf16>
  // CHECK: lathe.shard %{{.*}} axis 0 over "tp" : tensor<8x3xbf16>
  %s = lathe.shard %g axis 0 over "tp" : tensor<8x3xbf16>
  return %s : tensor<8x3xbf16>
}
// CHECK: lathe.dim @tokens 1 to 64
lathe.dim @tokens 1 to 64
// CHECK: lathe.dim_part @tokens_part of <2*tokens> parts 4
lathe.dim_part @tokens_part of <2*tokens> parts 4
// CHECK-LABEL: func.func @padded
func.func @padded(%x: tensor<?x3xbf16, #lathe.dims<2*tokens, 3>>, %y: tensor<9x3xbf16>) -> (tensor<?x3xbf16, #lathe.dims<2*tokens, 3>>, tensor<9x3xbf16>) {
  // CHECK: lathe.reduce_scatter sum %{{.*}} axis 0 part <tokens_part> over "tp" of 4 : tensor<?x3xbf16, #lathe.dims<2*tokens, 3>>
  %r = lathe.reduce_scatter sum %x axis 0 part <tokens_part> over "tp" of 4 : tensor<?x3xbf16, #lathe.dims<2*tokens, 3>>
  // CHECK: lathe.all_slice %{{.*}} axis 0 parts 4 part <tokens_part> over "tp" of 4
  %s = lathe.all_slice %x axis 0 parts 4 part <tokens_part> over "tp" of 4 : tensor<?x3xbf16, #lathe.dims<2*tokens, 3>>
  %t = lathe.add %r, %s : tensor<?x3xbf16, #lathe.dims<tokens_part, 3>>, tensor<?x3xbf16, #lathe.dims<tokens_part, 3>>
  // CHECK: lathe.all_gather %{{.*}} axis 0 parts 4 whole <2*tokens> over "tp" of 4 : tensor<?x3xbf16, #lathe.dims<tokens_part, 3>>
  %g = lathe.all_gather %t axis 0 parts 4 whole <2*tokens> over "tp" of 4 : tensor<?x3xbf16, #lathe.dims<tokens_part, 3>>
  // CHECK: lathe.all_slice %{{.*}} axis 0 parts 2 part <5> over "tp" of 4 : tensor<9x3xbf16>
  %p = lathe.all_slice %y axis 0 parts 2 part <5> over "tp" of 4 : tensor<9x3xbf16>
  // CHECK: lathe.all_gather %{{.*}} axis 0 parts 2 whole <9> over "tp" of 4 : tensor<5x3xbf16>
  %w = lathe.all_gather %p axis 0 parts 2 whole <9> over "tp" of 4 : tensor<5x3xbf16>
  return %g, %w : tensor<?x3xbf16, #lathe.dims<2*tokens, 3>>, tensor<9x3xbf16>
}
// CHECK-LABEL: func.func @exchange
func.func @exchange(%x: tensor<?x8x3xbf16, #lathe.dims<rows, 8, 3>>, %r: tensor<8x3xbf16>) -> tensor<?x2x3xbf16, #lathe.dims<4*rows, 2, 3>> {
  // CHECK: lathe.all_to_all %{{.*}} split 1 concat 0 over "tp" of 4 : tensor<?x8x3xbf16, #lathe.dims<rows, 8, 3>>
  %y = lathe.all_to_all %x split 1 concat 0 over "tp" of 4 : tensor<?x8x3xbf16, #lathe.dims<rows, 8, 3>>
  // CHECK: lathe.all_to_all %{{.*}} split 0 concat 0 over "tp" of 4
  %z = lathe.all_to_all %r split 0 concat 0 over "tp" of 4 : tensor<8x3xbf16>
  return %y : tensor<?x2x3xbf16, #lathe.dims<4*rows, 2, 3>>
}
// CHECK-LABEL: func.func @addend
func.func @addend(%x: tensor<8x3xbf16>, %r: tensor<8x5xf32>) -> (tensor<8x5xf32>, tensor<8x5xbf16>) {
  %w = lathe.weight "w" : tensor<5x3xbf16>
  // CHECK: lathe.linear %{{.*}}, %{{.*}} residual %{{.*}} unrounded true : tensor<8x3xbf16>, tensor<5x3xbf16> residual tensor<8x5xf32>
  %0 = lathe.linear %x, %w residual %r unrounded true : tensor<8x3xbf16>, tensor<5x3xbf16> residual tensor<8x5xf32>
  // CHECK: lathe.grouped_linear %{{.*}}, %{{.*}} by %{{.*}} unrounded true : tensor<8x3xbf16>
  %i = lathe.constant dense<0> : tensor<8xi64>
  %e = lathe.weight "e" : tensor<2x5x3xbf16>
  %2 = lathe.grouped_linear %x, %e by %i unrounded true : tensor<8x3xbf16>, tensor<2x5x3xbf16>, tensor<8xi64>
  %q = lathe.weight "q" : tensor<5x3xi8>
  %s = lathe.weight "s" : tensor<5x1xf32>
  // CHECK: lathe.quantized_linear %{{.*}} block 3 residual %{{.*}} unrounded true : tensor<8x3xbf16>
  %3 = lathe.quantized_linear %x, %q, %s block 3 residual %2 unrounded true : tensor<8x3xbf16>, tensor<5x3xi8>, tensor<5x1xf32> residual tensor<8x5xf32>
  // CHECK: lathe.linear %{{.*}}, %{{.*}} : tensor<8x3xbf16>, tensor<5x3xbf16>
  %1 = lathe.linear %x, %w unrounded false : tensor<8x3xbf16>, tensor<5x3xbf16>
  return %3, %1 : tensor<8x5xf32>, tensor<8x5xbf16>
}
// CHECK-LABEL: func.func @messages
func.func @messages(%x: tensor<?x8xbf16, #lathe.dims<rows, 8>>) -> tensor<?x8xbf16, #lathe.dims<rows, 8>> {
  // CHECK: lathe.send %{{.*}} to 1 over "pp" of 2 : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  lathe.send %x to 1 over "pp" of 2 : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  // CHECK: lathe.receive from 1 over "pp" of 2 result : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  %y = lathe.receive from 1 over "pp" of 2 result : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  // CHECK: lathe.send %{{.*}} to 0 over "pp" of 2 result
  lathe.send %y to 0 over "pp" of 2 result : tensor<?x8xbf16, #lathe.dims<rows, 8>>
  return %y : tensor<?x8xbf16, #lathe.dims<rows, 8>>
}
