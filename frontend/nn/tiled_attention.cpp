// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/tiled_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/composing.h"
#include "lathe/frontend/nn/module.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

// The size of an axis that is cut into blocks.
int64_t tiledSize(const Tensor& x, int64_t axis, const char* what, std::source_location at) {
  if (const int64_t rank = x.rank(at); rank >= -axis)
    if (auto size = x.dim(axis).asConstant()) return *size;
  throw Error(ErrorCode::InvalidArgument,
              std::string(what) + ": expected an axis " + std::to_string(axis) +
                  " whose size is a number, got " + typeText(x) +
                  "; blocks are laid out when the graph is recorded",
              at);
}

// Each block is recorded op by op.
void expectBlocks(int64_t size, int64_t block, const char* what, std::source_location at) {
  constexpr int64_t most = 10000;
  if (size < 1)
    throw Error(ErrorCode::InvalidArgument,
                std::string(what) + ": expected at least one element to cut into blocks, got none",
                at);
  const int64_t blocks = (size - 1) / block + 1;
  if (blocks > most)
    throw Error(ErrorCode::InvalidArgument,
                std::string(what) + ": " + std::to_string(size) + " elements in blocks of " +
                    std::to_string(block) + " are " + std::to_string(blocks) + " blocks, at most " +
                    std::to_string(most) + " are recorded; use larger ones",
                at);
}

Tensor rowMax(const Tensor& x, std::source_location at) { return reduceMax(x, {-1}, true, at); }
Tensor rowSum(const Tensor& x, std::source_location at) { return reduceSum(x, {-1}, true, at); }

}  // namespace

Tensor tiledSoftmax(const Tensor& x, int64_t block, std::source_location at) {
  const Composing composing("tiledSoftmax");
  expectDefined(x, "tiledSoftmax", at);
  expectFloats(x, "tiledSoftmax", at);
  expectPositive(block, "tiledSoftmax, block", at);
  const int64_t size = tiledSize(x, -1, "tiledSoftmax", at);
  expectBlocks(size, block, "tiledSoftmax", at);
  Tensor wide = castTo(x, computeDType(x.dtype()), at);
  std::vector<Tensor> parts, tops;
  Tensor top, sum;
  for (int64_t from = 0; from < size; from += block) {
    Tensor part = sliceAxis(wide, -1, from, std::min(block, size - from), 1, at);
    Tensor blockTop = rowMax(part, at);
    parts.push_back(exp(sub(part, blockTop, at), at));
    tops.push_back(blockTop);
    Tensor blockSum = rowSum(parts.back(), at);
    if (!top.defined()) {
      top = blockTop;
      sum = blockSum;
      continue;
    }
    Tensor both = max(top, blockTop, at);
    sum = add(mul(exp(sub(top, both, at), at), sum, at),
              mul(exp(sub(blockTop, both, at), at), blockSum, at), at);
    top = both;
  }
  for (size_t i = 0; i < parts.size(); ++i)
    parts[i] = mul(exp(sub(tops[i], top, at), at), parts[i], at);
  return castTo(div(concat(parts, -1, at), sum, at), x.dtype(), at);
}

Tensor tiledAttention(const Tensor& q, const Tensor& k, const Tensor& v, int64_t block,
                      std::source_location at) {
  const Composing composing("tiledAttention");
  expectFloats(q, "tiledAttention, q", at);
  expectDefined(k, "tiledAttention, k", at);
  expectDefined(v, "tiledAttention, v", at);
  expectPositive(block, "tiledAttention, block", at);
  const int64_t keys = tiledSize(k, -2, "tiledAttention, k", at);
  expectBlocks(keys, block, "tiledAttention", at);
  const double depth = double(tiledSize(q, -1, "tiledAttention, q", at));
  if (!(q.dim(-1) == k.dim(-1)))
    throw Error(ErrorCode::InvalidArgument,
                "tiledAttention: expected q and k of one depth (last axis), got " + typeText(q) +
                    " and " + typeText(k),
                at);
  if (tiledSize(v, -2, "tiledAttention, v", at) != keys)
    throw Error(ErrorCode::InvalidArgument,
                "tiledAttention: expected as many values as keys (axis -2), got " + typeText(k) +
                    " and " + typeText(v),
                at);
  const DType wide = computeDType(q.dtype());
  Tensor top, sum, out;
  for (int64_t from = 0; from < keys; from += block) {
    const int64_t size = std::min(block, keys - from);
    Tensor key = sliceAxis(k, -2, from, size, 1, at), value = sliceAxis(v, -2, from, size, 1, at);
    Tensor scores = castTo(matmul(q, swapAxes(key, -2, -1, at), at), wide, at);
    scores = div(scores, scalarLike(scores, std::sqrt(depth), at), at);
    Tensor newTop = top.defined() ? max(top, rowMax(scores, at), at) : rowMax(scores, at);
    Tensor weights = exp(sub(scores, newTop, at), at);
    Tensor blockSum = rowSum(weights, at);
    Tensor blockOut = matmul(weights, castTo(value, wide, at), at);
    if (top.defined()) {
      Tensor shrink = exp(sub(top, newTop, at), at);
      blockSum = add(mul(shrink, sum, at), blockSum, at);
      blockOut = add(mul(shrink, out, at), blockOut, at);
    }
    top = newTop;
    sum = blockSum;
    out = blockOut;
  }
  return castTo(div(out, sum, at), q.dtype(), at);
}

}  // namespace lathe::nn
