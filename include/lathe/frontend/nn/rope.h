// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rotary position embedding: Su et al., "RoFormer: Enhanced Transformer with Rotary Position
// Embedding", 2021.
#include <string>
#include <vector>

#include "lathe/frontend/nn/module.h"
#include "lathe/frontend/nn/rope_scaling.h"

namespace lathe::nn {

struct RopeOptions {
  /// All spell one formula; in f32 arithmetic they differ in the last bit.
  enum class Frequencies {
    Reciprocal,     ///< position * (1 / theta^(2i/d)): Hugging Face
    NegativePower,  ///< position * theta^(-2i/d)
    Divide,         ///< position / theta^(2i/d)
  };
  int64_t headDim = 0;
  /// d, even: the first elements of a head that are rotated, the others stay; 0: all of them.
  int64_t rotaryDim = 0;
  int64_t maxPositions =
      2048;  ///< rows of the table; a position at or past it is an error at run time
  double theta = 10000;
  /// `half`: elements i and i + d/2 (Llama as Hugging Face stores it); `interleaved`: elements 2i
  /// and 2i + 1.
  Pairing pairing = Pairing::half;
  Frequencies frequencies = Frequencies::Reciprocal;
  RopeScalingOptions scaling = {};
  /// Rounds the table to x's dtype and rotates in it, as Hugging Face does, instead of in f32.
  bool tablesInDType = false;
  bool useFused = false;  ///< records the op `rope`

  static RopeOptions llama() { return {}; }
};

/// The d/2 numbers that positions are multiplied with (for Frequencies::Divide: divided by), in
/// the f32 arithmetic of PyTorch. Of a dynamic scaling those of a short call.
std::vector<float> ropeFrequencies(const RopeOptions& options, LATHE_AT);

/// Cosines and sines at given positions: f32 [seq, d/2] or [batch, seq, d/2].
struct RopeAngles {
  Tensor cos, sin;
  bool defined() const { return cos.defined(); }
};

/// Rotates pairs of the last axis by angles that grow with the position:
/// (a, b) -> (a cos - b sin, a sin + b cos).
class RoPE : public Module {
 public:
  /// Throws Error(InvalidArgument) for an odd head size or a scaling without meaning.
  RoPE(Graph& graph, std::string path, RopeOptions options, LATHE_AT);
  /// positions: integers [seq] or [batch, seq]. Record it once and share it between layers.
  RopeAngles angles(const Tensor& positions, LATHE_AT) const;
  /// x [batch, heads, seq, headDim] or [batch, seq, headDim], in x's shape and dtype.
  Tensor operator()(const Tensor& x, const RopeAngles& angles, LATHE_AT) const;
  Tensor operator()(const Tensor& x, const Tensor& positions, LATHE_AT) const;

 private:
  Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin) const;
  RopeOptions options_;
};

}  // namespace lathe::nn
