// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/graph.h"

#include "frontend/graph_impl.h"
#include "lathe/ir/graphviz.h"
#include "lathe/ir/ops.h"
#include "lathe/ir/types.h"
#include "lathe/runtime/error.h"

namespace lathe {

Graph::Graph(std::string_view name, std::source_location at)
    : impl_(std::make_unique<GraphImpl>(name, at)) {
  impl_->setOwner(this);
}
Graph::~Graph() = default;
Graph::Graph(Graph&& other) noexcept : impl_(std::move(other.impl_)) {
  if (impl_) impl_->setOwner(this);
}
Graph& Graph::operator=(Graph&& other) noexcept {
  impl_ = std::move(other.impl_);
  if (impl_) impl_->setOwner(this);
  return *this;
}

Graph Graph::parse(std::string_view text, std::string_view fileName) {
  Graph g;
  g.impl_ = std::make_unique<GraphImpl>(text, fileName);
  g.impl_->setOwner(&g);
  return g;
}

void Graph::failMoved(const std::source_location* at) {
  const std::string text = "the Graph was moved from; use the one that it was moved to";
  if (at) throw Error(ErrorCode::InvalidArgument, text, *at);
  throw Error(ErrorCode::InvalidArgument, text);
}
GraphImpl& Graph::impl(std::source_location at) const {
  if (!impl_) failMoved(&at);
  return *impl_;
}
GraphImpl& Graph::impl() const {
  if (!impl_) failMoved(nullptr);
  return *impl_;
}

Dim Graph::dim(std::string_view name, int64_t lo, int64_t hi, int64_t multiple,
               std::source_location at) {
  return impl(at).dim(name, lo, hi, multiple, at);
}
void Graph::entry(std::string_view name, std::source_location at) { impl(at).entry(name, at); }
Tensor Graph::input(std::string_view name, DType dtype, const Dims& shape,
                    std::source_location at) {
  return impl(at).argument(name, impl(at).typeFor(dtype, shape, at), false, at);
}
void Graph::output(std::string_view name, const Tensor& value, std::source_location at) {
  impl(at).result(name, value, false, at);
}
void Graph::observe(std::string_view name, const Tensor& value, std::source_location at) {
  impl(at).observe(name, value, at);
}
void Graph::mesh(std::string_view axis, int64_t ranks, std::source_location at) {
  impl(at).mesh(axis, ranks, at);
}
void Graph::shard(std::string_view weights, int64_t axis, std::string_view meshAxis,
                  std::source_location at) {
  impl(at).shardWeights(weights, axis, meshAxis, at);
}
void Graph::keepWhole(std::string_view weights, std::source_location at) {
  impl(at).shardWeights(weights, {}, "", at);
}
Tensor Graph::weight(std::string_view name, DType dtype, const Shape& shape,
                     std::source_location at) {
  return impl(at).weight(name, dtype, shape, at);
}
void Graph::state(std::string_view name, DType dtype, const Dims& shape, std::source_location at) {
  impl(at).state(name, dtype, shape, at);
}
Tensor Graph::readState(std::string_view name, std::source_location at) {
  return impl(at).readState(name, at);
}
void Graph::writeState(std::string_view name, const Tensor& value, std::source_location at) {
  impl(at).writeState(name, value, at);
}
Tensor Graph::constant(double value, DType dtype, std::source_location at) {
  return impl(at).constant(value, dtype, at);
}
Tensor Graph::constant(const Array& value, std::source_location at) {
  if (!value.defined())
    throw Error(
        ErrorCode::InvalidArgument,
        "constant: expected values, got an undefined Array; was it moved or never assigned?", at);
  return impl(at).emit("lathe.constant", {}, {{"value", value}}, at);
}

Tensor Graph::full(const Dims& shape, double value, DType dtype, std::source_location at) {
  Tensor x = constant(value, dtype, at);
  return shape.empty() ? x : broadcast(x, shape, at);
}
Tensor Graph::zeros(const Dims& shape, DType dtype, std::source_location at) {
  return full(shape, 0, dtype, at);
}
Tensor Graph::ones(const Dims& shape, DType dtype, std::source_location at) {
  return full(shape, 1, dtype, at);
}
Tensor Graph::arange(const Dim& size, DType dtype, std::source_location at) {
  return impl(at).emit("lathe.iota", {},
                       {{"shape", Dims{size}}, {"axis", int64_t(0)}, {"dtype", dtype}}, at);
}

std::string Graph::text(bool withLocations) const {
  std::string text;
  llvm::raw_string_ostream os(text);
  mlir::OpPrintingFlags flags;
  if (withLocations) flags.enableDebugInfo();
  const auto lock = impl().lock();
  impl().copy()->print(os, flags);
  return text;
}
std::string Graph::graphviz() const {
  const auto lock = impl().lock();
  return toGraphviz(*impl().copy());
}
Recorder* Graph::recorder() const { return &impl(); }

}  // namespace lathe
