// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @softmax_axis(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'lathe.softmax' [C1] axis 2 is outside rank 2}}
  %0 = lathe.softmax %x axis 2 : tensor<2x8xf32>
  return
}

// -----

func.func @rms_norm_gain(%x: tensor<2x8xf32>, %g: tensor<7xf32>) {
  // expected-error@+1 {{'lathe.rms_norm' [C1] gain f32[7] is not one element per last dim of f32[2, 8]}}
  %0 = lathe.rms_norm %x, %g epsilon 1.0e-5 : tensor<2x8xf32>, tensor<7xf32>
  return
}

// -----

func.func @rms_norm_epsilon(%x: tensor<2x8xf32>, %g: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.rms_norm' [C2] epsilon is negative}}
  %0 = lathe.rms_norm %x, %g epsilon -1.0 : tensor<2x8xf32>, tensor<8xf32>
  return
}

// -----

func.func @rope_odd(%x: tensor<2x7xf32>, %t: tensor<2x3xf32>) {
  // expected-error@+1 {{'lathe.rope' [C1] the last dim must be an even number in f32[2, 7]}}
  %0 = lathe.rope half %x, %t, %t : tensor<2x7xf32>, tensor<2x3xf32>, tensor<2x3xf32>
  return
}

// -----

func.func @rope_tables(%x: tensor<2x8xf32>, %t: tensor<2x8xf32>) {
  // expected-error@+1 {{'lathe.rope' [C2] cos f32[2, 8] and sin f32[2, 8] do not broadcast to half of f32[2, 8]}}
  %0 = lathe.rope half %x, %t, %t : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
  return
}

// -----

func.func @glu_types(%x: tensor<4xf32>, %u: tensor<4xbf16>) {
  // expected-error@+1 {{'lathe.glu' [C1] element types differ: f32[4] and bf16[4]}}
  %0 = lathe.glu %x, %u : tensor<4xf32>, tensor<4xbf16>
  return
}

// -----

func.func @glu_dims(%x: tensor<4xf32>, %u: tensor<5xf32>) {
  // expected-error@+1 {{'lathe.glu' [C2] dim 0 cannot be proved equal}}
  %0 = lathe.glu %x, %u : tensor<4xf32>, tensor<5xf32>
  return
}

// -----

func.func @attention_rank(%q: tensor<3x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C1] needs three operands of rank 3 or 4 and one element type: q f32[3, 8], k f32[3, 8], v f32[3, 8]}}
  %0 = lathe.attention %q, %q, %q scale 1.0 : tensor<3x8xf32>, tensor<3x8xf32>, tensor<3x8xf32>
  return
}

// -----

func.func @attention_depth(%q: tensor<2x3x8xf32>, %k: tensor<2x5x7xf32>) {
  // expected-error@+1 {{'lathe.attention' [C2] batch, depth or key length differ}}
  %0 = lathe.attention %q, %k, %k scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x7xf32>, tensor<2x5x7xf32>
  return
}

// -----

func.func @attention_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x3x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C3] the key heads do not divide the query heads}}
  %0 = lathe.attention %q, %k, %k scale 1.0 : tensor<2x4x3x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>
  return
}

// -----

func.func @attention_mask(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %m: tensor<3x4xi1>) {
  // expected-error@+1 {{'lathe.attention' [C4] mask bool[3, 4] is not a boolean or float that broadcasts to the scores}}
  %0 = lathe.attention %q, %k, %k mask %m scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32> mask tensor<3x4xi1>
  return
}

// -----

func.func @attention_positions(%q: tensor<2x3x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C5] `positions` is one per batch and goes with `causal = positions`}}
  %0 = lathe.attention %q, %q, %q scale 1.0 causal positions : tensor<2x3x8xf32>, tensor<2x3x8xf32>, tensor<2x3x8xf32>
  return
}

// -----

func.func @paged_attention_rank(%q: tensor<4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C1] needs three operands of rank 4 and one element type: q f32[4, 3, 8]}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p scale 1.0 : tensor<4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_blocks(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %v: tensor<6x2x4x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C2] blocks, heads, keys in a block or depth differ}}
  %0 = lathe.paged_attention %q, %k, %v table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x4x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_heads(%q: tensor<2x3x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C3] the key heads do not divide the query heads}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p scale 1.0 : tensor<2x3x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_mask(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>, %m: tensor<3x36xi1>) {
  // expected-error@+1 {{'lathe.paged_attention' [C4] mask bool[3, 36] is not a boolean or float that broadcasts to the scores}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p mask %m scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64> mask tensor<3x36xi1>
  return
}

// -----

func.func @paged_attention_table(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<3x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C5] table and positions are not a row and a number for each sequence}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<3x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_entries(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<2x?xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C5] the table's second size has no name}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x?xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_window(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C6] window and softcap are not negative}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p scale 1.0 window -1 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @linear_types(%x: tensor<2x8xf32>, %w: tensor<6x8xbf16>) {
  // expected-error@+1 {{'lathe.linear' [C1] x f32[2, 8] and w bf16[6, 8]: w must be a static matrix of x's element type}}
  %0 = lathe.linear %x, %w : tensor<2x8xf32>, tensor<6x8xbf16>
  return
}

// -----

func.func @linear_inner(%x: tensor<2x8xf32>, %w: tensor<8x6xf32>) {
  // expected-error@+1 {{'lathe.linear' [C2] inner dims differ: x f32[2, 8], w f32[8, 6] (out, in)}}
  %0 = lathe.linear %x, %w : tensor<2x8xf32>, tensor<8x6xf32>
  return
}

// -----

func.func @linear_bias(%x: tensor<2x8xf32>, %w: tensor<6x8xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.linear' [C3] bias f32[8] does not fit w f32[6, 8]}}
  %0 = lathe.linear %x, %w bias %b : tensor<2x8xf32>, tensor<6x8xf32> bias tensor<8xf32>
  return
}

// -----

func.func @linear_residual(%x: tensor<2x8xf32>, %w: tensor<6x8xf32>, %r: tensor<6xf32>) {
  // expected-error@+1 {{'lathe.linear' [C4] residual f32[6] is not f32[2, 6]}}
  %0 = lathe.linear %x, %w residual %r : tensor<2x8xf32>, tensor<6x8xf32> residual tensor<6xf32>
  return
}

// -----

func.func @grouped_linear_weight(%x: tensor<5x8xf32>, %w: tensor<6x8xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{'lathe.grouped_linear' [C1] w must be static, of rank 3 and of x's element type: x f32[5, 8], w f32[6, 8], indices i64[5]}}
  %0 = lathe.grouped_linear %x, %w by %i : tensor<5x8xf32>, tensor<6x8xf32>, tensor<5xi64>
  return
}

// -----

func.func @grouped_linear_dtype(%x: tensor<5x8xbf16>, %w: tensor<3x6x8xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{'lathe.grouped_linear' [C1] w must be static, of rank 3 and of x's element type: x bf16[5, 8]}}
  %0 = lathe.grouped_linear %x, %w by %i : tensor<5x8xbf16>, tensor<3x6x8xf32>, tensor<5xi64>
  return
}

// -----

func.func @grouped_linear_inner(%x: tensor<5x6xf32>, %w: tensor<3x6x8xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{'lathe.grouped_linear' [C2] the inner dims differ (w: groups, out, in): x f32[5, 6]}}
  %0 = lathe.grouped_linear %x, %w by %i : tensor<5x6xf32>, tensor<3x6x8xf32>, tensor<5xi64>
  return
}

// -----

func.func @grouped_linear_inner_of_in_out(%x: tensor<5x8xf32>, %w: tensor<3x6x8xf32>, %i: tensor<5xi64>) {
  // expected-error@+1 {{'lathe.grouped_linear' [C2] the inner dims differ (w: groups, in, out): x f32[5, 8]}}
  %0 = lathe.grouped_linear %x, %w by %i layout in_out : tensor<5x8xf32>, tensor<3x6x8xf32>, tensor<5xi64>
  return
}

// -----

func.func @grouped_linear_rank(%x: tensor<5x8xf32>, %w: tensor<3x6x8xf32>, %i: tensor<5x2xi64>) {
  // expected-error@+1 {{'lathe.grouped_linear' [C3] x needs one axis more than the indices: x f32[5, 8]}}
  %0 = lathe.grouped_linear %x, %w by %i : tensor<5x8xf32>, tensor<3x6x8xf32>, tensor<5x2xi64>
  return
}

// -----

func.func @grouped_linear_rows(%x: tensor<5x3x8xf32>, %w: tensor<3x6x8xf32>, %i: tensor<5x2xi64>) {
  // expected-error@+1 {{'lathe.grouped_linear' [C3] the axes of x in front of the last are not as long as those of the indices: x f32[5, 3, 8]}}
  %0 = lathe.grouped_linear %x, %w by %i : tensor<5x3x8xf32>, tensor<3x6x8xf32>, tensor<5x2xi64>
  return
}

// -----

func.func @embedding_table(%i: tensor<2xi64>, %t: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.embedding' [C1] the table must be a matrix, got f32[8]}}
  %0 = lathe.embedding %i, %t : tensor<2xi64>, tensor<8xf32>
  return
}

// -----

func.func @pack_rank(%w: tensor<6xf32>) {
  // expected-error@+1 {{'lathe.pack' [C1] needs a static matrix or a stack of them, got f32[6]}}
  %0 = lathe.pack %w out_in : tensor<6xf32>
  return
}

// -----

func.func @pack_packed(%w: tensor<6x8xf32>) {
  // expected-error@+1 {{'lathe.pack' [C2] the source cannot be packed already}}
  %0 = lathe.pack %w packed : tensor<6x8xf32>
  return
}

// -----

func.func @region_arguments(%x: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.region' op [C1] the block's arguments do not have the types of the operands}}
  %0 = lathe.region(%x) : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<5xf32>):
    lathe.yield %a : tensor<5xf32>
  }
  return
}

// -----

func.func @region_results(%x: tensor<4xf32>) {
  // expected-error@+1 {{'lathe.region' op [C2] the yielded values do not have the types of the results}}
  %0 = lathe.region(%x) : (tensor<4xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<4xf32>):
    lathe.yield %a : tensor<4xf32>
  }
  return
}

// -----

func.func @attention_dtype_of_values(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xbf16>) {
  // expected-error@+1 {{'lathe.attention' [C1] needs three operands of rank 3 or 4 and one element type}}
  %0 = lathe.attention %q, %k, %v scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xbf16>
  return
}

// -----

func.func @attention_dtype_of_keys(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xbf16>, %v: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C1] needs three operands of rank 3 or 4 and one element type}}
  %0 = lathe.attention %q, %k, %v scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x8xbf16>, tensor<2x5x8xf32>
  return
}

// -----

func.func @attention_rank_of_values(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x1x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C1] needs three operands of rank 3 or 4 and one element type}}
  %0 = lathe.attention %q, %k, %v scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x1x5x8xf32>
  return
}

// -----

func.func @attention_batch_of_values(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<3x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C2] batch, depth or key length differ}}
  %0 = lathe.attention %q, %k, %v scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<3x5x8xf32>
  return
}

// -----

func.func @attention_batch_of_keys(%q: tensor<2x3x8xf32>, %k: tensor<3x5x8xf32>, %v: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C2] batch, depth or key length differ}}
  %0 = lathe.attention %q, %k, %v scale 1.0 : tensor<2x3x8xf32>, tensor<3x5x8xf32>, tensor<2x5x8xf32>
  return
}

// -----

func.func @attention_keys_of_values(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x6x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C2] batch, depth or key length differ}}
  %0 = lathe.attention %q, %k, %v scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x6x8xf32>
  return
}

// -----

func.func @attention_heads_of_values(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x5x8xf32>, %v: tensor<2x4x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C3] the key heads do not divide the query heads}}
  %0 = lathe.attention %q, %k, %v scale 1.0 : tensor<2x4x3x8xf32>, tensor<2x2x5x8xf32>, tensor<2x4x5x8xf32>
  return
}

// -----

func.func @attention_softcap(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C6] a window needs a causal mask, window and softcap are not negative}}
  %0 = lathe.attention %q, %k, %v scale 1.0 softcap -1.0 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>
  return
}

// -----

func.func @attention_negative_window(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>) {
  // expected-error@+1 {{'lathe.attention' [C6] a window needs a causal mask, window and softcap are not negative}}
  %0 = lathe.attention %q, %k, %v scale 1.0 causal top_left window -1 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>
  return
}

// -----

func.func @attention_needless_positions(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.attention' [C5] `positions` is one per batch}}
  %0 = lathe.attention %q, %k, %v positions %p scale 1.0 causal top_left : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32> positions tensor<2xi64>
  return
}

// -----

func.func @attention_positions_of_another_batch(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>, %p: tensor<3xi64>) {
  // expected-error@+1 {{'lathe.attention' [C5] `positions` is one per batch}}
  %0 = lathe.attention %q, %k, %v positions %p scale 1.0 causal positions : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32> positions tensor<3xi64>
  return
}

// -----

func.func @attention_mask_of_whole_numbers(%q: tensor<2x3x8xf32>, %k: tensor<2x5x8xf32>, %v: tensor<2x5x8xf32>, %m: tensor<3x5xi32>) {
  // expected-error@+1 {{'lathe.attention' [C4] mask i32[3, 5] is not a boolean or float that broadcasts to the scores of q f32[2, 3, 8] and k f32[2, 5, 8]; compare it with 0 for a mask of ones and zeros (mask != 0)}}
  %0 = lathe.attention %q, %k, %v mask %m scale 1.0 : tensor<2x3x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32> mask tensor<3x5xi32>
  return
}

// -----

func.func @paged_attention_dtype(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %v: tensor<6x2x5x8xbf16>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C1] needs three operands of rank 4 and one element type}}
  %0 = lathe.paged_attention %q, %k, %v table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xbf16> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_count_of_blocks(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %v: tensor<7x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C2] blocks, heads, keys in a block or depth differ}}
  %0 = lathe.paged_attention %q, %k, %v table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<7x2x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_heads_of_values(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %v: tensor<6x1x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C2] blocks, heads, keys in a block or depth differ}}
  %0 = lathe.paged_attention %q, %k, %v table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x1x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_depth(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x4xf32>, %v: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C2] blocks, heads, keys in a block or depth differ}}
  %0 = lathe.paged_attention %q, %k, %v table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x4xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_positions(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %v: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<3xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C5] table and positions are not a row and a number for each sequence}}
  %0 = lathe.paged_attention %q, %k, %v table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<3xi64>
  return
}

// -----

func.func @paged_attention_softcap(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %v: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C6] window and softcap are not negative}}
  %0 = lathe.paged_attention %q, %k, %v table %t positions %p scale 1.0 softcap -2.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<2xi64>
  return
}

// -----

func.func @linear_bias_dtype(%x: tensor<2x8xf32>, %w: tensor<6x8xf32>, %b: tensor<6xbf16>) {
  // expected-error@+1 {{'lathe.linear' [C3] bias bf16[6] does not fit w f32[6, 8]}}
  %0 = lathe.linear %x, %w bias %b : tensor<2x8xf32>, tensor<6x8xf32> bias tensor<6xbf16>
  return
}

// -----

func.func @linear_bias_rank(%x: tensor<2x8xf32>, %w: tensor<6x8xf32>, %b: tensor<1x6xf32>) {
  // expected-error@+1 {{'lathe.linear' [C3] bias f32[1, 6] does not fit w f32[6, 8]}}
  %0 = lathe.linear %x, %w bias %b : tensor<2x8xf32>, tensor<6x8xf32> bias tensor<1x6xf32>
  return
}

// -----

func.func @linear_inner_of_in_out(%x: tensor<2x8xf32>, %w: tensor<6x8xf32>) {
  // expected-error@+1 {{'lathe.linear' [C2] inner dims differ: x f32[2, 8], w f32[6, 8] (in, out)}}
  %0 = lathe.linear %x, %w layout in_out : tensor<2x8xf32>, tensor<6x8xf32>
  return
}

// -----

func.func @softmax_scale(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'lathe.softmax' [C3] scale 0.000000e+00 or softcap 0.000000e+00 is out of range}}
  %0 = lathe.softmax %x axis 1 scale 0.0 : tensor<2x8xf32>
  return
}

// -----

func.func @softmax_negative_scale(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{'lathe.softmax' [C3] scale -1.000000e+00}}
  %0 = lathe.softmax %x axis 1 scale -1.0 : tensor<2x8xf32>
  return
}

// -----

func.func @softmax_softcap(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{is out of range}}
  %0 = lathe.softmax %x axis 1 softcap -3.0 : tensor<2x8xf32>
  return
}

// -----

func.func @softmax_mask(%x: tensor<2x8xf32>, %m: tensor<3x8xi1>) {
  // expected-error@+1 {{'lathe.softmax' [C2] mask bool[3, 8] is not a boolean or float that broadcasts to f32[2, 8]}}
  %0 = lathe.softmax %x mask %m axis 1 : tensor<2x8xf32> mask tensor<3x8xi1>
  return
}

// -----

func.func @embedding_positions_dtype(%i: tensor<2xi64>, %t: tensor<5x8xf32>, %p: tensor<2x8xbf16>) {
  // expected-error@+1 {{'lathe.embedding' [C2] positions bf16[2, 8] do not broadcast to f32[2, 8]}}
  %0 = lathe.embedding %i, %t positions %p : tensor<2xi64>, tensor<5x8xf32> positions tensor<2x8xbf16>
  return
}

// -----

func.func @embedding_positions_dims(%i: tensor<2xi64>, %t: tensor<5x8xf32>, %p: tensor<3x8xf32>) {
  // expected-error@+1 {{'lathe.embedding' [C2] positions f32[3, 8] do not broadcast to f32[2, 8]}}
  %0 = lathe.embedding %i, %t positions %p : tensor<2xi64>, tensor<5x8xf32> positions tensor<3x8xf32>
  return
}

// -----

func.func @embedding_scale_of_integers(%i: tensor<2xi64>, %t: tensor<5x8xi32>) {
  // expected-error@+1 {{'lathe.embedding' [C3] a table of 'i32' has neither scale nor positions}}
  %0 = lathe.embedding %i, %t scale 2.0 : tensor<2xi64>, tensor<5x8xi32>
  return
}

// -----

func.func @paged_attention_rank_of_table(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<2x7x1xi64>, %p: tensor<2xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C5] table and positions are not a row and a number for each sequence}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7x1xi64> positions tensor<2xi64>
  return
}

// -----

func.func @paged_attention_rank_of_positions(%q: tensor<2x4x3x8xf32>, %k: tensor<6x2x5x8xf32>, %t: tensor<2x7xi64>, %p: tensor<2x1xi64>) {
  // expected-error@+1 {{'lathe.paged_attention' [C5] table and positions are not a row and a number for each sequence}}
  %0 = lathe.paged_attention %q, %k, %k table %t positions %p scale 1.0 : tensor<2x4x3x8xf32>, tensor<6x2x5x8xf32>, tensor<6x2x5x8xf32> table tensor<2x7xi64> positions tensor<2x1xi64>
  return
}
