// RUN: lathe-opt %s --lathe-canonicalize --lathe-fuse --lathe-canonicalize --lathe-cse | FileCheck %s
// RUN: lathe-opt %s --lathe-fuse --lathe-decompose --lathe-canonicalize --lathe-fuse --lathe-canonicalize --lathe-cse | FileCheck %s

// A weight for each row, and a column for each.
// CHECK-LABEL: @columns
// CHECK: %[[W:.*]] = lathe.weight "w"
// CHECK-NEXT: lathe.grouped_linear %arg0, %[[W]] by %arg1 : tensor<5x8xf32>, tensor<3x6x8xf32>, tensor<5xi64>
// CHECK-NEXT: return
func.func @columns(%x: tensor<5x8xf32>, %i: tensor<5xi64>) -> tensor<5x6xf32> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<5xi64>
  %xc = lathe.reshape %x to <5, 8, 1> : tensor<5x8xf32>
  %p = lathe.matmul %c, %xc : tensor<5x6x8xf32>, tensor<5x8x1xf32>
  %y = lathe.reshape %p to <5, 6> : tensor<5x6x1xf32>
  return %y : tensor<5x6xf32>
}

// CHECK-LABEL: @rows
// CHECK: lathe.grouped_linear %arg0, %{{.*}} by %arg1 layout in_out : tensor<5x8xf32>, tensor<3x8x6xf32>, tensor<5xi32>
// CHECK-NOT: lathe.matmul
func.func @rows(%x: tensor<5x8xf32>, %i: tensor<5xi32>) -> tensor<5x6xf32> {
  %w = lathe.weight "w" : tensor<3x8x6xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x8x6xf32>, tensor<5xi32>
  %xr = lathe.reshape %x to <5, 1, 8> : tensor<5x8xf32>
  %p = lathe.matmul %xr, %c : tensor<5x1x8xf32>, tensor<5x8x6xf32>
  %y = lathe.reshape %p to <5, 6> : tensor<5x1x6xf32>
  return %y : tensor<5x6xf32>
}

// Turned behind the choice, as torch.nn.functional.linear spells it.
// CHECK-LABEL: @turned
// CHECK: lathe.grouped_linear %arg0, %{{.*}} by %arg1 : tensor<5x8xf32>, tensor<3x6x8xf32>, tensor<5xi64>
// CHECK-NOT: lathe.matmul
func.func @turned(%x: tensor<5x8xf32>, %i: tensor<5xi64>) -> tensor<5x6xf32> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<5xi64>
  %t = lathe.transpose %c [0, 2, 1] : tensor<5x6x8xf32>
  %xr = lathe.reshape %x to <5, 1, 8> : tensor<5x8xf32>
  %p = lathe.matmul %xr, %t : tensor<5x1x8xf32>, tensor<5x8x6xf32>
  %y = lathe.reshape %p to <5, 6> : tensor<5x1x6xf32>
  return %y : tensor<5x6xf32>
}

// Several weights for each token of any number of them, in few bits behind a cast, and the gate.
// CHECK-LABEL: @mixture
// CHECK: %[[X:.*]] = lathe.reshape %arg0 to <batch, seq, 1, 8>
// CHECK: %[[G:.*]] = lathe.grouped_linear %[[X]], %{{.*}} by %arg1
// CHECK-NEXT: %[[U:.*]] = lathe.grouped_linear %[[X]], %{{.*}} by %arg1
// CHECK: %[[H:.*]] = lathe.glu %[[G]], %[[U]] : tensor<?x?x2x6xf32, #lathe.dims<batch, seq, 2, 6>>
// CHECK: lathe.grouped_linear %[[H]], %{{.*}} by %arg1
// CHECK-NOT: lathe.{{(matmul|gather)}}
func.func @mixture(%x: tensor<?x?x8xf32, #lathe.dims<batch, seq, 8>>, %i: tensor<?x?x2xi64, #lathe.dims<batch, seq, 2>>) -> tensor<?x?x2x8xf32, #lathe.dims<batch, seq, 2, 8>> {
  %g = lathe.weight "gate" : tensor<3x6x8xf32>
  %u0 = lathe.weight "up" : tensor<3x6x8xbf16>
  %u = lathe.cast %u0 to f32 : tensor<3x6x8xbf16>
  %d = lathe.weight "down" : tensor<3x8x6xf32>
  %xc = lathe.reshape %x to <batch, seq, 1, 8, 1> : tensor<?x?x8xf32, #lathe.dims<batch, seq, 8>>
  %cg = lathe.gather %g, %i axis 0 : tensor<3x6x8xf32>, tensor<?x?x2xi64, #lathe.dims<batch, seq, 2>>
  %pg = lathe.matmul %cg, %xc : tensor<?x?x2x6x8xf32, #lathe.dims<batch, seq, 2, 6, 8>>, tensor<?x?x1x8x1xf32, #lathe.dims<batch, seq, 1, 8, 1>>
  %gg = lathe.reshape %pg to <batch, seq, 2, 6> : tensor<?x?x2x6x1xf32, #lathe.dims<batch, seq, 2, 6, 1>>
  %cu = lathe.gather %u, %i axis 0 : tensor<3x6x8xf32>, tensor<?x?x2xi64, #lathe.dims<batch, seq, 2>>
  %pu = lathe.matmul %cu, %xc : tensor<?x?x2x6x8xf32, #lathe.dims<batch, seq, 2, 6, 8>>, tensor<?x?x1x8x1xf32, #lathe.dims<batch, seq, 1, 8, 1>>
  %uu = lathe.reshape %pu to <batch, seq, 2, 6> : tensor<?x?x2x6x1xf32, #lathe.dims<batch, seq, 2, 6, 1>>
  %s = lathe.sigmoid %gg : tensor<?x?x2x6xf32, #lathe.dims<batch, seq, 2, 6>>
  %gs = lathe.mul %gg, %s : tensor<?x?x2x6xf32, #lathe.dims<batch, seq, 2, 6>>, tensor<?x?x2x6xf32, #lathe.dims<batch, seq, 2, 6>>
  %h = lathe.mul %gs, %uu : tensor<?x?x2x6xf32, #lathe.dims<batch, seq, 2, 6>>, tensor<?x?x2x6xf32, #lathe.dims<batch, seq, 2, 6>>
  %hc = lathe.reshape %h to <batch, seq, 2, 6, 1> : tensor<?x?x2x6xf32, #lathe.dims<batch, seq, 2, 6>>
  %cd = lathe.gather %d, %i axis 0 : tensor<3x8x6xf32>, tensor<?x?x2xi64, #lathe.dims<batch, seq, 2>>
  %pd = lathe.matmul %cd, %hc : tensor<?x?x2x8x6xf32, #lathe.dims<batch, seq, 2, 8, 6>>, tensor<?x?x2x6x1xf32, #lathe.dims<batch, seq, 2, 6, 1>>
  %y = lathe.reshape %pd to <batch, seq, 2, 8> : tensor<?x?x2x8x1xf32, #lathe.dims<batch, seq, 2, 8, 1>>
  return %y : tensor<?x?x2x8xf32, #lathe.dims<batch, seq, 2, 8>>
}

// As einsum spells them: the columns of both weights that a row chooses side by side.
// CHECK-LABEL: @joined
// CHECK: %[[X:.*]] = lathe.reshape %arg0 to <t, 1, 8>
// CHECK-NEXT: %[[Y:.*]] = lathe.grouped_linear %[[X]], %{{.*}} by %arg1 : tensor<?x1x8xf32, #lathe.dims<t, 1, 8>>, tensor<3x6x8xf32>, tensor<?x2xi64, #lathe.dims<t, 2>>
// CHECK-NEXT: return %[[Y]]
func.func @joined(%x: tensor<?x8xf32, #lathe.dims<t, 8>>, %i: tensor<?x2xi64, #lathe.dims<t, 2>>) -> tensor<?x2x6xf32, #lathe.dims<t, 2, 6>> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<?x2xi64, #lathe.dims<t, 2>>
  %j = lathe.reshape %c to <t, 12, 8> : tensor<?x2x6x8xf32, #lathe.dims<t, 2, 6, 8>>
  %xc = lathe.reshape %x to <t, 8, 1> : tensor<?x8xf32, #lathe.dims<t, 8>>
  %p = lathe.matmul %j, %xc : tensor<?x12x8xf32, #lathe.dims<t, 12, 8>>, tensor<?x8x1xf32, #lathe.dims<t, 8, 1>>
  %y = lathe.reshape %p to <t, 2, 6> : tensor<?x12x1xf32, #lathe.dims<t, 12, 1>>
  return %y : tensor<?x2x6xf32, #lathe.dims<t, 2, 6>>
}

// CHECK-LABEL: @joined_and_flipped
// CHECK: lathe.grouped_linear %{{.*}}, %{{.*}} by %arg1 : tensor<5x1x8xf32>
// CHECK-NOT: lathe.matmul
func.func @joined_and_flipped(%x: tensor<5x8xf32>, %i: tensor<5x2xi64>) -> tensor<5x2x6xf32> {
  %w = lathe.weight "w" : tensor<3x6x8xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x6x8xf32>, tensor<5x2xi64>
  %j = lathe.reshape %c to <5, 12, 8> : tensor<5x2x6x8xf32>
  %f = lathe.transpose %j [0, 2, 1] : tensor<5x12x8xf32>
  %xr = lathe.reshape %x to <5, 1, 8> : tensor<5x8xf32>
  %p = lathe.matmul %xr, %f : tensor<5x1x8xf32>, tensor<5x8x12xf32>
  %y = lathe.reshape %p to <5, 2, 6> : tensor<5x1x12xf32>
  return %y : tensor<5x2x6xf32>
}

// CHECK-LABEL: @joined_and_turned
// CHECK: lathe.grouped_linear %{{.*}}, %{{.*}} by %arg1 layout in_out : tensor<5x1x8xf32>
// CHECK-NOT: lathe.matmul
func.func @joined_and_turned(%x: tensor<5x8xf32>, %i: tensor<5x2xi64>) -> tensor<5x2x6xf32> {
  %w = lathe.weight "w" : tensor<3x8x6xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x8x6xf32>, tensor<5x2xi64>
  %t = lathe.transpose %c [0, 1, 3, 2] : tensor<5x2x8x6xf32>
  %j = lathe.reshape %t to <5, 12, 8> : tensor<5x2x6x8xf32>
  %xc = lathe.reshape %x to <5, 8, 1> : tensor<5x8xf32>
  %p = lathe.matmul %j, %xc : tensor<5x12x8xf32>, tensor<5x8x1xf32>
  %y = lathe.reshape %p to <5, 2, 6> : tensor<5x12x1xf32>
  return %y : tensor<5x2x6xf32>
}

// CHECK-LABEL: @joined_behind_the_inner_axis
// CHECK: lathe.grouped_linear %{{.*}}, %{{.*}} by %arg1 layout in_out : tensor<5x1x8xf32>
// CHECK-NOT: lathe.matmul
func.func @joined_behind_the_inner_axis(%x: tensor<5x8xf32>, %i: tensor<5x2xi64>) -> tensor<5x2x6xf32> {
  %w = lathe.weight "w" : tensor<3x8x6xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x8x6xf32>, tensor<5x2xi64>
  %t = lathe.transpose %c [0, 2, 1, 3] : tensor<5x2x8x6xf32>
  %j = lathe.reshape %t to <5, 8, 12> : tensor<5x8x2x6xf32>
  %xr = lathe.reshape %x to <5, 1, 8> : tensor<5x8xf32>
  %p = lathe.matmul %xr, %j : tensor<5x1x8xf32>, tensor<5x8x12xf32>
  %y = lathe.reshape %p to <5, 2, 6> : tensor<5x1x12xf32>
  return %y : tensor<5x2x6xf32>
}

// All three axes exchanged: the weights of a row are those of none.
// CHECK-LABEL: @turned_round
// CHECK-NOT: lathe.grouped_linear
// CHECK: return
func.func @turned_round(%x: tensor<4x4xf32>, %i: tensor<4xi64>) -> tensor<4x4xf32> {
  %w = lathe.weight "w" : tensor<3x4x4xf32>
  %c = lathe.gather %w, %i axis 0 : tensor<3x4x4xf32>, tensor<4xi64>
  %t = lathe.transpose %c [2, 0, 1] : tensor<4x4x4xf32>
  %xr = lathe.reshape %x to <4, 1, 4> : tensor<4x4xf32>
  %p = lathe.matmul %xr, %t : tensor<4x1x4xf32>, tensor<4x4x4xf32>
  %y = lathe.reshape %p to <4, 4> : tensor<4x1x4xf32>
  return %y : tensor<4x4xf32>
}

// Between casts, of which the indices have none.
// CHECK-LABEL: @experts_between_casts
// CHECK: %[[W:.*]] = lathe.weight "w"
// CHECK-NEXT: lathe.grouped_linear %arg0, %[[W]] by %arg1 : tensor<5x8xbf16>, tensor<3x6x8xbf16>, tensor<5xi64>
// CHECK-NEXT: return
func.func @experts_between_casts(%h: tensor<5x8xbf16>, %i: tensor<5xi64>) -> tensor<5x6xbf16> {
  %v = lathe.weight "w" : tensor<3x6x8xbf16>
  %w = lathe.cast %v to f32 : tensor<3x6x8xbf16>
  %x = lathe.cast %h to f32 : tensor<5x8xbf16>
  %p = lathe.grouped_linear %x, %w by %i : tensor<5x8xf32>, tensor<3x6x8xf32>, tensor<5xi64>
  %y = lathe.cast %p to bf16 : tensor<5x6xf32>
  return %y : tensor<5x6xbf16>
}
