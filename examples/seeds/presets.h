// SPDX-License-Identifier: Apache-2.0
#pragma once
// How the courses of docs/seeds.md spell and name their modules, as options of nn::.
#include <cstdint>

#include <lathe/lathe.h>

namespace lathe::seeds {

/// Stanford CS336.
namespace cs336 {

inline nn::LinearOptions linear() { return {.bias = false, .weightName = "W"}; }
inline nn::EmbeddingOptions embedding() { return {.weightName = "embeddings"}; }
/// x / rms, the gain in f32.
inline nn::NormOptions norm() {
  return {
      .form = nn::NormOptions::Form::Divide, .rounding = GainRounding::after_gain, .gainName = "g"};
}
inline nn::RopeOptions rope() {
  return {.pairing = Pairing::interleaved,
          .frequencies = nn::RopeOptions::Frequencies::NegativePower};
}
inline nn::AttentionOptions attention() { return {.maskedRow = MaskedRow::zero}; }
inline nn::SelfAttentionOptions selfAttention() {
  nn::SelfAttentionOptions o;
  o.linear = linear();
  o.attention = attention();
  o.names = {.q = "W_q", .k = "W_k", .v = "W_v", .o = "W_o"};
  return o;
}
inline nn::SwiGLUOptions swiglu() {
  return {.gate = "W1", .up = "W3", .down = "W2", .linear = linear()};
}
/// The model returns probabilities unless told otherwise.
inline nn::ModelStyle style() {
  nn::ModelStyle s;
  s.attention = selfAttention();
  s.rope = rope();
  s.mlp = swiglu();
  s.norm = norm();
  s.head = linear();
  s.embedding = embedding();
  s.block = {.attentionNorm = "ln1", .attention = "attn", .mlpNorm = "ln2", .mlp = "ffn"};
  s.embeddingName = "token_embeddings";
  s.positionsName = "position_embeddings";
  s.layersName = "layers";
  s.normName = "ln_f";
  s.probabilities = true;
  return s;
}
/// 8/3 dModel, then to the nearest multiple of 64 (31 and less over it go down).
inline int64_t hiddenSize(int64_t dModel) { return (dModel * 8 / 3 + 31) / 64 * 64; }

}  // namespace cs336

/// ShanghaiTech CS190C. Linear weights are transposed views, [in, out].
namespace cs190c {

inline nn::LinearOptions linear() {
  return {.bias = false, .weightName = "linear_matrix", .layout = WeightLayout::in_out};
}
/// A plain attribute there, no parameter.
inline nn::EmbeddingOptions embedding() { return {.weightName = "embedding_matrix"}; }
/// sum / n, x / rms, cast back.
inline nn::NormOptions norm() {
  return {.mean = nn::NormOptions::Mean::SumOverCount,
          .form = nn::NormOptions::Form::Divide,
          .gainName = "g"};
}
inline nn::RopeOptions rope() {
  return {.pairing = Pairing::interleaved, .frequencies = nn::RopeOptions::Frequencies::Divide};
}
inline nn::AttentionOptions attention() { return {}; }
inline nn::SelfAttentionOptions selfAttention() {
  nn::SelfAttentionOptions o;
  o.linear = linear();
  o.attention = attention();
  return o;
}
inline nn::SwiGLUOptions swiglu() {
  return {.gate = "linear_w1",
          .up = "linear_w3",
          .down = "linear_w2",
          .sigmoid = nn::SigmoidForm::Spelled,
          .linear = linear()};
}
inline nn::ModelStyle style() {
  nn::ModelStyle s;
  s.attention = selfAttention();
  s.rope = rope();
  s.mlp = swiglu();
  s.norm = norm();
  s.head = linear();
  s.embedding = embedding();
  s.block = {.attentionNorm = "RMSNorm_Attn",
             .attention = "Multihead_Attn",
             .mlpNorm = "RMSNorm_FF",
             .mlp = "Feed_Forward"};
  s.embeddingName = "embeddings";
  s.positionsName = "position_embeddings";
  s.layersName = "transformer_blocks";
  s.normName = "final_norm";
  s.headName = "final_layer";
  return s;
}
/// 8/3 dModel, rounded down.
inline int64_t hiddenSize(int64_t dModel) { return dModel * 8 / 3; }

}  // namespace cs190c

/// "Modern Transformers", which spells attention, MLP and norm; how they are put together and the
/// names of that are ours. Its MLP has dHidden = dModel.
namespace modern {

inline nn::NormOptions norm() { return {}; }
/// `o` is declared and never applied.
inline nn::SelfAttentionOptions selfAttention() {
  nn::SelfAttentionOptions o;
  o.projections = nn::SelfAttentionOptions::Projections::FusedOddView;
  o.qkvBias = o.outputBias = true;
  o.applyOutput = false;
  o.attention = {.scaleForm = nn::AttentionOptions::ScaleForm::Multiply};
  o.names = {.o = "o"};
  return o;
}
inline nn::SwiGLUOptions swiglu() { return {.gate = "w1", .up = "w3", .down = "w2"}; }
inline nn::ModelStyle style() {
  nn::ModelStyle s;
  s.attention = selfAttention();
  s.mlp = swiglu();
  s.norm = norm();
  s.block = {.attentionNorm = "norm1", .attention = "attn", .mlpNorm = "norm2", .mlp = "mlp"};
  s.embeddingName = "token_embeddings";
  s.positionsName = "position_embeddings";
  s.layersName = "layers";
  s.normName = "norm";
  return s;
}

}  // namespace modern

/// Rice University's encoder-decoder: hidden scores are -1e9.
namespace rice {

inline nn::AttentionOptions attention() { return {.maskFill = -1e9}; }
inline nn::MultiHeadAttentionOptions multiHeadAttention() {
  return {.attention = attention(), .names = {.q = "W_q", .k = "W_k", .v = "W_v", .o = "W_o"}};
}
inline nn::PostNormOptions layer() { return {.attention = multiHeadAttention()}; }
inline nn::EncoderDecoderOptions encoderDecoder() { return {.layer = layer()}; }

}  // namespace rice

}  // namespace lathe::seeds
