// RUN: lathe-opt %s --split-input-file --verify-diagnostics

func.func @no_ranks(%x: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.all_reduce' [C1] expected at least one rank, got 0}}
  %0 = lathe.all_reduce sum %x over "tp" of 0 : tensor<8xf32>
  return
}

// -----

func.func @gather_outside(%x: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.all_gather' [C1] axis 1 is outside of f32[8]}}
  %0 = lathe.all_gather %x axis 1 parts 2 over "tp" of 2 : tensor<8xf32>
  return
}

// -----

func.func @uneven_parts(%x: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.all_gather' [C2] 3 pieces on 4 ranks}}
  %0 = lathe.all_gather %x axis 0 parts 3 over "tp" of 4 : tensor<8xf32>
  return
}

// -----

func.func @slice_of_rest(%x: tensor<8x9xf32>) {
  // expected-error@+1 {{'lathe.all_slice' [C1] axis 1 of f32[8, 9] does not divide by 4}}
  %0 = lathe.all_slice %x axis 1 parts 4 over "tp" of 4 : tensor<8x9xf32>
  return
}

// -----

func.func @half_a_piece() {
  // expected-error@+1 {{[C2] a piece has a weight that it is of, an axis of f32[8] and a number of parts}}
  %0 = "lathe.weight"() {name = "w", of = "v"} : () -> tensor<8xf32>
  return
}

// -----

func.func @groups_of_a_whole() {
  // expected-error@+1 {{[C2] expected groups, begin and extent of a piece of a weight, the last two together}}
  %0 = "lathe.weight"() {name = "w", groups = 2} : () -> tensor<8xf32>
  return
}

// -----

func.func @groups_of_rest() {
  // expected-error@+1 {{[C3] 2 parts of 8 elements in 3 groups are not inside of the weight}}
  %0 = lathe.weight "w" of "v" axis 0 parts 2 groups 3 : tensor<8xf32>
  return
}

// -----

func.func @beyond_the_end() {
  // expected-error@+1 {{[C3] 2 parts of 8 elements in 1 groups are not inside of the weight}}
  %0 = lathe.weight "w" of "v" axis 0 parts 2 begin 9 extent 24 : tensor<8xf32>
  return
}

// -----

func.func @exchange_along_rest(%x: tensor<9x8xf32>) {
  // expected-error@+1 {{'lathe.all_to_all' [C1] axis 0 of f32[9, 8] does not divide by 4}}
  %0 = lathe.all_to_all %x split 0 concat 1 over "tp" of 4 : tensor<9x8xf32>
  return
}

// -----

func.func @exchange_outside(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{'lathe.all_to_all' [C1] axis 2 is outside of f32[8, 8]}}
  %0 = lathe.all_to_all %x split 0 concat 2 over "tp" of 4 : tensor<8x8xf32>
  return
}

// -----

func.func @exchange_of_nobody(%x: tensor<8x8xf32>) {
  // expected-error@+1 {{'lathe.all_to_all' [C2] expected at least one rank, got 0}}
  %0 = lathe.all_to_all %x split 0 concat 1 over "tp" of 0 : tensor<8x8xf32>
  return
}

// -----

func.func @rows_of_rest(%x: tensor<9x8xf32>) {
  // expected-error@+1 {{'lathe.reduce_scatter' [C1] axis 0 of f32[9, 8] does not divide by 4}}
  %0 = lathe.reduce_scatter sum %x axis 0 over "tp" of 4 : tensor<9x8xf32>
  return
}

// -----

func.func @rows_of_nobody(%x: tensor<9x8xf32>) {
  // expected-error@+1 {{'lathe.reduce_scatter' [C2] expected at least one rank, got 0}}
  %0 = lathe.reduce_scatter sum %x axis 0 over "tp" of 0 : tensor<9x8xf32>
  return
}

// -----

func.func @shard_outside(%x: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.shard' [C1] axis 1 is outside of f32[8]}}
  %0 = lathe.shard %x axis 1 over "tp" : tensor<8xf32>
  return
}

// -----

func.func @shard_of_any_size(%x: tensor<?xf32, #lathe.dims<rows>>) {
  // expected-error@+1 {{'lathe.shard' [C1] axis 0 of f32[rows]: expected a size that is a number}}
  %0 = lathe.shard %x axis 0 over "tp" : tensor<?xf32, #lathe.dims<rows>>
  return
}

// -----

// expected-error@+1 {{[C1] expected at least one rank along a named axis, got 0 along 'tp'}}
lathe.mesh "tp" of 0

// -----

// expected-error@+1 {{[C1] expected a pattern for names of weights}}
lathe.shard_weights ""

// -----

// expected-error@+1 {{an axis of theirs together with one of the mesh}}
"lathe.shard_weights"() {weights = "w", axis = 0} : () -> ()

// -----

func.func @rounded_residual(%x: tensor<8x3xbf16>, %w: tensor<5x3xbf16>, %r: tensor<8x5xbf16>) {
  // expected-error@+1 {{'lathe.linear' [C4] residual bf16[8, 5] is not f32[8, 5]}}
  %0 = lathe.linear %x, %w residual %r unrounded true : tensor<8x3xbf16>, tensor<5x3xbf16> residual tensor<8x5xbf16>
  return
}

// -----

func.func @slice_of_uneven_parts(%x: tensor<6xf32>) {
  // expected-error@+1 {{'lathe.all_slice' [C2] 3 pieces on 4 ranks}}
  %0 = lathe.all_slice %x axis 0 parts 3 over "tp" of 4 : tensor<6xf32>
  return
}

// -----

func.func @slice_in_no_parts(%x: tensor<6xf32>) {
  // expected-error@+1 {{'lathe.all_slice' [C2] 0 pieces on 4 ranks}}
  %0 = lathe.all_slice %x axis 0 parts 0 over "tp" of 4 : tensor<6xf32>
  return
}

// -----

func.func @slice_outside(%x: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.all_slice' [C1] axis 1 of f32[8] does not divide by 2}}
  %0 = lathe.all_slice %x axis 1 parts 2 over "tp" of 2 : tensor<8xf32>
  return
}

// -----

func.func @gather_in_no_parts(%x: tensor<8xf32>) {
  // expected-error@+1 {{'lathe.all_gather' [C2] 0 pieces on 4 ranks}}
  %0 = lathe.all_gather %x axis 0 parts 0 over "tp" of 4 : tensor<8xf32>
  return
}

// -----

func.func @send_to_nobody(%x: tensor<8xf32>) {
  // expected-error@+1 {{[C1] stage 2 is none of 2}}
  lathe.send %x to 2 over "pp" of 2 : tensor<8xf32>
  return
}

// -----

func.func @receive_from_nobody() {
  // expected-error@+1 {{[C1] stage -1 is none of 2}}
  %0 = lathe.receive from -1 over "pp" of 2 : tensor<8xf32>
  return
}
