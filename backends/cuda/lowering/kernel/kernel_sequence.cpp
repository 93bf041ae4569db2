// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/kernel/kernel_sequence.h"

#include <algorithm>

namespace lathe::cuda {
namespace {

// The launch of a step as one of the whole call; its own scratch buffer 0 is buffer `scratch`,
// further ones follow.
Launch inCall(Launch launch, const SequenceStep& step, int scratch) {
  auto place = [&](Argument& a) {
    if (a.kind == Argument::Kind::Buffer)
      a = step.buffers.at(size_t(a.index));
    else if (a.kind == Argument::Kind::Scratch)
      a.index += scratch;
  };
  for (Argument& a : launch.arguments) place(a);
  if (launch.matmul) {
    for (Argument* a : {&launch.matmul->x, &launch.matmul->weight, &launch.matmul->result})
      place(*a);
    if (launch.matmul->bias) place(*launch.matmul->bias);
    if (launch.matmul->residual) place(*launch.matmul->residual);
  }
  if (PlainAttention* a = launch.attention ? &*launch.attention : nullptr) {
    for (PlainAttention::View* view : {&a->q, &a->k, &a->v, &a->y}) place(view->buffer);
    if (a->lengths) place(*a->lengths);
  }
  if (launch.unlessSame[0] >= 0) {
    const Argument &a = step.buffers.at(size_t(launch.unlessSame[0])),
                   &b = step.buffers.at(size_t(launch.unlessSame[1]));
    // A temporary is never the same as anything else.
    const bool buffers = a.kind == Argument::Kind::Buffer && b.kind == Argument::Kind::Buffer;
    launch.unlessSame = buffers ? std::array<int, 2>{a.index, b.index} : std::array<int, 2>{-1, -1};
  }
  return launch;
}

}  // namespace

bool addConditions(std::vector<Condition>& conditions, const std::vector<Condition>& more) {
  for (const Condition& c : more) {
    if (auto value = c.value.asConstant()) {
      if (*value < c.low || *value > c.high) return false;
      continue;
    }
    auto same = std::find_if(conditions.begin(), conditions.end(),
                             [&](const Condition& other) { return other.value == c.value; });
    if (same == conditions.end()) {
      conditions.push_back(c);
      continue;
    }
    same->low = std::max(same->low, c.low);
    same->high = std::min(same->high, c.high);
    if (same->low > same->high) return false;
  }
  return true;
}

KernelSet sequenceOf(const std::vector<SequenceStep>& steps,
                     const std::vector<DimExpr>& temporaries) {
  KernelSet all;
  all.variants.emplace_back();
  all.variants.back().temporaries = temporaries;
  for (const SequenceStep& step : steps) {
    all.kernels.insert(all.kernels.end(), step.kernels.kernels.begin(), step.kernels.kernels.end());
    std::vector<Variant> longer;
    for (const Variant& before : all.variants)
      for (const Variant& next : step.kernels.variants) {
        Variant v = before;
        if (!addConditions(v.when, next.when)) continue;
        if (!next.what.empty()) v.what += (v.what.empty() ? "" : ", ") + next.what;
        const int scratch = int(v.temporaries.size()) + 1;
        v.temporaries.push_back(next.scratchBytes);
        v.temporaries.insert(v.temporaries.end(), next.temporaries.begin(), next.temporaries.end());
        for (const Launch& l : next.launches) v.launches.push_back(inCall(l, step, scratch));
        longer.push_back(std::move(v));
      }
    all.variants = std::move(longer);
  }
  return all;
}

}  // namespace lathe::cuda
