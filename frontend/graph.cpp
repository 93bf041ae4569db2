// SPDX-License-Identifier: Apache-2.0
#include "frontend/graph.h"

#include "frontend/graph_impl.h"
#include "ir/graphviz.h"
#include "ir/types.h"
#include "runtime/error.h"

namespace lathe {

Graph::Graph(std::string_view name, std::source_location at)
    : impl_(std::make_unique<GraphImpl>(name, at)) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Graph Graph::parse(std::string_view text, std::string_view fileName) {
  Graph g;
  g.impl_ = std::make_unique<GraphImpl>(text, fileName);
  return g;
}

Dim Graph::dim(std::string_view name, int64_t lo, int64_t hi, int64_t multiple,
               std::source_location at) {
  return impl_->dim(name, lo, hi, multiple, at);
}
void Graph::entry(std::string_view name, std::source_location at) { impl_->entry(name, at); }
Tensor Graph::input(std::string_view name, DType dtype, const Dims& shape,
                    std::source_location at) {
  return impl_->argument(name, impl_->typeFor(dtype, shape, at), false, at);
}
void Graph::output(std::string_view name, const Tensor& value, std::source_location at) {
  impl_->result(name, value, false, at);
}
void Graph::observe(std::string_view name, const Tensor& value, std::source_location at) {
  impl_->observe(name, value, at);
}
Tensor Graph::weight(std::string_view name, DType dtype, const Shape& shape,
                     std::source_location at) {
  return impl_->weight(name, dtype, shape, at);
}
void Graph::state(std::string_view name, DType dtype, const Dims& shape, std::source_location at) {
  impl_->state(name, dtype, shape, at);
}
Tensor Graph::readState(std::string_view name, std::source_location at) {
  return impl_->readState(name, at);
}
void Graph::writeState(std::string_view name, const Tensor& value, std::source_location at) {
  impl_->writeState(name, value, at);
}
Tensor Graph::constant(double value, DType dtype, std::source_location at) {
  Array scalar(dtype, {});
  scalar.set(0, value);
  return constant(scalar, at);
}
Tensor Graph::constant(const Array& value, std::source_location at) {
  return impl_->emit("lathe.constant", {}, {{"value", value}}, at);
}

std::string Graph::text(bool withLocations) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  if (withLocations) flags.enableDebugInfo();
  impl_->finished().print(os, flags);
  return text;
}
std::string Graph::graphviz() const { return toGraphviz(impl_->finished()); }
Recorder* Graph::recorder() const { return impl_.get(); }

}  // namespace lathe
