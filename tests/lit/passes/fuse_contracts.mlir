// RUN: lathe-opt %s --lathe-fuse --log-rewrites 2>&1 >/dev/null | FileCheck %s --check-prefix=LOG
// RUN: lathe-opt %s --lathe-fuse --numerics=strict | FileCheck %s --check-prefix=STRICT
// RUN: lathe-opt %s --lathe-why-not --numerics=strict -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHY

// A fusion that computes other bits says which contract it weakens, each one that it weakens, and is
// not taken in strict mode, which tells the contract as the reason.

!x = tensor<4x8xf32>
!m = tensor<4x8xi1>
!q = tensor<2x3x4xf32>
!k = tensor<2x5x4xf32>

// LOG: argmax-softmax weakens incoming-nan weakens intermediate-rounding{{$}}
// WHY: remark: argmax-softmax: {{.*}}strict mode keeps the contract 'incoming-nan'
// STRICT-LABEL: @argmax_of_softmax
// STRICT: lathe.softmax
// STRICT: lathe.argmax
func.func @argmax_of_softmax(%x: !x) -> tensor<4xi64> {
  %p = lathe.softmax %x axis 1 : !x
  %y = lathe.argmax %p axis 1 : !x
  return %y : tensor<4xi64>
}

// LOG: argmax-product weakens intermediate-rounding{{$}}
// WHY: remark: argmax-product: {{.*}}strict mode keeps the contract 'intermediate-rounding'
// STRICT-LABEL: @argmax_of_product
// STRICT: lathe.mul
// STRICT: lathe.argmax
func.func @argmax_of_product(%x: !x) -> tensor<4xi64> {
  %c = lathe.constant dense<0.1> : tensor<f32>
  %p = lathe.mul %x, %c : !x, tensor<f32>
  %y = lathe.argmax %p axis 1 : !x
  return %y : tensor<4xi64>
}

// LOG: argmax-quotient weakens intermediate-rounding{{$}}
// WHY: remark: argmax-quotient: {{.*}}strict mode keeps the contract 'intermediate-rounding'
// STRICT-LABEL: @argmax_of_quotient
// STRICT: lathe.div
// STRICT: lathe.argmax
func.func @argmax_of_quotient(%x: !x) -> tensor<4xi64> {
  %c = lathe.constant dense<0.3> : tensor<f32>
  %p = lathe.div %x, %c : !x, tensor<f32>
  %y = lathe.argmax %p axis 1 : !x
  return %y : tensor<4xi64>
}

// LOG: softmax-where-zero weakens incoming-nan{{$}}
// WHY: remark: softmax-where-zero: {{.*}}strict mode keeps the contract 'incoming-nan'
// STRICT-LABEL: @zeros_where_hidden
// STRICT: lathe.softmax
// STRICT: lathe.select
func.func @zeros_where_hidden(%x: !x, %m: !m) -> !x {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %s = lathe.select %m, %x, %low : !m, !x, tensor<f32>
  %p = lathe.softmax %s axis 1 : !x
  %y = lathe.select %m, %p, %zero : !m, !x, tensor<f32>
  return %y : !x
}

// LOG: softmax-where-any weakens incoming-nan{{$}}
// WHY: remark: softmax-where-any: {{.*}}strict mode keeps the contract 'incoming-nan'
// STRICT-LABEL: @zeros_where_none_visible
// STRICT: lathe.softmax
// STRICT: lathe.reduce_any
// STRICT: lathe.select
func.func @zeros_where_none_visible(%x: !x) -> !x {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %p = lathe.softmax %x axis 1 : !x
  %n = lathe.compare ne %x, %low : !x, tensor<f32>
  %a = lathe.reduce_any %n axes [1] keep_dims true : !m
  %y = lathe.select %a, %p, %zero : tensor<4x1xi1>, !x, tensor<f32>
  return %y : !x
}

// LOG: softmax-nan-to-zero weakens incoming-nan{{$}}
// WHY: remark: softmax-nan-to-zero: {{.*}}strict mode keeps the contract 'incoming-nan'
// STRICT-LABEL: @zeros_where_nan
// STRICT: lathe.softmax
// STRICT: lathe.is_nan
// STRICT: lathe.select
func.func @zeros_where_nan(%x: !x) -> !x {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %p = lathe.softmax %x axis 1 : !x
  %n = lathe.is_nan %p : !x
  %y = lathe.select %n, %zero, %p : !m, tensor<f32>, !x
  return %y : !x
}

// LOG: attention weakens mask-fill{{$}}
// WHY: remark: attention: {{.*}}strict mode keeps the contract 'mask-fill'
// STRICT-LABEL: @finite_fill
// STRICT: lathe.select
// STRICT: lathe.softmax
// STRICT: lathe.matmul
func.func @finite_fill(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, tensor<2x4x5xf32>
  %l = lathe.select %m, %s, %low : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, !k
  return %y : !q
}

// LOG: attention weakens incoming-nan{{$}}
// WHY: remark: attention: {{.*}}strict mode keeps the contract 'incoming-nan'
// STRICT-LABEL: @added_infinity
// STRICT: lathe.add
// STRICT: lathe.softmax
// STRICT: lathe.matmul
func.func @added_infinity(%q: !q, %k: !k, %m: tensor<3x5xi1>) -> !q {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : !k
  %s = lathe.matmul %q, %t : !q, tensor<2x4x5xf32>
  %b = lathe.select %m, %zero, %low : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %l = lathe.add %s, %b : tensor<2x3x5xf32>, tensor<3x5xf32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, !k
  return %y : !q
}

// The mask of an attention that was recorded whole.
// LOG: attention-mask weakens incoming-nan{{$}}
// STRICT-LABEL: @recorded_mask
// STRICT: lathe.select
// STRICT: lathe.attention {{.*}} mask %
func.func @recorded_mask(%q: !q, %k: !k) -> !q {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %i = lathe.iota <3, 1> axis 0 dtype i64
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %c = lathe.compare le %j, %i : tensor<1x5xi64>, tensor<3x1xi64>
  %b = lathe.select %c, %zero, %low : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %y = lathe.attention %q, %k, %k mask %b scale 0.5 : !q, !k, !k mask tensor<3x5xf32>
  return %y : !q
}
