// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other, which is values as they are held here: 64 bits each.
#include "backends/reference/interpreter_ops.h"
#include "lathe/runtime/communicator.h"
#include "runtime/cut_axis.h"

using namespace mlir;

namespace lathe::reference {
namespace {

void expectRanks(const Context& cx, Operation* op, const std::string& what) {
  if (!cx.ranks)
    fail(op, ErrorCode::Unsupported,
         "expected to run on one of " + what +
             ", got one interpreter alone; simulate the mesh, or run the program on them");
}
Communicator& ranksOf(const Context& cx, Operation* op, int64_t count) {
  expectRanks(cx, op, std::to_string(count) + " ranks");
  if (cx.ranks->size() != count)
    fail(op, ErrorCode::InvalidArgument,
         "expected " + std::to_string(count) + " ranks, got " + std::to_string(cx.ranks->size()));
  return *cx.ranks;
}

// The values of all ranks, one behind the other.
template <class T>
std::vector<T> gathered(Communicator& ranks, const std::vector<T>& mine) {
  std::vector<T> all(mine.size() * size_t(ranks.size()));
  if (!mine.empty()) ranks.allGather(mine.data(), all.data(), mine.size() * sizeof(T));
  return all;
}

double combined(double a, double b, Combine how) {
  return how == Combine::sum ? a + b : larger(a, b);
}
int64_t combined(int64_t a, int64_t b, Combine how) {
  return how == Combine::sum ? wrappingAdd(a, b) : larger(a, b);
}
// In the order of the ranks.
template <class T>
std::vector<T> joined(Communicator& ranks, const std::vector<T>& mine, Combine how) {
  const std::vector<T> all = gathered(ranks, mine);
  std::vector<T> y(all.begin(), all.begin() + std::ptrdiff_t(mine.size()));
  for (size_t i = mine.size(); i < all.size(); ++i) {
    T& value = y[i % mine.size()];
    value = combined(value, all[i], how);
  }
  return y;
}
Dense joined(const Context& cx, Communicator& ranks, const Dense& x, Combine how) {
  if (x.isReal()) return cx.reals(x.dtype, x.shape, joined(ranks, *x.reals, how));
  return cx.integers(x.dtype, x.shape, joined(ranks, *x.integers, how));
}

// Part `part` of `parts` equal ones along an axis, of which the last ones may end in zeros.
Dense sliced(const Dense& x, int64_t axis, int64_t parts, int64_t part) {
  const int64_t whole = x.shape[size_t(axis)], size = sizeOfPart(whole, parts);
  const CutAxis cut(x.shape, AxisPiece{.axis = axis,
                                       .begin = std::min(part * size, whole),
                                       .size = keptOfPart(whole, parts, part)});
  Shape shape = x.shape;
  shape[size_t(axis)] = size;
  const CutAxis padded(shape, axis);
  const Dense zero = x.isReal() ? makeReals(x.dtype, {1}, {0}) : makeIntegers(x.dtype, {1}, {0});
  std::vector<int64_t> indices;
  for (int64_t run = 0; run < cut.runs; ++run)
    for (int64_t i = 0; i < padded.run; ++i)
      indices.push_back(i < cut.run ? cut.first + run * cut.stride + i : x.size());
  return pick(std::vector<Dense>{x, zero}, shape, indices);
}

// Of a tensor for every rank, one behind the other.
Dense ofAll(Communicator& ranks, const Dense& x) {
  const Shape flat{x.size() * ranks.size()};
  return x.isReal() ? makeReals(x.dtype, flat, gathered(ranks, *x.reals))
                    : makeIntegers(x.dtype, flat, gathered(ranks, *x.integers));
}

// Where in the values of all ranks each element of the whole lies: of each part, at the first rank
// that has it. Padding behind the whole is left out.
Dense together(Communicator& ranks, const Dense& x, Shape whole, int64_t axis, int64_t parts) {
  const CutAxis cut(x.shape, axis), ofWhole(whole, axis);
  const int64_t every = ranks.size() / parts, size = x.size();
  std::vector<int64_t> indices;
  for (int64_t run = 0; run < cut.runs; ++run)
    for (int64_t i = 0; i < ofWhole.run; ++i)
      indices.push_back(i / cut.run * every * size + run * cut.run + i % cut.run);
  const Dense all = ofAll(ranks, x);
  return pick({&all, 1}, whole, indices);
}

// This rank's part of every rank's x along `split`, one behind the other along `concat`.
Dense exchanged(Communicator& ranks, const Dense& x, int64_t split, int64_t concat) {
  const int64_t size = x.shape[size_t(split)] / ranks.size();
  const CutAxis own(x.shape, AxisPiece{.axis = split, .begin = ranks.rank() * size, .size = size});
  std::vector<int64_t> part;  // where in x each element of this rank's part of it lies
  for (int64_t run = 0; run < own.runs; ++run)
    for (int64_t i = 0; i < own.run; ++i) part.push_back(own.first + run * own.stride + i);
  const CutAxis cut(own.piece, concat);
  std::vector<int64_t> indices;
  for (int64_t run = 0; run < cut.runs; ++run)
    for (int64_t rank = 0; rank < ranks.size(); ++rank)
      for (int64_t i = 0; i < cut.run; ++i)
        indices.push_back(rank * x.size() + part[size_t(run * cut.run + i)]);
  Shape whole = own.piece;
  whole[size_t(concat)] *= ranks.size();
  const Dense all = ofAll(ranks, x);
  return pick({&all, 1}, whole, indices);
}

Communicator& stagesOf(const Context& cx, Operation* op, uint64_t count) {
  expectRanks(cx, op, std::to_string(count) + " stages");
  return *cx.ranks;
}

Shape shapeOfResult(const Context& cx, Operation* op) {
  return cx.sizes(op, DimsAttr::get(op->getContext(), dimsOf(tensorType(op->getResult(0)))));
}

template <class T>
std::vector<T> received(Communicator& ranks, int64_t stage, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  if (count) ranks.receive(int(stage), values.data(), values.size() * sizeof(T));
  return values;
}

}  // namespace

void runSend(const Context& cx, SendOp op, const Dense& x) {
  Communicator& ranks = stagesOf(cx, op, op.getStages());
  if (x.size() == 0) return;
  const void* data = x.isReal() ? static_cast<const void*>(x.reals->data()) : x.integers->data();
  ranks.send(int(op.getStage()), data, size_t(x.size()) * sizeof(int64_t));
}

std::optional<Dense> evalCollective(const Context& cx, Operation* op, Operands operands) {
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    return joined(cx, ranksOf(cx, op, int64_t(reduce.getRanks())), operands[0],
                  reduce.getCombine());
  if (auto scatter = dyn_cast<ReduceScatterOp>(op)) {
    const auto count = int64_t(scatter.getRanks());
    Communicator& ranks = ranksOf(cx, op, count);
    return sliced(joined(cx, ranks, operands[0], scatter.getCombine()), int64_t(scatter.getAxis()),
                  count, ranks.rank());
  }
  if (auto gather = dyn_cast<AllGatherOp>(op))
    return together(ranksOf(cx, op, int64_t(gather.getRanks())), operands[0], shapeOfResult(cx, op),
                    int64_t(gather.getAxis()), int64_t(gather.getParts()));
  if (auto exchange = dyn_cast<AllToAllOp>(op))
    return exchanged(ranksOf(cx, op, int64_t(exchange.getRanks())), operands[0],
                     int64_t(exchange.getSplitAxis()), int64_t(exchange.getConcatAxis()));
  if (auto slice = dyn_cast<AllSliceOp>(op)) {
    const auto count = int64_t(slice.getRanks()), parts = int64_t(slice.getParts());
    return sliced(operands[0], int64_t(slice.getAxis()), parts,
                  ranksOf(cx, op, count).rank() * parts / count);
  }
  if (auto receive = dyn_cast<ReceiveOp>(op)) {
    Communicator& ranks = stagesOf(cx, op, receive.getStages());
    const auto stage = int64_t(receive.getStage());
    const DType dtype = resultDType(op);
    const Shape shape = shapeOfResult(cx, op);
    const int64_t count = elementCount(shape);
    return isFloat(dtype) ? makeReals(dtype, shape, received<double>(ranks, stage, count))
                          : makeIntegers(dtype, shape, received<int64_t>(ranks, stage, count));
  }
  return std::nullopt;
}

}  // namespace lathe::reference
