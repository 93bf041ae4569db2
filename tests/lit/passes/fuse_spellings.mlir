// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --lathe-fuse --lathe-canonicalize | FileCheck %s
// How libraries spell what a fused op computes, each with what is like it and is not. What they
// compute is compared in tests/conformance/fused_files_test.cpp.

// --- masks
// masked_fill(tril(ones)[:, :, :t, :t] == 0, -inf)
// CHECK-LABEL: @tril_equals_zero
// CHECK-NOT: lathe.compare
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal top_left
func.func @tril_equals_zero(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32> {
  %one = lathe.constant dense<1.0> : tensor<1x1x9x9xf32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <1, 1, 9, 1> axis 2 dtype i64
  %j = lathe.iota <1, 1, 1, 9> axis 3 dtype i64
  %c = lathe.compare ge %i, %j : tensor<1x1x9x1xi64>, tensor<1x1x1x9xi64>
  %b = lathe.select %c, %one, %zero : tensor<1x1x9x9xi1>, tensor<1x1x9x9xf32>, tensor<f32>
  %box = lathe.slice %b starts <0, 0, 0, 0> sizes <1, 1, 5, 5> strides [1, 1, 1, 1] : tensor<1x1x9x9xf32>
  %m = lathe.compare eq %box, %zero : tensor<1x1x5x5xf32>, tensor<f32>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x5x4xf32>, tensor<2x3x4x5xf32>
  %l = lathe.select %m, %lowest, %s : tensor<1x1x5x5xi1>, tensor<f32>, tensor<2x3x5x5xf32>
  %p = lathe.softmax %l axis 3 : tensor<2x3x5x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5x5xf32>, tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
// scores + triu(full(finfo.min), 1): so low a number absorbs every score.
// CHECK-LABEL: @lowest_times_triu
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal top_left masked_row uniform
func.func @lowest_times_triu(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32> {
  %min = lathe.constant dense<-3.40282347E+38> : tensor<5x5xf32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %i = lathe.iota <5, 1> axis 0 dtype i64
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %c = lathe.compare gt %j, %i : tensor<1x5xi64>, tensor<5x1xi64>
  %b = lathe.select %c, %min, %zero : tensor<5x5xi1>, tensor<5x5xf32>, tensor<f32>
  %m = lathe.reshape %b to <1, 1, 5, 5> : tensor<5x5xf32>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x5x4xf32>, tensor<2x3x4x5xf32>
  %l = lathe.add %s, %m : tensor<2x3x5x5xf32>, tensor<1x1x5x5xf32>
  %p = lathe.softmax %l axis 3 : tensor<2x3x5x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5x5xf32>, tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
// scores + (1 - mask) * finfo.min
// CHECK-LABEL: @one_minus_mask
// CHECK: lathe.attention %arg0, %arg1, %arg1 mask %arg2 scale 1.000000e+00 masked_row uniform
func.func @one_minus_mask(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %c: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %min = lathe.constant dense<-3.40282347E+38> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %f = lathe.cast %c to f32 : tensor<3x5xi1>
  %o = lathe.sub %one, %f : tensor<f32>, tensor<3x5xf32>
  %m = lathe.mul %o, %min : tensor<3x5xf32>, tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.add %s, %m : tensor<2x3x5xf32>, tensor<3x5xf32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// -1e9 does not absorb the scores of a masked row; two of the lowest are -inf.
// CHECK-LABEL: @fill_that_adds
// CHECK: lathe.attention {{.*}} mask %{{.*}} scale 1.000000e+00 : {{.*}} mask tensor<3x5xf32>
func.func @fill_that_adds(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %c: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %min = lathe.constant dense<-1.0e9> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %m = lathe.select %c, %zero, %min : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.add %s, %m : tensor<2x3x5xf32>, tensor<3x5xf32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// CHECK-LABEL: @two_lowest
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @two_lowest(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %c: tensor<3x5xi1>, %d: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %min = lathe.constant dense<-3.0e38> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %m = lathe.select %c, %zero, %min : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %n = lathe.select %d, %zero, %min : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %a = lathe.add %s, %m : tensor<2x3x5xf32>, tensor<3x5xf32>
  %l = lathe.add %a, %n : tensor<2x3x5xf32>, tensor<3x5xf32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// --- attention
// Scores of K Q^T, turned.
// CHECK-LABEL: @keys_times_queries
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg1 scale 5.000000e-01
func.func @keys_times_queries(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %t = lathe.transpose %q [0, 2, 1] : tensor<2x3x4xf32>
  %s = lathe.matmul %k, %t : tensor<2x5x4xf32>, tensor<2x4x3xf32>
  %h = lathe.mul %s, %half : tensor<2x5x3xf32>, tensor<f32>
  %u = lathe.transpose %h [0, 2, 1] : tensor<2x5x3xf32>
  %p = lathe.softmax %u axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// Heads in groups, the keys stretched by the product.
// CHECK-LABEL: @groups_in_rank_5
// CHECK: lathe.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 causal top_left : tensor<2x6x5x4xf32>, tensor<2x2x5x4xf32>, tensor<2x2x5x4xf32>
func.func @groups_in_rank_5(%q: tensor<2x6x5x4xf32>, %k: tensor<2x2x5x4xf32>, %v: tensor<2x2x5x4xf32>) -> tensor<2x6x5x4xf32> {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <5, 1> axis 0 dtype i64
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %c = lathe.compare le %j, %i : tensor<1x5xi64>, tensor<5x1xi64>
  %g = lathe.reshape %q to <2, 2, 3, 5, 4> : tensor<2x6x5x4xf32>
  %kg = lathe.reshape %k to <2, 2, 1, 5, 4> : tensor<2x2x5x4xf32>
  %vg = lathe.reshape %v to <2, 2, 1, 5, 4> : tensor<2x2x5x4xf32>
  %t = lathe.transpose %kg [0, 1, 2, 4, 3] : tensor<2x2x1x5x4xf32>
  %s = lathe.matmul %g, %t : tensor<2x2x3x5x4xf32>, tensor<2x2x1x4x5xf32>
  %h = lathe.mul %s, %half : tensor<2x2x3x5x5xf32>, tensor<f32>
  %l = lathe.select %c, %h, %lowest : tensor<5x5xi1>, tensor<2x2x3x5x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 4 : tensor<2x2x3x5x5xf32>
  %w = lathe.matmul %p, %vg : tensor<2x2x3x5x5xf32>, tensor<2x2x1x5x4xf32>
  %y = lathe.reshape %w to <2, 6, 5, 4> : tensor<2x2x3x5x4xf32>
  return %y : tensor<2x6x5x4xf32>
}
// The masks of groups and of their heads.
// CHECK-LABEL: @masks_in_rank_5
// CHECK: lathe.attention {{.*}} mask tensor<2x1x5x5xi1>
// CHECK: lathe.attention {{.*}} mask tensor<6x5x5xf32>
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @masks_in_rank_5(%q: tensor<2x2x3x5x4xf32>, %k: tensor<2x2x1x5x4xf32>, %m: tensor<2x1x1x5x5xi1>, %b: tensor<2x3x5x5xf32>, %o: tensor<3x5x5xf32>) -> (tensor<2x2x3x5x4xf32>, tensor<2x2x3x5x4xf32>, tensor<2x2x3x5x4xf32>) {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %t = lathe.transpose %k [0, 1, 2, 4, 3] : tensor<2x2x1x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x2x3x5x4xf32>, tensor<2x2x1x4x5xf32>
  %l = lathe.select %m, %s, %lowest : tensor<2x1x1x5x5xi1>, tensor<2x2x3x5x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 4 : tensor<2x2x3x5x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x2x3x5x5xf32>, tensor<2x2x1x5x4xf32>
  %q2 = lathe.exp %q : tensor<2x2x3x5x4xf32>
  %s2 = lathe.matmul %q2, %t : tensor<2x2x3x5x4xf32>, tensor<2x2x1x4x5xf32>
  %l2 = lathe.add %s2, %b : tensor<2x2x3x5x5xf32>, tensor<2x3x5x5xf32>
  %p2 = lathe.softmax %l2 axis 4 : tensor<2x2x3x5x5xf32>
  %y2 = lathe.matmul %p2, %k : tensor<2x2x3x5x5xf32>, tensor<2x2x1x5x4xf32>
  %q3 = lathe.tanh %q : tensor<2x2x3x5x4xf32>
  %s3 = lathe.matmul %q3, %t : tensor<2x2x3x5x4xf32>, tensor<2x2x1x4x5xf32>
  %l3 = lathe.add %s3, %o : tensor<2x2x3x5x5xf32>, tensor<3x5x5xf32>
  %p3 = lathe.softmax %l3 axis 4 : tensor<2x2x3x5x5xf32>
  %y3 = lathe.matmul %p3, %k : tensor<2x2x3x5x5xf32>, tensor<2x2x1x5x4xf32>
  return %y, %y2, %y3 : tensor<2x2x3x5x4xf32>, tensor<2x2x3x5x4xf32>, tensor<2x2x3x5x4xf32>
}
// Every head has keys of its own: nothing is shared.
// CHECK-LABEL: @no_groups_in_rank_5
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @no_groups_in_rank_5(%q: tensor<2x2x3x5x4xf32>, %k: tensor<2x1x3x5x4xf32>) -> tensor<2x2x3x5x4xf32> {
  %t = lathe.transpose %k [0, 1, 2, 4, 3] : tensor<2x1x3x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x2x3x5x4xf32>, tensor<2x1x3x4x5xf32>
  %p = lathe.softmax %s axis 4 : tensor<2x2x3x5x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x2x3x5x5xf32>, tensor<2x1x3x5x4xf32>
  return %y : tensor<2x2x3x5x4xf32>
}

// --- softmax
// exp((x - max) / t), t a temperature.
// CHECK-LABEL: @temperature_behind_the_maximum
// CHECK: lathe.softmax %arg0 axis 1 scale 0.3000000
// CHECK: lathe.softmax %arg1 axis 1 scale 2.000000e+00
func.func @temperature_behind_the_maximum(%x: tensor<3x8xf32>, %z: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %c = lathe.constant dense<0.3> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %m = lathe.reduce_max %x axes [1] keep_dims true : tensor<3x8xf32>
  %d = lathe.sub %x, %m : tensor<3x8xf32>, tensor<3x1xf32>
  %e = lathe.mul %d, %c : tensor<3x8xf32>, tensor<f32>
  %f = lathe.exp %e : tensor<3x8xf32>
  %s = lathe.reduce_sum %f axes [1] keep_dims true : tensor<3x8xf32>
  %y = lathe.div %f, %s : tensor<3x8xf32>, tensor<3x1xf32>
  %m2 = lathe.reduce_max %z axes [1] keep_dims true : tensor<3x8xf32>
  %d2 = lathe.sub %z, %m2 : tensor<3x8xf32>, tensor<3x1xf32>
  %e2 = lathe.div %d2, %half : tensor<3x8xf32>, tensor<f32>
  %f2 = lathe.exp %e2 : tensor<3x8xf32>
  %s2 = lathe.reduce_sum %f2 axes [1] keep_dims true : tensor<3x8xf32>
  %w = lathe.div %f2, %s2 : tensor<3x8xf32>, tensor<3x1xf32>
  return %y, %w : tensor<3x8xf32>, tensor<3x8xf32>
}
// A negative factor turns the order round: the maximum is no bound.
// CHECK-LABEL: @negative_temperature
// CHECK-NOT: lathe.softmax
// CHECK: return
func.func @negative_temperature(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %c = lathe.constant dense<-0.3> : tensor<f32>
  %m = lathe.reduce_max %x axes [1] keep_dims true : tensor<3x8xf32>
  %d = lathe.sub %x, %m : tensor<3x8xf32>, tensor<3x1xf32>
  %e = lathe.mul %d, %c : tensor<3x8xf32>, tensor<f32>
  %f = lathe.exp %e : tensor<3x8xf32>
  %s = lathe.reduce_sum %f axes [1] keep_dims true : tensor<3x8xf32>
  %y = lathe.div %f, %s : tensor<3x8xf32>, tensor<3x1xf32>
  return %y : tensor<3x8xf32>
}
// jax.nn.softmax(x, where=c)
// CHECK-LABEL: @where_visible
// CHECK: lathe.softmax %arg0 mask %arg1 axis 1 masked_row zero
// CHECK-NEXT: return
func.func @where_visible(%x: tensor<3x8xf32>, %c: tensor<3x8xi1>) -> tensor<3x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %h = lathe.select %c, %x, %lowest : tensor<3x8xi1>, tensor<3x8xf32>, tensor<f32>
  %m = lathe.reduce_max %h axes [1] keep_dims true : tensor<3x8xf32>
  %d = lathe.sub %h, %m : tensor<3x8xf32>, tensor<3x1xf32>
  %e = lathe.exp %d : tensor<3x8xf32>
  %t = lathe.select %c, %e, %zero : tensor<3x8xi1>, tensor<3x8xf32>, tensor<f32>
  %s = lathe.reduce_sum %t axes [1] keep_dims true : tensor<3x8xf32>
  %p = lathe.div %e, %s : tensor<3x8xf32>, tensor<3x1xf32>
  %y = lathe.select %c, %p, %zero : tensor<3x8xi1>, tensor<3x8xf32>, tensor<f32>
  return %y : tensor<3x8xf32>
}
// Another condition hides the weights than the scores.
// CHECK-LABEL: @where_another
// CHECK-NOT: masked_row zero
// CHECK: return
func.func @where_another(%x: tensor<3x8xf32>, %c: tensor<3x8xi1>, %o: tensor<3x8xi1>) -> tensor<3x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %h = lathe.select %c, %x, %lowest : tensor<3x8xi1>, tensor<3x8xf32>, tensor<f32>
  %m = lathe.reduce_max %h axes [1] keep_dims true : tensor<3x8xf32>
  %d = lathe.sub %h, %m : tensor<3x8xf32>, tensor<3x1xf32>
  %e = lathe.exp %d : tensor<3x8xf32>
  %t = lathe.select %o, %e, %zero : tensor<3x8xi1>, tensor<3x8xf32>, tensor<f32>
  %s = lathe.reduce_sum %t axes [1] keep_dims true : tensor<3x8xf32>
  %p = lathe.div %e, %s : tensor<3x8xf32>, tensor<3x1xf32>
  %y = lathe.select %o, %p, %zero : tensor<3x8xi1>, tensor<3x8xf32>, tensor<f32>
  return %y : tensor<3x8xf32>
}

// --- linear
// DenseGeneral: a weight [in, heads, depth] seen as a matrix.
// CHECK-LABEL: @dense_general
// CHECK: %[[W:.*]] = lathe.reshape {{.*}} to <4, 6>
// CHECK: lathe.linear %arg0, %[[W]] layout in_out
func.func @dense_general(%x: tensor<3x4xf32>) -> tensor<3x6xf32> {
  %w = lathe.weight "w" : tensor<4x2x3xf32>
  %m = lathe.reshape %w to <4, 6> : tensor<4x2x3xf32>
  %y = lathe.matmul %x, %m : tensor<3x4xf32>, tensor<4x6xf32>
  return %y : tensor<3x6xf32>
}
// CHECK-LABEL: @weight_of_one
// CHECK: lathe.linear %arg0, %{{.*}} layout in_out : tensor<2x3x4xf32>, tensor<4x6xf32>
func.func @weight_of_one(%x: tensor<2x3x4xf32>) -> tensor<2x3x6xf32> {
  %w = lathe.weight "w" : tensor<1x4x6xf32>
  %y = lathe.matmul %x, %w : tensor<2x3x4xf32>, tensor<1x4x6xf32>
  return %y : tensor<2x3x6xf32>
}
// A weight for each batch is no matrix.
// CHECK-LABEL: @weight_per_batch
// CHECK-NOT: lathe.linear
// CHECK: return
func.func @weight_per_batch(%x: tensor<2x3x4xf32>) -> tensor<2x3x6xf32> {
  %w = lathe.weight "w" : tensor<2x4x6xf32>
  %y = lathe.matmul %x, %w : tensor<2x3x4xf32>, tensor<2x4x6xf32>
  return %y : tensor<2x3x6xf32>
}
// CHECK-LABEL: @weight_on_the_left
// CHECK: lathe.linear %arg0, %{{.*}} : tensor<2x3x4xf32>, tensor<6x4xf32>
func.func @weight_on_the_left(%x: tensor<2x3x4xf32>) -> tensor<2x3x6xf32> {
  %w = lathe.weight "w" : tensor<6x4xf32>
  %t = lathe.transpose %x [0, 2, 1] : tensor<2x3x4xf32>
  %p = lathe.matmul %w, %t : tensor<6x4xf32>, tensor<2x4x3xf32>
  %y = lathe.transpose %p [0, 2, 1] : tensor<2x6x3xf32>
  return %y : tensor<2x3x6xf32>
}
// CHECK-LABEL: @bias_subtracted
// CHECK: %[[B:.*]] = lathe.neg %{{.*}} : tensor<6xf32>
// CHECK: lathe.linear %arg0, %{{.*}} bias %[[B]]
func.func @bias_subtracted(%x: tensor<3x4xf32>) -> tensor<3x6xf32> {
  %w = lathe.weight "w" : tensor<4x6xf32>
  %b = lathe.weight "b" : tensor<6xf32>
  %p = lathe.matmul %x, %w : tensor<3x4xf32>, tensor<4x6xf32>
  %y = lathe.sub %p, %b : tensor<3x6xf32>, tensor<6xf32>
  return %y : tensor<3x6xf32>
}
// b - x w is another sign; one number per row is no bias.
// CHECK-LABEL: @subtracted_from_a_bias
// CHECK-NOT: bias
// CHECK: return
func.func @subtracted_from_a_bias(%x: tensor<6x4xf32>) -> (tensor<6x6xf32>, tensor<6x6xf32>) {
  %w = lathe.weight "w" : tensor<4x6xf32>
  %b = lathe.weight "vector" : tensor<6xf32>
  %c = lathe.weight "column" : tensor<6x1xf32>
  %p = lathe.matmul %x, %w : tensor<6x4xf32>, tensor<4x6xf32>
  %y = lathe.sub %b, %p : tensor<6xf32>, tensor<6x6xf32>
  %o = lathe.exp %x : tensor<6x4xf32>
  %q = lathe.matmul %o, %w : tensor<6x4xf32>, tensor<4x6xf32>
  %z = lathe.sub %q, %c : tensor<6x6xf32>, tensor<6x1xf32>
  return %y, %z : tensor<6x6xf32>, tensor<6x6xf32>
}
// CHECK-LABEL: @bias_behind_the_residual
// CHECK: lathe.linear %arg0, %{{.*}} bias %{{.*}} residual %arg1
// CHECK-NOT: lathe.add
// CHECK: return
func.func @bias_behind_the_residual(%x: tensor<3x4xf32>, %r: tensor<3x6xf32>) -> tensor<3x6xf32> {
  %w = lathe.weight "w" : tensor<4x6xf32>
  %b = lathe.weight "b" : tensor<6xf32>
  %p = lathe.matmul %x, %w : tensor<3x4xf32>, tensor<4x6xf32>
  %s = lathe.add %r, %p : tensor<3x6xf32>, tensor<3x6xf32>
  %y = lathe.add %s, %b : tensor<3x6xf32>, tensor<6xf32>
  return %y : tensor<3x6xf32>
}
// What stands behind the activation is no bias of the product.
// CHECK-LABEL: @bias_behind_an_activation
// CHECK: lathe.linear {{.*}} activation relu residual %arg1
// CHECK: lathe.add
func.func @bias_behind_an_activation(%x: tensor<3x4xf32>, %r: tensor<3x6xf32>) -> tensor<3x6xf32> {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %w = lathe.weight "w" : tensor<4x6xf32>
  %b = lathe.weight "b" : tensor<6xf32>
  %p = lathe.matmul %x, %w : tensor<3x4xf32>, tensor<4x6xf32>
  %a = lathe.max %p, %zero : tensor<3x6xf32>, tensor<f32>
  %s = lathe.add %r, %a : tensor<3x6xf32>, tensor<3x6xf32>
  %y = lathe.add %s, %b : tensor<3x6xf32>, tensor<6xf32>
  return %y : tensor<3x6xf32>
}

// --- rotations
// a cos + (-b) sin
// CHECK-LABEL: @negated_half
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2
func.func @negated_half(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %n = lathe.neg %b : tensor<3x4xf32>
  %ac = lathe.mul %a, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %bs = lathe.mul %n, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %f = lathe.add %ac, %bs : tensor<3x4xf32>, tensor<3x4xf32>
  %as = lathe.mul %a, %s : tensor<3x4xf32>, tensor<3x4xf32>
  %bc = lathe.mul %b, %c : tensor<3x4xf32>, tensor<3x4xf32>
  %g = lathe.add %as, %bc : tensor<3x4xf32>, tensor<3x4xf32>
  %y = lathe.concat %f, %g axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  return %y : tensor<3x8xf32>
}
// x * cat(c, c) + roll(x) * cat(-s, s)
// CHECK-LABEL: @rolled
// CHECK-NEXT: lathe.rope half %arg0, %arg1, %arg2
func.func @rolled(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %r = lathe.concat %b, %a axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %n = lathe.neg %s : tensor<3x4xf32>
  %cc = lathe.concat %c, %c axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %ss = lathe.concat %n, %s axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %p = lathe.mul %x, %cc : tensor<3x8xf32>, tensor<3x8xf32>
  %q = lathe.mul %r, %ss : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.add %p, %q : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// The sign stands at the other half.
// CHECK-LABEL: @rolled_back
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @rolled_back(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 4> sizes <3, 4> strides [1, 1] : tensor<3x8xf32>
  %r = lathe.concat %b, %a axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %n = lathe.neg %s : tensor<3x4xf32>
  %cc = lathe.concat %c, %c axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %ss = lathe.concat %s, %n axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %p = lathe.mul %x, %cc : tensor<3x8xf32>, tensor<3x8xf32>
  %q = lathe.mul %r, %ss : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.add %p, %q : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}

// --- gates and norms
// CHECK-LABEL: @silu_in_other_orders
// CHECK-NEXT: lathe.glu %arg0, %arg1
// CHECK-NEXT: lathe.glu %arg2, %arg1
// CHECK-NEXT: return
func.func @silu_in_other_orders(%x: tensor<3x8xf32>, %u: tensor<3x8xf32>, %o: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %s = lathe.sigmoid %x : tensor<3x8xf32>
  %p = lathe.mul %x, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.mul %p, %s : tensor<3x8xf32>, tensor<3x8xf32>
  %t = lathe.sigmoid %o : tensor<3x8xf32>
  %q = lathe.mul %t, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %z = lathe.mul %o, %q : tensor<3x8xf32>, tensor<3x8xf32>
  return %y, %z : tensor<3x8xf32>, tensor<3x8xf32>
}
// x * (1 + tanh(x * (a + b x^2))) / 2 and x * sigmoid(2 z)
// CHECK-LABEL: @gelu_tanh_factored
// CHECK-COUNT-2: lathe.glu {{.*}} activation gelu_tanh
// CHECK-NEXT: return
func.func @gelu_tanh_factored(%x: tensor<3x8xf32>, %u: tensor<3x8xf32>, %v: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %a = lathe.constant dense<0.797884561> : tensor<f32>
  %b = lathe.constant dense<0.0356774081> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<3x8xf32>, tensor<3x8xf32>
  %bq = lathe.mul %q, %b : tensor<3x8xf32>, tensor<f32>
  %abq = lathe.add %bq, %a : tensor<3x8xf32>, tensor<f32>
  %z = lathe.mul %x, %abq : tensor<3x8xf32>, tensor<3x8xf32>
  %t = lathe.tanh %z : tensor<3x8xf32>
  %o = lathe.add %t, %one : tensor<3x8xf32>, tensor<f32>
  %h = lathe.mul %x, %half : tensor<3x8xf32>, tensor<f32>
  %g = lathe.mul %h, %o : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.mul %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  %c = lathe.constant dense<0.044715> : tensor<f32>
  %twice = lathe.constant dense<1.59576912> : tensor<f32>
  %q2 = lathe.mul %v, %v : tensor<3x8xf32>, tensor<3x8xf32>
  %q3 = lathe.mul %q2, %v : tensor<3x8xf32>, tensor<3x8xf32>
  %cq = lathe.mul %q3, %c : tensor<3x8xf32>, tensor<f32>
  %xs = lathe.add %v, %cq : tensor<3x8xf32>, tensor<3x8xf32>
  %zz = lathe.mul %xs, %twice : tensor<3x8xf32>, tensor<f32>
  %s = lathe.sigmoid %zz : tensor<3x8xf32>
  %gs = lathe.mul %v, %s : tensor<3x8xf32>, tensor<3x8xf32>
  %w = lathe.mul %gs, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y, %w : tensor<3x8xf32>, tensor<3x8xf32>
}
// Half the argument: another curve.
// CHECK-LABEL: @sigmoid_of_the_single_argument
// CHECK-NOT: gelu_tanh
// CHECK: return
func.func @sigmoid_of_the_single_argument(%x: tensor<3x8xf32>, %u: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %c = lathe.constant dense<0.044715> : tensor<f32>
  %once = lathe.constant dense<0.797884561> : tensor<f32>
  %q2 = lathe.mul %x, %x : tensor<3x8xf32>, tensor<3x8xf32>
  %q3 = lathe.mul %q2, %x : tensor<3x8xf32>, tensor<3x8xf32>
  %cq = lathe.mul %q3, %c : tensor<3x8xf32>, tensor<f32>
  %xs = lathe.add %x, %cq : tensor<3x8xf32>, tensor<3x8xf32>
  %zz = lathe.mul %xs, %once : tensor<3x8xf32>, tensor<f32>
  %s = lathe.sigmoid %zz : tensor<3x8xf32>
  %gs = lathe.mul %x, %s : tensor<3x8xf32>, tensor<3x8xf32>
  %w = lathe.mul %gs, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %w : tensor<3x8xf32>
}
// rsqrt(mean(x^2) + eps)[:, None]
// CHECK-LABEL: @axis_behind_the_root
// CHECK-NEXT: lathe.rms_norm %arg0, %arg1 epsilon
func.func @axis_behind_the_root(%x: tensor<3x8xf32>, %g: tensor<8xf32>) -> tensor<3x8xf32> {
  %eps = lathe.constant dense<0.001> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<3x8xf32>, tensor<3x8xf32>
  %m = lathe.reduce_mean %q axes [1] : tensor<3x8xf32>
  %e = lathe.add %m, %eps : tensor<3xf32>, tensor<f32>
  %r = lathe.rsqrt %e : tensor<3xf32>
  %k = lathe.reshape %r to <3, 1> : tensor<3xf32>
  %n = lathe.mul %x, %k : tensor<3x8xf32>, tensor<3x1xf32>
  %y = lathe.mul %n, %g : tensor<3x8xf32>, tensor<8xf32>
  return %y : tensor<3x8xf32>
}
// x / max(|x|, eps): a row of zeros is zeros, which no epsilon under the root gives.
// CHECK-LABEL: @clamped_norm
// CHECK-NOT: lathe.rms_norm
// CHECK: return
func.func @clamped_norm(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %eps = lathe.constant dense<1.0e-12> : tensor<f32>
  %root = lathe.constant dense<2.82842708> : tensor<f32>
  %q = lathe.mul %x, %x : tensor<3x8xf32>, tensor<3x8xf32>
  %m = lathe.reduce_sum %q axes [1] keep_dims true : tensor<3x8xf32>
  %r = lathe.sqrt %m : tensor<3x1xf32>
  %c = lathe.max %r, %eps : tensor<3x1xf32>, tensor<f32>
  %n = lathe.div %x, %c : tensor<3x8xf32>, tensor<3x1xf32>
  %y = lathe.mul %n, %root : tensor<3x8xf32>, tensor<f32>
  return %y : tensor<3x8xf32>
}

// --- softmax in parts
// exp(log_softmax(x)), with the logarithm taken off last or added to the maximum.
// CHECK-LABEL: @exponential_of_log_softmax
// CHECK-NEXT: lathe.softmax %arg0 axis 1
// CHECK-NEXT: lathe.softmax %arg1 axis 1
// CHECK-NEXT: return
func.func @exponential_of_log_softmax(%x: tensor<4x8xf32>, %z: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %m = lathe.reduce_max %x axes [1] keep_dims true : tensor<4x8xf32>
  %d = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %e = lathe.exp %d : tensor<4x8xf32>
  %s = lathe.reduce_sum %e axes [1] keep_dims true : tensor<4x8xf32>
  %l = lathe.log %s : tensor<4x1xf32>
  %a = lathe.sub %d, %l : tensor<4x8xf32>, tensor<4x1xf32>
  %y = lathe.exp %a : tensor<4x8xf32>
  %m2 = lathe.reduce_max %z axes [1] keep_dims true : tensor<4x8xf32>
  %d2 = lathe.sub %z, %m2 : tensor<4x8xf32>, tensor<4x1xf32>
  %e2 = lathe.exp %d2 : tensor<4x8xf32>
  %s2 = lathe.reduce_sum %e2 axes [1] keep_dims true : tensor<4x8xf32>
  %l2 = lathe.log %s2 : tensor<4x1xf32>
  %t2 = lathe.add %m2, %l2 : tensor<4x1xf32>, tensor<4x1xf32>
  %a2 = lathe.sub %z, %t2 : tensor<4x8xf32>, tensor<4x1xf32>
  %w = lathe.exp %a2 : tensor<4x8xf32>
  return %y, %w : tensor<4x8xf32>, tensor<4x8xf32>
}
// The sum runs over another axis.
// CHECK-LABEL: @log_of_another_sum
// CHECK-NOT: lathe.softmax
// CHECK: return
func.func @log_of_another_sum(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %m = lathe.reduce_max %x axes [1] keep_dims true : tensor<8x8xf32>
  %d = lathe.sub %x, %m : tensor<8x8xf32>, tensor<8x1xf32>
  %e = lathe.exp %d : tensor<8x8xf32>
  %s = lathe.reduce_sum %e axes [0] keep_dims true : tensor<8x8xf32>
  %l = lathe.log %s : tensor<1x8xf32>
  %a = lathe.sub %d, %l : tensor<8x8xf32>, tensor<1x8xf32>
  %y = lathe.exp %a : tensor<8x8xf32>
  return %y : tensor<8x8xf32>
}
// The weights are divided behind the values.
// CHECK-LABEL: @divided_behind_the_product
// CHECK: lathe.attention %arg0, %arg1, %arg2 scale 5.000000e-01
// CHECK-NEXT: return
func.func @divided_behind_the_product(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %p = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %x = lathe.mul %p, %half : tensor<2x3x5xf32>, tensor<f32>
  %m = lathe.reduce_max %x axes [2] keep_dims true : tensor<2x3x5xf32>
  %d = lathe.sub %x, %m : tensor<2x3x5xf32>, tensor<2x3x1xf32>
  %e = lathe.exp %d : tensor<2x3x5xf32>
  %s = lathe.reduce_sum %e axes [2] keep_dims true : tensor<2x3x5xf32>
  %w = lathe.matmul %e, %v : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  %y = lathe.div %w, %s : tensor<2x3x4xf32>, tensor<2x3x1xf32>
  return %y : tensor<2x3x4xf32>
}
// The sum is not over the axis of the product.
// CHECK-LABEL: @divided_by_another_sum
// CHECK-NOT: lathe.softmax
// CHECK: return
func.func @divided_by_another_sum(%x: tensor<2x4x4xf32>, %v: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %m = lathe.reduce_max %x axes [1] keep_dims true : tensor<2x4x4xf32>
  %d = lathe.sub %x, %m : tensor<2x4x4xf32>, tensor<2x1x4xf32>
  %e = lathe.exp %d : tensor<2x4x4xf32>
  %s = lathe.reduce_sum %e axes [1] keep_dims true : tensor<2x4x4xf32>
  %w = lathe.matmul %e, %v : tensor<2x4x4xf32>, tensor<2x4x4xf32>
  %y = lathe.div %w, %s : tensor<2x4x4xf32>, tensor<2x1x4xf32>
  return %y : tensor<2x4x4xf32>
}

// --- attention of other ranks
// CHECK-LABEL: @matrices
// CHECK: %[[A:.*]] = lathe.attention %{{.*}}, %{{.*}}, %{{.*}} scale 5.000000e-01 causal top_left : tensor<1x5x4xf32>
// CHECK: lathe.reshape %[[A]] to <5, 4>
func.func @matrices(%q: tensor<5x4xf32>, %k: tensor<5x4xf32>, %v: tensor<5x4xf32>) -> tensor<5x4xf32> {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <5, 1> axis 0 dtype i64
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %c = lathe.compare le %j, %i : tensor<1x5xi64>, tensor<5x1xi64>
  %t = lathe.transpose %k [1, 0] : tensor<5x4xf32>
  %p = lathe.matmul %q, %t : tensor<5x4xf32>, tensor<4x5xf32>
  %x = lathe.mul %p, %half : tensor<5x5xf32>, tensor<f32>
  %l = lathe.select %c, %x, %lowest : tensor<5x5xi1>, tensor<5x5xf32>, tensor<f32>
  %w = lathe.softmax %l axis 1 : tensor<5x5xf32>
  %y = lathe.matmul %w, %v : tensor<5x5xf32>, tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}
// Positions of the queries are none of a batch.
// CHECK-LABEL: @matrices_with_positions
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @matrices_with_positions(%q: tensor<5x4xf32>, %k: tensor<5x4xf32>, %at: tensor<5xi64>) -> tensor<5x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <5, 1> axis 0 dtype i64
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %r = lathe.reshape %at to <5, 1> : tensor<5xi64>
  %n = lathe.add %i, %r : tensor<5x1xi64>, tensor<5x1xi64>
  %c = lathe.compare le %j, %n : tensor<1x5xi64>, tensor<5x1xi64>
  %t = lathe.transpose %k [1, 0] : tensor<5x4xf32>
  %p = lathe.matmul %q, %t : tensor<5x4xf32>, tensor<4x5xf32>
  %l = lathe.select %c, %p, %lowest : tensor<5x5xi1>, tensor<5x5xf32>, tensor<f32>
  %w = lathe.softmax %l axis 1 : tensor<5x5xf32>
  %y = lathe.matmul %w, %k : tensor<5x5xf32>, tensor<5x4xf32>
  return %y : tensor<5x4xf32>
}
// Batch and heads are one axis of the products, and two where the mask is added.
// CHECK-LABEL: @scores_taken_apart
// CHECK: %[[A:.*]] = lathe.attention %{{.*}}, %{{.*}}, %{{.*}} mask %arg3 {{.*}}: tensor<2x3x5x4xf32>
// CHECK: lathe.reshape %[[A]] to <6, 5, 4>
func.func @scores_taken_apart(%q: tensor<6x5x4xf32>, %k: tensor<6x7x4xf32>, %v: tensor<6x7x4xf32>, %m: tensor<2x1x5x7xf32>) -> tensor<6x5x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<6x7x4xf32>
  %p = lathe.matmul %q, %t : tensor<6x5x4xf32>, tensor<6x4x7xf32>
  %a = lathe.reshape %p to <2, 3, 5, 7> : tensor<6x5x7xf32>
  %x = lathe.add %a, %m : tensor<2x3x5x7xf32>, tensor<2x1x5x7xf32>
  %b = lathe.reshape %x to <6, 5, 7> : tensor<2x3x5x7xf32>
  %w = lathe.softmax %b axis 2 : tensor<6x5x7xf32>
  %y = lathe.matmul %w, %v : tensor<6x5x7xf32>, tensor<6x7x4xf32>
  return %y : tensor<6x5x4xf32>
}
// The values are those of one head, or the scores are no longer apart at the product.
// CHECK-LABEL: @scores_apart_from_values
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @scores_apart_from_values(%q: tensor<6x5x4xf32>, %k: tensor<6x7x4xf32>, %v: tensor<1x7x4xf32>, %m: tensor<2x1x5x7xf32>) -> tensor<6x5x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<6x7x4xf32>
  %p = lathe.matmul %q, %t : tensor<6x5x4xf32>, tensor<6x4x7xf32>
  %a = lathe.reshape %p to <2, 3, 5, 7> : tensor<6x5x7xf32>
  %x = lathe.add %a, %m : tensor<2x3x5x7xf32>, tensor<2x1x5x7xf32>
  %b = lathe.reshape %x to <6, 5, 7> : tensor<2x3x5x7xf32>
  %w = lathe.softmax %b axis 2 : tensor<6x5x7xf32>
  %y = lathe.matmul %w, %v : tensor<6x5x7xf32>, tensor<1x7x4xf32>
  return %y : tensor<6x5x4xf32>
}

// --- norms and products in other orders
// x f + (bias - mean f), as a batch norm applies its factor.
// CHECK-LABEL: @mean_behind_the_factor
// CHECK: lathe.layer_norm %arg0 gain %arg1 bias %arg2
// CHECK-NEXT: return
func.func @mean_behind_the_factor(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %eps = lathe.constant dense<0.001> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<4x8xf32>
  %d = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %s = lathe.mul %d, %d : tensor<4x8xf32>, tensor<4x8xf32>
  %v = lathe.reduce_mean %s axes [1] keep_dims true : tensor<4x8xf32>
  %e = lathe.add %v, %eps : tensor<4x1xf32>, tensor<f32>
  %r = lathe.rsqrt %e : tensor<4x1xf32>
  %f = lathe.mul %r, %g : tensor<4x1xf32>, tensor<8xf32>
  %p = lathe.mul %x, %f : tensor<4x8xf32>, tensor<4x8xf32>
  %q = lathe.mul %m, %f : tensor<4x1xf32>, tensor<4x8xf32>
  %o = lathe.sub %b, %q : tensor<8xf32>, tensor<4x8xf32>
  %y = lathe.add %p, %o : tensor<4x8xf32>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
// The mean is not taken off, but added.
// CHECK-LABEL: @mean_added_behind_the_factor
// CHECK-NOT: lathe.layer_norm
// CHECK: return
func.func @mean_added_behind_the_factor(%x: tensor<4x8xf32>, %g: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %eps = lathe.constant dense<0.001> : tensor<f32>
  %m = lathe.reduce_mean %x axes [1] keep_dims true : tensor<4x8xf32>
  %d = lathe.sub %x, %m : tensor<4x8xf32>, tensor<4x1xf32>
  %s = lathe.mul %d, %d : tensor<4x8xf32>, tensor<4x8xf32>
  %v = lathe.reduce_mean %s axes [1] keep_dims true : tensor<4x8xf32>
  %e = lathe.add %v, %eps : tensor<4x1xf32>, tensor<f32>
  %r = lathe.rsqrt %e : tensor<4x1xf32>
  %f = lathe.mul %r, %g : tensor<4x1xf32>, tensor<8xf32>
  %p = lathe.mul %x, %f : tensor<4x8xf32>, tensor<4x8xf32>
  %q = lathe.mul %m, %f : tensor<4x1xf32>, tensor<4x8xf32>
  %o = lathe.add %b, %q : tensor<8xf32>, tensor<4x8xf32>
  %y = lathe.add %p, %o : tensor<4x8xf32>, tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
// Heads and their elements have a bias each.
// CHECK-LABEL: @bias_of_parts
// CHECK: %[[B:.*]] = lathe.reshape %{{.*}} to <6> : tensor<2x3xf32>
// CHECK: %[[L:.*]] = lathe.linear %arg0, %{{.*}} bias %[[B]]
// CHECK: lathe.reshape %[[L]] to <5, 2, 3>
// CHECK-NEXT: return
func.func @bias_of_parts(%x: tensor<5x4xf32>) -> tensor<5x2x3xf32> {
  %w = lathe.weight "w" : tensor<4x6xf32>
  %b = lathe.weight "b" : tensor<2x3xf32>
  %p = lathe.matmul %x, %w : tensor<5x4xf32>, tensor<4x6xf32>
  %r = lathe.reshape %p to <5, 2, 3> : tensor<5x6xf32>
  %y = lathe.add %r, %b : tensor<5x2x3xf32>, tensor<2x3xf32>
  return %y : tensor<5x2x3xf32>
}
// One bias for all heads; rows are split, not columns.
// CHECK-LABEL: @bias_of_other_parts
// CHECK-NOT: bias
// CHECK: return
func.func @bias_of_other_parts(%x: tensor<6x4xf32>) -> (tensor<6x2x3xf32>, tensor<2x3x6xf32>) {
  %w = lathe.weight "w" : tensor<4x6xf32>
  %b = lathe.weight "vector" : tensor<3xf32>
  %c = lathe.weight "matrix" : tensor<3x6xf32>
  %p = lathe.matmul %x, %w : tensor<6x4xf32>, tensor<4x6xf32>
  %r = lathe.reshape %p to <6, 2, 3> : tensor<6x6xf32>
  %y = lathe.add %r, %b : tensor<6x2x3xf32>, tensor<3xf32>
  %e = lathe.exp %x : tensor<6x4xf32>
  %q = lathe.matmul %e, %w : tensor<6x4xf32>, tensor<4x6xf32>
  %t = lathe.reshape %q to <2, 3, 6> : tensor<6x6xf32>
  %z = lathe.add %t, %c : tensor<2x3x6xf32>, tensor<3x6xf32>
  return %y, %z : tensor<6x2x3xf32>, tensor<2x3x6xf32>
}

// --- neighbours that turn
// x * repeat(c, 2) + turned(x) * repeat(s, 2), each angle twice in a row.
// CHECK-LABEL: @rotate_every_two
// CHECK: lathe.rope interleaved %arg0, %arg1, %arg2
// CHECK-NEXT: return
func.func @rotate_every_two(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 2] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <3, 4> strides [1, 2] : tensor<3x8xf32>
  %n = lathe.neg %b : tensor<3x4xf32>
  %nc = lathe.reshape %n to <3, 4, 1> : tensor<3x4xf32>
  %ac = lathe.reshape %a to <3, 4, 1> : tensor<3x4xf32>
  %j = lathe.concat %nc, %ac axis 2 : tensor<3x4x1xf32>, tensor<3x4x1xf32>
  %r = lathe.reshape %j to <3, 8> : tensor<3x4x2xf32>
  %c1 = lathe.reshape %c to <3, 4, 1> : tensor<3x4xf32>
  %c2 = lathe.concat %c1, %c1 axis 2 : tensor<3x4x1xf32>, tensor<3x4x1xf32>
  %cc = lathe.reshape %c2 to <3, 8> : tensor<3x4x2xf32>
  %s1 = lathe.reshape %s to <3, 4, 1> : tensor<3x4xf32>
  %s2 = lathe.broadcast %s1 to <3, 4, 2> : tensor<3x4x1xf32>
  %ss = lathe.reshape %s2 to <3, 8> : tensor<3x4x2xf32>
  %p = lathe.mul %x, %cc : tensor<3x8xf32>, tensor<3x8xf32>
  %q = lathe.mul %r, %ss : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.add %p, %q : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// The tables hold the angles of halves.
// CHECK-LABEL: @rotate_every_two_by_halves
// CHECK-NOT: lathe.rope
// CHECK: return
func.func @rotate_every_two_by_halves(%x: tensor<3x8xf32>, %c: tensor<3x4xf32>, %s: tensor<3x4xf32>) -> tensor<3x8xf32> {
  %a = lathe.slice %x starts <0, 0> sizes <3, 4> strides [1, 2] : tensor<3x8xf32>
  %b = lathe.slice %x starts <0, 1> sizes <3, 4> strides [1, 2] : tensor<3x8xf32>
  %n = lathe.neg %b : tensor<3x4xf32>
  %nc = lathe.reshape %n to <3, 4, 1> : tensor<3x4xf32>
  %ac = lathe.reshape %a to <3, 4, 1> : tensor<3x4xf32>
  %j = lathe.concat %nc, %ac axis 2 : tensor<3x4x1xf32>, tensor<3x4x1xf32>
  %r = lathe.reshape %j to <3, 8> : tensor<3x4x2xf32>
  %cc = lathe.concat %c, %c axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %ss = lathe.concat %s, %s axis 1 : tensor<3x4xf32>, tensor<3x4xf32>
  %p = lathe.mul %x, %cc : tensor<3x8xf32>, tensor<3x8xf32>
  %q = lathe.mul %r, %ss : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.add %p, %q : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
// The weights are folded again in front of the values.
// CHECK-LABEL: @weights_folded
// CHECK: %[[A:.*]] = lathe.attention %{{.*}}, %{{.*}}, %{{.*}} mask %arg3 {{.*}}: tensor<2x3x5x4xf32>
// CHECK: lathe.reshape %[[A]] to <6, 5, 4>
func.func @weights_folded(%q: tensor<6x5x4xf32>, %k: tensor<6x7x4xf32>, %v: tensor<6x7x4xf32>, %m: tensor<2x1x5x7xf32>) -> tensor<6x5x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<6x7x4xf32>
  %p = lathe.matmul %q, %t : tensor<6x5x4xf32>, tensor<6x4x7xf32>
  %a = lathe.reshape %p to <2, 3, 5, 7> : tensor<6x5x7xf32>
  %x = lathe.add %a, %m : tensor<2x3x5x7xf32>, tensor<2x1x5x7xf32>
  %w = lathe.softmax %x axis 3 : tensor<2x3x5x7xf32>
  %b = lathe.reshape %w to <6, 5, 7> : tensor<2x3x5x7xf32>
  %y = lathe.matmul %b, %v : tensor<6x5x7xf32>, tensor<6x7x4xf32>
  return %y : tensor<6x5x4xf32>
}
// Queries and heads are exchanged in between.
// CHECK-LABEL: @weights_folded_otherwise
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @weights_folded_otherwise(%q: tensor<2x3x5x4xf32>, %k: tensor<2x3x5x4xf32>, %v: tensor<10x5x4xf32>) -> tensor<10x3x4xf32> {
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x5x4xf32>
  %p = lathe.matmul %q, %t : tensor<2x3x5x4xf32>, tensor<2x3x4x5xf32>
  %w = lathe.softmax %p axis 3 : tensor<2x3x5x5xf32>
  %b = lathe.reshape %w to <10, 3, 5> : tensor<2x3x5x5xf32>
  %y = lathe.matmul %b, %v : tensor<10x3x5xf32>, tensor<10x5x4xf32>
  return %y : tensor<10x3x4xf32>
}
// 0.044715 * x * x * x, as written from the left.
// CHECK-LABEL: @gelu_tanh_from_the_left
// CHECK: lathe.glu {{.*}} activation gelu_tanh
// CHECK-NEXT: return
func.func @gelu_tanh_from_the_left(%x: tensor<3x8xf32>, %u: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %half = lathe.constant dense<0.5> : tensor<f32>
  %one = lathe.constant dense<1.0> : tensor<f32>
  %share = lathe.constant dense<0.044715> : tensor<f32>
  %root = lathe.constant dense<0.797884561> : tensor<f32>
  %a = lathe.mul %x, %share : tensor<3x8xf32>, tensor<f32>
  %b = lathe.mul %a, %x : tensor<3x8xf32>, tensor<3x8xf32>
  %c = lathe.mul %b, %x : tensor<3x8xf32>, tensor<3x8xf32>
  %s = lathe.add %x, %c : tensor<3x8xf32>, tensor<3x8xf32>
  %z = lathe.mul %s, %root : tensor<3x8xf32>, tensor<f32>
  %t = lathe.tanh %z : tensor<3x8xf32>
  %o = lathe.add %t, %one : tensor<3x8xf32>, tensor<f32>
  %h = lathe.mul %x, %half : tensor<3x8xf32>, tensor<f32>
  %g = lathe.mul %h, %o : tensor<3x8xf32>, tensor<3x8xf32>
  %y = lathe.mul %g, %u : tensor<3x8xf32>, tensor<3x8xf32>
  return %y : tensor<3x8xf32>
}
