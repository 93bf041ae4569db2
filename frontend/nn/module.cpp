// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/module.h"

#include "frontend/graph_impl.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {

std::string joinPath(std::string_view path, std::string_view name) {
  if (path.empty()) return std::string(name);
  if (name.empty()) return std::string(path);
  return std::string(path) + "." + std::string(name);
}

Module::Module(Graph& graph, std::string path, std::source_location at)
    : graph_(graph.impl(at).link()), path_(std::move(path)) {}

Graph& Module::graph(std::source_location at) const {
  if (!graph_)
    throw Error(ErrorCode::InvalidArgument,
                "the module was moved from; use the one that it was moved to", at);
  if (graph_->recorder) return *static_cast<GraphImpl*>(graph_->recorder)->owner();
  throw Error(ErrorCode::InvalidArgument,
              "the graph of module '" + path_ +
                  "' no longer exists: it was destroyed or overwritten; keep the Graph as long as "
                  "its modules (both can be moved)",
              at);
}

Scope Module::opened(const Tensor& x, std::source_location at) const {
  const Recorder* mine = graph(at).recorder();
  Recorder* recorder = x.recorder(at);
  if (recorder != mine)
    throw Error(
        ErrorCode::InvalidArgument,
        "module '" + path_ + "': the tensor belongs to another graph; record both in one Graph",
        at);
  return Scope(recorder, path_, at);
}

std::string Module::below(std::string_view name) const { return joinPath(path_, name); }

Tensor Module::weight(std::string_view name, DType dtype, const Shape& shape,
                      std::optional<DType> stored) const {
  if (stored && isFloat(dtype)) {
    Graph& g = graph();
    expectFloatDType(*stored, "'" + path_ + "', weightDType",
                     g.impl().blame(std::source_location::current()));
  }
  return castTo(graph().weight(below(name), stored.value_or(dtype), shape), dtype);
}

DType computeDType(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

Tensor castTo(const Tensor& x, DType dtype, std::source_location at) {
  return x.dtype(at) == dtype ? x : cast(x, dtype, at);
}

std::string typeText(const Tensor& x) {
  std::string text = std::string(nameOf(x.dtype())) + "[";
  const Dims shape = x.shape();
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + shape[i].text();
  return text + "]";
}

void expectDefined(const Tensor& x, std::string_view module, std::source_location at) {
  if (Recorder* recorder = x.recorder(at)) return recorder->expectValue(x.id(), at);
  throw Error(
      ErrorCode::InvalidArgument,
      std::string(module) + ": expected a tensor, got an empty handle; was it never assigned?", at);
}

void expectFloats(const Tensor& x, std::string_view what, std::source_location at) {
  expectDefined(x, what, at);
  if (isFloat(x.dtype())) return;
  throw Error(
      ErrorCode::InvalidArgument,
      std::string(what) + ": expected a float tensor, got " + typeText(x) + "; cast it first", at);
}

void expectIntegers(const Tensor& x, std::string_view what, std::source_location at) {
  expectDefined(x, what, at);
  if (!isFloat(x.dtype()) && x.dtype() != DType::Bool) return;
  throw Error(ErrorCode::InvalidArgument,
              std::string(what) + ": expected integers, got " + typeText(x) + "; cast them first",
              at);
}

void expectFloatDType(DType dtype, std::string_view what, std::source_location at) {
  std::string found;
  try {
    if (isFloat(dtype)) return;
    found = nameOf(dtype);
  } catch (const Error& e) {
    found = e.what();
  }
  throw Error(ErrorCode::InvalidArgument,
              std::string(what) + ": expected a float dtype, got " + found, at);
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

void expectPositive(int64_t value, std::string_view what, std::source_location at, int64_t most) {
  if (value >= 1 && value <= most) return;
  throw Error(ErrorCode::InvalidArgument,
              std::string(what) + ": expected " +
                  (value < 1 ? "at least 1" : "at most " + std::to_string(most)) + ", got " +
                  std::to_string(value) +
                  (value < 1 ? "; set it to a positive number" : "; is it a size?"),
              at);
}

}  // namespace lathe::nn
