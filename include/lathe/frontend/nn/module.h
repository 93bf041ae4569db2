// SPDX-License-Identifier: Apache-2.0
#pragma once
// What all modules share: a graph, a path, and the weights below it.
#include <optional>
#include <string>
#include <string_view>

#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"

namespace lathe::nn {

/// A module is a value: a graph, a path such as "blocks.3.attn" and options. Calling it records ops
/// under that path; its weights are named `<path>.<parameter>`. It follows a graph that is moved,
/// and throws Error where the graph was destroyed or overwritten, or x is of another one.
class Module {
 public:
  const std::string& path() const { return path_; }
  /// Where the graph is now. Throws Error if it no longer exists.
  Graph& graph(LATHE_AT) const;

 protected:
  /// Throws Error at `at` for a moved-from graph.
  Module(Graph& graph, std::string path, std::source_location at);

  /// Opens the module's scope for a call on x. Throws Error at `at` unless both are of one graph.
  Scope opened(const Tensor& x, std::source_location at) const;

  /// The name of a parameter or of a module below this one.
  std::string below(std::string_view name) const;
  /// Declares `<path>.<name>` in `stored` (default: `dtype`) and converts it to `dtype`.
  Tensor weight(std::string_view name, DType dtype, const Shape& shape,
                std::optional<DType> stored = {}) const;

 private:
  std::shared_ptr<RecorderLink> graph_;
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
/// Sizes of modules: their products fit 64 bits.
inline constexpr int64_t kMostSize = 2147483647;
/// Layers, experts or modulations of a model: each is recorded op by op.
inline constexpr int64_t kMostModules = 10000;
/// Widths for which tables of frequencies and buckets are made when the graph is recorded.
inline constexpr int64_t kMostTable = 1 << 20;
/// Throws Error(InvalidArgument) at `at` unless `value` is from 1 to `most`.
void expectPositive(int64_t value, std::string_view what, LATHE_AT, int64_t most = kMostSize);
/// Throws Error(InvalidArgument) at `at` unless x holds whole numbers.
void expectIntegers(const Tensor& x, std::string_view what, LATHE_AT);
/// Throws Error(InvalidArgument) at `at` unless x holds floats.
void expectFloats(const Tensor& x, std::string_view what, LATHE_AT);
/// Throws Error(InvalidArgument) at `at` for a dtype that is no float, or none at all.
void expectFloatDType(DType dtype, std::string_view what, LATHE_AT);

}  // namespace lathe::nn
