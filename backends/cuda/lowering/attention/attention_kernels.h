// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of lathe.attention: for few queries over many keys (mma tiles of grouped heads, keys
// split over blocks), for many queries (mma tiles, online softmax), and for every dtype and size
// without tensor cores.
#include <array>
#include <optional>

#include "backends/cuda/lowering/kernel/kernel_text.h"
#include "backends/cuda/lowering/tuning/tuning_choice.h"
#include "lathe/runtime/enums.h"

namespace lathe::cuda {

/// Where an operand of 3 or 4 axes lies in its buffer, in elements; its last axis is dense, and a
/// rank-3 one has a single head of stride 0.
struct AttentionView {
  DimExpr offset = 0, batch = 0, head = 0, token = 0;
  /// [batch, heads, tokens, depth], dense.
  static AttentionView dense(const DimExpr& heads, const DimExpr& tokens, const DimExpr& depth);
};

/// lathe.attention and lathe.paged_attention with all that their kernels are printed from. Buffers
/// are q, k, v, then the mask, the positions and the table if there are any, then the result.
struct AttentionKernel {
  std::string name;  ///< what the kernels' names begin with
  DType dtype = DType::BF16;
  DimExpr batch = 1, queries = 1, keys = 1;
  int64_t queryHeads = 1, keyHeads = 1, depth = 64, valueDepth = 64;
  AttentionView q, k, v, y;
  double scale = 1, softcap = 0;  ///< 0: no softcap
  Causal causal = Causal::none;
  int64_t window = 0;  ///< 0: none
  MaskedRow maskedRow = MaskedRow::nan;
  std::optional<DType> mask;           ///< Bool: nonzero is visible; a float is added
  std::array<DimExpr, 4> maskStrides;  ///< [batch, head, query, key]; 0 broadcasts
  DType positions = DType::I64;        ///< of `positions`, with Causal::positions
  /// Kernels before this one in a run have written neither the positions nor what is in front.
  bool oldKeys = false;
  // Of keys and values in blocks, whose views have a block for each batch.
  int64_t blockKeys = 0;  ///< 0: they are not
  DType table = DType::I64;
  DimExpr entries = 0, blocks = 0;  ///< of a row of the table; of keys and values
};

/// Library: the vendor's, where it is installed, else the best of the others.
enum class AttentionMethod { Decode, Tiled, Simt, Library };

/// How a method is run.
struct AttentionChoice {
  AttentionMethod method = AttentionMethod::Simt;
  int warps = 4;
  int rowTiles = 1;         ///< Tiled: 16-row tiles per warp
  int keys = 64;            ///< Tiled: keys per step
  int leastKeys = 256;      ///< Decode and Simt: keys per split at least
  int mostSplits = 1;       ///< Decode and Simt: splits of a row tile at most
  int64_t mostTiles = 1;    ///< Decode and Simt, with splits: row tiles of the whole call at most
  bool packsHeads = false;  ///< Tiled: the heads of a group are rows of one tile
};

/// What a user changes to get a kernel; empty if there is one.
std::string whyNotAttention(const AttentionKernel& kernel);
/// The same for the methods on tensor cores; where they decline, Simt serves.
std::string whyNotTensorCores(const AttentionKernel& kernel);

/// What a library can take of an attention; nothing where it cannot take it. Lengths are scratch
/// memory (addLibrary).
std::optional<PlainAttention> plainAttentionOf(const AttentionKernel& kernel);
/// Leaves the set's last variant to the library, where there is one.
void addLibrary(const AttentionKernel& kernel, KernelSet& set);

/// One size per symbol, for what is chosen by numbers.
struct AttentionSizes {
  int64_t batch = 1, queries = 1, keys = 1;
};
/// Seconds on an H200 by the model: products against memory, and how even the processors' load is.
double attentionSeconds(const AttentionKernel& kernel, const AttentionSizes& sizes,
                        const AttentionChoice& choice);
/// Choices that fit the sizes, the best by the model first.
std::vector<AttentionChoice> attentionCandidates(const AttentionKernel& kernel,
                                                 const AttentionSizes& sizes);

/// Raised when a template of attention changes so much that measurements of its choices say
/// nothing.
constexpr int kAttentionVersion = 1;
/// "tiled warps=4 row-tiles=1 keys=64": every number that the method uses.
std::string textOf(const AttentionChoice& choice);
/// Asked where the call's sizes fulfil `when`; `sizes` are those by which the candidates were
/// ranked.
TuningQuestion questionOf(const AttentionKernel& attention, const AttentionSizes& sizes,
                          const std::vector<AttentionChoice>& candidates, const std::string& kernel,
                          std::vector<Condition> when);

/// Attention inside another kernel, whose results go to shared memory (kToShared of
/// lathe_attention_decode.cuh): a struct `config`, and statements that define `a`, its arguments.
struct AttentionText {
  std::string definition, statements;
};
/// `choice` is of Decode, without splits.
AttentionText attentionText(const AttentionKernel& kernel, const AttentionChoice& choice,
                            std::string_view config, KernelParameters& parameters);

/// A kernel and its launch, with `conditions`, added to the set.
void addAttention(const AttentionKernel& kernel, const AttentionChoice& choice,
                  const std::string& name, std::vector<Condition> conditions, KernelSet& set);

/// Kernels for every value of the symbols, chosen by the model. Throws Error (Unsupported) with
/// whyNotAttention's words.
KernelSet attentionKernels(const AttentionKernel& kernel);

}  // namespace lathe::cuda
