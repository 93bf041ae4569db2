// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "backends/reference/interpreter_ops.h"
#include "backends/reference/strided.h"

using namespace mlir;

namespace lathe::reference {
namespace {

Dense iota(const Context& cx, IotaOp op) {
  Shape shape = cx.sizes(op, op.getShape()), strides(shape.size(), 0);
  strides[size_t(op.getAxis())] = 1;
  std::vector<int64_t> values = stridedIndices(shape, strides);
  DType dtype = resultDType(op);
  if (!isFloat(dtype)) return cx.integers(dtype, std::move(shape), std::move(values));
  return cx.reals(dtype, std::move(shape), std::vector<double>(values.begin(), values.end()));
}

Dense gather(GatherOp op, const Dense& x, const Dense& indices) {
  int64_t axis = int64_t(op.getAxis());
  Lines lines(x.shape, axis);
  for (int64_t i = 0; i < indices.size(); ++i) {
    int64_t index = (*indices.integers)[size_t(i)];
    if (index < 0 || index >= lines.length)
      fail(op, ErrorCode::InvalidArgument,
           "expected indices in [0, " + std::to_string(lines.length) + ") for axis " +
               std::to_string(axis) + " of size " + std::to_string(lines.length) + ", got " +
               std::to_string(index) + " at element " + std::to_string(i));
  }
  std::vector<int64_t> from;
  for (int64_t o = 0; o < lines.outer; ++o)
    for (int64_t index : *indices.integers)
      for (int64_t j = 0; j < lines.inner; ++j) from.push_back(lines.at(o, index, j));
  Shape shape = x.shape;
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.shape.begin(), indices.shape.end());
  // A row or two of a large table: the others are not read.
  if (x.stored && x.stored->strides == stridesOf(x.shape)) {
    std::vector<double> y(from.size());
    readStored(*x.stored, [&](const auto* first, auto convert) {
      for (size_t i = 0; i < y.size(); ++i) y[i] = convert(first[from[i]]);
    });
    return makeReals(x.dtype, std::move(shape), std::move(y));
  }
  const Dense whole = settled(x);
  return pick({&whole, 1}, std::move(shape), from);
}

Dense update(UpdateOp op, Operands o) {
  const Dense &x = o[0], &value = o[1];
  int64_t axis = int64_t(op.getAxis()), batch = x.shape[0];
  Lines into(x.shape, axis), block(value.shape, axis);
  for (int64_t b = 0; b < batch && block.length > 0; ++b) {
    int64_t position = (*o[2].integers)[size_t(b)];
    // Compared without adding: a position may be anything.
    if (position < 0 || position > into.length - block.length)
      fail(op, ErrorCode::InvalidArgument,
           "expected " + std::to_string(block.length) + " elements to fit into axis " +
               std::to_string(axis) + " of size " + std::to_string(into.length) +
               ", got position " + std::to_string(position) + " for batch " + std::to_string(b) +
               "; the largest that fits is " + std::to_string(into.length - block.length));
  }
  Dense sources[] = {x, value};
  std::vector<int64_t> from(size_t(x.size()));
  std::iota(from.begin(), from.end(), 0);
  for (int64_t a = 0; a < block.outer; ++a) {
    int64_t position = (*o[2].integers)[size_t(a / (block.outer / batch))];
    for (int64_t s = 0; s < block.length; ++s)
      for (int64_t j = 0; j < block.inner; ++j)
        from[size_t(into.at(a, position + s, j))] = x.size() + block.at(a, s, j);
  }
  return pick(sources, x.shape, from);
}

Dense pagedUpdate(PagedUpdateOp op, Operands o) {
  const Dense &x = o[0], &value = o[1];
  const int64_t axis = int64_t(op.getAxis()), batch = value.shape[0], entries = o[2].shape[1];
  const Lines into(x.shape, axis), block(value.shape, axis);
  const int64_t blocks = x.shape[0], places = entries * into.length;
  // Lines of one block, or of one sequence.
  int64_t outer = 1;
  for (int64_t i = 1; i < axis; ++i) outer *= x.shape[size_t(i)];
  const bool writes = value.size() > 0;
  auto positionOf = [&](int64_t b) { return (*o[3].integers)[size_t(b)]; };
  auto blockOf = [&](int64_t b, int64_t p) {
    return (*o[2].integers)[size_t(b * entries + p / into.length)];
  };
  for (int64_t b = 0; b < batch && writes; ++b) {
    const int64_t position = positionOf(b);
    // Compared without adding: a position may be anything.
    if (position < 0 || position > places - block.length)
      fail(op, ErrorCode::InvalidArgument,
           "expected " + std::to_string(block.length) + " elements to fit into " +
               std::to_string(entries) + " blocks of " + std::to_string(into.length) +
               ", got position " + std::to_string(position) + " for sequence " + std::to_string(b));
    for (int64_t p = position; p < position + block.length; ++p)
      if (const int64_t at = blockOf(b, p); at < 0 || at >= blocks)
        fail(op, ErrorCode::InvalidArgument,
             "expected blocks in [0, " + std::to_string(blocks) + "), got block " +
                 std::to_string(at) + " at entry " + std::to_string(p / into.length) +
                 " of sequence " + std::to_string(b));
  }
  Dense sources[] = {x, value};
  std::vector<int64_t> from(size_t(x.size()));
  std::iota(from.begin(), from.end(), 0);
  for (int64_t b = 0; b < batch && writes; ++b)
    for (int64_t s = 0; s < block.length; ++s) {
      const int64_t p = positionOf(b) + s, to = blockOf(b, p);
      for (int64_t line = 0; line < outer; ++line)
        for (int64_t j = 0; j < block.inner; ++j)
          from[size_t(into.at(to * outer + line, p % into.length, j))] =
              x.size() + block.at(b * outer + line, s, j);
    }
  return pick(sources, x.shape, from);
}

Dense randomBits(const Context& cx, RandomBitsOp op, const Dense& seed) {
  uint64_t key = uint64_t(seed.integers->front());
  Shape shape = cx.sizes(op, op.getShape());
  std::vector<int64_t> y(size_t(elementCount(shape)));
  std::array<uint32_t, 4> block{};
  for (size_t n = 0; n < y.size(); ++n) {
    uint64_t counter = n / 4;
    if (n % 4 == 0)
      block = philox({uint32_t(counter), uint32_t(counter >> 32), 0, 0},
                     {uint32_t(key), uint32_t(key >> 32)});
    y[n] = block[n % 4];
  }
  return cx.integers(DType::I32, std::move(shape), std::move(y));
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    uint64_t p = uint64_t(0xD2511F53u) * c[0], q = uint64_t(0xCD9E8D57u) * c[2];
    c = {uint32_t(q >> 32) ^ c[1] ^ k[0], uint32_t(q), uint32_t(p >> 32) ^ c[3] ^ k[1],
         uint32_t(p)};
    k = {k[0] + 0x9E3779B9u, k[1] + 0xBB67AE85u};
  }
  return c;
}

std::optional<Dense> evalIndex(const Context& cx, Operation* op, Operands o) {
  return llvm::TypeSwitch<Operation*, std::optional<Dense>>(op)
      .Case([&](IotaOp i) { return iota(cx, i); })
      .Case([&](GatherOp g) { return gather(g, o[0], o[1]); })
      .Case([&](UpdateOp u) { return update(u, o); })
      .Case([&](PagedUpdateOp u) { return pagedUpdate(u, o); })
      .Case([&](RandomBitsOp r) { return randomBits(cx, r, o[0]); })
      .Default([](Operation*) -> std::optional<Dense> { return std::nullopt; });
}

}  // namespace lathe::reference
