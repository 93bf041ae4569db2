// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// CHECK-LABEL: @adaln
// CHECK-NEXT: lathe.adaln_modulate layer %arg0 shift %arg1 scale %arg2 epsilon 1.000000e-03
// CHECK-NEXT: return
func.func @adaln(%x: tensor<2x3x8xf32>, %s: tensor<2x1x8xf32>, %c: tensor<2x1x8xf32>) -> tensor<2x3x8xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.layer_norm %x epsilon 1.0e-3 : tensor<2x3x8xf32>
  %f = lathe.add %one, %c : tensor<f32>, tensor<2x1x8xf32>
  %m = lathe.mul %f, %n : tensor<2x1x8xf32>, tensor<2x3x8xf32>
  %y = lathe.add %s, %m : tensor<2x1x8xf32>, tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: @gated
// CHECK-NEXT: lathe.gated_residual %arg0, %arg1, %arg2
// CHECK-NEXT: return
func.func @gated(%x: tensor<2x3x8xf32>, %g: tensor<2x1x8xf32>, %f: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %m = lathe.mul %f, %g : tensor<2x3x8xf32>, tensor<2x1x8xf32>
  %y = lathe.add %m, %x : tensor<2x3x8xf32>, tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

// CHECK-LABEL: @norm_rope_append
// CHECK-NEXT: lathe.rope_append half %arg0, %arg1 gain %arg2, %arg3, %arg3, %arg4 axis 2 epsilon 1.000000e-03
// CHECK-NEXT: return
func.func @norm_rope_append(%cache: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %g: tensor<8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>) -> tensor<2x3x9x8xf32> {
  %n = lathe.rms_norm %x, %g epsilon 1.0e-3 : tensor<2x3x1x8xf32>, tensor<8xf32>
  %r = lathe.rope half %n, %t, %t : tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %y = lathe.update %cache, %r, %p axis 2 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<2xi64>
  return %y : tensor<2x3x9x8xf32>
}

// The rotated value has another reader: it stays.
// CHECK-LABEL: @rotated_is_read
// CHECK-NEXT: lathe.norm_rope half %arg1 gain %arg2
// CHECK-NEXT: lathe.update
func.func @rotated_is_read(%cache: tensor<2x3x9x8xf32>, %x: tensor<2x3x1x8xf32>, %g: tensor<8xf32>, %t: tensor<1x4xf32>, %p: tensor<2xi64>) -> (tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>) {
  %n = lathe.rms_norm %x, %g epsilon 1.0e-3 : tensor<2x3x1x8xf32>, tensor<8xf32>
  %r = lathe.rope half %n, %t, %t : tensor<2x3x1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %y = lathe.update %cache, %r, %p axis 2 : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>, tensor<2xi64>
  return %y, %r : tensor<2x3x9x8xf32>, tensor<2x3x1x8xf32>
}

// The heads are turned behind their norm: the turn comes first.
// CHECK-LABEL: @norm_turned_rope
// CHECK-NEXT: %[[T:.*]] = lathe.transpose %arg0 [0, 2, 1, 3]
// CHECK-NEXT: lathe.norm_rope half %[[T]] gain %arg1, %arg2, %arg2
// CHECK-NEXT: return
func.func @norm_turned_rope(%x: tensor<2x5x3x8xf32>, %g: tensor<8xf32>, %t: tensor<5x4xf32>) -> tensor<2x3x5x8xf32> {
  %n = lathe.rms_norm %x, %g epsilon 0.001 : tensor<2x5x3x8xf32>, tensor<8xf32>
  %h = lathe.transpose %n [0, 2, 1, 3] : tensor<2x5x3x8xf32>
  %r = lathe.rope half %h, %t, %t : tensor<2x3x5x8xf32>, tensor<5x4xf32>, tensor<5x4xf32>
  return %r : tensor<2x3x5x8xf32>
}

// The normed axis does not stay the last, or the norm has another reader.
// CHECK-LABEL: @norm_turned_away
// CHECK-NOT: lathe.norm_rope
// CHECK: return
func.func @norm_turned_away(%x: tensor<2x8x8x8xf32>, %g: tensor<8xf32>, %t: tensor<8x4xf32>) -> (tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>) {
  %n = lathe.rms_norm %x, %g epsilon 0.001 : tensor<2x8x8x8xf32>, tensor<8xf32>
  %h = lathe.transpose %n [0, 1, 3, 2] : tensor<2x8x8x8xf32>
  %r = lathe.rope half %h, %t, %t : tensor<2x8x8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  %m = lathe.rms_norm %x, %g epsilon 0.002 : tensor<2x8x8x8xf32>, tensor<8xf32>
  %i = lathe.transpose %m [0, 2, 1, 3] : tensor<2x8x8x8xf32>
  %s = lathe.rope half %i, %t, %t : tensor<2x8x8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  return %r, %s, %m : tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>, tensor<2x8x8x8xf32>
}

// Keys and values in blocks, brought together by one table.
// CHECK-LABEL: @paged
// CHECK-NEXT: lathe.paged_attention %arg0, %arg1, %arg2 table %arg3 positions %arg4 scale 5.000000e-01 window 7
// CHECK-NEXT: return
func.func @paged(%q: tensor<2x4x1x8xf32>, %k: tensor<9x2x4x8xf32>, %v: tensor<9x2x4x6xf32>, %t: tensor<2x5xi64>, %p: tensor<2xi64>) -> tensor<2x4x1x6xf32> {
  %kg = lathe.gather %k, %t axis 0 : tensor<9x2x4x8xf32>, tensor<2x5xi64>
  %kt = lathe.transpose %kg [0, 2, 1, 3, 4] : tensor<2x5x2x4x8xf32>
  %kr = lathe.reshape %kt to <2, 2, 20, 8> : tensor<2x2x5x4x8xf32>
  %vg = lathe.gather %v, %t axis 0 : tensor<9x2x4x6xf32>, tensor<2x5xi64>
  %vt = lathe.transpose %vg [0, 2, 1, 3, 4] : tensor<2x5x2x4x6xf32>
  %vr = lathe.reshape %vt to <2, 2, 20, 6> : tensor<2x2x5x4x6xf32>
  %y = lathe.attention %q, %kr, %vr positions %p scale 0.5 causal positions window 7 : tensor<2x4x1x8xf32>, tensor<2x2x20x8xf32>, tensor<2x2x20x6xf32> positions tensor<2xi64>
  return %y : tensor<2x4x1x6xf32>
}

// Values of another table: nothing lies where the keys say.
// CHECK-LABEL: @two_tables
// CHECK: lathe.attention
func.func @two_tables(%q: tensor<2x2x1x8xf32>, %k: tensor<9x2x4x8xf32>, %t: tensor<2x5xi64>, %u: tensor<2x5xi64>, %p: tensor<2xi64>) -> tensor<2x2x1x8xf32> {
  %kg = lathe.gather %k, %t axis 0 : tensor<9x2x4x8xf32>, tensor<2x5xi64>
  %kt = lathe.transpose %kg [0, 2, 1, 3, 4] : tensor<2x5x2x4x8xf32>
  %kr = lathe.reshape %kt to <2, 2, 20, 8> : tensor<2x2x5x4x8xf32>
  %vg = lathe.gather %k, %u axis 0 : tensor<9x2x4x8xf32>, tensor<2x5xi64>
  %vt = lathe.transpose %vg [0, 2, 1, 3, 4] : tensor<2x5x2x4x8xf32>
  %vr = lathe.reshape %vt to <2, 2, 20, 8> : tensor<2x2x5x4x8xf32>
  %y = lathe.attention %q, %kr, %vr positions %p scale 0.5 causal positions : tensor<2x2x1x8xf32>, tensor<2x2x20x8xf32>, tensor<2x2x20x8xf32> positions tensor<2xi64>
  return %y : tensor<2x2x1x8xf32>
}

// Without the turn the keys of a head are mixed with those of the other.
// CHECK-LABEL: @mixed_heads
// CHECK: lathe.attention
func.func @mixed_heads(%q: tensor<2x2x1x8xf32>, %k: tensor<9x2x4x8xf32>, %t: tensor<2x5xi64>, %p: tensor<2xi64>) -> tensor<2x2x1x8xf32> {
  %kg = lathe.gather %k, %t axis 0 : tensor<9x2x4x8xf32>, tensor<2x5xi64>
  %kr = lathe.reshape %kg to <2, 2, 20, 8> : tensor<2x5x2x4x8xf32>
  %y = lathe.attention %q, %kr, %kr positions %p scale 0.5 causal positions : tensor<2x2x1x8xf32>, tensor<2x2x20x8xf32>, tensor<2x2x20x8xf32> positions tensor<2xi64>
  return %y : tensor<2x2x1x8xf32>
}

// What is added where batch and heads are one axis stays a sum: the condition has no heads.
// CHECK-LABEL: @added_to_joined_heads
// CHECK: %[[B:.*]] = lathe.select %arg2
// CHECK: %[[M:.*]] = lathe.reshape %[[B]] to <2, 3, 3, 5>
// CHECK: lathe.attention {{.*}} mask %[[M]]
// CHECK-NOT: lathe.softmax
func.func @added_to_joined_heads(%q: tensor<6x3x8xf32>, %k: tensor<6x5x8xf32>, %c: tensor<6x3x5xi1>) -> tensor<6x3x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %b = lathe.select %c, %zero, %lowest : tensor<6x3x5xi1>, tensor<f32>, tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<6x5x8xf32>
  %s = lathe.matmul %q, %t : tensor<6x3x8xf32>, tensor<6x8x5xf32>
  %a = lathe.add %s, %b : tensor<6x3x5xf32>, tensor<6x3x5xf32>
  %apart = lathe.reshape %a to <2, 3, 3, 5> : tensor<6x3x5xf32>
  %p = lathe.softmax %apart axis 3 : tensor<2x3x3x5xf32>
  %joined = lathe.reshape %p to <6, 3, 5> : tensor<2x3x3x5xf32>
  %y = lathe.matmul %joined, %k : tensor<6x3x5xf32>, tensor<6x5x8xf32>
  return %y : tensor<6x3x8xf32>
}
