// SPDX-License-Identifier: Apache-2.0
#include "frontend/nn/module.h"

#include "runtime/error.h"

namespace lathe::nn {

std::string joinPath(std::string_view path, std::string_view name) {
  if (path.empty()) return std::string(name);
  if (name.empty()) return std::string(path);
  return std::string(path) + "." + std::string(name);
}

std::string Module::below(std::string_view name) const { return joinPath(path_, name); }

Tensor Module::weight(std::string_view name, DType dtype, const Shape& shape,
                      std::optional<DType> stored) const {
  return castTo(graph_->weight(below(name), stored.value_or(dtype), shape), dtype);
}

DType computeDType(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

Tensor castTo(const Tensor& x, DType dtype, std::source_location at) {
  return x.dtype() == dtype ? x : cast(x, dtype, at);
}

std::string typeText(const Tensor& x) {
  std::string text = std::string(nameOf(x.dtype())) + "[";
  const Dims shape = x.shape();
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + shape[i].text();
  return text + "]";
}

void expectDefined(const Tensor& x, std::string_view module, std::source_location at) {
  if (x.defined()) return;
  throw Error(
      ErrorCode::InvalidArgument,
      std::string(module) + ": expected a tensor, got an empty handle; was it never assigned?", at);
}

void expectFeatures(const Tensor& x, int64_t size, std::string_view module,
                    std::source_location at) {
  expectDefined(x, module, at);
  const std::string wanted = "[..., " + std::to_string(size) + "]";
  if (!isFloat(x.dtype()))
    throw Error(ErrorCode::InvalidArgument,
                std::string(module) + ": expected a float tensor " + wanted + ", got " +
                    typeText(x) + "; cast it first",
                at);
  if (x.rank() >= 1 && x.dim(-1) == Dim(size)) return;
  throw Error(ErrorCode::InvalidArgument,
              std::string(module) + ": expected " + std::to_string(size) +
                  " elements along the last axis, got " + typeText(x) + "; pass a tensor " +
                  wanted + " or build the module for that size",
              at);
}

void expectIds(const Tensor& ids, std::string_view module, std::source_location at) {
  expectDefined(ids, std::string(module) + ", ids", at);
  if (ids.rank() == 2 && !isFloat(ids.dtype()) && ids.dtype() != DType::Bool) return;
  throw Error(ErrorCode::InvalidArgument,
              std::string(module) + ": expected integer ids [batch, seq], got " + typeText(ids),
              at);
}

void expectPositive(int64_t value, std::string_view what, std::source_location at) {
  if (value >= 1) return;
  throw Error(ErrorCode::InvalidArgument,
              std::string(what) + ": expected at least 1, got " + std::to_string(value) +
                  "; set it to a positive number",
              at);
}

}  // namespace lathe::nn
