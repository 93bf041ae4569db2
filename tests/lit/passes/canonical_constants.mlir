// RUN: lathe-opt %s --lathe-canonicalize | FileCheck %s
// RUN: lathe-opt %s --lathe-canonicalize --numerics=strict | FileCheck %s --check-prefix=STRICT

// By the folder.
// CHECK-LABEL: @constant_right
// CHECK: lathe.add %arg0, %[[C:.*]] : tensor<4xf32>, tensor<f32>
func.func @constant_right(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = lathe.constant dense<2.0> : tensor<f32>
  %y = lathe.add %c, %x : tensor<f32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// A constant that is stretched, or a table of one value, is a scalar.
// CHECK-LABEL: @scalar_constant
// CHECK: %[[TWO:.*]] = lathe.constant dense<2.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[M:.*]] = lathe.mul %arg0, %[[TWO]] : tensor<4xf32>, tensor<f32>
// CHECK-NEXT: %[[THREE:.*]] = lathe.constant dense<3.000000e+00> : tensor<f32>
// CHECK-NEXT: lathe.add %[[M]], %[[THREE]] : tensor<4xf32>, tensor<f32>
func.func @scalar_constant(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = lathe.constant dense<2.0> : tensor<f32>
  %b = lathe.broadcast %c to <4> : tensor<f32>
  %m = lathe.mul %x, %b : tensor<4xf32>, tensor<4xf32>
  %d = lathe.constant dense<3.0> : tensor<4xf32>
  %y = lathe.add %m, %d : tensor<4xf32>, tensor<4xf32>
  return %y : tensor<4xf32>
}

// CHECK-LABEL: @stretch_by_itself
// CHECK-NEXT: lathe.add %arg0, %arg1 : tensor<3x4xf32>, tensor<4xf32>
func.func @stretch_by_itself(%x: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %s = lathe.broadcast %b to <3, 4> : tensor<4xf32>
  %y = lathe.add %x, %s : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// Both cannot go: somebody must say that there are three rows.
// CHECK-LABEL: @last_stretch
// CHECK: lathe.broadcast
// CHECK-NOT: lathe.broadcast
// CHECK: return
func.func @last_stretch(%x: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %r = lathe.broadcast %x to <3, 4> : tensor<4xf32>
  %s = lathe.broadcast %b to <3, 4> : tensor<4xf32>
  %y = lathe.add %r, %s : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// CHECK-LABEL: @signs
// CHECK: %[[C:.*]] = lathe.constant dense<-3.000000e+00>
// CHECK-NEXT: %[[A:.*]] = lathe.add %arg0, %[[C]]
// CHECK: %[[B:.*]] = lathe.add %arg0, %arg1
// CHECK: %[[D:.*]] = lathe.sub %arg0, %arg1
// CHECK: %[[M3:.*]] = lathe.constant dense<-3.000000e+00>
// CHECK-NEXT: %[[E:.*]] = lathe.mul %arg0, %[[M3]]
// CHECK: %[[F:.*]] = lathe.mul %arg0, %arg1
// CHECK: %[[G:.*]] = lathe.neg %arg0
// CHECK: return %[[A]], %[[B]], %[[D]], %[[E]], %[[F]], %[[G]]
func.func @signs(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %three = lathe.constant dense<3.0> : tensor<f32>
  %minus = lathe.constant dense<-1.0> : tensor<f32>
  %a = lathe.sub %x, %three : tensor<4xf32>, tensor<f32>
  %n = lathe.neg %y : tensor<4xf32>
  %b = lathe.sub %x, %n : tensor<4xf32>, tensor<4xf32>
  %d = lathe.add %n, %x : tensor<4xf32>, tensor<4xf32>
  %p = lathe.mul %x, %three : tensor<4xf32>, tensor<f32>
  %e = lathe.neg %p : tensor<4xf32>
  %m = lathe.neg %x : tensor<4xf32>
  %f = lathe.mul %m, %n : tensor<4xf32>, tensor<4xf32>
  %g = lathe.mul %x, %minus : tensor<4xf32>, tensor<f32>
  return %a, %b, %d, %e, %f, %g : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// 0 - x is not -x for x = 0; -0 - x is.
// CHECK-LABEL: @zero_minus
// CHECK-NOT: lathe.sub
// STRICT-LABEL: @zero_minus
// STRICT: lathe.sub
// STRICT: lathe.neg
func.func @zero_minus(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %minus = lathe.constant dense<-0.0> : tensor<f32>
  %a = lathe.sub %zero, %x : tensor<f32>, tensor<4xf32>
  %b = lathe.sub %minus, %x : tensor<f32>, tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// The inverse of a power of two is exact, that of 3 is not.
// CHECK-LABEL: @divisions
// CHECK: lathe.mul
// CHECK: lathe.div
// STRICT-LABEL: @divisions
// STRICT: lathe.constant dense<1.250000e-01>
// STRICT: lathe.mul
// STRICT: lathe.div
func.func @divisions(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %eight = lathe.constant dense<8.0> : tensor<f32>
  %three = lathe.constant dense<3.0> : tensor<f32>
  %a = lathe.div %x, %eight : tensor<4xf32>, tensor<f32>
  %b = lathe.div %x, %three : tensor<4xf32>, tensor<f32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// The inverse of the smallest subnormal is no f32.
// CHECK-LABEL: @inverse_out_of_range
// CHECK: lathe.div
func.func @inverse_out_of_range(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = lathe.constant dense<0x00000001> : tensor<f32>
  %a = lathe.div %x, %c : tensor<4xf32>, tensor<f32>
  return %a : tensor<4xf32>
}

// Two roundings become one, and only if their product is a number of the dtype.
// CHECK-LABEL: @merge_factors
// CHECK: %[[C:.*]] = lathe.constant dense<1.500000e+00>
// CHECK: lathe.mul %arg0, %[[C]]
// CHECK-NOT: lathe.mul
// STRICT-LABEL: @merge_factors
// STRICT-COUNT-2: lathe.mul
func.func @merge_factors(%x: tensor<4xf32>) -> tensor<4xf32> {
  %three = lathe.constant dense<3.0> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %a = lathe.mul %x, %three : tensor<4xf32>, tensor<f32>
  %b = lathe.mul %a, %half : tensor<4xf32>, tensor<f32>
  return %b : tensor<4xf32>
}

// CHECK-LABEL: @rounded_product_of_factors
// CHECK-COUNT-2: lathe.mul
func.func @rounded_product_of_factors(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = lathe.constant dense<0.1> : tensor<f32>
  %d = lathe.constant dense<0.3> : tensor<f32>
  %a = lathe.mul %x, %c : tensor<4xf32>, tensor<f32>
  %b = lathe.mul %a, %d : tensor<4xf32>, tensor<f32>
  return %b : tensor<4xf32>
}

// CHECK-LABEL: @squares
// CHECK-NEXT: %[[A:.*]] = lathe.mul %arg0, %arg0
// CHECK-NEXT: %[[B:.*]] = lathe.mul %arg0, %arg0
// CHECK-NEXT: return %[[A]], %[[B]]
// STRICT-LABEL: @squares
// STRICT-NEXT: lathe.mul %arg0, %arg0
// STRICT-NEXT: lathe.mul %arg0, %arg0
func.func @squares(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %a = lathe.pow %x, %two : tensor<4xf32>, tensor<f32>
  %m = lathe.abs %x : tensor<4xf32>
  %b = lathe.mul %m, %m : tensor<4xf32>, tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// pow(-inf, 0.5) is inf, sqrt(-inf) is NaN: only where nothing is negative.
// CHECK-LABEL: @powers
// CHECK: lathe.rsqrt
// CHECK: lathe.pow %arg0
// CHECK: lathe.reciprocal
// STRICT-LABEL: @powers
// STRICT-COUNT-3: lathe.pow
func.func @powers(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %root = lathe.constant dense<-0.5> : tensor<f32>
  %minus = lathe.constant dense<-1.0> : tensor<f32>
  %e = lathe.exp %x : tensor<4xf32>
  %a = lathe.pow %e, %root : tensor<4xf32>, tensor<f32>
  %b = lathe.pow %x, %root : tensor<4xf32>, tensor<f32>
  %c = lathe.pow %x, %minus : tensor<4xf32>, tensor<f32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A bias of zeros goes, up to the sign of zero; any other x + 0 turns -0 into 0 and stays.
// CHECK-LABEL: @neutral
// CHECK: %[[P:.*]] = lathe.matmul
// CHECK-NEXT: %[[S:.*]] = lathe.add %arg0
// CHECK-NEXT: return %arg0, %arg0, %[[P]], %[[S]]
// STRICT-LABEL: @neutral
// STRICT: lathe.matmul
// STRICT-NEXT: %[[Z:.*]] = lathe.add
// STRICT-NEXT: %[[S:.*]] = lathe.add %arg0
// STRICT-NEXT: return %arg0, %arg0, %[[Z]], %[[S]]
func.func @neutral(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %high = lathe.constant dense<0x7F800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %a = lathe.max %x, %low : tensor<4x4xf32>, tensor<f32>
  %b = lathe.min %high, %x : tensor<f32>, tensor<4x4xf32>
  %p = lathe.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32>
  %c = lathe.add %p, %zero : tensor<4x4xf32>, tensor<f32>
  %d = lathe.add %x, %zero : tensor<4x4xf32>, tensor<f32>
  return %a, %b, %c, %d : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// Scalars fold as the interpreter computes; what is stretched or counted does not become a table.
// CHECK-LABEL: @fold_scalars
// CHECK-DAG: lathe.constant dense<5.000000e-01> : tensor<bf16>
// CHECK-DAG: lathe.iota
// CHECK-DAG: lathe.broadcast
func.func @fold_scalars() -> (tensor<bf16>, tensor<64xi64>, tensor<64xf32>) {
  %two = lathe.constant dense<4.0> : tensor<f32>
  %r = lathe.rsqrt %two : tensor<f32>
  %b = lathe.cast %r to bf16 : tensor<f32>
  %i = lathe.iota <64> axis 0 dtype i64
  %s = lathe.broadcast %two to <64> : tensor<f32>
  return %b, %i, %s : tensor<bf16>, tensor<64xi64>, tensor<64xf32>
}

// 64-bit integers keep every bit, and wrap as the interpreter does.
// CHECK-LABEL: @wide_integers
// CHECK-DAG: lathe.constant dense<1> : tensor<i64>
// CHECK-DAG: lathe.constant dense<-9223372036854775808> : tensor<i64>
// CHECK-DAG: lathe.constant dense<9007199254740993> : tensor<i64>
// CHECK-DAG: lathe.constant dense<-128> : tensor<i8>
// CHECK-NOT: lathe.sub
// CHECK-NOT: lathe.broadcast
// CHECK: return
func.func @wide_integers(%x: tensor<4xi64>, %b: tensor<4xi8>) -> (tensor<i64>, tensor<i64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi8>) {
  %odd = lathe.constant dense<9007199254740993> : tensor<i64>
  %even = lathe.constant dense<9007199254740992> : tensor<i64>
  %most = lathe.constant dense<9223372036854775807> : tensor<i64>
  %one = lathe.sub %odd, %even : tensor<i64>, tensor<i64>
  %wrapped = lathe.add %most, %one : tensor<i64>, tensor<i64>
  %many = lathe.broadcast %odd to <4> : tensor<i64>
  %a = lathe.add %x, %many : tensor<4xi64>, tensor<4xi64>
  %least = lathe.constant dense<-9223372036854775808> : tensor<i64>
  %c = lathe.sub %x, %least : tensor<4xi64>, tensor<i64>
  %byte = lathe.constant dense<-128> : tensor<i8>
  %d = lathe.sub %b, %byte : tensor<4xi8>, tensor<i8>
  return %one, %wrapped, %a, %c, %d : tensor<i64>, tensor<i64>, tensor<4xi64>, tensor<4xi64>, tensor<4xi8>
}

// A sign inside of a product goes into the sum.
// CHECK-LABEL: @signs_of_products
// CHECK: %[[P:.*]] = lathe.mul %arg1, %arg2
// CHECK: lathe.sub %arg0, %[[P]]
// CHECK: lathe.add
// CHECK-NOT: lathe.neg
func.func @signs_of_products(%a: tensor<4xf32>, %b: tensor<4xf32>, %s: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %n = lathe.neg %b : tensor<4xf32>
  %p = lathe.mul %n, %s : tensor<4xf32>, tensor<4xf32>
  %x = lathe.add %a, %p : tensor<4xf32>, tensor<4xf32>
  %m = lathe.neg %b : tensor<4xf32>
  %q = lathe.mul %s, %m : tensor<4xf32>, tensor<4xf32>
  %y = lathe.sub %a, %q : tensor<4xf32>, tensor<4xf32>
  return %x, %y : tensor<4xf32>, tensor<4xf32>
}

// The sign of half a table stands at the part of the value that it turns.
// CHECK-LABEL: @sign_of_part
// CHECK-DAG: %[[N:.*]] = lathe.neg %arg1
// CHECK-DAG: %[[T:.*]] = lathe.concat %[[N]], %arg0 axis 1
// CHECK-DAG: %[[S:.*]] = lathe.concat %arg2, %arg2 axis 1
// CHECK-DAG: lathe.mul %[[T]], %[[S]]
func.func @sign_of_part(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %n = lathe.neg %s : tensor<3x4xf32>
  %t = lathe.concat %n, %s axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %r = lathe.concat %b, %a axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.mul %r, %t : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// exp2(x * log2(e)) and exp2(x / ln 2).
// CHECK-LABEL: @exponentials
// CHECK-COUNT-2: lathe.exp %arg0
// CHECK-NEXT: return
// STRICT-LABEL: @exponentials
// STRICT-COUNT-2: lathe.pow
func.func @exponentials(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %log = lathe.constant dense<1.44269502> : tensor<f32>
  %ln = lathe.constant dense<0.693147182> : tensor<f32>
  %s = lathe.mul %x, %log : tensor<4xf32>, tensor<f32>
  %a = lathe.pow %two, %s : tensor<f32>, tensor<4xf32>
  %t = lathe.div %x, %ln : tensor<4xf32>, tensor<f32>
  %b = lathe.pow %two, %t : tensor<f32>, tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}
// In 16 bits the factor is 1.4453, which is not the logarithm.
// CHECK-LABEL: @exponential_of_a_rounded_factor
// CHECK: lathe.pow
func.func @exponential_of_a_rounded_factor(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %two = lathe.constant dense<2.0> : tensor<bf16>
  %log = lathe.constant dense<1.4453125> : tensor<bf16>
  %s = lathe.mul %x, %log : tensor<4xbf16>, tensor<bf16>
  %a = lathe.pow %two, %s : tensor<bf16>, tensor<4xbf16>
  return %a : tensor<4xbf16>
}
// Another base, and a factor that the base does not undo.
// CHECK-LABEL: @other_bases
// CHECK-COUNT-2: lathe.pow
// CHECK-NOT: lathe.exp
// CHECK: return
func.func @other_bases(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %three = lathe.constant dense<3.0> : tensor<f32>
  %log = lathe.constant dense<1.44269502> : tensor<f32>
  %near = lathe.constant dense<1.4426951> : tensor<f32>
  %s = lathe.mul %x, %log : tensor<4xf32>, tensor<f32>
  %a = lathe.pow %three, %s : tensor<f32>, tensor<4xf32>
  %t = lathe.mul %x, %near : tensor<4xf32>, tensor<f32>
  %b = lathe.pow %two, %t : tensor<f32>, tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// A cube and an inverse are other steps than a power, and a square of f64 rounds twice where the
// power rounds once: strict mode keeps them. Other exponents stay in every mode.
// CHECK-LABEL: @other_powers
// CHECK: %[[S:.*]] = lathe.mul %arg0, %arg0
// CHECK-NEXT: lathe.mul %[[S]], %arg0
// CHECK-NEXT: lathe.reciprocal %arg0
// CHECK-NEXT: lathe.pow %arg0
// CHECK-NEXT: lathe.pow %arg0
// CHECK-NEXT: lathe.mul %arg1, %arg1
// CHECK-NEXT: return
// STRICT-LABEL: @other_powers
// STRICT-COUNT-5: lathe.pow
// STRICT-NEXT: return
func.func @other_powers(%x: tensor<4xf32>, %w: tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>) {
  %three = lathe.constant dense<3.0> : tensor<f32>
  %inverse = lathe.constant dense<-1.0> : tensor<f32>
  %four = lathe.constant dense<4.0> : tensor<f32>
  %minus = lathe.constant dense<-2.0> : tensor<f32>
  %two = lathe.constant dense<2.0> : tensor<f64>
  %a = lathe.pow %x, %three : tensor<4xf32>, tensor<f32>
  %b = lathe.pow %x, %inverse : tensor<4xf32>, tensor<f32>
  %c = lathe.pow %x, %four : tensor<4xf32>, tensor<f32>
  %d = lathe.pow %x, %minus : tensor<4xf32>, tensor<f32>
  %e = lathe.pow %w, %two : tensor<4xf64>, tensor<f64>
  return %a, %b, %c, %d, %e : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf64>
}

// The lowest number is its own bound from below alone, and the highest from above alone; integers
// have no infinity.
// CHECK-LABEL: @bounds
// CHECK: %[[A:.*]] = lathe.min %arg0
// CHECK-NEXT: %[[B:.*]] = lathe.max %arg0
// CHECK-NEXT: return %arg0, %arg0, %[[A]], %[[B]]
func.func @bounds(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %high = lathe.constant dense<0x7F800000> : tensor<f32>
  %a = lathe.max %x, %low : tensor<4xf32>, tensor<f32>
  %b = lathe.min %high, %x : tensor<f32>, tensor<4xf32>
  %c = lathe.min %x, %low : tensor<4xf32>, tensor<f32>
  %d = lathe.max %x, %high : tensor<4xf32>, tensor<f32>
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// The factor stretches the value: its negative alone would not.
// CHECK-LABEL: @negative_of_stretched
// CHECK: return %{{.*}} : tensor<2x4xf32>
func.func @negative_of_stretched(%x: tensor<4xf32>) -> tensor<2x4xf32> {
  %c = lathe.constant dense<3.0> : tensor<2x4xf32>
  %p = lathe.mul %x, %c : tensor<4xf32>, tensor<2x4xf32>
  %y = lathe.neg %p : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
