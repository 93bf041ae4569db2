// SPDX-License-Identifier: Apache-2.0
// Tensors that were never assigned, in every place that takes one.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {

using Words = std::vector<std::string>;

Table emptyHandles() {
  const Words empty = {"expected a tensor, got an empty handle"};
  Table rows = {
      {"empty_neg", [] { neg(Tensor()); }, kArgument, {"lathe.neg", "empty handle"}},
      {"empty_exp", [] { exp(Tensor()); }, kArgument, {"lathe.exp", "empty handle"}},
      {"empty_is_nan", [] { isNan(Tensor()); }, kArgument, {"lathe.is_nan", "empty handle"}},
      {"empty_first_of_add",
       [] {
         Model m;
         add(Tensor(), m.x);
       },
       kArgument,
       {"lathe.add", "empty handle as 'a'"}},
      {"empty_second_of_add",
       [] {
         Model m;
         add(m.x, Tensor());
       },
       kArgument,
       {"lathe.add", "empty handle as 'b'"}},
      {"empty_of_operator",
       [] {
         Model m;
         m.x + Tensor();
       },
       kArgument,
       {"lathe.add"}},
      {"empty_plus_number", [] { Tensor() + 1.0; }, kArgument, empty},
      {"number_minus_empty", [] { 1.0 - Tensor(); }, kArgument, empty},
      {"minus_empty", [] { -Operand(Tensor()); }, kArgument, {"lathe.neg"}},
      {"empty_compare",
       [] {
         Model m;
         compare(m.x, Tensor(), Compare::eq);
       },
       kArgument,
       {"lathe.compare", "as 'b'"}},
      {"empty_condition",
       [] {
         Model m;
         select(Tensor(), m.x, m.x);
       },
       kArgument,
       {"lathe.select", "as 'condition'"}},
      {"empty_cast", [] { cast(Tensor(), DType::F32); }, kArgument, {"lathe.cast"}},
      {"empty_bitcast", [] { bitcast(Tensor(), DType::I32); }, kArgument, {"lathe.bitcast"}},
      {"empty_scalar_like", [] { scalarLike(Tensor(), 1); }, kArgument, empty},
      {"empty_reduce", [] { reduceSum(Tensor(), {0}); }, kArgument, {"lathe.reduce_sum"}},
      {"empty_reduce_any", [] { reduceAny(Tensor(), {-1}); }, kArgument, {"lathe.reduce_any"}},
      {"empty_argmax", [] { argmax(Tensor(), -1); }, kArgument, {"lathe.argmax"}},
      {"empty_cumsum", [] { cumsum(Tensor(), 0); }, kArgument, {"lathe.cumsum"}},
      {"empty_top_k", [] { topK(Tensor(), 2); }, kArgument, {"lathe.top_k"}},
      {"empty_transpose", [] { transpose(Tensor(), {1, 0}); }, kArgument, {"lathe.transpose"}},
      {"empty_swap", [] { swapAxes(Tensor(), 0, 1); }, kArgument, {"empty"}},
      {"empty_reshape", [] { reshape(Tensor(), {4}); }, kArgument, {"lathe.reshape"}},
      {"empty_broadcast", [] { broadcast(Tensor(), {4}); }, kArgument, {"lathe.broadcast"}},
      {"empty_slice", [] { slice(Tensor(), {0}, {1}, {1}); }, kArgument, {"lathe.slice"}},
      {"empty_slice_axis", [] { sliceAxis(Tensor(), 0, 0, 1); }, kArgument, {"empty"}},
      {"empty_in_concat",
       [] {
         Model m;
         concat({m.x, Tensor()}, 0);
       },
       kArgument,
       {"lathe.concat", "as 'inputs[1]'"}},
      {"empty_pad", [] { pad(Tensor(), Tensor(), {0}, {0}); }, kArgument, {"lathe.pad"}},
      {"empty_pad_value",
       [] {
         Model m;
         pad(m.x, Tensor(), {0, 0}, {1, 1});
       },
       kArgument,
       {"lathe.pad", "as 'value'"}},
      {"empty_reverse", [] { reverse(Tensor(), {0}); }, kArgument, {"lathe.reverse"}},
      {"empty_matmul",
       [] {
         Model m;
         matmul(m.x, Tensor());
       },
       kArgument,
       {"lathe.matmul"}},
      {"empty_convolution",
       [] {
         Model m;
         convolution(m.x, Tensor(), {1, 1}, {0, 0, 0, 0});
       },
       kArgument,
       {"lathe.convolution"}},
      {"empty_iota", [] { iota(Tensor(), {4}, 0); }, kArgument, {"iota", "empty handle"}},
      {"empty_gather",
       [] {
         Model m;
         gather(m.x, Tensor(), 0);
       },
       kArgument,
       {"lathe.gather"}},
      {"empty_update",
       [] {
         Model m;
         update(m.x, m.x, Tensor(), 0);
       },
       kArgument,
       {"lathe.update"}},
      {"empty_random_bits", [] { randomBits(Tensor(), {4}); }, kArgument, {"lathe.random_bits"}},
      {"empty_fused_softmax", [] { fused::softmax(Tensor(), -1); }, kArgument, {"lathe.softmax"}},
      {"empty_fused_rms_norm",
       [] { fused::rmsNorm(Tensor(), Tensor(), 1e-6); },
       kArgument,
       {"lathe.rms_norm"}},
      {"empty_fused_layer_norm",
       [] { fused::layerNorm(Tensor(), Tensor(), Tensor(), 1e-6); },
       kArgument,
       {"lathe.layer_norm"}},
      {"empty_fused_add_norm",
       [] {
         Model m;
         fused::addNorm(m.x, Tensor(), {});
       },
       kArgument,
       {"lathe.add_norm", "as 'residual'"}},
      {"empty_fused_adaln",
       [] {
         Model m;
         fused::adalnModulate(m.x, m.x, Tensor(), 1e-6);
       },
       kArgument,
       {"lathe.adaln_modulate", "as 'scale'"}},
      {"empty_fused_gated",
       [] {
         Model m;
         fused::gatedResidual(m.x, m.x, Tensor());
       },
       kArgument,
       {"lathe.gated_residual", "as 'f'"}},
      {"empty_fused_rope",
       [] {
         Model m;
         fused::rope(m.x, m.x, Tensor(), Pairing::half);
       },
       kArgument,
       {"lathe.rope", "as 'sin'"}},
      {"empty_fused_norm_rope",
       [] {
         Model m;
         fused::normRope(m.x, Tensor(), m.x, m.x);
       },
       kArgument,
       {"lathe.norm_rope", "as 'gain'"}},
      {"empty_fused_rope_append",
       [] {
         Model m;
         fused::ropeAppend(m.x, m.x, Tensor(), m.x, m.x, Tensor(), 1);
       },
       kArgument,
       {"lathe.rope_append", "empty handle"}},
      {"empty_fused_glu",
       [] {
         Model m;
         fused::glu(m.x, Tensor());
       },
       kArgument,
       {"lathe.glu"}},
      {"empty_fused_attention",
       [] {
         Model m;
         fused::attention(m.x, m.x, Tensor(), {});
       },
       kArgument,
       {"lathe.attention", "as 'v'"}},
      {"empty_fused_linear",
       [] {
         Model m;
         fused::linear(m.x, Tensor());
       },
       kArgument,
       {"lathe.linear", "as 'w'"}},
      {"empty_fused_embedding",
       [] {
         Model m;
         fused::embedding(m.ids, Tensor());
       },
       kArgument,
       {"lathe.embedding", "as 'table'"}},
      {"empty_output",
       [] {
         Model m;
         m.g.output("y", Tensor());
       },
       kArgument, empty},
      {"empty_observed",
       [] {
         Model m;
         m.g.observe("o", Tensor());
       },
       kArgument, empty},
      {"empty_state_value",
       [] {
         Model m;
         m.g.state("s", DType::F32, {4});
         m.g.readState("s");
         m.g.writeState("s", Tensor());
       },
       kArgument, empty},
      {"empty_silu", [] { nn::silu(Tensor()); }, kArgument, {"empty handle"}},
      {"empty_gelu", [] { nn::gelu(Tensor()); }, kArgument, {"empty handle"}},
      {"empty_gelu_tanh", [] { nn::geluTanh(Tensor()); }, kArgument, {"empty handle"}},
      {"empty_relu", [] { nn::relu(Tensor()); }, kArgument, {"empty handle"}},
      {"empty_spelled_sigmoid",
       [] { nn::sigmoid(Tensor(), nn::SigmoidForm::Spelled); },
       kArgument,
       {"empty handle"}},
      {"empty_nn_softmax", [] { nn::softmax(Tensor()); }, kArgument, {"empty handle"}},
      {"empty_tiled_softmax", [] { nn::tiledSoftmax(Tensor(), 2); }, kArgument, {"empty handle"}},
      {"empty_tiled_attention",
       [] { nn::tiledAttention(Tensor(), Tensor(), Tensor(), 2); },
       kArgument,
       {"empty handle"}},
      {"empty_nn_attention",
       [] { nn::attention(Tensor(), Tensor(), Tensor()); },
       kArgument,
       {"empty handle"}},
      {"empty_causal_mask", [] { nn::causalMask(Tensor(), 4, 4); }, kArgument, {"empty handle"}},
      {"empty_position_mask",
       [] { nn::positionMask(Tensor(), 4, 4); },
       kArgument,
       {"empty handle"}},
      {"empty_split_heads", [] { nn::splitHeads(Tensor(), 2); }, kArgument, {"empty handle"}},
      {"empty_merge_heads", [] { nn::mergeHeads(Tensor()); }, kArgument, {"empty handle"}},
      {"empty_modulate",
       [] { nn::modulate(Tensor(), Tensor(), Tensor()); },
       kArgument,
       {"empty handle"}},
      {"empty_unpatchify", [] { nn::unpatchify(Tensor(), 2, 2, 2); }, kArgument, {"empty handle"}},
      {"empty_padding_mask", [] { nn::paddingMask(Tensor(), 0); }, kArgument, {"empty handle"}},
      {"empty_target_mask", [] { nn::targetMask(Tensor(), 0); }, kArgument, {"empty handle"}},
      {"empty_token_positions",
       [] { nn::tokenPositions(Tensor(), 4); },
       kArgument,
       {"empty handle"}},
      {"dtype_of_empty",
       [] { Tensor().dtype(); },
       kArgument,
       {"dtype() of an empty tensor handle"}},
      {"shape_of_empty",
       [] { Tensor().shape(); },
       kArgument,
       {"shape() of an empty tensor handle"}},
      {"rank_of_empty", [] { Tensor().rank(); }, kArgument, {"rank() of an empty tensor handle"}},
      {"dim_of_empty", [] { Tensor().dim(0); }, kArgument, {"dim() of an empty tensor handle"}},
      {"cast_to_of_empty", [] { nn::castTo(Tensor(), DType::F32); }, kArgument, {"empty"}},
      {"scope_without_recorder",
       [] { Scope scope(nullptr, "a", std::source_location::current()); },
       kArgument,
       {"a scope needs a graph"}},
  };
  return rows;
}

}  // namespace lathe::misuse
