// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fields that decoder-only families spell alike, and the kinds of rotary positions.
#include <cstdint>
#include <string>
#include <string_view>

#include "lathe/frontend/families/family.h"
#include "lathe/frontend/nn/rope.h"
#include "lathe/runtime/enums.h"

namespace lathe {

/// What a family takes for a field that its config.json does not have.
struct DecoderDefaults {
  int64_t kvHeads = 0;  ///< 0: as many as heads
  int64_t headDim = 0;  ///< 0: hidden_size / heads
  int64_t maxPositions = 2048;
  int64_t trainedPositions = 0;  ///< original_max_position_embeddings; 0: maxPositions
  double normEps = 1e-6;
  double ropeTheta = 10000;
  double rotaryFraction = 1;  ///< of a head
  /// Whether config.json may ask for another fraction.
  bool mayRotatePartly = false;
  bool tiedHead = false;
  std::string_view normEpsKey = "rms_norm_eps", activationKey = "hidden_act";
  std::string_view activation = "silu";
};

struct DecoderConfig {
  int64_t vocabSize = 0, hiddenSize = 0, intermediateSize = 0, layers = 0;
  int64_t heads = 0;
  int64_t kvHeads = 0;  ///< divides heads
  int64_t headDim = 0;
  int64_t maxPositions = 0;
  double normEps = 1e-6;
  bool tiedHead = false;
  Activation activation = Activation::silu;
  nn::RopeOptions rope = {};  ///< its table has the rows that the options can reach
};

/// vocab_size, hidden_size, intermediate_size, num_hidden_layers, num_attention_heads,
/// num_key_value_heads, head_dim, max_position_embeddings, the norm's epsilon, the activation,
/// tie_word_embeddings, and what `readRope` reads.
DecoderConfig readDecoder(ConfigReader& config, const FamilyOptions& options,
                          const DecoderDefaults& defaults = {});

/// The same without positions, for models that learn them.
DecoderConfig readSizes(ConfigReader& config, const FamilyOptions& options,
                        const DecoderDefaults& defaults);

/// As many key/value heads as there are heads, whose number `key` says and which share the hidden
/// size.
void readEqualHeads(ConfigReader& config, std::string_view key, DecoderConfig& sizes);

/// num_hidden_layers under its name in this family, or what the options ask for. Throws
/// Error(InvalidArgument) for more layers than there are.
int64_t readLayers(ConfigReader& config, std::string_view key, const FamilyOptions& options);

/// "gelu_new", "silu", ... Throws Error(Unsupported) that lists the names there are.
Activation readActivation(ConfigReader& config, std::string_view key, std::string_view otherwise);
/// The same of a name that was taken from the field `key`, which errors are about.
Activation activationOf(ConfigReader& config, std::string_view key, std::string_view name);

/// rope_theta and rope_scaling as transformers 4 writes them, or rope_parameters of 5; with
/// partial_rotary_factor and original_max_position_embeddings. Needs headDim and maxPositions.
nn::RopeOptions readRope(ConfigReader& config, const DecoderConfig& sizes,
                         const DecoderDefaults& defaults, const FamilyOptions& options);
/// One object of these parameters, for families that have one for each kind of layer. `theta` is
/// what counts without a rope_theta.
nn::RopeOptions readRopeObject(const JsonValue& object, const ConfigReader& config,
                               const DecoderConfig& sizes, const DecoderDefaults& defaults,
                               double theta);

/// Whether each layer sees a window of `sliding_window` keys alone: `layer_types`, and without it
/// every layer from `firstWindowed` on that `isWindowed` picks. Zeros are layers that see all keys.
std::vector<int64_t> readWindows(ConfigReader& config, int64_t layers, int64_t window,
                                 const std::function<bool(int64_t layer)>& isWindowed);

/// `asked`, or where that is 0 `longest`. Throws Error(InvalidArgument) for more; `name` is the
/// option, for the message.
int64_t sequenceLimit(int64_t asked, int64_t longest, const char* name);
/// The most positions that the model takes.
int64_t longestSequence(const DecoderConfig& config);
/// Rows of a table of positions: those that calls of these options can reach.
int64_t reachedPositions(int64_t maxPositions, const FamilyOptions& options);

}  // namespace lathe
