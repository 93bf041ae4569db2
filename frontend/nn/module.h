// SPDX-License-Identifier: Apache-2.0
#pragma once
// What all modules share: a graph, a path, and the weights below it.
#include <optional>
#include <string>
#include <string_view>

#include "frontend/graph.h"
#include "ir/ops.h"

namespace lathe::nn {

/// A module is a value: a graph, a path such as "blocks.3.attn" and options. Calling it records ops
/// under that path; its weights are named `<path>.<parameter>`. The graph must outlive it, and must
/// not be moved while it is in use.
class Module {
 public:
  const std::string& path() const { return path_; }
  Graph& graph() const { return *graph_; }

 protected:
  Module(Graph& graph, std::string path) : graph_(&graph), path_(std::move(path)) {}

  /// The name of a parameter or of a module below this one.
  std::string below(std::string_view name) const;
  /// Declares `<path>.<name>` in `stored` (default: `dtype`) and converts it to `dtype`.
  Tensor weight(std::string_view name, DType dtype, const Shape& shape,
                std::optional<DType> stored = {}) const;

 private:
  Graph* graph_;
  std::string path_;
};

/// "a.b", or "b" where there is no path.
std::string joinPath(std::string_view path, std::string_view name);
/// Norms, softmax and rotations compute in f32, or in f64 when the tensor is.
DType computeDType(DType dtype);
/// `x` itself when it has that dtype, else a recorded cast.
Tensor castTo(const Tensor& x, DType dtype, LATHE_AT);
/// "f32[batch, seq, 64]", for messages.
std::string typeText(const Tensor& x);
/// Throws Error(InvalidArgument) at `at` for an empty handle. `module` says who asked, for example
/// "RMSNorm 'norm'".
void expectDefined(const Tensor& x, std::string_view module, LATHE_AT);
/// Throws Error(InvalidArgument) at `at` unless x is a float tensor whose last dim is `size`.
void expectFeatures(const Tensor& x, int64_t size, std::string_view module, LATHE_AT);
/// Throws Error(InvalidArgument) at `at` unless x holds integers [batch, seq].
void expectIds(const Tensor& ids, std::string_view module, LATHE_AT);
/// Throws Error(InvalidArgument) at `at` unless `value` is at least 1.
void expectPositive(int64_t value, std::string_view what, LATHE_AT);

}  // namespace lathe::nn
