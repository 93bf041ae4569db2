// SPDX-License-Identifier: Apache-2.0
#pragma once
// Graph: records entry points, weights, states and symbols as IR.
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/ir/tensor.h"

namespace lathe {

class GraphImpl;  // holds the MLIR module

/// A model under construction. It can be moved, and so can what holds it together with modules and
/// tensors: they follow. A moved-from Graph, and tensors and modules of one that was destroyed or
/// overwritten, throw Error wherever they are used. One thread records in a graph at a time;
/// several may compile it.
///
///   Graph g;
///   Dim seq = g.dim("seq", 1, 4096);
///   Tensor x = g.input("x", DType::F32, {seq, 64});
///   g.output("y", nn::SwiGLU(g, "mlp", 64, 172)(x));
///   Program program = compile(g);
class Graph {
 public:
  explicit Graph(std::string_view name = "model", LATHE_AT);
  ~Graph();
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;

  /// Reads a module back from its text. Throws Error (InvalidFile) with the parser's words; text
  /// deeper than 256 levels or larger than 64 MiB and MLIR bytecode are refused before parsing.
  static Graph parse(std::string_view text, std::string_view fileName = "<text>");

  /// Declares a symbol with its inclusive range, which holds a multiple of `multiple` and ends at
  /// 2^48. Sizes are multiples of it. Declared again it must have the same range.
  Dim dim(std::string_view name, int64_t lo, int64_t hi, int64_t multiple = 1, LATHE_AT);

  // Names of entry points, inputs, outputs, weights and states are UTF-8 texts that are not empty
  // and hold no zero byte.
  /// Starts an entry point; inputs, ops and outputs belong to the latest one. Without a call the
  /// first input starts "forward". Weights and states are shared by all entry points.
  void entry(std::string_view name, LATHE_AT);
  Tensor input(std::string_view name, DType dtype, const Dims& shape, LATHE_AT);
  void output(std::string_view name, const Tensor& value, LATHE_AT);
  /// Keeps a value that a fusion might remove, as the further output "observed.NAME" of the entry
  /// point: equal to what the graph computes within its numerics contract. It is kept as an output,
  /// which fusions around it then decline, or computed again beside them, whichever moves fewer
  /// bytes; CompileRecord::observed says which and what it costs.
  void observe(std::string_view name, const Tensor& value, LATHE_AT);

  /// The ranks that the graph is for: `ranks` of them along the axis `axis`. A mesh that `compile`
  /// is given goes before it. Said again it replaces what was said.
  void mesh(std::string_view axis, int64_t ranks, LATHE_AT);
  /// Ranks hold the weights whose names match in pieces along `axis`, which may count from the
  /// back; `*` and `?` match any text and any letter. This goes before the plan that is found
  /// (docs/ranks.md), the latest of several before the others. Weights may be declared later. Where
  /// no weight matches, or the ranks do not divide a size, `compile` throws Error naming this line.
  void shard(std::string_view weights, int64_t axis, std::string_view meshAxis = "tp", LATHE_AT);
  /// The same for weights that every rank shall hold whole.
  void keepWhole(std::string_view weights, LATHE_AT);

  /// A checkpoint tensor by name; one value per name and entry point. Throws if the same name was
  /// declared with another dtype or shape.
  Tensor weight(std::string_view name, DType dtype, const Shape& shape, LATHE_AT);

  /// A tensor that lives across calls, zero at first (a KV cache).
  void state(std::string_view name, DType dtype, const Dims& shape, LATHE_AT);
  Tensor readState(std::string_view name, LATHE_AT);
  void writeState(std::string_view name, const Tensor& value, LATHE_AT);

  /// A literal. Scalars have shape {}; the dtype must hold the value: no fraction, NaN or number
  /// out of range for integers.
  Tensor constant(double value, DType dtype = DType::F32, LATHE_AT);
  Tensor constant(const Array& value, LATHE_AT);

  /// The functions of the same names (lathe/ir/composed_ops.h) where there is no tensor yet.
  Tensor full(const Dims& shape, double value, DType dtype = DType::F32, LATHE_AT);
  Tensor zeros(const Dims& shape, DType dtype = DType::F32, LATHE_AT);
  Tensor ones(const Dims& shape, DType dtype = DType::F32, LATHE_AT);
  /// Integers 0, 1, ... size - 1, as PyTorch's.
  Tensor arange(const Dim& size, DType dtype = DType::I64, LATHE_AT);

  /// The module's text: parses back with Graph::parse. Locations are printed on request.
  std::string text(bool withLocations = false) const;
  /// Graphviz form: one node per op with its type, module path and source line; clusters per
  /// module path.
  std::string graphviz() const;

  Recorder* recorder() const;
  /// Throws Error at `at` for a moved-from graph, as everything above does.
  GraphImpl& impl(std::source_location at) const;
  GraphImpl& impl() const;

 private:
  [[noreturn]] static void failMoved(const std::source_location* at);
  std::unique_ptr<GraphImpl> impl_;
};

}  // namespace lathe
