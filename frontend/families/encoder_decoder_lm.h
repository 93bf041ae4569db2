// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the encoder-decoder families share: entry points over caches of both kinds of attention.
#include <string>
#include <vector>

#include "lathe/frontend/families/decoder_config.h"
#include "lathe/frontend/nn/cross_attention.h"
#include "lathe/frontend/nn/self_attention.h"

namespace lathe {

/// What comes out of an encoder. Integers [batch, source] are 0 where the source is padding; no
/// mask where all of it counts.
struct Encoded {
  Tensor hidden, mask;
};

/// A model that reads a source and writes a text, layer by layer. Modules and tensors are of one
/// graph.
class EncoderDecoderLm {
 public:
  virtual ~EncoderDecoderLm() = default;
  /// Declares the inputs of an entry point that reads a source, and encodes it: [batch, source,
  /// hidden].
  virtual Encoded encode(const Dim& batch, const Dim& source) const = 0;
  /// What cross-attention of a decoder layer reads.
  virtual nn::SourceKeys sourceKeys(int64_t layer, const Tensor& encoded) const = 0;

  /// ids: integers [batch, seq]; where: their positions, integers [seq] or [batch, seq]. Returns
  /// [batch, seq, hidden].
  virtual Tensor embed(const Tensor& ids, const Tensor& where) const = 0;
  /// What the scores of self-attention get added, for queries from `positions` (integers [batch];
  /// empty: 0) on: floats that broadcast to [batch, heads, queries, keys], or nothing.
  virtual Tensor bias(const Tensor& /*x*/, const Tensor& /*positions*/, const Dim& /*keys*/) const {
    return {};
  }
  /// A decoder layer. `visible` is bool [batch, 1, 1, source], or empty.
  virtual Tensor layer(int64_t index, const Tensor& x, const nn::LayerContext& context,
                       const nn::SourceKeys& source, const Tensor& visible) const = 0;
  /// x [..., hidden] -> f32 [..., vocabulary], the last norm included.
  virtual Tensor logits(const Tensor& x) const = 0;
};

struct EncoderDecoderSizes {
  int64_t layers = 0;  ///< of the decoder
  int64_t heads = 0, headDim = 0, hiddenSize = 0;
  int64_t maxPositions = 0;           ///< of the text that is written
  int64_t maxSource = 0;              ///< of the source
  bool hasSourceOfOneLength = false;  ///< maxSource, without a mask
};

/// Records entry points that share weights and states. Symbols: `batch`, `source` (1 to maxSource),
/// `seq` and `cache` (1 to maxPositions).
///   forward: the source and decoder_input_ids i64 [batch, seq] -> logits f32 [batch, seq, vocab]
///   encode:  the source -> encoder_hidden_states [batch, source, hidden]; keeps the keys and
///   values
///            of cross-attention and the mask in states, for which `source` is set by
///            Session::setSymbol first
///   prefill, decode, verify and greedy: those of a language model
///   (lathe/frontend/families/causal_lm.h),
///            which go on from the source that `encode` read last
void recordEncoderDecoder(Graph& graph, const EncoderDecoderLm& model,
                          const EncoderDecoderSizes& sizes, const FamilyOptions& options);

/// The usual source: input_ids and attention_mask, i64 [batch, source].
struct TextSource {
  Tensor ids, mask;
};
TextSource textSource(Graph& graph, const Dim& batch, const Dim& source);
/// mask [batch, keys] != 0 along the keys, for every head and query: bool [batch, 1, 1, keys]. An
/// empty one stays empty.
Tensor visibleKeys(const Tensor& mask);

}  // namespace lathe
