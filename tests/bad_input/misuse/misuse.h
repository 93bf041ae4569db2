// SPDX-License-Identifier: Apache-2.0
#pragma once
// Misuse of the public API as tables: each row runs in a process of its own and must end in a
// lathe::Error with the right code, words and, where a call recorded something, that call's line.
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <lathe/lathe.h>

namespace lathe::misuse {

inline constexpr ErrorCode kArgument = ErrorCode::InvalidArgument;
inline constexpr ErrorCode kFile = ErrorCode::InvalidFile;
inline constexpr ErrorCode kUnsupported = ErrorCode::Unsupported;
inline constexpr ErrorCode kNumeric = ErrorCode::Numeric;
inline constexpr ErrorCode kMemory = ErrorCode::OutOfMemory;
inline constexpr ErrorCode kIo = ErrorCode::Io;

/// Whether the error names a line of these tables: what records does, what runs has no such line.
enum class Blames { Caller, Nobody };

struct Misuse {
  std::string name;
  std::function<void()> action;
  ErrorCode code;
  std::vector<std::string> words;  ///< pieces of the message, all of them
  Blames blames = Blames::Caller;
};
inline void PrintTo(const Misuse& row, std::ostream* out) { *out << row.name; }
using Table = std::vector<Misuse>;

/// Rows of which no single call is to blame.
inline Table blamingNobody(Table rows) {
  for (Misuse& row : rows) row.blames = Blames::Nobody;
  return rows;
}

/// A graph with inputs x f32[batch, 4], ids i64[batch, 4] and flags bool[batch, 4].
struct Model {
  Graph g;
  Dim batch = g.dim("batch", 1, 8);
  Tensor x = g.input("x", DType::F32, {batch, 4});
  Tensor ids = g.input("ids", DType::I64, {batch, 4});
  Tensor flags = g.input("flags", DType::Bool, {batch, 4});
};

/// A finished graph of one output.
struct Finished : Model {
  Finished() { g.output("y", exp(x)); }
};
/// Beside them q f32[batch, 2, 3, 4], k and v f32[batch, 2, 5, 4] and tokens f32[batch, 3, 8].
struct Heads : Model {
  Tensor q = g.input("q", DType::F32, {batch, 2, 3, 4});
  Tensor k = g.input("k", DType::F32, {batch, 2, 5, 4});
  Tensor v = g.input("v", DType::F32, {batch, 2, 5, 4});
  Tensor tokens = g.input("tokens", DType::F32, {batch, 3, 8});
  Tensor gain = g.weight("gain", DType::F32, {4});
  Tensor in(DType dtype, const Dims& shape) { return g.input("in", dtype, shape); }
};
/// A tensor whose graph is gone.
Tensor ofDestroyedGraph();

/// A compiled program with a weight w f32[3, 4], inputs x f32[batch, 4] and add i64[batch], and
/// outputs y f32[batch, 3] and sum i64[batch].
std::shared_ptr<const Program> linearProgram(const std::string& backend = "reference");
/// Its weights.
Arrays linearWeights();
/// Its inputs for a batch of 2.
Arrays linearInputs();

/// Compiles a model of several ops with these fusions, or with one named "mine".
void fuseWith(PatternsFor patterns);
void fuse(const std::function<void(DagPattern&)>& record);
inline const std::string kMine = "pattern 'mine'";

// Every table, as LATHE_MISUSE_TABLES(X) applies X to its name: one suite each.
// clang-format off: it stacks the calls
#define LATHE_MISUSE_TABLES(X) \
  X(emptyHandles) X(deadTensors) X(movedGraphs) X(deadModules) X(spelling) X(takenNames) \
  X(unknownNames) X(sizes) X(unaryDTypes) X(mixedDTypes) X(axes) X(views) X(indexing) \
  X(contractions) X(fusedNorms) X(fusedProducts) X(scalars) X(arrays) X(linears) X(normLayers) \
  X(positionLayers) X(attentionFunctions) X(rotaryLayers) X(attentionLayers) X(models) \
  X(families) X(diffusion) X(compilation) X(parsedTexts) X(questions) X(madeSessions) \
  X(boundSessions) X(runs) X(programs) X(patterns) X(throwingPatterns) X(replacements) \
  X(texts) X(generation) X(composedShapes) X(composedValues) X(einsums)
// clang-format on
#define LATHE_DECLARE(table) Table table();
LATHE_MISUSE_TABLES(LATHE_DECLARE)
#undef LATHE_DECLARE

}  // namespace lathe::misuse
