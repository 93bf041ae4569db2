// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/attention_call.h"

#include <algorithm>

namespace lathe::cuda {

AttentionCall::AttentionCall(const PlainAttention& a,
                             const std::function<int64_t(const DimExpr&)>& valueOf,
                             const std::function<int64_t(const Argument&)>& scratchAt) {
  auto placeOf = [&](const Argument& argument, int64_t offset) {
    return argument.kind == Argument::Kind::Buffer ? Place{argument.index, offset}
                                                   : Place{-1, scratchAt(argument) + offset};
  };
  auto view = [&](const PlainAttention::View& from, LibraryAttention::View& to, Place& place) {
    to = {valueOf(from.batch), valueOf(from.head), valueOf(from.token)};
    place = placeOf(from.buffer, valueOf(from.offset) * int64_t(sizeOf(a.dtype)));
  };
  attention_ = {.dtype = a.dtype,
                .batch = valueOf(a.batch),
                .queryHeads = a.queryHeads,
                .keyHeads = a.keyHeads,
                .queries = valueOf(a.queries),
                .keys = valueOf(a.keys),
                .depth = a.depth,
                .valueDepth = a.valueDepth,
                .scale = float(a.scale),
                .causal = a.causal,
                .lengths = a.lengths.has_value()};
  view(a.q, attention_.q, q_);
  view(a.k, attention_.k, k_);
  view(a.v, attention_.v, v_);
  view(a.y, attention_.y, y_);
  if (a.lengths) lengths_ = placeOf(*a.lengths, 0);
}

bool AttentionCall::some() const {
  return std::min({attention_.batch, attention_.queries, attention_.keys}) > 0;
}

LibraryAttentionOperands AttentionCall::operands(void* const* buffers, std::byte* scratch) const {
  return {q_.in(buffers, scratch), k_.in(buffers, scratch), v_.in(buffers, scratch),
          lengths_ ? reinterpret_cast<const int32_t*>(lengths_->in(buffers, scratch)) : nullptr,
          y_.in(buffers, scratch)};
}

std::vector<const Argument*> AttentionCall::argumentsOf(const PlainAttention& a) {
  std::vector<const Argument*> all{&a.q.buffer, &a.k.buffer, &a.v.buffer, &a.y.buffer};
  if (a.lengths) all.push_back(&*a.lengths);
  return all;
}

}  // namespace lathe::cuda
