// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @matmul_rank(%a: tensor<4xf32>, %b: tensor<4x8xf32>) {
  // expected-error@+1 {{'lathe.matmul' [C1] needs two operands of rank 2 or more and one element type, got f32[4] and f32[4, 8]}}
  %0 = lathe.matmul %a, %b : tensor<4xf32>, tensor<4x8xf32>
  return
}

// -----

func.func @matmul_types(%a: tensor<2x4xf32>, %b: tensor<4x8xbf16>) {
  // expected-error@+1 {{'lathe.matmul' [C1] needs two operands}}
  %0 = lathe.matmul %a, %b : tensor<2x4xf32>, tensor<4x8xbf16>
  return
}

// -----

func.func @matmul_inner(%a: tensor<2x4xf32>, %b: tensor<8x4xf32>) {
  // expected-error@+1 {{'lathe.matmul' [C2] inner dims cannot be proved equal: 4 in f32[2, 4] and 8 in f32[8, 4]; transpose the right operand?}}
  %0 = lathe.matmul %a, %b : tensor<2x4xf32>, tensor<8x4xf32>
  return
}

// -----

func.func @matmul_leading(%a: tensor<2x3x4xf32>, %b: tensor<3x4x8xf32>) {
  // expected-error@+1 {{'lathe.matmul' [C3] leading dim 0 cannot be proved equal in f32[2, 3, 4] and f32[3, 4, 8]}}
  %0 = lathe.matmul %a, %b : tensor<2x3x4xf32>, tensor<3x4x8xf32>
  return
}

// -----

func.func @convolution_rank(%a: tensor<3x8x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C1] needs two rank-4 operands of one element type}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<3x8x8xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @convolution_channels(%a: tensor<1x4x8x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C2] channels differ or sizes are unknown}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x4x8x8xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @convolution_strides(%a: tensor<1x3x8x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C3] needs two strides of at least 1 and four non-negative paddings}}
  %0 = lathe.convolution %a, %w strides [0, 1] padding [0, 0, 0, 0] : tensor<1x3x8x8xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @convolution_without_a_size(%a: tensor<1x3x9223372036854775807x8xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error@+1 {{has too many elements}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [1, 1, 0, 0] : tensor<1x3x9223372036854775807x8xf32>, tensor<2x3x1x1xf32>
  return
}

// -----

func.func @convolution_of_the_largest_size(%a: tensor<1x3x9223372036854775807x8xf32>, %w: tensor<2x3x1x1xf32>) {
  // expected-error@+1 {{has too many elements}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [1, 0, 0, 0] : tensor<1x3x9223372036854775807x8xf32>, tensor<2x3x1x1xf32>
  return
}

// -----

func.func @convolution_kernel(%a: tensor<1x3x2x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C4] kernel f32[2, 3, 3, 3] is larger than the padded image f32[1, 3, 2, 8]}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x3x2x8xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @iota_axis() {
  // expected-error@+1 {{'lathe.iota' [C1] axis 1 is outside rank 1}}
  %0 = lathe.iota <4> axis 1 dtype i64
  return
}

// -----

func.func @iota_bool() {
  // expected-error@+1 {{'lathe.iota' [C2] needs a number type, got 'i1'}}
  %0 = lathe.iota <4> axis 0 dtype i1
  return
}

// -----

func.func @gather_axis(%a: tensor<4x8xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.gather' [C1] axis 2 is outside rank 2 of f32[4, 8]}}
  %0 = lathe.gather %a, %i axis 2 : tensor<4x8xf32>, tensor<2xi64>
  return
}

// -----

func.func @update_dims(%a: tensor<2x8x4xf32>, %v: tensor<2x1x5xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.update' [C1] f32[2, 1, 5] does not fit into f32[2, 8, 4] along axis 1}}
  %0 = lathe.update %a, %v, %p axis 1 : tensor<2x8x4xf32>, tensor<2x1x5xf32>, tensor<2xi64>
  return
}

// -----

func.func @update_axis(%a: tensor<2x8xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.update' [C2] axis 0 is outside [1, 2)}}
  %0 = lathe.update %a, %a, %p axis 0 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2xi64>
  return
}

// -----

func.func @update_positions(%a: tensor<2x8xf32>, %p: tensor<3xi64>) {
  // expected-error@+1 {{'lathe.update' [C3] positions i64[3] are not one per batch of f32[2, 8]}}
  %0 = lathe.update %a, %a, %p axis 1 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<3xi64>
  return
}

// -----

func.func @paged_update_dims(%a: tensor<6x8x4xf32>, %v: tensor<2x1x5xf32>, %t: tensor<2x3xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C1] f32[2, 1, 5] does not fit into blocks f32[6, 8, 4] along axis 1}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 1 : tensor<6x8x4xf32>, tensor<2x1x5xf32> table tensor<2x3xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_update_axis(%a: tensor<6x8xf32>, %v: tensor<2x8xf32>, %t: tensor<2x3xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C2] axis 0 is outside [1, 2)}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 0 : tensor<6x8xf32>, tensor<2x8xf32> table tensor<2x3xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_update_table(%a: tensor<6x8xf32>, %v: tensor<2x8xf32>, %t: tensor<3x3xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C3] table i64[3, 3] and positions i64[2] are not a row and a number for each sequence of f32[2, 8]}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 1 : tensor<6x8xf32>, tensor<2x8xf32> table tensor<3x3xi64> positions tensor<2xi64>
  return
}

// -----

func.func @random_seed(%s: tensor<1xi64>) {
  // expected-error@+1 {{'lathe.random_bits' [C1] the seed must be a scalar, got i64[1]}}
  %0 = lathe.random_bits %s to <4> : tensor<1xi64>
  return
}

// -----

func.func @weight_shape() {
  // expected-error@+1 {{'lathe.weight' op [C1] a weight's shape is static, got f32[seq, 4]}}
  %0 = lathe.weight "w" : tensor<?x4xf32, #lathe.dims<seq, 4>>
  return
}

// -----

// expected-error@+1 {{'lathe.dim' op [C1] empty range 8 to 4 multiple 1}}
lathe.dim @seq 8 to 4

// -----

// expected-error@+1 {{'lathe.dim' op [C1] empty range -1 to 4 multiple 1}}
lathe.dim @seq -1 to 4

// -----

// expected-error@+1 {{'lathe.dim' op [C1] empty range 1 to 4 multiple 0}}
lathe.dim @seq 1 to 4 multiple 0

// -----

// expected-error@+1 {{'lathe.dim' op [C1] range 3 to 4 holds no multiple of 5}}
lathe.dim @seq 3 to 4 multiple 5

// -----

func.func @convolution_unknown_height(%a: tensor<1x3x?x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C2] channels differ or sizes are unknown}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x3x?x8xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @convolution_unknown_width(%a: tensor<1x3x8x?xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C2] channels differ or sizes are unknown}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x3x8x?xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @convolution_unknown_kernel_height(%a: tensor<1x3x8x8xf32>, %w: tensor<2x3x?x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C2] channels differ or sizes are unknown}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x3x8x8xf32>, tensor<2x3x?x3xf32>
  return
}

// -----

func.func @convolution_unknown_kernel_width(%a: tensor<1x3x8x8xf32>, %w: tensor<2x3x3x?xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C2] channels differ or sizes are unknown}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x3x8x8xf32>, tensor<2x3x3x?xf32>
  return
}

// -----

func.func @convolution_dtypes(%a: tensor<1x3x8x8xf32>, %w: tensor<2x3x3x3xbf16>) {
  // expected-error@+1 {{'lathe.convolution' [C1] needs two rank-4 operands of one element type}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x3x8x8xf32>, tensor<2x3x3x3xbf16>
  return
}

// -----

func.func @convolution_narrow(%a: tensor<1x3x8x2xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C4] kernel f32[2, 3, 3, 3] is larger than the padded image f32[1, 3, 8, 2]}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x3x8x2xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @update_dtype(%a: tensor<2x8xf32>, %v: tensor<2x1xbf16>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.update' [C1] bf16[2, 1] does not fit into f32[2, 8] along axis 1}}
  %0 = lathe.update %a, %v, %p axis 1 : tensor<2x8xf32>, tensor<2x1xbf16>, tensor<2xi64>
  return
}

// -----

func.func @update_rank_of_positions(%a: tensor<2x8xf32>, %p: tensor<2x1xi64>) {
  // expected-error@+1 {{'lathe.update' [C3] positions i64[2, 1] are not one per batch of f32[2, 8]}}
  %0 = lathe.update %a, %a, %p axis 1 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x1xi64>
  return
}

// -----

func.func @paged_update_dtype(%a: tensor<6x8xf32>, %v: tensor<2x8xbf16>, %t: tensor<2x3xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C1] bf16[2, 8] does not fit into blocks f32[6, 8] along axis 1}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 1 : tensor<6x8xf32>, tensor<2x8xbf16> table tensor<2x3xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_update_positions(%a: tensor<6x8xf32>, %v: tensor<2x8xf32>, %t: tensor<2x3xi64>, %p: tensor<3xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C3] table i64[2, 3] and positions i64[3] are not a row and a number for each sequence of f32[2, 8]}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 1 : tensor<6x8xf32>, tensor<2x8xf32> table tensor<2x3xi64> positions tensor<3xi64>
  return
}

// -----

// Sizes without a name cannot be proved equal.
func.func @update_unknown_dim(%a: tensor<2x8x?xf32>, %v: tensor<2x1x?xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.update' [C1] f32[2, 1, ?] does not fit into f32[2, 8, ?] along axis 1}}
  %0 = lathe.update %a, %v, %p axis 1 : tensor<2x8x?xf32>, tensor<2x1x?xf32>, tensor<2xi64>
  return
}

// -----

func.func @convolution_unknown_channels(%a: tensor<1x?x8x8xf32>, %w: tensor<2x?x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C2] channels differ or sizes are unknown}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0, 0, 0] : tensor<1x?x8x8xf32>, tensor<2x?x3x3xf32>
  return
}

// -----

func.func @convolution_one_stride(%a: tensor<1x3x8x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C3] needs two strides of at least 1 and four non-negative paddings}}
  %0 = lathe.convolution %a, %w strides [1] padding [0, 0, 0, 0] : tensor<1x3x8x8xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @convolution_two_paddings(%a: tensor<1x3x8x8xf32>, %w: tensor<2x3x3x3xf32>) {
  // expected-error@+1 {{'lathe.convolution' [C3] needs two strides of at least 1 and four non-negative paddings}}
  %0 = lathe.convolution %a, %w strides [1, 1] padding [0, 0] : tensor<1x3x8x8xf32>, tensor<2x3x3x3xf32>
  return
}

// -----

func.func @update_axis_of_no_rank(%a: tensor<2x8xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.update' [C2] axis 2 is outside [1, 2)}}
  %0 = lathe.update %a, %a, %p axis 2 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2xi64>
  return
}

// -----

func.func @paged_update_axis_of_no_rank(%a: tensor<6x8xf32>, %v: tensor<2x8xf32>, %t: tensor<2x3xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C2] axis 2 is outside [1, 2)}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 2 : tensor<6x8xf32>, tensor<2x8xf32> table tensor<2x3xi64> positions tensor<2xi64>
  return
}

// -----

func.func @iota_packed() {
  // expected-error@+1 {{'lathe.iota' [C2] needs a number type, got 'i4'}}
  %0 = lathe.iota <4> axis 0 dtype i4
  return
}

// -----

func.func @paged_update_rank_of_table(%a: tensor<6x8xf32>, %v: tensor<2x8xf32>, %t: tensor<2x3x1xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C3] table i64[2, 3, 1] and positions i64[2] are not a row and a number for each sequence of f32[2, 8]}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 1 : tensor<6x8xf32>, tensor<2x8xf32> table tensor<2x3x1xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_update_rank_of_positions(%a: tensor<6x8xf32>, %v: tensor<2x8xf32>, %t: tensor<2x3xi64>, %p: tensor<2x1xi64>) {
  // expected-error@+1 {{'lathe.paged_update' [C3] table i64[2, 3] and positions i64[2, 1] are not a row and a number for each sequence of f32[2, 8]}}
  %0 = lathe.paged_update %a, %v table %t positions %p axis 1 : tensor<6x8xf32>, tensor<2x8xf32> table tensor<2x3xi64> positions tensor<2x1xi64>
  return
}
