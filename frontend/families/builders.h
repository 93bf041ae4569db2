// SPDX-License-Identifier: Apache-2.0
#pragma once
// The families that the library brings, one file each.
#include "lathe/frontend/families/family.h"
#include "lathe/runtime/error.h"

namespace lathe::builders {

using Builder = Graph(ConfigReader& config, const FamilyOptions& options);

Builder llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3, phi3, gpt2, gptNeoX, olmo2, granite,
    mixtral, qwen3Moe, bert, bertMaskedLm, roberta, robertaMaskedLm, t5, vit, vitClassifier, bart;

/// The windows of Qwen's layers: `sliding_window` with `use_sliding_window` from layer
/// `max_window_layers` (where missing `otherwiseFrom`) on, or as `layer_types` says.
std::vector<int64_t> qwenWindows(ConfigReader& config, int64_t layers, int64_t otherwiseFrom = 28);

/// The bound of a soft cap; 0 where the field is null.
double readCap(ConfigReader& config, std::string_view key, double otherwise);

/// The message without the place in a family's file: what was wrong is the config's or the
/// caller's.
std::string messageOf(const Error& e);

/// Entry points of a model with `encode(ids, mask)` and `decode(ids, encoded, mask)`, for up to
/// `longest` tokens on either side:
///   encode: input_ids, attention_mask i64 [batch, source] -> encoder_hidden_states
///   decode: decoder_input_ids i64 [batch, target], encoder_hidden_states, attention_mask -> logits
///           f32 [batch, target, vocab]
///   forward: both at once
template <class Model>
void recordEncoderDecoder(Graph& g, const Model& model, int64_t longest, int64_t hiddenSize,
                          const FamilyOptions& options) {
  const Dim batch = g.dim("batch", 1, options.maxBatch), source = g.dim("source", 1, longest),
            target = g.dim("target", 1, longest);
  auto ids = [&](const char* name, const Dim& length) {
    return g.input(name, DType::I64, {batch, length});
  };
  g.entry("forward");
  Tensor sourceIds = ids("input_ids", source), mask = ids("attention_mask", source);
  g.output("logits",
           model.decode(ids("decoder_input_ids", target), model.encode(sourceIds, mask), mask));
  g.entry("encode");
  sourceIds = ids("input_ids", source);
  g.output("encoder_hidden_states", model.encode(sourceIds, ids("attention_mask", source)));
  g.entry("decode");
  Tensor targetIds = ids("decoder_input_ids", target);
  Tensor encoded = g.input("encoder_hidden_states", options.dtype, {batch, source, hiddenSize});
  g.output("logits", model.decode(targetIds, encoded, ids("attention_mask", source)));
}

}  // namespace lathe::builders
