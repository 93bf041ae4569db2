// RUN: lathe-opt %s --lathe-why-not --split-input-file -o /dev/null 2>&1 | FileCheck %s

// Each reason for which a pattern of the norms, of what follows them and of gates refuses a match.

// CHECK: remark: keep-dims-sum: {{.*}}the 'shape' is not that of the reduction with its axes kept
func.func @kept_elsewhere(%x: tensor<4x4xf32>) -> tensor<4x1xf32> {
  %s = lathe.reduce_sum %x axes [0] keep_dims false : tensor<4x4xf32>
  %y = lathe.reshape %s to <4, 1> : tensor<4xf32>
  return %y : tensor<4x1xf32>
}

// -----

// CHECK: remark: layer_norm: {{.*}}'axes' of the mean are not exactly the last axis
func.func @mean_of_two_axes(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1, 2] keep_dims true : tensor<2x4x8xf32>
  %c = lathe.sub %x, %m : tensor<2x4x8xf32>, tensor<2x1x1xf32>
  %q = lathe.mul %c, %c : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  %v = lathe.reduce_mean %q axes [1, 2] keep_dims true : tensor<2x4x8xf32>
  %a = lathe.add %v, %eps : tensor<2x1x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<2x1x1xf32>
  %y = lathe.mul %c, %r : tensor<2x4x8xf32>, tensor<2x1x1xf32>
  return %y : tensor<2x4x8xf32>
}

// -----

// The variance alone runs over another axis.
// CHECK: remark: layer_norm-quotient: {{.*}}'axes' of the mean are not exactly the last axis
func.func @variance_of_first_axis(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<8x8xf32>
  %c = lathe.sub %x, %m : tensor<8x8xf32>, tensor<8x1xf32>
  %q = lathe.mul %c, %c : tensor<8x8xf32>, tensor<8x8xf32>
  %v = lathe.reduce_mean %q axes [0] keep_dims true : tensor<8x8xf32>
  %r = lathe.sqrt %v : tensor<1x8xf32>
  %y = lathe.div %c, %r : tensor<8x8xf32>, tensor<1x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// CHECK: remark: layer_norm-factor: {{.*}}the gain is not one element per last dim
func.func @gain_of_rows_in_factor(%x: tensor<4x8xf32>, %g: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<4x8xf32>
  %c = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %q = lathe.mul %c, %c : tensor<4x8xf32>, tensor<4x8xf32>
  %v = lathe.reduce_mean %q axes [1] keep_dims true : tensor<4x8xf32>
  %a = lathe.add %v, %eps : tensor<4x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<4x1xf32>
  %f = lathe.mul %g, %r : tensor<4x1xf32>, tensor<4x1xf32>
  %y = lathe.mul %c, %f : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: layer_norm-mean-behind-factor: {{.*}}the bias is not one element per last dim
func.func @bias_of_rows_behind_factor(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<4x8xf32>
  %c = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %q = lathe.mul %c, %c : tensor<4x8xf32>, tensor<4x8xf32>
  %v = lathe.reduce_mean %q axes [1] keep_dims true : tensor<4x8xf32>
  %a = lathe.add %v, %eps : tensor<4x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<4x1xf32>
  %f = lathe.mul %g, %r : tensor<8xf32>, tensor<4x1xf32>
  %p = lathe.mul %x, %f : tensor<4x8xf32>, tensor<4x8xf32>
  %n = lathe.mul %m, %f : tensor<4x1xf32>, tensor<4x8xf32>
  %d = lathe.sub %b, %n : tensor<4x1xf32>, tensor<4x8xf32>
  %y = lathe.add %p, %d : tensor<4x8xf32>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: layer_norm-of-moments: {{.*}}the variance is E[x^2] - E[x]^2, which cancels in f32
func.func @of_moments(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<4x8xf32>
  %c = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %q = lathe.mul %x, %x : tensor<4x8xf32>, tensor<4x8xf32>
  %e = lathe.reduce_mean %q axes [1] keep_dims true : tensor<4x8xf32>
  %n = lathe.mul %m, %m : tensor<4x1xf32>, tensor<4x1xf32>
  %v = lathe.sub %e, %n : tensor<4x1xf32>, tensor<4x1xf32>
  %a = lathe.add %v, %eps : tensor<4x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<4x1xf32>
  %y = lathe.mul %c, %r : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: layer_norm-gain: {{.*}}the normalized value is rounded before the gain
func.func @rounded_before_gain(%x: tensor<4x8xbf16>, %g: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %n = lathe.layer_norm %x epsilon 1.0e-5 : tensor<4x8xbf16>
  %y = lathe.mul %n, %g : tensor<4x8xbf16>, tensor<8xbf16>
  return %y : tensor<4x8xbf16>
}

// -----

// CHECK: remark: layer_norm-gain: {{.*}}the gain is not one element per last dim
func.func @gain_of_rows(%x: tensor<4x8xf32>, %g: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %n = lathe.layer_norm %x epsilon 1.0e-5 : tensor<4x8xf32>
  %y = lathe.mul %n, %g : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: layer_norm-bias: {{.*}}the normalized value is rounded before the bias
func.func @rounded_before_bias(%x: tensor<4x8xf16>, %g: tensor<8xf16>, %b: tensor<8xf16>) -> tensor<4x8xf16> {
  %n = lathe.layer_norm %x gain %g epsilon 1.0e-5 : tensor<4x8xf16> gain tensor<8xf16>
  %y = lathe.add %n, %b : tensor<4x8xf16>, tensor<8xf16>
  return %y : tensor<4x8xf16>
}

// -----

// CHECK: remark: layer_norm-bias: {{.*}}the bias is not one element per last dim
func.func @bias_of_all_elements(%x: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %n = lathe.layer_norm %x epsilon 1.0e-5 : tensor<4x8xf32>
  %y = lathe.add %n, %b : tensor<4x8xf32>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: rms_norm-factor: {{.*}}the gain is not one element per last dim
func.func @rms_gain_of_rows_in_factor(%x: tensor<4x8xf32>, %g: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<4x8xf32>, tensor<4x8xf32>
  %v = lathe.reduce_mean %q axes [1] keep_dims true : tensor<4x8xf32>
  %a = lathe.add %v, %eps : tensor<4x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<4x1xf32>
  %f = lathe.mul %g, %r : tensor<4x1xf32>, tensor<4x1xf32>
  %y = lathe.mul %x, %f : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// An epsilon of rank 2: the quotient has an axis more than x.
// CHECK: remark: rms_norm-quotient: {{.*}}the squares are of another shape than the result
func.func @squares_stretch(%x: tensor<8xf32>) -> tensor<1x8xf32> {
  %q = lathe.mul %x, %x : tensor<8xf32>, tensor<8xf32>
  %v = lathe.reduce_mean %q axes [0] keep_dims true : tensor<8xf32>
  %e = lathe.constant dense<1.0e-5> : tensor<1x1xf32>
  %a = lathe.add %v, %e : tensor<1xf32>, tensor<1x1xf32>
  %r = lathe.sqrt %a : tensor<1x1xf32>
  %y = lathe.div %x, %r : tensor<8xf32>, tensor<1x1xf32>
  return %y : tensor<1x8xf32>
}

// -----

// CHECK: remark: rms_norm-gain: {{.*}}the gain is not one element per last dim
func.func @rms_gain_of_rows(%x: tensor<4x8xf32>, %g: tensor<4x1xf32>) -> tensor<4x8xf32> {
  %n = lathe.rms_norm %x epsilon 1.0e-5 : tensor<4x8xf32>
  %y = lathe.mul %n, %g : tensor<4x8xf32>, tensor<4x1xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: rms_norm-gain: {{.*}}the value is cast back to a type that the input did not have
func.func @rms_cast_to_other_type(%h: tensor<4x8xf16>, %g: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %x = lathe.cast %h to f32 : tensor<4x8xf16>
  %n = lathe.rms_norm %x epsilon 1.0e-5 : tensor<4x8xf32>
  %r = lathe.cast %n to bf16 : tensor<4x8xf32>
  %y = lathe.mul %r, %g : tensor<4x8xbf16>, tensor<8xbf16>
  return %y : tensor<4x8xbf16>
}

// -----

// CHECK: remark: add_norm-rms: {{.*}}an operand of lathe.add is broadcast: f32[4, 8] and f32[8] at
func.func @residual_broadcast(%x: tensor<4x8xf32>, %r: tensor<8xf32>, %g: tensor<8xf32>) -> tensor<4x8xf32> {
  %s = lathe.add %x, %r : tensor<4x8xf32>, tensor<8xf32>
  %y = lathe.rms_norm %s, %g epsilon 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: add_norm-layer{{.*}}an operand of lathe.add is broadcast: f32[8] and f32[4, 8] at
func.func @first_broadcast(%x: tensor<4x8xf32>, %r: tensor<8xf32>) -> tensor<4x8xf32> {
  %s = lathe.add %r, %x : tensor<8xf32>, tensor<4x8xf32>
  %y = lathe.layer_norm %s epsilon 1.0e-5 : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// -----

// CHECK: remark: norm_rope-turned: {{.*}}'permutation' of lathe.transpose: the normed axis does not stay the last
func.func @normed_axis_moves(%x: tensor<2x8x8xf32>, %g: tensor<8xf32>, %t: tensor<8x4xf32>) -> tensor<2x8x8xf32> {
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<2x8x8xf32>, tensor<8xf32>
  %u = lathe.transpose %n [0, 2, 1] : tensor<2x8x8xf32>
  %y = lathe.rope half %u, %t, %t : tensor<2x8x8xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  return %y : tensor<2x8x8xf32>
}

// -----

// CHECK: remark: narrowing: {{.*}}the cast is not to a 16-bit float
func.func @widens(%x: tensor<4x8xf32>) -> tensor<4x8xf64> {
  %s = lathe.softmax %x axis 1 : tensor<4x8xf32>
  %y = lathe.cast %s to f64 : tensor<4x8xf32>
  return %y : tensor<4x8xf64>
}

// -----

// CHECK: remark: narrowing: {{.*}}'rounding' of lathe.rms_norm: a narrow op would round before the gain
func.func @rounds_before_gain(%h: tensor<4x8xbf16>, %i: tensor<8xbf16>) -> tensor<4x8xbf16> {
  %x = lathe.cast %h to f32 : tensor<4x8xbf16>
  %g = lathe.cast %i to f32 : tensor<8xbf16>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 rounding before_gain : tensor<4x8xf32>, tensor<8xf32>
  %y = lathe.cast %n to bf16 : tensor<4x8xf32>
  return %y : tensor<4x8xbf16>
}

// -----

// CHECK: remark: narrowing: {{.*}}the f32 value has another user
func.func @wide_value_is_read(%h: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xf32>) {
  %x = lathe.cast %h to f32 : tensor<4x8xbf16>
  %s = lathe.softmax %x axis 1 : tensor<4x8xf32>
  %y = lathe.cast %s to bf16 : tensor<4x8xf32>
  return %y, %s : tensor<4x8xbf16>, tensor<4x8xf32>
}

// -----

// CHECK: remark: narrowing: {{.*}}operand 1 is not a cast from the narrow type
func.func @wide_gain(%h: tensor<4x8xbf16>, %g: tensor<8xf32>) -> tensor<4x8xbf16> {
  %x = lathe.cast %h to f32 : tensor<4x8xbf16>
  %n = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>
  %y = lathe.cast %n to bf16 : tensor<4x8xf32>
  return %y : tensor<4x8xbf16>
}

// -----

// CHECK: remark: narrowing: {{.*}}operand 0 is not a cast from the narrow type
func.func @other_narrow_type(%h: tensor<4x8xf16>) -> tensor<4x8xbf16> {
  %x = lathe.cast %h to f32 : tensor<4x8xf16>
  %s = lathe.softmax %x axis 1 : tensor<4x8xf32>
  %y = lathe.cast %s to bf16 : tensor<4x8xf32>
  return %y : tensor<4x8xbf16>
}

// -----

// CHECK: remark: glu: {{.*}}the activation is cast back to a type that its input did not have
func.func @gate_cast_to_other_type(%h: tensor<4xf16>, %u: tensor<4xbf16>) -> tensor<4xbf16> {
  %g = lathe.cast %h to f32 : tensor<4xf16>
  %s = lathe.sigmoid %g : tensor<4xf32>
  %a = lathe.mul %g, %s : tensor<4xf32>, tensor<4xf32>
  %r = lathe.cast %a to bf16 : tensor<4xf32>
  %y = lathe.mul %r, %u : tensor<4xbf16>, tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// -----

// The mean is that of rows, the variance that of columns.
// CHECK: remark: layer_norm-quotient: {{.*}}'axes' of the mean are not exactly the last axis
func.func @variance_of_columns(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<8x8xf32>
  %c = lathe.sub %x, %m : tensor<8x8xf32>, tensor<8x1xf32>
  %q = lathe.mul %c, %c : tensor<8x8xf32>, tensor<8x8xf32>
  %v = lathe.reduce_mean %q axes [0] keep_dims true : tensor<8x8xf32>
  %a = lathe.add %v, %eps : tensor<1x8xf32>, tensor<f32>
  %r = lathe.sqrt %a : tensor<1x8xf32>
  %y = lathe.div %c, %r : tensor<8x8xf32>, tensor<1x8xf32>
  return %y : tensor<8x8xf32>
}

// -----

// With the mean taken off last, too, a bias of all elements is none of the norm's.
// CHECK: remark: layer_norm-mean-behind-factor: {{.*}}the bias is not one element per last dim
func.func @bias_of_elements_behind_the_factor(%x: tensor<8x8xf32>, %g: tensor<8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %eps = lathe.constant dense<1.0e-5> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<8x8xf32>
  %c = lathe.sub %x, %m : tensor<8x8xf32>, tensor<8x1xf32>
  %q = lathe.mul %c, %c : tensor<8x8xf32>, tensor<8x8xf32>
  %v = lathe.reduce_mean %q axes [1] keep_dims true : tensor<8x8xf32>
  %a = lathe.add %v, %eps : tensor<8x1xf32>, tensor<f32>
  %r = lathe.rsqrt %a : tensor<8x1xf32>
  %f = lathe.mul %r, %g : tensor<8x1xf32>, tensor<8xf32>
  %p = lathe.mul %x, %f : tensor<8x8xf32>, tensor<8x8xf32>
  %n = lathe.mul %m, %f : tensor<8x1xf32>, tensor<8x8xf32>
  %s = lathe.sub %b, %n : tensor<8x8xf32>, tensor<8x8xf32>
  %y = lathe.add %p, %s : tensor<8x8xf32>, tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
