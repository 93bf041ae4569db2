// SPDX-License-Identifier: Apache-2.0
#pragma once
// Positions that are added to token embeddings [batch, seq, size].
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/nn/embedding.h"
#include "lathe/frontend/nn/module.h"

namespace lathe::nn {

/// The size/2 numbers that positions are multiplied with, exp(-2i/size ln 10000), in the f32
/// arithmetic of PyTorch.
std::vector<float> sineFrequencies(int64_t size, LATHE_AT);

enum class SineOrder {
  Pairs,   ///< sin(p f_0), cos(p f_0), sin(p f_1), ...
  Halves,  ///< all sines, then all cosines, of angles in f64: Marian's
};

/// Fixed positions: sines and cosines of the position times each frequency. Vaswani
/// et al., "Attention Is All You Need", 2017, section 3.5. The table is computed from constants,
/// has no weight, and is rounded to the dtype that it is added in.
class SinePositions : public Module {
 public:
  /// `maxPositions` rows; a position at or past it is an error at run time. Throws
  /// Error(InvalidArgument) for an odd size.
  SinePositions(Graph& graph, std::string path, int64_t size, int64_t maxPositions,
                SineOrder order = SineOrder::Pairs, LATHE_AT);
  /// f32 [maxPositions, size]; `like` only names the graph.
  Tensor table(const Tensor& like, LATHE_AT) const;
  /// x plus the rows of positions 0, 1, 2, ... of its axis -2.
  Tensor operator()(const Tensor& x, LATHE_AT) const;
  /// x plus the rows of given positions: integers [seq] or [batch, seq].
  Tensor operator()(const Tensor& x, const Tensor& positions, LATHE_AT) const;

 private:
  int64_t size_, maxPositions_;
  SineOrder order_;
};

/// The same idea for a grid of patches, read row by row: the first half of a position's elements
/// encodes the column and the second the row, each as sines and then cosines of size/4 angles
/// p / 10000^(4i/size). Peebles and Xie, "Scalable Diffusion Models with Transformers", 2022, after
/// He et al., "Masked Autoencoders Are Scalable Vision Learners", 2021.
class SinePositions2d : public Module {
 public:
  /// Throws Error(InvalidArgument) unless 4 divides the size.
  SinePositions2d(Graph& graph, std::string path, int64_t size, int64_t rows, int64_t columns,
                  LATHE_AT);
  /// f32 [rows * columns, size]; `like` only names the graph.
  Tensor table(const Tensor& like, LATHE_AT) const;
  /// x [batch, rows * columns, size] plus the table.
  Tensor operator()(const Tensor& x, LATHE_AT) const;

 private:
  int64_t size_, rows_, columns_;
};

/// A learnt table [maxPositions, size], `<path>.weight` unless its options say otherwise, whose
/// first rows are added.
class LearntPositions : public Module {
 public:
  LearntPositions(Graph& graph, std::string path, int64_t size, int64_t maxPositions,
                  EmbeddingOptions options = {}, LATHE_AT);
  /// x plus the rows of positions 0, 1, 2, ... of its axis -2, in x's dtype.
  Tensor operator()(const Tensor& x, LATHE_AT) const;
  /// x plus the rows of given positions: integers [seq] or [batch, seq].
  Tensor operator()(const Tensor& x, const Tensor& positions, LATHE_AT) const;

 private:
  int64_t size_, maxPositions_;
  EmbeddingOptions options_;
};

}  // namespace lathe::nn
