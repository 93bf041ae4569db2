// SPDX-License-Identifier: Apache-2.0
// Which axes of the ops' operands and results are one loop.
#include "lathe/ir/factors.h"

#include <numeric>

#include "ir/axis_groups.h"
#include "lathe/ir/types.h"

using namespace mlir;

namespace lathe {
namespace {

using FactorAxes = Factors::Axes;
constexpr int kWhole = Factors::kWhole;

// 0, 1, 2, ...
FactorAxes numbered(int64_t rank) {
  FactorAxes axes(size_t(rank), 0);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// The factors of a tensor that broadcasts to one of dims `to`, aligned at the last axis. What it is
// stretched along it has only once.
FactorAxes aligned(RankedTensorType from, ArrayRef<StringAttr> to, ArrayRef<int> factors) {
  const auto dims = dimsOf(from);
  FactorAxes axes(dims.size(), kWhole);
  for (size_t i = 0; i < dims.size() && i < to.size(); ++i) {
    const size_t a = dims.size() - 1 - i, b = to.size() - 1 - i;
    if (dims[a] == to[b]) axes[a] = factors[b];
  }
  return axes;
}

// All operands broadcast to the first result, which has these factors, as have the other results.
Factors broadcasting(Operation* op, FactorAxes result) {
  Factors f;
  const auto dims = dimsOf(tensorType(op->getResult(0)));
  for (Value v : op->getOperands()) f.operands.push_back(aligned(tensorType(v), dims, result));
  f.results.assign(op->getNumResults(), result);
  return f;
}

// An op on rows: one axis belongs together.
Factors rows(Operation* op, int64_t whole) {
  FactorAxes axes = numbered(tensorType(op->getResult(0)).getRank());
  axes[size_t(whole)] = kWhole;
  return broadcasting(op, axes);
}
Factors rows(Operation* op) { return rows(op, tensorType(op->getResult(0)).getRank() - 1); }

}  // namespace

Factors factorsOfBroadcast(Operation* op) {
  return broadcasting(op, numbered(tensorType(op->getResult(0)).getRank()));
}

Factors factorsOfReduction(Operation* op) {
  Factors f;
  auto type = tensorType(op->getOperand(0));
  FactorAxes axes = numbered(type.getRank()), result;
  SmallVector<int64_t> reduced;
  if (auto list = op->getAttrOfType<DenseI64ArrayAttr>("axes"))
    reduced.assign(list.asArrayRef().begin(), list.asArrayRef().end());
  else
    reduced.push_back(op->getAttrOfType<IntegerAttr>("axis").getInt());
  const bool keeps = tensorType(op->getResult(0)).getRank() == type.getRank();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    const bool isReduced = llvm::is_contained(reduced, i);
    if (isReduced && isa<ReduceSumOp>(op))
      f.sums.push_back(axes[size_t(i)]);
    else if (isReduced)
      axes[size_t(i)] = kWhole;
    if (!isReduced || keeps) result.push_back(isReduced ? kWhole : int(i));
  }
  f.operands = {axes};
  f.results.assign(op->getNumResults(), result);
  return f;
}

std::optional<Factors> SoftmaxOp::factors() { return rows(*this, int64_t(getAxis())); }
std::optional<Factors> RmsNormOp::factors() { return rows(*this); }
std::optional<Factors> LayerNormOp::factors() { return rows(*this); }
std::optional<Factors> AddNormOp::factors() { return rows(*this); }
std::optional<Factors> AdalnModulateOp::factors() { return rows(*this); }
std::optional<Factors> RopeOp::factors() { return rows(*this); }
std::optional<Factors> NormRopeOp::factors() { return rows(*this); }
std::optional<Factors> GatedResidualOp::factors() { return factorsOfBroadcast(*this); }
std::optional<Factors> GluOp::factors() { return factorsOfBroadcast(*this); }
std::optional<Factors> BroadcastOp::factors() { return factorsOfBroadcast(*this); }

std::optional<Factors> UpdateOp::factors() {
  FactorAxes axes = numbered(tensorType(getX()).getRank());
  axes[size_t(getAxis())] = kWhole;
  return Factors{{axes, axes, {axes[0]}}, {axes}, {}};
}

std::optional<Factors> PagedUpdateOp::factors() {
  // Any sequence may write to any block.
  FactorAxes axes = numbered(tensorType(getX()).getRank());
  axes[0] = axes[size_t(getAxis())] = kWhole;
  return Factors{{axes, axes, {kWhole, kWhole}, {kWhole}}, {axes}, {}};
}

std::optional<Factors> RopeAppendOp::factors() {
  FactorAxes axes = numbered(tensorType(getCache()).getRank());
  axes[size_t(getAxis())] = axes.back() = kWhole;
  Factors f{{axes, axes}, {axes}, {}};
  const auto block = dimsOf(tensorType(getX()));
  if (getGain()) f.operands.push_back({kWhole});
  for (Value table : {getCos(), getSin()})
    f.operands.push_back(aligned(tensorType(table), block, axes));
  f.operands.push_back({axes[0]});
  return f;
}

std::optional<Factors> ShardOp::factors() { return factorsOfBroadcast(*this); }

std::optional<Factors> AttentionOp::factors() {
  auto q = tensorType(getQ());
  const size_t rank = size_t(q.getRank()), rows = rank - 2;
  // Batch and heads, then the queries, whose numbers a causal mask compares with those of keys.
  FactorAxes y = numbered(q.getRank()), ofKeys(rank, kWhole);
  if (getCausal() != Causal::none) y[rows] = kWhole;
  for (size_t i = 0; i < rows; ++i) ofKeys[i] = y[i];
  // A key head that all query heads share serves every piece of them.
  if (rank == 4 && tensorType(getK()).getDimSize(1) == 1) ofKeys[1] = kWhole;
  FactorAxes ofQueries = y, ofValues = ofKeys;
  // By heads alone: with a part of every value each piece would compare all queries and keys anew.
  ofQueries.back() = ofValues.back() = y.back() = kWhole;
  Factors f{{ofQueries, ofKeys, ofValues}, {y}, {}};
  if (getMask()) {
    auto scores = dimsOf(q);
    scores.back() = dimOf(tensorType(getK()), q.getRank() - 2);
    f.operands.push_back(aligned(tensorType(getMask()), scores, ofQueries));
  }
  if (getPositions()) f.operands.push_back({y[0]});
  return f;
}

std::optional<Factors> PagedAttentionOp::factors() {
  // Sequences and heads, as in attention; every sequence may read every block.
  FactorAxes y = numbered(tensorType(getQ()).getRank());
  y[2] = y[3] = kWhole;
  const bool shared = tensorType(getK()).getDimSize(1) == 1;
  const FactorAxes blocks{kWhole, shared ? kWhole : y[1], kWhole, kWhole};
  Factors f{{y, blocks, blocks, {y[0], kWhole}, {y[0]}}, {y}, {}};
  if (getMask()) {
    auto scores = dimsOf(tensorType(getQ()));
    scores.back() = StringAttr();
    f.operands.push_back(aligned(tensorType(getMask()), scores, y));
  }
  return f;
}

std::optional<Factors> LinearOp::factors() {
  if (getLayout() == WeightLayout::packed) return std::nullopt;
  FactorAxes y = numbered(tensorType(getY()).getRank()), x = y;
  const int n = y.back(), k = x.back() = n + 1;
  const bool outIn = getLayout() == WeightLayout::out_in;
  Factors f{{x, outIn ? FactorAxes{n, k} : FactorAxes{k, n}}, {y}, {k}};
  if (getBias()) f.operands.push_back({n});
  if (getResidual()) f.operands.push_back(y);
  return f;
}

std::optional<Factors> GroupedLinearOp::factors() {
  if (getLayout() == WeightLayout::packed) return std::nullopt;
  FactorAxes y = numbered(tensorType(getY()).getRank());
  const int n = y.back(), k = n + 1;
  // Axes of x that are 1 serve every piece of the indices.
  FactorAxes x = aligned(tensorType(getX()), dimsOf(tensorType(getY())), y);
  x.back() = k;
  const bool outIn = getLayout() == WeightLayout::out_in;
  const FactorAxes w = outIn ? FactorAxes{kWhole, n, k} : FactorAxes{kWhole, k, n};
  return Factors{{x, w, FactorAxes(y.begin(), y.end() - 1)}, {y}, {k}};
}

std::optional<Factors> QuantizedLinearOp::factors() {
  if (getLayout() == WeightLayout::packed) return std::nullopt;
  FactorAxes y = numbered(tensorType(getY()).getRank()), x = y;
  x.back() = kWhole;  // a block of the inner axis has one scale
  Factors f{{x, {y.back(), kWhole}, {y.back(), kWhole}}, {y}, {}};
  if (getZero()) f.operands.push_back({y.back(), kWhole});
  if (getBias()) f.operands.push_back({y.back()});
  if (getResidual()) f.operands.push_back(y);
  return f;
}

// Blocks lie along one axis. Pieces of it are whole blocks, or parts of one, which share its scale.
static Factors factorsOfBlocks(Operation* op, int64_t axis, int64_t block) {
  auto x = tensorType(op->getOperand(0)), scale = tensorType(op->getOperand(1));
  FactorAxes axes = numbered(x.getRank()), perBlock = axes;
  const bool isOne = !scale.isDynamicDim(axis) && scale.getDimSize(axis) == 1;
  if (isOne)
    perBlock[size_t(axis)] = kWhole;
  else if (x.isDynamicDim(axis) || x.getDimSize(axis) % block)
    axes[size_t(axis)] = perBlock[size_t(axis)] = kWhole;
  Factors f;
  f.operands.assign(op->getNumOperands(), perBlock);
  f.operands[0] = axes;
  f.results = {axes};
  return f;
}
std::optional<Factors> QuantizeOp::factors() {
  return factorsOfBlocks(*this, int64_t(getAxis()), int64_t(getBlock()));
}
std::optional<Factors> DequantizeOp::factors() {
  return factorsOfBlocks(*this, int64_t(getAxis()), int64_t(getBlock()));
}

std::optional<Factors> MatmulOp::factors() {
  auto type = tensorType(getY());
  FactorAxes y = numbered(type.getRank());
  const int k = int(y.size());
  const auto dims = dimsOf(type);
  auto of = [&](Value v, int rowFactor, int columnFactor) {
    auto operand = tensorType(v);
    FactorAxes axes = aligned(operand, dims, y);  // of the leading axes
    axes[axes.size() - 2] = rowFactor;
    axes.back() = columnFactor;
    return axes;
  };
  return Factors{{of(getA(), y[y.size() - 2], k), of(getB(), k, y.back())}, {y}, {k}};
}

std::optional<Factors> EmbeddingOp::factors() {
  auto type = tensorType(getY());
  FactorAxes y = numbered(type.getRank());
  Factors f{{FactorAxes(y.begin(), y.end() - 1), {kWhole, y.back()}}, {y}, {}};
  if (getPositions()) f.operands.push_back(aligned(tensorType(getPositions()), dimsOf(type), y));
  return f;
}

std::optional<Factors> GatherOp::factors() {
  FactorAxes y = numbered(tensorType(getY()).getRank());
  const size_t axis = size_t(getAxis()), chosen = size_t(tensorType(getIndices()).getRank());
  FactorAxes x(y.begin(), y.begin() + axis), indices(y.begin() + axis, y.begin() + axis + chosen);
  x.push_back(kWhole);
  x.append(y.begin() + axis + chosen, y.end());
  return Factors{{x, indices}, {y}, {}};
}

std::optional<Factors> TransposeOp::factors() {
  FactorAxes x = numbered(tensorType(getX()).getRank()), y;
  for (int64_t axis : getPermutation()) y.push_back(x[size_t(axis)]);
  return Factors{{x}, {y}, {}};
}

std::optional<Factors> ReshapeOp::factors() {
  // Of a group of axes the slowest of both sides are one loop, whose pieces lie one behind the
  // other in memory.
  FactorAxes x(size_t(tensorType(getX()).getRank()), kWhole),
      y(size_t(tensorType(getY()).getRank()), kWhole);
  for (auto [factor, group] : llvm::enumerate(axisGroups(tensorType(getX()), tensorType(getY()))))
    x[group.from] = y[group.to] = int(factor);
  return Factors{{x}, {y}, {}};
}

std::optional<Factors> SliceOp::factors() {
  FactorAxes axes = numbered(tensorType(getX()).getRank());
  const auto dims = dimsOf(tensorType(getX()));
  for (size_t i = 0; i < axes.size(); ++i)
    if (dims[i] != getSizes().getDims()[i] || getStrides()[i] != 1) axes[i] = kWhole;
  return Factors{{axes}, {axes}, {}};
}

std::optional<Factors> ConcatOp::factors() {
  FactorAxes axes = numbered(tensorType(getY()).getRank());
  axes[size_t(getAxis())] = kWhole;
  Factors f;
  f.operands.assign(getInputs().size(), axes);
  f.results = {axes};
  return f;
}

}  // namespace lathe
