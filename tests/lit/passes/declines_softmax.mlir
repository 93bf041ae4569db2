// RUN: lathe-opt %s --lathe-why-not -o /dev/null 2>&1 | FileCheck %s

// Each reason for which a pattern of softmax or argmax refuses a match.

!x = tensor<8x8xf32>
!r = tensor<8x1xf32>
!b = tensor<8x8xi1>

// CHECK: remark: softmax: {{.*}}the maximum and the sum run over different axes
func.func @other_axis(%x: !x) -> !x {
  %t = lathe.reduce_max %x axes [0] keep_dims true : !x
  %s = lathe.sub %x, %t : !x, tensor<1x8xf32>
  %e = lathe.exp %s : !x
  %z = lathe.reduce_sum %e axes [1] keep_dims true : !x
  %y = lathe.div %e, %z : !x, !r
  return %y : !x
}

// CHECK: remark: softmax: {{.*}}the softmax runs over more than one axis
func.func @two_axes(%x: !x) -> !x {
  %t = lathe.reduce_max %x axes [0, 1] keep_dims true : !x
  %s = lathe.sub %x, %t : !x, tensor<1x1xf32>
  %e = lathe.exp %s : !x
  %z = lathe.reduce_sum %e axes [0, 1] keep_dims true : !x
  %y = lathe.div %e, %z : !x, tensor<1x1xf32>
  return %y : !x
}

// CHECK: remark: softmax-behind-product: {{.*}}'axes' of the sum are not the axis of the product
func.func @product_over_another_axis(%x: tensor<1x8xf32>, %v: !x) -> tensor<1x8xf32> {
  %t = lathe.reduce_max %x axes [0] keep_dims true : tensor<1x8xf32>
  %s = lathe.sub %x, %t : tensor<1x8xf32>, tensor<1x8xf32>
  %e = lathe.exp %s : tensor<1x8xf32>
  %z = lathe.reduce_sum %e axes [0] keep_dims true : tensor<1x8xf32>
  %m = lathe.matmul %e, %v : tensor<1x8xf32>, !x
  %y = lathe.div %m, %z : tensor<1x8xf32>, tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// CHECK: remark: softmax-scaled: {{.*}}the factor broadcasts f32[8, 8]
func.func @factor_with_more_axes(%x: !x) -> tensor<1x8x8xf32> {
  %c = lathe.constant dense<2.0> : tensor<1x1x1xf32>
  %t = lathe.reduce_max %x axes [1] keep_dims true : !x
  %s = lathe.sub %x, %t : !x, !r
  %d = lathe.mul %s, %c : !x, tensor<1x1x1xf32>
  %e = lathe.exp %d : tensor<1x8x8xf32>
  %z = lathe.reduce_sum %e axes [2] keep_dims true : tensor<1x8x8xf32>
  %y = lathe.div %e, %z : tensor<1x8x8xf32>, tensor<1x8x1xf32>
  return %y : tensor<1x8x8xf32>
}

// A row that hides everything has equal weights, which the condition makes zeros.
// CHECK: remark: softmax-where-zero: {{.*}}'masked_row' of the softmax: a masked row has equal weights
func.func @zeros_of_uniform(%x: !x, %c: !b) -> !x {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %s = lathe.select %c, %x, %low : !b, !x, tensor<f32>
  %p = lathe.softmax %s axis 1 masked_row uniform : !x
  %y = lathe.select %c, %p, %zero : !b, !x, tensor<f32>
  return %y : !x
}

// CHECK: remark: softmax-where-any: {{.*}}'masked_row' of the softmax: a masked row has equal weights
func.func @any_of_uniform(%x: !x) -> !x {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %p = lathe.softmax %x axis 1 masked_row uniform : !x
  %n = lathe.compare ne %x, %low : !x, tensor<f32>
  %a = lathe.reduce_any %n axes [1] keep_dims true : !b
  %y = lathe.select %a, %p, %zero : tensor<8x1xi1>, !x, tensor<f32>
  return %y : !x
}

// CHECK: remark: softmax-where-any: {{.*}}'axes' of the test are not the softmax's
func.func @any_of_columns(%x: !x) -> !x {
  %low = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %p = lathe.softmax %x axis 1 : !x
  %n = lathe.compare ne %x, %low : !x, tensor<f32>
  %a = lathe.reduce_any %n axes [0] keep_dims true : !b
  %y = lathe.select %a, %p, %zero : tensor<1x8xi1>, !x, tensor<f32>
  return %y : !x
}

// CHECK: remark: softmax-nan-to-zero: {{.*}}the softmax already gives no NaN for a masked row
func.func @nan_of_zero(%x: !x) -> !x {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %p = lathe.softmax %x axis 1 masked_row zero : !x
  %n = lathe.is_nan %p : !x
  %y = lathe.select %n, %zero, %p : !b, tensor<f32>, !x
  return %y : !x
}

// CHECK: remark: softmax-second-maximum: {{.*}}'axes' of the first maximum are not the softmax's
func.func @maximum_of_columns(%x: !x) -> !x {
  %t = lathe.reduce_max %x axes [0] keep_dims true : !x
  %s = lathe.sub %x, %t : !x, tensor<1x8xf32>
  %y = lathe.softmax %s axis 1 : !x
  return %y : !x
}

// CHECK: remark: softmax-second-maximum: {{.*}}'masked_row' of the softmax: the first maximum makes a masked row NaN
func.func @maximum_under_uniform(%x: !x) -> !x {
  %t = lathe.reduce_max %x axes [1] keep_dims true : !x
  %s = lathe.sub %x, %t : !x, !r
  %y = lathe.softmax %s axis 1 masked_row uniform : !x
  return %y : !x
}

// A finite fill: another mask might put scores near it.
// CHECK: remark: softmax-masked: {{.*}}lathe.softmax: nothing to take in stands before it
func.func @finite_fill(%x: !x, %c: !b) -> !x {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %s = lathe.select %c, %x, %low : !b, !x, tensor<f32>
  %y = lathe.softmax %s axis 1 : !x
  return %y : !x
}

// CHECK: remark: argmax{{.*}}: {{.*}}'axis' of lathe.softmax is not that of lathe.argmax
func.func @argmax_of_columns(%x: !x) -> tensor<8xi64> {
  %p = lathe.softmax %x axis 1 : !x
  %y = lathe.argmax %p axis 0 : !x
  return %y : tensor<8xi64>
}

// CHECK: remark: argmax{{.*}}: {{.*}}the factor broadcasts f32[8, 8]
func.func @argmax_with_more_axes(%x: !x) -> tensor<1x8xi64> {
  %c = lathe.constant dense<2.0> : tensor<1x1x1xf32>
  %s = lathe.mul %x, %c : !x, tensor<1x1x1xf32>
  %y = lathe.argmax %s axis 2 : tensor<1x8x8xf32>
  return %y : tensor<1x8xi64>
}
