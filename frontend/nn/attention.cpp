// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/nn/attention.h"

#include <cmath>

#include "ir/composing.h"
#include "lathe/frontend/nn/module.h"
#include "lathe/frontend/nn/softmax.h"
#include "lathe/runtime/error.h"

namespace lathe::nn {
namespace {

[[noreturn]] void fail(const std::string& text, std::source_location at) {
  throw Error(ErrorCode::InvalidArgument, "attention: " + text, at);
}

// A mask of fewer axes than the scores lies along the last of them. One of as many rows as there
// are sequences may be meant for their keys, and where both fit nothing would tell.
void expectOneReading(const Tensor& q, const Tensor& k, const Tensor& mask,
                      std::source_location at) {
  if (!mask.defined() || mask.rank() < 2 || mask.rank() >= q.rank()) return;
  const Dim batch = q.dim(0), rows = mask.dim(0);
  const bool isMatrix = mask.rank() == 2;
  // What the mask's first axis is laid along.
  const Dim along = q.dim(-mask.rank());
  if (!(rows == batch) || batch == Dim(1) || !(mask.dim(-1) == k.dim(-2))) return;
  const std::string other = isMatrix ? "[batch, keys]" : "[batch, queries, keys]";
  const std::string here = isMatrix ? "[queries, keys]" : "[heads, queries, keys]";
  const bool fits = along == batch;
  fail("a mask " + typeText(mask) +
           (fits ? " can be read as " + other + " and as " + here
                 : " looks like " + other + ", but its axes are those of " + here) +
           "; reshape it: " +
           (q.rank() == 3 ? std::string("[batch, 1, keys] or [1, queries, keys]")
            : isMatrix    ? "[batch, 1, 1, keys] or [1, 1, queries, keys]"
                          : "[batch, 1, queries, keys] or [1, heads, queries, keys]"),
       at);
}

void expectValid(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 std::source_location at) {
  expectDefined(q, "attention, q", at);
  expectDefined(k, "attention, k", at);
  expectDefined(v, "attention, v", at);
  const std::string types = "q " + typeText(q) + ", k " + typeText(k) + ", v " + typeText(v);
  const int64_t rank = q.rank();
  if ((rank != 3 && rank != 4) || k.rank() != rank || v.rank() != rank)
    fail("expected three operands of rank 3 or of rank 4, got " + types +
             "; reshape them to [batch, heads, seq, d] or [batch, seq, d]",
         at);
  if (!isFloat(q.dtype()) || k.dtype() != q.dtype() || v.dtype() != q.dtype())
    fail("expected three operands of one float dtype, got " + types + "; cast them", at);
  if (!(q.dim(-1) == k.dim(-1)))
    fail("expected q and k of one depth (last axis), got " + types, at);
  if (!(k.dim(-2) == v.dim(-2)))
    fail("expected as many values as keys (axis -2), got " + types, at);
  if (!q.dim(-1).asConstant()) fail("expected a depth that is a number, got " + types, at);
  if (std::isnan(options.maskFill) || options.maskFill > 0)
    fail("expected a negative maskFill, got " + std::to_string(options.maskFill) +
             "; -infinity and -1e9 are usual",
         at);
  const bool isPlain = options.maskedRow == MaskedRow::nan || options.maskedRow == MaskedRow::zero;
  if (!isPlain && !(options.maskedRow == MaskedRow::uniform && std::isfinite(options.maskFill)))
    fail("expected `nan` or `zero` for masked rows, got `" +
             std::string(nameOf(options.maskedRow)) + "`; a finite maskFill gives `uniform`",
         at);
  if (options.scale && !std::isfinite(*options.scale))
    fail("expected a finite scale, got " + std::to_string(*options.scale), at);
  if (options.mask.defined() && options.mask.dtype(at) != DType::Bool &&
      !isFloat(options.mask.dtype()))
    fail("expected a mask of bool (true = visible) or of floats that are added, got " +
             typeText(options.mask) +
             "; compare it with 0 for a mask of ones and zeros (mask != 0)",
         at);
  expectOneReading(q, k, options.mask, at);
  if (options.positions.defined()) expectIntegers(options.positions, "attention, positions", at);
  if (options.bias.defined() && !isFloat(options.bias.dtype()))
    fail("expected a float bias, got " + typeText(options.bias) + "; a bool belongs into `mask`",
         at);
  if (options.causal && options.positions.defined())
    fail("expected `causal` or `positions`, got both; positions alone are causal", at);
  if (options.window < 0 || (options.window && !options.causal && !options.positions.defined()))
    fail("expected a window of 0 (none) or more with `causal` or `positions`, got " +
             std::to_string(options.window),
         at);
  if (!(options.softcap >= 0) || std::isinf(options.softcap))
    fail("expected a softcap of 0 (none) or more, got " + std::to_string(options.softcap), at);
  if (options.softcap > 0 && options.bias.defined())
    fail("expected a bias or a softcap, got both", at);
  if (rank == 3 || q.dim(1) == k.dim(1)) return;
  auto heads = q.dim(1).asConstant(), groups = k.dim(1).asConstant();
  if (!heads || !groups || *groups < 1 || *heads % *groups || !(k.dim(1) == v.dim(1)))
    fail("expected key and value heads whose number divides the query heads, got " + types, at);
}

// Query head i reads key head i / group: every key head is repeated `group` times in a row.
Tensor repeatHeads(const Tensor& x, int64_t heads, std::source_location at) {
  const Dims d = x.shape();
  const int64_t group = heads / *d[1].asConstant();
  Tensor copies =
      broadcast(reshape(x, {d[0], d[1], 1, d[2], d[3]}, at), {d[0], d[1], group, d[2], d[3]}, at);
  return reshape(copies, {d[0], heads, d[2], d[3]}, at);
}

// The fused op adds one mask; a bias under a bool mask becomes part of it.
Tensor fusedMask(const Tensor& q, const AttentionOptions& options, std::source_location at) {
  if (!options.bias.defined()) return options.mask;
  Tensor bias = castTo(options.bias, computeDType(q.dtype()), at);
  if (!options.mask.defined()) return bias;
  if (options.mask.dtype() != DType::Bool)
    return add(bias, castTo(options.mask, bias.dtype(), at), at);
  Tensor hidden = scalarLike(bias, -std::numeric_limits<double>::infinity(), at);
  return select(options.mask, bias, hidden, at);
}

Tensor fusedAttention(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                      const AttentionOptions& options, std::source_location at) {
  fused::AttentionOptions o;
  o.scale = scale;
  o.softcap = options.softcap;
  o.window = options.window;
  o.mask = fusedMask(q, options, at);
  o.positions = options.positions;
  o.causal = options.causal                ? Causal::top_left
             : options.positions.defined() ? Causal::positions
                                           : Causal::none;
  o.maskedRow = std::isfinite(options.maskFill) ? MaskedRow::uniform : options.maskedRow;
  return fused::attention(q, k, v, o, at);
}

// The bias and the masks on scaled scores.
Tensor masked(Tensor scores, const AttentionOptions& options, std::source_location at) {
  const Dim queries = scores.dim(-2), keys = scores.dim(-1);
  auto inWindow = [&](const Tensor& visible) {
    if (!options.window) return visible;
    return logicalAnd(
        visible,
        windowMask(scores, options.positions, queries, keys, options.window, scores.rank(), at),
        at);
  };
  if (options.softcap > 0) {
    Tensor cap = scalarLike(scores, options.softcap, at);
    scores = mul(tanh(div(scores, cap, at), at), cap, at);
  }
  if (options.bias.defined()) scores = add(scores, castTo(options.bias, scores.dtype(), at), at);
  Tensor lowest = scalarLike(scores, options.maskFill, at);
  if (options.causal)
    scores = select(inWindow(causalMask(scores, queries, keys, at)), scores, lowest, at);
  if (options.positions.defined())
    scores = select(inWindow(positionMask(options.positions, queries, keys, scores.rank(), at)),
                    scores, lowest, at);
  if (!options.mask.defined()) return scores;
  if (options.mask.dtype() == DType::Bool) return select(options.mask, scores, lowest, at);
  return add(scores, castTo(options.mask, scores.dtype(), at), at);
}

}  // namespace

Tensor splitHeads(const Tensor& x, int64_t heads, std::source_location at) {
  const Composing composing("splitHeads");
  expectDefined(x, "splitHeads", at);
  const auto width = x.rank() == 3 ? x.dim(2).asConstant() : std::nullopt;
  if (heads < 1 || !width || *width % heads)
    throw Error(ErrorCode::InvalidArgument,
                "splitHeads: expected [batch, seq, width] whose width is a multiple of " +
                    std::to_string(heads) + " heads, got " + typeText(x),
                at);
  Tensor parts = reshape(x, {x.dim(0), x.dim(1), heads, *width / heads}, at);
  return transpose(parts, {0, 2, 1, 3}, at);
}

Tensor mergeHeads(const Tensor& x, std::source_location at) {
  const Composing composing("mergeHeads");
  expectDefined(x, "mergeHeads", at);
  if (x.rank() != 4)
    throw Error(ErrorCode::InvalidArgument,
                "mergeHeads: expected [batch, heads, seq, d], got " + typeText(x), at);
  const Dims merged = {x.dim(0), x.dim(2), x.dim(1) * x.dim(3)};
  return reshape(transpose(x, {0, 2, 1, 3}, at), merged, at);
}

Tensor causalMask(const Tensor& like, const Dim& queries, const Dim& keys,
                  std::source_location at) {
  const Composing composing("causalMask");
  expectDefined(like, "causalMask", at);
  Tensor i = iota(like, {queries, 1}, 0, DType::I64, at);
  Tensor j = iota(like, {1, keys}, 1, DType::I64, at);
  return compare(j, i, Compare::le, at);
}

// Absolute positions of the queries: i64 [batch, 1, .., queries, 1].
static Tensor queryPositions(const Tensor& positions, const Dim& queries, int64_t rank,
                             std::source_location at) {
  if (positions.rank() != 1) fail("expected positions [batch], got " + typeText(positions), at);
  if (rank < 1 || rank > 8)
    fail("positionMask: expected scores of rank 1 to 8, got rank " + std::to_string(rank), at);
  Dims column(size_t(rank), Dim(1));
  column[0] = positions.dim(0);
  Tensor first = reshape(castTo(positions, DType::I64, at), column, at);
  return add(first, iota(positions, {queries, 1}, 0, DType::I64, at), at);
}

Tensor positionMask(const Tensor& positions, const Dim& queries, const Dim& keys, int64_t rank,
                    std::source_location at) {
  const Composing composing("positionMask");
  expectDefined(positions, "positionMask", at);
  Tensor i = queryPositions(positions, queries, rank, at);
  Tensor j = iota(positions, {1, keys}, 1, DType::I64, at);
  return compare(j, i, Compare::le, at);
}

Tensor windowMask(const Tensor& like, const Tensor& positions, const Dim& queries, const Dim& keys,
                  int64_t window, int64_t rank, std::source_location at) {
  const Composing composing("windowMask");
  expectDefined(like, "windowMask", at);
  expectPositive(window, "windowMask, window", at);
  Tensor i = positions.defined() ? queryPositions(positions, queries, rank, at)
                                 : iota(like, {queries, 1}, 0, DType::I64, at);
  Tensor j = iota(like, {1, keys}, 1, DType::I64, at);
  return compare(j, sub(i, scalarLike(i, double(window), at), at), Compare::gt, at);
}

Tensor gatherBlocks(const Tensor& blocks, const Tensor& table, std::source_location at) {
  const Composing composing("gatherBlocks");
  expectDefined(blocks, "gatherBlocks, blocks", at);
  expectIntegers(table, "gatherBlocks, table", at);
  if (blocks.rank() != 4 || table.rank() != 2)
    throw Error(ErrorCode::InvalidArgument,
                "gatherBlocks: expected [blocks, heads, tokens, d] and a table [batch, entries], "
                "got " +
                    typeText(blocks) + " and " + typeText(table),
                at);
  const Tensor chosen = transpose(gather(blocks, table, 0, at), {0, 2, 1, 3, 4}, at);
  const Dims d = chosen.shape();
  return reshape(chosen, {d[0], d[1], d[2] * d[3], d[4]}, at);
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
                 std::source_location at) {
  const Composing composing("attention");
  expectValid(q, k, v, options, at);
  const double depth = double(*q.dim(-1).asConstant());
  const double scale = options.scale.value_or(1 / std::sqrt(depth));
  if (options.useFused) return fusedAttention(q, k, v, scale, options, at);

  const bool grouped = q.rank() == 4 && !(q.dim(1) == k.dim(1));
  const int64_t heads = grouped ? *q.dim(1).asConstant() : 0;
  Tensor keys = grouped ? repeatHeads(k, heads, at) : k;
  Tensor values = grouped ? repeatHeads(v, heads, at) : v;
  const DType dtype = q.dtype();
  using ScaleForm = AttentionOptions::ScaleForm;
  Tensor queries = options.scaleForm == ScaleForm::Query ? mul(q, scalarLike(q, scale, at), at) : q;
  Tensor scores = matmul(queries, swapAxes(keys, -2, -1, at), at);
  scores = castTo(scores, computeDType(dtype), at);
  if (options.scaleForm == ScaleForm::Divide)
    scores = div(scores, scalarLike(scores, options.scale ? 1 / scale : std::sqrt(depth), at), at);
  else if (options.scaleForm == ScaleForm::Multiply)
    scores = mul(scores, scalarLike(scores, scale, at), at);

  Tensor weights = softmax(masked(scores, options, at), -1, at);
  const bool anyMask = options.causal || options.positions.defined() || options.mask.defined();
  if (anyMask && options.maskedRow == MaskedRow::zero)
    weights = select(isNan(weights, at), scalarLike(weights, 0, at), weights, at);
  return matmul(castTo(weights, dtype, at), values, at);
}

}  // namespace lathe::nn
