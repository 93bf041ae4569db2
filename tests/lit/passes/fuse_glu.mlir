// RUN: lathe-opt %s --lathe-fuse | FileCheck %s

// CHECK-LABEL: @sigmoid
// CHECK-NEXT: lathe.glu %arg0, %arg1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: return
func.func @sigmoid(%g: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %s = lathe.sigmoid %g : tensor<4xf32>
  %a = lathe.mul %s, %g : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %u, %a : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @spelled
// CHECK-NEXT: lathe.glu %arg0, %arg1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: return
func.func @spelled(%g: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.neg %g : tensor<4xf32>
  %e = lathe.exp %n : tensor<4xf32>
  %d = lathe.add %one, %e : tensor<f32>, tensor<4xf32>
  %s = lathe.div %one, %d : tensor<f32>, tensor<4xf32>
  %a = lathe.mul %g, %s : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @quotient
// CHECK-NEXT: lathe.glu %arg0, %arg1 : tensor<4xf32>, tensor<4xf32>
// CHECK-NEXT: return
func.func @quotient(%g: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %one = lathe.constant dense<1.0> : tensor<f32>
  %n = lathe.neg %g : tensor<4xf32>
  %e = lathe.exp %n : tensor<4xf32>
  %d = lathe.add %e, %one : tensor<4xf32>, tensor<f32>
  %a = lathe.div %g, %d : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @gelu_bf16
// CHECK-NEXT: lathe.glu %arg0, %arg1 activation gelu : tensor<4xbf16>, tensor<4xbf16>
// CHECK-NEXT: return
func.func @gelu_bf16(%g: tensor<4xbf16>, %u: tensor<4xbf16>) -> tensor<4xbf16> {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %root = lathe.constant dense<0.707106769> : tensor<f32>
  %x = lathe.cast %g to f32 : tensor<4xbf16>
  %s = lathe.mul %x, %root : tensor<4xf32>, tensor<f32>
  %e = lathe.erf %s : tensor<4xf32>
  %h = lathe.mul %x, %half : tensor<4xf32>, tensor<f32>
  %o = lathe.add %e, %one : tensor<4xf32>, tensor<f32>
  %a = lathe.mul %h, %o : tensor<4xf32>, tensor<4xf32>
  %c = lathe.cast %a to bf16 : tensor<4xf32>
  %y = lathe.mul %c, %u : tensor<4xbf16>, tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// The constants of the approximation as bf16 holds them.
// CHECK-LABEL: @gelu_tanh
// CHECK-NEXT: lathe.glu %arg0, %arg1 activation gelu_tanh : tensor<4xbf16>, tensor<4xbf16>
// CHECK-NEXT: return
func.func @gelu_tanh(%x: tensor<4xbf16>, %u: tensor<4xbf16>) -> tensor<4xbf16> {
  %half = lathe.constant dense<0.5> : tensor<bf16>
  %one = lathe.constant dense<1.0> : tensor<bf16>
  %k = lathe.constant dense<0.044715> : tensor<bf16>
  %root = lathe.constant dense<0.79788456> : tensor<bf16>
  %q = lathe.mul %x, %x : tensor<4xbf16>, tensor<4xbf16>
  %c = lathe.mul %q, %x : tensor<4xbf16>, tensor<4xbf16>
  %s = lathe.mul %c, %k : tensor<4xbf16>, tensor<bf16>
  %i = lathe.add %x, %s : tensor<4xbf16>, tensor<4xbf16>
  %j = lathe.mul %i, %root : tensor<4xbf16>, tensor<bf16>
  %t = lathe.tanh %j : tensor<4xbf16>
  %o = lathe.add %t, %one : tensor<4xbf16>, tensor<bf16>
  %h = lathe.mul %x, %half : tensor<4xbf16>, tensor<bf16>
  %a = lathe.mul %h, %o : tensor<4xbf16>, tensor<4xbf16>
  %y = lathe.mul %a, %u : tensor<4xbf16>, tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// CHECK-LABEL: @relu
// CHECK-NEXT: lathe.glu %arg0, %arg1 activation relu
func.func @relu(%x: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %a = lathe.max %x, %zero : tensor<4xf32>, tensor<f32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// 1 / (2 + exp(-x)) is no sigmoid.
// CHECK-LABEL: @other_constant
// CHECK-NOT: lathe.glu
// CHECK: return
func.func @other_constant(%g: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %n = lathe.neg %g : tensor<4xf32>
  %e = lathe.exp %n : tensor<4xf32>
  %d = lathe.add %e, %two : tensor<4xf32>, tensor<f32>
  %a = lathe.div %g, %d : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// The sigmoid is of another value, and in the second function it has another user.
// CHECK-LABEL: @other_value
// CHECK-NOT: lathe.glu
// CHECK: return
func.func @other_value(%g: tensor<4xf32>, %h: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %s = lathe.sigmoid %h : tensor<4xf32>
  %a = lathe.mul %g, %s : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}
// CHECK-LABEL: @one_more_user
// CHECK-NOT: lathe.glu
// CHECK: return
func.func @one_more_user(%g: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %s = lathe.sigmoid %g : tensor<4xf32>
  %a = lathe.mul %g, %s : tensor<4xf32>, tensor<4xf32>
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32>
  return %y, %s : tensor<4xf32>, tensor<4xf32>
}
