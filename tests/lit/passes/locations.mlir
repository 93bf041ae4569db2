// RUN: lathe-opt %s --lathe-fuse --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: lathe-opt %s --lathe-fuse --lathe-decompose --lathe-check-locations --log-rewrites -o /dev/null

// A fused op's origins are exactly those of the ops it took: the constant that nobody else uses
// counts, the shared one and the operands do not.
// CHECK-LABEL: @gate
// CHECK: lathe.glu {{.*}} loc(fused<"glu">["mlp"("model.cc":16:1), "model.cc":12:1, "model.cc":13:1, "model.cc":14:1, "mlp"("model.cc":15:1), "model.cc":10:1])
func.func @gate(%g: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = lathe.constant dense<1.0> : tensor<f32> loc("model.cc":10:1)
  %u = lathe.abs %w : tensor<4xf32> loc("model.cc":11:1)
  %n = lathe.neg %g : tensor<4xf32> loc("model.cc":12:1)
  %e = lathe.exp %n : tensor<4xf32> loc("model.cc":13:1)
  %d = lathe.add %e, %one : tensor<4xf32>, tensor<f32> loc("model.cc":14:1)
  %a = lathe.div %g, %d : tensor<4xf32>, tensor<4xf32> loc("mlp"("model.cc":15:1))
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32> loc("mlp"("model.cc":16:1))
  return %y, %u : tensor<4xf32>, tensor<4xf32> loc("model.cc":17:1)
}

// CHECK-LABEL: @shared_constant
// CHECK: lathe.glu {{.*}} loc(fused<"relu_gate">["model.cc":23:1, "model.cc":22:1])
func.func @shared_constant(%g: tensor<4xf32>, %u: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = lathe.constant dense<0.0> : tensor<f32> loc("model.cc":20:1)
  %z = lathe.sub %u, %zero : tensor<4xf32>, tensor<f32> loc("model.cc":21:1)
  %a = lathe.max %g, %zero : tensor<4xf32>, tensor<f32> loc("model.cc":22:1)
  %y = lathe.mul %a, %u : tensor<4xf32>, tensor<4xf32> loc("model.cc":23:1)
  return %y, %z : tensor<4xf32>, tensor<4xf32> loc("model.cc":24:1)
}

// Two steps: the origins of the first are part of the second's.
// CHECK-LABEL: @two_steps
// CHECK: lathe.linear {{.*}} loc(fused<"linear-bias">["model.cc":34:1, "model.cc":33:1, "model.cc":32:1])
func.func @two_steps(%x: tensor<2x4xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
  %w = lathe.weight "w" : tensor<3x4xf32> loc("model.cc":31:1)
  %t = lathe.transpose %w [1, 0] : tensor<3x4xf32> loc("model.cc":32:1)
  %m = lathe.matmul %x, %t : tensor<2x4xf32>, tensor<4x3xf32> loc("model.cc":33:1)
  %y = lathe.add %m, %b : tensor<2x3xf32>, tensor<3xf32> loc("model.cc":34:1)
  return %y : tensor<2x3xf32> loc("model.cc":35:1)
}

// A softcap and the parts of a mask count as well, what joins the parts too.
// CHECK-LABEL: @capped
// CHECK: lathe.attention {{.*}} loc(fused<"attention">["model.cc":50:1, "model.cc":49:1, "model.cc":42:1, "model.cc":48:1, "model.cc":46:1, "model.cc":45:1, "model.cc":47:1, "model.cc":44:1, "model.cc":43:1, "model.cc":53:1, "model.cc":52:1, "model.cc":51:1, "model.cc":40:1, "model.cc":41:1])
func.func @capped(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>, %n: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32> loc("model.cc":40:1)
  %cap = lathe.constant dense<5.0> : tensor<f32> loc("model.cc":41:1)
  %i = lathe.iota <3, 1> axis 0 dtype i64 loc("model.cc":51:1)
  %j = lathe.iota <5> axis 0 dtype i64 loc("model.cc":52:1)
  %o = lathe.compare le %j, %i : tensor<5xi64>, tensor<3x1xi64> loc("model.cc":53:1)
  %c = lathe.logical_and %o, %m : tensor<3x5xi1>, tensor<3x5xi1> loc("model.cc":42:1)
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32> loc("model.cc":43:1)
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32> loc("model.cc":44:1)
  %d = lathe.div %s, %cap : tensor<2x3x5xf32>, tensor<f32> loc("model.cc":45:1)
  %h = lathe.tanh %d : tensor<2x3x5xf32> loc("model.cc":46:1)
  %e = lathe.mul %h, %cap : tensor<2x3x5xf32>, tensor<f32> loc("model.cc":47:1)
  %l = lathe.select %c, %e, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32> loc("model.cc":48:1)
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32> loc("model.cc":49:1)
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32> loc("model.cc":50:1)
  return %y : tensor<2x3x4xf32> loc("model.cc":54:1)
}
