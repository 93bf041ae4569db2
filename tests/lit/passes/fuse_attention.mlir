// RUN: lathe-opt %s --lathe-fuse | FileCheck %s
// RUN: lathe-opt %s --lathe-canonicalize --lathe-cse --lathe-fuse | FileCheck %s

// Rank 3, scaled by division, no mask.
// CHECK-LABEL: @rank_3
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg2 scale 5.000000e-01 : tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x6xf32>
// CHECK-NEXT: return
func.func @rank_3(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %v: tensor<2x5x6xf32>) -> tensor<2x3x6xf32> {
  %two = lathe.constant dense<2.0> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %d = lathe.div %s, %two : tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %d axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %v : tensor<2x3x5xf32>, tensor<2x5x6xf32>
  return %y : tensor<2x3x6xf32>
}

// Scaled queries, a boolean mask, masked rows as zeros.
// CHECK-LABEL: @boolean_mask
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg1 mask %arg2 scale 2.500000e-01 masked_row zero : {{.*}} mask tensor<3x5xi1>
// CHECK-NEXT: return
func.func @boolean_mask(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %quarter = lathe.constant dense<0.25> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %qs = lathe.mul %q, %quarter : tensor<2x3x4xf32>, tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %qs, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %m, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %n = lathe.is_nan %p : tensor<2x3x5xf32>
  %z = lathe.select %n, %zero, %p : tensor<2x3x5xi1>, tensor<f32>, tensor<2x3x5xf32>
  %y = lathe.matmul %z, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// True means masked: the mask is negated.
// CHECK-LABEL: @inverted_mask
// CHECK-NEXT: %[[N:.*]] = lathe.logical_not %arg2
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg1 mask %[[N]] scale 1.000000e+00
// CHECK-NEXT: return
func.func @inverted_mask(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %m, %lowest, %s : tensor<3x5xi1>, tensor<f32>, tensor<2x3x5xf32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// CHECK-LABEL: @added_mask
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg1 mask %arg2 scale 2.500000e-01 : {{.*}} mask tensor<3x5xf32>
// CHECK-NEXT: return
func.func @added_mask(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xf32>) -> tensor<2x3x4xf32> {
  %quarter = lathe.constant dense<0.25> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %d = lathe.mul %s, %quarter : tensor<2x3x5xf32>, tensor<f32>
  %l = lathe.add %m, %d : tensor<3x5xf32>, tensor<2x3x5xf32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Causal, grouped heads, bf16 with the softmax in f32.
// CHECK-LABEL: @causal_grouped_bf16
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg2 scale 5.000000e-01 causal top_left : tensor<?x4x?x4xbf16, #lathe.dims<batch, 4, seq, 4>>, tensor<?x2x?x4xbf16, #lathe.dims<batch, 2, seq, 4>>
// CHECK-NEXT: return
func.func @causal_grouped_bf16(
    %q: tensor<?x4x?x4xbf16, #lathe.dims<batch, 4, seq, 4>>,
    %k: tensor<?x2x?x4xbf16, #lathe.dims<batch, 2, seq, 4>>,
    %v: tensor<?x2x?x4xbf16, #lathe.dims<batch, 2, seq, 4>>) -> tensor<?x4x?x4xbf16, #lathe.dims<batch, 4, seq, 4>> {
  %k5 = lathe.reshape %k to <batch, 2, 1, seq, 4> : tensor<?x2x?x4xbf16, #lathe.dims<batch, 2, seq, 4>>
  %kb = lathe.broadcast %k5 to <batch, 2, 2, seq, 4> : tensor<?x2x1x?x4xbf16, #lathe.dims<batch, 2, 1, seq, 4>>
  %kr = lathe.reshape %kb to <batch, 4, seq, 4> : tensor<?x2x2x?x4xbf16, #lathe.dims<batch, 2, 2, seq, 4>>
  %v5 = lathe.reshape %v to <batch, 2, 1, seq, 4> : tensor<?x2x?x4xbf16, #lathe.dims<batch, 2, seq, 4>>
  %vb = lathe.broadcast %v5 to <batch, 2, 2, seq, 4> : tensor<?x2x1x?x4xbf16, #lathe.dims<batch, 2, 1, seq, 4>>
  %vr = lathe.reshape %vb to <batch, 4, seq, 4> : tensor<?x2x2x?x4xbf16, #lathe.dims<batch, 2, 2, seq, 4>>
  %t = lathe.transpose %kr [0, 1, 3, 2] : tensor<?x4x?x4xbf16, #lathe.dims<batch, 4, seq, 4>>
  %s = lathe.matmul %q, %t : tensor<?x4x?x4xbf16, #lathe.dims<batch, 4, seq, 4>>, tensor<?x4x4x?xbf16, #lathe.dims<batch, 4, 4, seq>>
  %w = lathe.cast %s to f32 : tensor<?x4x?x?xbf16, #lathe.dims<batch, 4, seq, seq>>
  %two = lathe.constant dense<2.0> : tensor<f32>
  %d = lathe.div %w, %two : tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>, tensor<f32>
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <seq, 1> axis 0 dtype i64
  %j = lathe.iota <1, seq> axis 1 dtype i64
  %c = lathe.compare le %j, %i : tensor<1x?xi64, #lathe.dims<1, seq>>, tensor<?x1xi64, #lathe.dims<seq, 1>>
  %l = lathe.select %c, %d, %lowest : tensor<?x?xi1, #lathe.dims<seq, seq>>, tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>, tensor<f32>
  %top = lathe.reduce_max %l axes [3] keep_dims true : tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>
  %sh = lathe.sub %l, %top : tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>, tensor<?x4x?x1xf32, #lathe.dims<batch, 4, seq, 1>>
  %e = lathe.exp %sh : tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>
  %z = lathe.reduce_sum %e axes [3] keep_dims true : tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>
  %p = lathe.div %e, %z : tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>, tensor<?x4x?x1xf32, #lathe.dims<batch, 4, seq, 1>>
  %h = lathe.cast %p to bf16 : tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>
  %y = lathe.matmul %h, %vr : tensor<?x4x?x?xbf16, #lathe.dims<batch, 4, seq, seq>>, tensor<?x4x?x4xbf16, #lathe.dims<batch, 4, seq, 4>>
  return %y : tensor<?x4x?x4xbf16, #lathe.dims<batch, 4, seq, 4>>
}

// j > i is masked: the same causal mask, and one added as 0 or -inf with a boolean mask beside it.
// CHECK-LABEL: @causal_spellings
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal top_left
// CHECK: lathe.attention %{{.*}}, %arg1, %arg1 mask %arg2 scale 1.000000e+00 causal top_left
// CHECK-NEXT: return
func.func @causal_spellings(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %one = lathe.constant dense<1> : tensor<i64>
  %i = lathe.iota <3> axis 0 dtype i64
  %j = lathe.iota <5> axis 0 dtype i64
  %column = lathe.reshape %i to <3, 1> : tensor<3xi64>
  %hidden = lathe.compare gt %j, %column : tensor<5xi64>, tensor<3x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %hidden, %lowest, %s : tensor<3x5xi1>, tensor<f32>, tensor<2x3x5xf32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>

  %next = lathe.add %column, %one : tensor<3x1xi64>, tensor<i64>
  %seen = lathe.compare lt %j, %next : tensor<5xi64>, tensor<3x1xi64>
  %both = lathe.logical_and %m, %seen : tensor<3x5xi1>, tensor<3x5xi1>
  %bias = lathe.select %both, %zero, %lowest : tensor<3x5xi1>, tensor<f32>, tensor<f32>
  %t2 = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %q2 = lathe.mul %q, %q : tensor<2x3x4xf32>, tensor<2x3x4xf32>
  %s2 = lathe.matmul %q2, %t2 : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l2 = lathe.add %s2, %bias : tensor<2x3x5xf32>, tensor<3x5xf32>
  %p2 = lathe.softmax %l2 axis 2 : tensor<2x3x5xf32>
  %y2 = lathe.matmul %p2, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y, %y2 : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// Keys of a cache: visible up to the position of each sequence.
// CHECK-LABEL: @positions
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg1 positions %arg2 scale 1.000000e+00 causal positions : {{.*}} positions tensor<2xi32>
// CHECK-NEXT: return
func.func @positions(%q: tensor<2x4x1x8xf32>, %k: tensor<2x4x?x8xf32, #lathe.dims<2, 4, cache, 8>>, %first: tensor<2xi32>) -> tensor<2x4x1x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %f = lathe.cast %first to i64 : tensor<2xi32>
  %b = lathe.reshape %f to <2, 1, 1, 1> : tensor<2xi64>
  %i = lathe.iota <1, 1> axis 0 dtype i64
  %r = lathe.add %b, %i : tensor<2x1x1x1xi64>, tensor<1x1xi64>
  %j = lathe.iota <1, cache> axis 1 dtype i64
  %c = lathe.compare le %j, %r : tensor<1x?xi64, #lathe.dims<1, cache>>, tensor<2x1x1x1xi64>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x4x?x8xf32, #lathe.dims<2, 4, cache, 8>>
  %s = lathe.matmul %q, %t : tensor<2x4x1x8xf32>, tensor<2x4x8x?xf32, #lathe.dims<2, 4, 8, cache>>
  %l = lathe.select %c, %s, %lowest : tensor<2x1x1x?xi1, #lathe.dims<2, 1, 1, cache>>, tensor<2x4x1x?xf32, #lathe.dims<2, 4, 1, cache>>, tensor<f32>
  %p = lathe.softmax %l axis 3 : tensor<2x4x1x?xf32, #lathe.dims<2, 4, 1, cache>>
  %y = lathe.matmul %p, %k : tensor<2x4x1x?xf32, #lathe.dims<2, 4, 1, cache>>, tensor<2x4x?x8xf32, #lathe.dims<2, 4, cache, 8>>
  return %y : tensor<2x4x1x8xf32>
}

// One permutation for the heads and the swap: the heads' part stays.
// CHECK-LABEL: @merged_transpose
// CHECK-NEXT: %[[K:.*]] = lathe.transpose %arg1 [0, 2, 1, 3]
// CHECK-NEXT: lathe.attention %arg0, %[[K]], %arg2
func.func @merged_transpose(%q: tensor<2x3x5x4xf32>, %k: tensor<2x5x3x4xf32>, %v: tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32> {
  %t = lathe.transpose %k [0, 2, 3, 1] : tensor<2x5x3x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x5x4xf32>, tensor<2x3x4x5xf32>
  %p = lathe.softmax %s axis 3 : tensor<2x3x5x5xf32>
  %y = lathe.matmul %p, %v : tensor<2x3x5x5xf32>, tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// A row of nothing but a finite fill has equal weights.
// CHECK-LABEL: @finite_fill
// CHECK: lathe.attention {{.*}} mask {{.*}} masked_row uniform
func.func @finite_fill(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %low = lathe.constant dense<-1.0e9> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %m, %s, %low : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// Near misses: the mask's value, the softmax's axis, a strict comparison, a scaled bias, a user of
// the scores, k that is not transposed.
// CHECK-LABEL: @fill_like_a_score
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @fill_like_a_score(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>) -> tensor<2x3x4xf32> {
  %low = lathe.constant dense<-1.0e4> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %m, %s, %low : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// CHECK-LABEL: @other_axis
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @other_axis(%q: tensor<2x5x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x5x4xf32>, tensor<2x4x5xf32>
  %p = lathe.softmax %s axis 1 : tensor<2x5x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x5x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}
// CHECK-LABEL: @strictly_causal
// CHECK: %[[C:.*]] = lathe.compare lt
// CHECK: lathe.attention %arg0, %arg1, %arg1 mask %[[C]] scale 1.000000e+00 : {{.*}} mask tensor<5x5xi1>
func.func @strictly_causal(%q: tensor<2x5x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x5x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <5, 1> axis 0 dtype i64
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %c = lathe.compare lt %j, %i : tensor<1x5xi64>, tensor<5x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x5x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<5x5xi1>, tensor<2x5x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x5x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x5x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x5x4xf32>
}
// CHECK-LABEL: @scaled_bias
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @scaled_bias(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xf32>) -> tensor<2x3x4xf32> {
  %quarter = lathe.constant dense<0.25> : tensor<f32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.add %s, %m : tensor<2x3x5xf32>, tensor<3x5xf32>
  %d = lathe.mul %l, %quarter : tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %d axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}
// CHECK-LABEL: @scores_are_used
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @scores_are_used(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x5xf32>) {
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %p = lathe.softmax %s axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y, %s : tensor<2x3x4xf32>, tensor<2x3x5xf32>
}
// CHECK-LABEL: @not_transposed
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @not_transposed(%q: tensor<2x4x4xf32>, %k: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %s = lathe.matmul %q, %k : tensor<2x4x4xf32>, tensor<2x4x4xf32>
  %p = lathe.softmax %s axis 2 : tensor<2x4x4xf32>
  %y = lathe.matmul %p, %k : tensor<2x4x4xf32>, tensor<2x4x4xf32>
  return %y : tensor<2x4x4xf32>
}

// The second of three heads has keys and values of its own: they are no copies of one.
// CHECK-LABEL: @another_head_between_copies
// CHECK-COUNT-2: lathe.concat
// CHECK: lathe.attention
func.func @another_head_between_copies(
    %q: tensor<2x3x5x4xf32>, %k: tensor<2x1x1x5x4xf32>, %l: tensor<2x1x1x5x4xf32>,
    %v: tensor<2x1x1x5x4xf32>, %w: tensor<2x1x1x5x4xf32>) -> tensor<2x3x5x4xf32> {
  %kc = lathe.concat %k, %l, %k axis 2 : tensor<2x1x1x5x4xf32>, tensor<2x1x1x5x4xf32>, tensor<2x1x1x5x4xf32>
  %kr = lathe.reshape %kc to <2, 3, 5, 4> : tensor<2x1x3x5x4xf32>
  %vc = lathe.concat %v, %w, %v axis 2 : tensor<2x1x1x5x4xf32>, tensor<2x1x1x5x4xf32>, tensor<2x1x1x5x4xf32>
  %vr = lathe.reshape %vc to <2, 3, 5, 4> : tensor<2x1x3x5x4xf32>
  %t = lathe.transpose %kr [0, 1, 3, 2] : tensor<2x3x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x5x4xf32>, tensor<2x3x4x5xf32>
  %p = lathe.softmax %s axis 3 : tensor<2x3x5x5xf32>
  %y = lathe.matmul %p, %vr : tensor<2x3x5x5xf32>, tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// Of the keys up to its own a query sees the last three.
// CHECK-LABEL: @window
// CHECK-NEXT: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal top_left window 3
// CHECK-NEXT: return
func.func @window(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %three = lathe.constant dense<3> : tensor<i64>
  %i = lathe.iota <4, 1> axis 0 dtype i64
  %j = lathe.iota <1, 4> axis 1 dtype i64
  %low = lathe.sub %i, %three : tensor<4x1xi64>, tensor<i64>
  %a = lathe.compare le %j, %i : tensor<1x4xi64>, tensor<4x1xi64>
  %b = lathe.compare gt %j, %low : tensor<1x4xi64>, tensor<4x1xi64>
  %c = lathe.logical_and %a, %b : tensor<4x4xi1>, tensor<4x4xi1>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x3x4x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4x8xf32>, tensor<2x3x8x4xf32>
  %l = lathe.select %c, %s, %lowest : tensor<4x4xi1>, tensor<2x3x4x4xf32>, tensor<f32>
  %w = lathe.softmax %l axis 3 : tensor<2x3x4x4xf32>
  %y = lathe.matmul %w, %k : tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>
  return %y : tensor<2x3x4x8xf32>
}

// A learnt bias, as T5's, is lost where the fill is added; a mask of zeros is none.
// CHECK-LABEL: @bias_under_added_fill
// CHECK: lathe.attention %arg0, %arg1, %arg1 mask {{.*}} masked_row uniform
// CHECK: lathe.attention %arg4, %arg1, %arg1 scale 1.000000e+00 : tensor
func.func @bias_under_added_fill(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x5x8xf32>, %ids: tensor<3x5xi64>, %m: tensor<2x1x3x5xi1>, %other: tensor<2x4x3x8xf32>) -> (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) {
  %table = lathe.weight "bias" : tensor<32x4xf32>
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %lowest = lathe.constant dense<-3.40282347e+38> : tensor<f32>
  %rows = lathe.gather %table, %ids axis 0 : tensor<32x4xf32>, tensor<3x5xi64>
  %turned = lathe.transpose %rows [2, 0, 1] : tensor<3x5x4xf32>
  %bias = lathe.reshape %turned to <1, 4, 3, 5> : tensor<4x3x5xf32>
  %fill = lathe.select %m, %zero, %lowest : tensor<2x1x3x5xi1>, tensor<f32>, tensor<f32>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x4x5x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x4x3x8xf32>, tensor<2x4x8x5xf32>
  %a = lathe.add %s, %bias : tensor<2x4x3x5xf32>, tensor<1x4x3x5xf32>
  %b = lathe.add %a, %fill : tensor<2x4x3x5xf32>, tensor<2x1x3x5xf32>
  %p = lathe.softmax %b axis 3 : tensor<2x4x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x4x3x5xf32>, tensor<2x4x5x8xf32>
  %none = lathe.broadcast %zero to <2, 1, 3, 5> : tensor<f32>
  %s2 = lathe.matmul %other, %t : tensor<2x4x3x8xf32>, tensor<2x4x8x5xf32>
  %c = lathe.add %s2, %none : tensor<2x4x3x5xf32>, tensor<2x1x3x5xf32>
  %p2 = lathe.softmax %c axis 3 : tensor<2x4x3x5xf32>
  %z = lathe.matmul %p2, %k : tensor<2x4x3x5xf32>, tensor<2x4x5x8xf32>
  return %y, %z : tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>
}

// A mask of the caller's may hold -inf, which lies below the fill.
// CHECK-LABEL: @mask_under_added_fill
// CHECK-NOT: lathe.attention
// CHECK: return
func.func @mask_under_added_fill(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x5x8xf32>, %bias: tensor<1x4x3x5xf32>, %m: tensor<2x1x3x5xi1>) -> tensor<2x4x3x8xf32> {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %lowest = lathe.constant dense<-3.40282347e+38> : tensor<f32>
  %fill = lathe.select %m, %zero, %lowest : tensor<2x1x3x5xi1>, tensor<f32>, tensor<f32>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x4x5x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x4x3x8xf32>, tensor<2x4x8x5xf32>
  %a = lathe.add %s, %bias : tensor<2x4x3x5xf32>, tensor<1x4x3x5xf32>
  %b = lathe.add %a, %fill : tensor<2x4x3x5xf32>, tensor<2x1x3x5xf32>
  %p = lathe.softmax %b axis 3 : tensor<2x4x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x4x3x5xf32>, tensor<2x4x5x8xf32>
  return %y : tensor<2x4x3x8xf32>
}

// ALiBi below a finite fill: arithmetic on ramps hides no key, so the fill's rows stay uniform.
// CHECK-LABEL: @alibi_under_fill
// CHECK: lathe.attention {{.*}} mask {{.*}} causal top_left masked_row uniform
// CHECK-NOT: lathe.softmax
!bq = tensor<?x4x?x8xf32, #lathe.dims<batch, 4, seq, 8>>
!bs = tensor<?x4x?x?xf32, #lathe.dims<batch, 4, seq, seq>>
func.func @alibi_under_fill(%q: !bq, %k: !bq, %v: !bq) -> !bq {
  %fill = lathe.constant dense<-3.40282347E+38> : tensor<f32>
  %ramp = lathe.iota <seq> axis 0 dtype i64
  %rows = lathe.reshape %ramp to <1, 1, seq, 1> : tensor<?xi64, #lathe.dims<seq>>
  %keys = lathe.reshape %ramp to <1, 1, 1, seq> : tensor<?xi64, #lathe.dims<seq>>
  %seen = lathe.compare le %keys, %rows : tensor<1x1x1x?xi64, #lathe.dims<1, 1, 1, seq>>, tensor<1x1x?x1xi64, #lathe.dims<1, 1, seq, 1>>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %head = lathe.iota <4> axis 0 dtype f32
  %power = lathe.pow %half, %head : tensor<f32>, tensor<4xf32>
  %slope = lathe.reshape %power to <4, 1, 1> : tensor<4xf32>
  %far = lathe.cast %ramp to f32 : tensor<?xi64, #lathe.dims<seq>>
  %bias = lathe.mul %slope, %far : tensor<4x1x1xf32>, tensor<?xf32, #lathe.dims<seq>>
  %t = lathe.transpose %k [0, 1, 3, 2] : !bq
  %s = lathe.matmul %q, %t : !bq, tensor<?x4x8x?xf32, #lathe.dims<batch, 4, 8, seq>>
  %l = lathe.add %s, %bias : !bs, tensor<4x1x?xf32, #lathe.dims<4, 1, seq>>
  %a = lathe.select %seen, %l, %fill : tensor<1x1x?x?xi1, #lathe.dims<1, 1, seq, seq>>, !bs, tensor<f32>
  %p = lathe.softmax %a axis 3 : !bs
  %y = lathe.matmul %p, %v : !bs, !bq
  return %y : !bq
}

// The same with batch and heads as one axis of the products, and the fill added: BLOOM.
// CHECK-LABEL: @alibi_of_joined_heads
// CHECK: lathe.attention {{.*}} mask {{.*}} causal top_left masked_row uniform
// CHECK-NOT: lathe.softmax
!jq = tensor<?x?x8xf32, #lathe.dims<4*batch, seq, 8>>
!js = tensor<?x?x?xf32, #lathe.dims<4*batch, seq, seq>>
func.func @alibi_of_joined_heads(%q: !jq, %k: !jq, %v: !jq) -> !jq {
  %zero = lathe.constant dense<0.0> : tensor<f32>
  %fill = lathe.constant dense<-3.40282347E+38> : tensor<f32>
  %ramp = lathe.iota <seq> axis 0 dtype i64
  %rows = lathe.reshape %ramp to <1, 1, seq, 1> : tensor<?xi64, #lathe.dims<seq>>
  %keys = lathe.reshape %ramp to <1, 1, 1, seq> : tensor<?xi64, #lathe.dims<seq>>
  %seen = lathe.compare le %keys, %rows : tensor<1x1x1x?xi64, #lathe.dims<1, 1, 1, seq>>, tensor<1x1x?x1xi64, #lathe.dims<1, 1, seq, 1>>
  %causal = lathe.select %seen, %zero, %fill : tensor<1x1x?x?xi1, #lathe.dims<1, 1, seq, seq>>, tensor<f32>, tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %head = lathe.iota <4> axis 0 dtype f32
  %power = lathe.pow %half, %head : tensor<f32>, tensor<4xf32>
  %slope = lathe.reshape %power to <1, 4, 1, 1> : tensor<4xf32>
  %far = lathe.cast %ramp to f32 : tensor<?xi64, #lathe.dims<seq>>
  %one = lathe.mul %slope, %far : tensor<1x4x1x1xf32>, tensor<?xf32, #lathe.dims<seq>>
  %all = lathe.broadcast %one to <batch, 4, 1, seq> : tensor<1x4x1x?xf32, #lathe.dims<1, 4, 1, seq>>
  %bias = lathe.reshape %all to <4*batch, 1, seq> : tensor<?x4x1x?xf32, #lathe.dims<batch, 4, 1, seq>>
  %t = lathe.transpose %k [0, 2, 1] : !jq
  %s = lathe.matmul %q, %t : !jq, tensor<?x8x?xf32, #lathe.dims<4*batch, 8, seq>>
  %l = lathe.add %s, %bias : !js, tensor<?x1x?xf32, #lathe.dims<4*batch, 1, seq>>
  %apart = lathe.reshape %l to <batch, 4, seq, seq> : !js
  %a = lathe.add %apart, %causal : !bs, tensor<1x1x?x?xf32, #lathe.dims<1, 1, seq, seq>>
  %p = lathe.softmax %a axis 3 : !bs
  %joined = lathe.reshape %p to <4*batch, seq, seq> : !bs
  %y = lathe.matmul %joined, %v : !js, !jq
  return %y : !jq
}

// What else a recorded attention says stays when its mask is read: the cap, the policy of hidden
// rows, and a mask that is no ramp.
// CHECK-LABEL: @recorded_with_ramps
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 2.500000e-01 softcap 5.000000e+01 causal top_left masked_row zero
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 7.500000e-01 softcap 3.000000e+01 causal bottom_right window 2 masked_row uniform
// CHECK: lathe.attention %arg0, %arg1, %arg1 mask %arg2 scale 2.500000e-01 causal top_left masked_row zero
// CHECK-NEXT: return
func.func @recorded_with_ramps(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<1x5xi1>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %i = lathe.iota <3, 1> axis 0 dtype i64
  %j = lathe.iota <1, 5> axis 1 dtype i64
  %two = lathe.constant dense<2> : tensor<i64>
  %c = lathe.compare le %j, %i : tensor<1x5xi64>, tensor<3x1xi64>
  %0 = lathe.attention %q, %k, %k mask %c scale 0.25 softcap 50.0 masked_row zero : tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32> mask tensor<3x5xi1>
  %e = lathe.add %i, %two : tensor<3x1xi64>, tensor<i64>
  %f = lathe.compare le %j, %e : tensor<1x5xi64>, tensor<3x1xi64>
  %g = lathe.compare gt %j, %i : tensor<1x5xi64>, tensor<3x1xi64>
  %h = lathe.logical_and %f, %g : tensor<3x5xi1>, tensor<3x5xi1>
  %1 = lathe.attention %q, %k, %k mask %h scale 0.75 softcap 30.0 masked_row uniform : tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32> mask tensor<3x5xi1>
  %n = lathe.logical_and %c, %m : tensor<3x5xi1>, tensor<1x5xi1>
  %2 = lathe.attention %q, %k, %k mask %n scale 0.25 masked_row zero : tensor<2x3x4xf32>, tensor<2x5x4xf32>, tensor<2x5x4xf32> mask tensor<3x5xi1>
  return %0, %1, %2 : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// A ramp of four rows of three, read as three of four, counts neither.
// CHECK-LABEL: @ramp_of_another_shape
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @ramp_of_another_shape(%q: tensor<2x3x4xf32>, %k: tensor<2x4x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <4, 3> axis 0 dtype i64
  %r = lathe.reshape %i to <3, 4> : tensor<4x3xi64>
  %j = lathe.iota <4> axis 0 dtype i64
  %c = lathe.compare le %j, %r : tensor<4xi64>, tensor<3x4xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x4x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x4xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x4xi1>, tensor<2x3x4xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x4xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x4xf32>, tensor<2x4x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Up to half a step below the query its own key is hidden: a number that is not whole is no offset.
// CHECK-LABEL: @half_a_step_below
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @half_a_step_below(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %half = lathe.constant dense<-0.5> : tensor<f32>
  %i = lathe.iota <3, 1> axis 0 dtype f32
  %h = lathe.add %i, %half : tensor<3x1xf32>, tensor<f32>
  %j = lathe.iota <5> axis 0 dtype f32
  %c = lathe.compare le %j, %h : tensor<5xf32>, tensor<3x1xf32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// The positions of some sequences of many are not those that the keys' own are counted from.
// CHECK-LABEL: @some_positions
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @some_positions(%q: tensor<2x4x1x8xf32>, %k: tensor<2x4x6x8xf32>, %first: tensor<4xi64>) -> tensor<2x4x1x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %f = lathe.slice %first starts <1> sizes <2> strides [1] : tensor<4xi64>
  %b = lathe.reshape %f to <2, 1, 1, 1> : tensor<2xi64>
  %j = lathe.iota <1, 6> axis 1 dtype i64
  %c = lathe.compare le %j, %b : tensor<1x6xi64>, tensor<2x1x1x1xi64>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x4x6x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x4x1x8xf32>, tensor<2x4x8x6xf32>
  %l = lathe.select %c, %s, %lowest : tensor<2x1x1x6xi1>, tensor<2x4x1x6xf32>, tensor<f32>
  %p = lathe.softmax %l axis 3 : tensor<2x4x1x6xf32>
  %y = lathe.matmul %p, %k : tensor<2x4x1x6xf32>, tensor<2x4x6x8xf32>
  return %y : tensor<2x4x1x8xf32>
}

// The sum of two vectors is no position that one of them holds.
// CHECK-LABEL: @sum_of_positions
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @sum_of_positions(%q: tensor<2x4x1x8xf32>, %k: tensor<2x4x6x8xf32>, %first: tensor<2xi64>, %second: tensor<2xi64>) -> tensor<2x4x1x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %a = lathe.reshape %first to <2, 1, 1, 1> : tensor<2xi64>
  %d = lathe.reshape %second to <2, 1, 1, 1> : tensor<2xi64>
  %b = lathe.add %a, %d : tensor<2x1x1x1xi64>, tensor<2x1x1x1xi64>
  %j = lathe.iota <1, 6> axis 1 dtype i64
  %c = lathe.compare le %j, %b : tensor<1x6xi64>, tensor<2x1x1x1xi64>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x4x6x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x4x1x8xf32>, tensor<2x4x8x6xf32>
  %l = lathe.select %c, %s, %lowest : tensor<2x1x1x6xi1>, tensor<2x4x1x6xf32>, tensor<f32>
  %p = lathe.softmax %l axis 3 : tensor<2x4x1x6xf32>
  %y = lathe.matmul %p, %k : tensor<2x4x1x6xf32>, tensor<2x4x6x8xf32>
  return %y : tensor<2x4x1x8xf32>
}

// A narrower type wraps positions that are too large for it.
// CHECK-LABEL: @narrowed_positions
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @narrowed_positions(%q: tensor<2x4x1x8xf32>, %k: tensor<2x4x6x8xf32>, %first: tensor<2xi64>) -> tensor<2x4x1x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %f = lathe.cast %first to i32 : tensor<2xi64>
  %b = lathe.reshape %f to <2, 1, 1, 1> : tensor<2xi32>
  %j = lathe.iota <1, 6> axis 1 dtype i32
  %c = lathe.compare le %j, %b : tensor<1x6xi32>, tensor<2x1x1x1xi32>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x4x6x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x4x1x8xf32>, tensor<2x4x8x6xf32>
  %l = lathe.select %c, %s, %lowest : tensor<2x1x1x6xi1>, tensor<2x4x1x6xf32>, tensor<f32>
  %p = lathe.softmax %l axis 3 : tensor<2x4x1x6xf32>
  %y = lathe.matmul %p, %k : tensor<2x4x1x6xf32>, tensor<2x4x6x8xf32>
  return %y : tensor<2x4x1x8xf32>
}

// Twice the places of keys and queries: the same mask, of which no bound is read.
// CHECK-LABEL: @doubled_ramps
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @doubled_ramps(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <3, 1> axis 0 dtype i64
  %ii = lathe.add %i, %i : tensor<3x1xi64>, tensor<3x1xi64>
  %j = lathe.iota <5> axis 0 dtype i64
  %jj = lathe.add %j, %j : tensor<5xi64>, tensor<5xi64>
  %c = lathe.compare le %jj, %ii : tensor<5xi64>, tensor<3x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Ramps of a table that is turned.
// CHECK-LABEL: @turned_ramps
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal top_left
// CHECK-NEXT: return
func.func @turned_ramps(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <1, 3> axis 1 dtype i64
  %u = lathe.transpose %i [1, 0] : tensor<1x3xi64>
  %j = lathe.iota <5, 3> axis 0 dtype i64
  %v = lathe.transpose %j [1, 0] : tensor<5x3xi64>
  %c = lathe.compare le %v, %u : tensor<3x5xi64>, tensor<3x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Queries that are the last of all positions.
// CHECK-LABEL: @part_of_a_ramp
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal bottom_right
// CHECK-NEXT: return
func.func @part_of_a_ramp(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <5, 1> axis 0 dtype i64
  %u = lathe.slice %i starts <2, 0> sizes <3, 1> strides [1, 1] : tensor<5x1xi64>
  %j = lathe.iota <5> axis 0 dtype i64
  %c = lathe.compare le %j, %u : tensor<5xi64>, tensor<3x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Every other position is no ramp.
// CHECK-LABEL: @ramp_with_gaps
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @ramp_with_gaps(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <6, 1> axis 0 dtype i64
  %u = lathe.slice %i starts <0, 0> sizes <3, 1> strides [2, 1] : tensor<6x1xi64>
  %j = lathe.iota <5> axis 0 dtype i64
  %c = lathe.compare le %j, %u : tensor<5xi64>, tensor<3x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Ramps are as long as their axes: a narrower type holds them.
// CHECK-LABEL: @narrowed_ramps
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal top_left
// CHECK-NEXT: return
func.func @narrowed_ramps(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <3, 1> axis 0 dtype i64
  %u = lathe.cast %i to i32 : tensor<3x1xi64>
  %j = lathe.iota <5> axis 0 dtype i64
  %v = lathe.cast %j to i32 : tensor<5xi64>
  %c = lathe.compare le %v, %u : tensor<5xi32>, tensor<3x1xi32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// Sizes that are computed as sums of as many ones.
// CHECK-LABEL: @sizes_as_sums_of_ones
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal bottom_right
// CHECK-NEXT: return
func.func @sizes_as_sums_of_ones(%q: tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>, %k: tensor<2x?x4xf32, #lathe.dims<2, cache, 4>>) -> tensor<2x?x4xf32, #lathe.dims<2, seq, 4>> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0> : tensor<i64>
  %one = lathe.constant dense<1> : tensor<i64>
  %si = lathe.iota <seq> axis 0 dtype i64
  %sz = lathe.mul %si, %zero : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %so = lathe.add %sz, %one : tensor<?xi64, #lathe.dims<seq>>, tensor<i64>
  %s = lathe.reduce_sum %so axes [0] keep_dims false : tensor<?xi64, #lathe.dims<seq>>
  %ti = lathe.iota <cache> axis 0 dtype i64
  %tz = lathe.mul %ti, %zero : tensor<?xi64, #lathe.dims<cache>>, tensor<i64>
  %to = lathe.add %tz, %one : tensor<?xi64, #lathe.dims<cache>>, tensor<i64>
  %t = lathe.reduce_sum %to axes [0] keep_dims false : tensor<?xi64, #lathe.dims<cache>>
  %d = lathe.sub %t, %s : tensor<i64>, tensor<i64>
  %i = lathe.iota <seq, 1> axis 0 dtype i64
  %r = lathe.add %i, %d : tensor<?x1xi64, #lathe.dims<seq, 1>>, tensor<i64>
  %j = lathe.iota <cache> axis 0 dtype i64
  %c = lathe.compare le %j, %r : tensor<?xi64, #lathe.dims<cache>>, tensor<?x1xi64, #lathe.dims<seq, 1>>
  %u = lathe.transpose %k [0, 2, 1] : tensor<2x?x4xf32, #lathe.dims<2, cache, 4>>
  %p = lathe.matmul %q, %u : tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>, tensor<2x4x?xf32, #lathe.dims<2, 4, cache>>
  %l = lathe.select %c, %p, %lowest : tensor<?x?xi1, #lathe.dims<seq, cache>>, tensor<2x?x?xf32, #lathe.dims<2, seq, cache>>, tensor<f32>
  %w = lathe.softmax %l axis 2 : tensor<2x?x?xf32, #lathe.dims<2, seq, cache>>
  %y = lathe.matmul %w, %k : tensor<2x?x?xf32, #lathe.dims<2, seq, cache>>, tensor<2x?x4xf32, #lathe.dims<2, cache, 4>>
  return %y : tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>
}

// Sizes that are the last elements of ramps, which count from 0.
// CHECK-LABEL: @sizes_as_last_elements
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal bottom_right
// CHECK-NEXT: return
func.func @sizes_as_last_elements(%q: tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>, %k: tensor<2x?x4xf32, #lathe.dims<2, cache, 4>>) -> tensor<2x?x4xf32, #lathe.dims<2, seq, 4>> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0> : tensor<i64>
  %one = lathe.constant dense<1> : tensor<i64>
  %si = lathe.iota <seq> axis 0 dtype i64
  %s = lathe.reduce_max %si axes [0] keep_dims false : tensor<?xi64, #lathe.dims<seq>>
  %ti = lathe.iota <cache> axis 0 dtype i64
  %t = lathe.reduce_max %ti axes [0] keep_dims false : tensor<?xi64, #lathe.dims<cache>>
  %d = lathe.sub %t, %s : tensor<i64>, tensor<i64>
  %i = lathe.iota <seq, 1> axis 0 dtype i64
  %r = lathe.add %i, %d : tensor<?x1xi64, #lathe.dims<seq, 1>>, tensor<i64>
  %j = lathe.iota <cache> axis 0 dtype i64
  %c = lathe.compare le %j, %r : tensor<?xi64, #lathe.dims<cache>>, tensor<?x1xi64, #lathe.dims<seq, 1>>
  %u = lathe.transpose %k [0, 2, 1] : tensor<2x?x4xf32, #lathe.dims<2, cache, 4>>
  %p = lathe.matmul %q, %u : tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>, tensor<2x4x?xf32, #lathe.dims<2, 4, cache>>
  %l = lathe.select %c, %p, %lowest : tensor<?x?xi1, #lathe.dims<seq, cache>>, tensor<2x?x?xf32, #lathe.dims<2, seq, cache>>, tensor<f32>
  %w = lathe.softmax %l axis 2 : tensor<2x?x?xf32, #lathe.dims<2, seq, cache>>
  %y = lathe.matmul %w, %k : tensor<2x?x?xf32, #lathe.dims<2, seq, cache>>, tensor<2x?x4xf32, #lathe.dims<2, cache, 4>>
  return %y : tensor<2x?x4xf32, #lathe.dims<2, seq, 4>>
}

// A computed number as a part of a table that is the same in each place.
// CHECK-LABEL: @offset_from_a_table
// CHECK: lathe.attention %arg0, %arg1, %arg1 scale 1.000000e+00 causal bottom_right
// CHECK-NEXT: return
func.func @offset_from_a_table(%q: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x3x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %zero = lathe.constant dense<0> : tensor<i64>
  %two = lathe.constant dense<2> : tensor<i64>
  %n = lathe.iota <3, 8> axis 1 dtype i64
  %z = lathe.mul %zero, %n : tensor<i64>, tensor<3x8xi64>
  %e = lathe.add %z, %two : tensor<3x8xi64>, tensor<i64>
  %one = lathe.slice %e starts <0, 2> sizes <1, 1> strides [1, 1] : tensor<3x8xi64>
  %d = lathe.reduce_sum %one axes [0, 1] keep_dims false : tensor<1x1xi64>
  %i = lathe.iota <3, 1> axis 0 dtype i64
  %r = lathe.add %i, %d : tensor<3x1xi64>, tensor<i64>
  %j = lathe.iota <5> axis 0 dtype i64
  %c = lathe.compare le %j, %r : tensor<5xi64>, tensor<3x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %s, %lowest : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x3x4xf32>
}

// The greatest of an axis along which a ramp does not run is not the last of the ramp.
// CHECK-LABEL: @greatest_across_a_ramp
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: causal
// CHECK: return
func.func @greatest_across_a_ramp(%q: tensor<2x1x4xf32>, %k: tensor<2x5x4xf32>) -> tensor<2x1x4xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %two = lathe.constant dense<2> : tensor<i64>
  %n = lathe.iota <3, 4> axis 0 dtype i64
  %r = lathe.reduce_max %n axes [1] keep_dims true : tensor<3x4xi64>
  %s = lathe.slice %r starts <0, 0> sizes <1, 1> strides [1, 1] : tensor<3x1xi64>
  %a = lathe.add %s, %two : tensor<1x1xi64>, tensor<i64>
  %j = lathe.iota <5> axis 0 dtype i64
  %c = lathe.compare le %j, %a : tensor<5xi64>, tensor<1x1xi64>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %p = lathe.matmul %q, %t : tensor<2x1x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %c, %p, %lowest : tensor<1x5xi1>, tensor<2x1x5xf32>, tensor<f32>
  %w = lathe.softmax %l axis 2 : tensor<2x1x5xf32>
  %y = lathe.matmul %w, %k : tensor<2x1x5xf32>, tensor<2x5x4xf32>
  return %y : tensor<2x1x4xf32>
}

// Numbers that stay far above the fill, too: chosen from a ramp, sums along an axis, and the inverse
// of a power.
// CHECK-LABEL: @bounded_under_fill
// CHECK-COUNT-3: lathe.attention {{.*}} mask {{.*}} masked_row uniform
// CHECK-NOT: lathe.softmax
func.func @bounded_under_fill(%q: tensor<2x3x4xf32>, %r: tensor<2x3x4xf32>, %s: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>, %m: tensor<3x5xi1>, %ids: tensor<5xi64>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %fill = lathe.constant dense<-1.0e30> : tensor<f32>
  %half = lathe.constant dense<0.5> : tensor<f32>
  %ramp = lathe.iota <5> axis 0 dtype f32
  %rows = lathe.iota <2, 5> axis 1 dtype f32
  %power = lathe.pow %half, %ramp : tensor<f32>, tensor<5xf32>
  %a = lathe.gather %ramp, %ids axis 0 : tensor<5xf32>, tensor<5xi64>
  %b = lathe.reduce_sum %rows axes [0] keep_dims false : tensor<2x5xf32>
  %c = lathe.reciprocal %power : tensor<5xf32>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %qs = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %qb = lathe.add %qs, %a : tensor<2x3x5xf32>, tensor<5xf32>
  %qm = lathe.select %m, %qb, %fill : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %qp = lathe.softmax %qm axis 2 : tensor<2x3x5xf32>
  %x = lathe.matmul %qp, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  %rs = lathe.matmul %r, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %rb = lathe.add %rs, %b : tensor<2x3x5xf32>, tensor<5xf32>
  %rm = lathe.select %m, %rb, %fill : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %rp = lathe.softmax %rm axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %rp, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  %ss = lathe.matmul %s, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %sb = lathe.add %ss, %c : tensor<2x3x5xf32>, tensor<5xf32>
  %sm = lathe.select %m, %sb, %fill : tensor<3x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %sp = lathe.softmax %sm axis 2 : tensor<2x3x5xf32>
  %z = lathe.matmul %sp, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %x, %y, %z : tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// One row of a causal table for all queries, and one place of a ramp: no query has a bound of its
// own, and all of them have the mask.
// CHECK-LABEL: @one_row_for_all_queries
// CHECK-COUNT-2: lathe.attention {{.*}} mask {{.*}} mask tensor<1x5xi1>
// CHECK-NOT: lathe.softmax
func.func @one_row_for_all_queries(%q: tensor<2x3x4xf32>, %r: tensor<2x3x4xf32>, %k: tensor<2x5x4xf32>) -> (tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %i = lathe.iota <8, 1> axis 0 dtype i64
  %j = lathe.iota <8> axis 0 dtype i64
  %c = lathe.compare le %j, %i : tensor<8xi64>, tensor<8x1xi64>
  %row = lathe.slice %c starts <2, 0> sizes <1, 5> strides [1, 1] : tensor<8x8xi1>
  %t = lathe.transpose %k [0, 2, 1] : tensor<2x5x4xf32>
  %s = lathe.matmul %q, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %l = lathe.select %row, %s, %lowest : tensor<1x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %p = lathe.softmax %l axis 2 : tensor<2x3x5xf32>
  %y = lathe.matmul %p, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  %place = lathe.slice %i starts <2, 0> sizes <1, 1> strides [1, 1] : tensor<8x1xi64>
  %keys = lathe.iota <5> axis 0 dtype i64
  %d = lathe.compare le %keys, %place : tensor<5xi64>, tensor<1x1xi64>
  %u = lathe.matmul %r, %t : tensor<2x3x4xf32>, tensor<2x4x5xf32>
  %m = lathe.select %d, %u, %lowest : tensor<1x5xi1>, tensor<2x3x5xf32>, tensor<f32>
  %w = lathe.softmax %m axis 2 : tensor<2x3x5xf32>
  %z = lathe.matmul %w, %k : tensor<2x3x5xf32>, tensor<2x5x4xf32>
  return %y, %z : tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// One position for all sequences of a batch is a mask: attention has one for each.
// CHECK-LABEL: @one_position_for_a_batch
// CHECK: lathe.attention {{.*}} mask
// CHECK-NOT: lathe.softmax
func.func @one_position_for_a_batch(%q: tensor<2x4x1x8xf32>, %k: tensor<2x4x6x8xf32>, %first: tensor<1xi64>) -> tensor<2x4x1x8xf32> {
  %lowest = lathe.constant dense<0xFF800000> : tensor<f32>
  %j = lathe.iota <6> axis 0 dtype i64
  %c = lathe.compare le %j, %first : tensor<6xi64>, tensor<1xi64>
  %t = lathe.transpose %k [0, 1, 3, 2] : tensor<2x4x6x8xf32>
  %s = lathe.matmul %q, %t : tensor<2x4x1x8xf32>, tensor<2x4x8x6xf32>
  %l = lathe.select %c, %s, %lowest : tensor<6xi1>, tensor<2x4x1x6xf32>, tensor<f32>
  %p = lathe.softmax %l axis 3 : tensor<2x4x1x6xf32>
  %y = lathe.matmul %p, %k : tensor<2x4x1x6xf32>, tensor<2x4x6x8xf32>
  return %y : tensor<2x4x1x8xf32>
}
