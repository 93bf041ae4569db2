// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/embedding.h"

namespace lathe::nn {

Embedding::Embedding(Graph& graph, std::string path, int64_t count, int64_t size,
                     EmbeddingOptions options, std::source_location at)
    : Module(graph, std::move(path), at), count_(count), size_(size), options_(std::move(options)) {
  expectPositive(count_, "Embedding '" + this->path() + "', number of rows", at);
  expectPositive(size_, "Embedding '" + this->path() + "', row size", at);
  expectFloatDType(options_.dtype, "Embedding '" + this->path() + "', dtype", at);
}

Tensor Embedding::table() const {
  const DType stored = options_.weightDType.value_or(options_.dtype);
  return weight(options_.weightName, stored, {count_, size_});
}

Tensor Embedding::operator()(const Tensor& ids, std::source_location at) const {
  expectIntegers(ids, "Embedding '" + path() + "'", at);
  const Scope scope = opened(ids, at);
  // Rows are converted after the lookup: the values are the same, and the table is not copied.
  Tensor rows = options_.useFused ? fused::embedding(ids, table()) : gather(table(), ids, 0);
  return castTo(rows, options_.dtype);
}

Tensor Embedding::unembed(const Tensor& x, std::source_location at) const {
  expectFeatures(x, size_, "Embedding '" + path() + "'", at);
  const Scope scope = opened(x, at);
  return matmul(x, transpose(castTo(table(), x.dtype()), {1, 0}));
}

}  // namespace lathe::nn
