// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "lathe/frontend/nn/module.h"

namespace lathe::nn {

struct EmbeddingOptions {
  std::string weightName = "weight";
  DType dtype = DType::F32;               ///< of the result
  std::optional<DType> weightDType = {};  ///< what the checkpoint holds; `dtype` unless given
  bool useFused = false;                  ///< records the op `embedding` instead of `gather`

  static EmbeddingOptions llama() { return {}; }
};

/// Rows of a table [count, size] by integer ids: [...] -> [..., size]. An id outside [0, count) is
/// an error when the program runs.
class Embedding : public Module {
 public:
  Embedding(Graph& graph, std::string path, int64_t count, int64_t size,
            EmbeddingOptions options = {}, LATHE_AT);
  Tensor operator()(const Tensor& ids, LATHE_AT) const;
  /// x [..., size] times the transposed table: [..., count]. A head that shares the table.
  Tensor unembed(const Tensor& x, LATHE_AT) const;

 private:
  Tensor table() const;
  int64_t count_, size_;
  EmbeddingOptions options_;
};

}  // namespace lathe::nn
