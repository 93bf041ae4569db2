// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kinds of rotary positions: how frequencies are stretched beyond the length that a model was
// trained for.
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/nn/module.h"

namespace lathe::nn {

struct RopeScalingOptions {
  enum class Type {
    Default,  ///< as trained
    Linear,   ///< every frequency divided by `factor`
    /// Beyond `originalMaxPositions` the base grows with the last position of a call, so that the
    /// frequencies are computed when the program runs ("NTK-aware", bloc97 and emozilla, 2023).
    Dynamic,
    /// Low frequencies divided by `factor`, high ones kept, a ramp between: Peng et al., "YaRN:
    /// Efficient Context Window Extension of Large Language Models", 2023.
    Yarn,
    Llama3,  ///< the same with a ramp over wavelengths (Llama 3.1)
    /// A factor for each frequency, one list up to `originalMaxPositions` and one beyond, chosen by
    /// the last position of a call: Ding et al., "LongRoPE", 2024.
    LongRope,
  };
  Type type = Type::Default;
  double factor = 1;
  double lowFreqFactor = 1, highFreqFactor = 4;  ///< Llama3
  int64_t originalMaxPositions = 8192;           ///< the trained length; all but Default and Linear
  double betaFast = 32, betaSlow = 1;            ///< Yarn: rotations where its ramp begins and ends
  bool truncate = true;                          ///< Yarn: the ramp's ends are whole dimensions
  std::vector<double> shortFactor, longFactor;   ///< LongRope: as many as frequencies
  /// Yarn and LongRope: cosines and sines are multiplied with it, and scores with its square.
  double attentionFactor = 1;

  /// Whether frequencies depend on the positions of a call.
  bool isDynamic() const { return type == Type::Dynamic || type == Type::LongRope; }
};

/// 0.1 scale ln(factor) + 1, or 1 for a factor up to 1: YaRN's temperature, section 3.3.
double yarnAttentionFactor(double factor, double scale = 1);
/// sqrt(1 + ln(factor) / ln(originalMaxPositions)), or 1 for a factor up to 1.
double longRopeAttentionFactor(double factor, int64_t originalMaxPositions);

/// Throws Error(InvalidArgument) at `at` for a scaling without meaning. `frequencies`: their
/// number.
void expectValid(const RopeScalingOptions& scaling, int64_t frequencies, const std::string& module,
                 std::source_location at);

/// Stretches the frequencies 1 / theta^(2i/d) as transformers does, in f32 with one rounding per
/// step; `powers` are theta^(2i/d). LongRope: by `shortFactor`. Dynamic: not at all.
void stretch(std::vector<float>& frequencies, const std::vector<float>& powers,
             const RopeScalingOptions& scaling, double theta);

/// f32 [d/2]: the frequencies of a call at integer `positions` of any shape, for scalings that are
/// dynamic. The last position of the whole call decides, as in transformers.
Tensor dynamicFrequencies(Graph& graph, const Tensor& positions,
                          const std::vector<float>& frequencies, const std::vector<float>& powers,
                          const RopeScalingOptions& scaling, double theta);

}  // namespace lathe::nn
