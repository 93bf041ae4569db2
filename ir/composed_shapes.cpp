// SPDX-License-Identifier: Apache-2.0
// Shapes, ranks, and values from nothing.
#include "lathe/ir/composed_ops.h"

#include "ir/composing.h"
#include "ir/op_recording.h"
#include "ir/operand_checks.h"
#include "lathe/ir/ops.h"

namespace lathe {
namespace {

constexpr const char* kPieces =
    "pieces are cut when the graph is recorded; splitSizes takes sizes "
    "with symbols";

std::vector<Tensor> pieces(const Tensor& x, int64_t axis, int64_t total, int64_t size,
                           std::source_location at) {
  // Each is an op of its own.
  constexpr int64_t most = 65536;
  const int64_t count = total / size + (total % size != 0);
  if (count > most)
    failIn("split",
           "expected at most " + std::to_string(most) + " pieces of " + typeTextOf(x) + ", got " +
               std::to_string(count) + "; take larger ones",
           at);
  std::vector<Tensor> parts;
  for (int64_t from = 0; from == 0 || from < total; from += size)
    parts.push_back(sliceAxis(x, axis, from, std::min(size, total - from), 1, at));
  return parts;
}

}  // namespace

Tensor squeeze(const Tensor& x, int64_t axis, std::source_location at) {
  const Composing composing("squeeze");
  const int64_t i = axisIn("squeeze", x, axis, at);
  Dims shape = x.shape(at);
  if (!(shape[size_t(i)] == Dim(1)))
    failIn("squeeze",
           "expected an axis " + std::to_string(axis) + " of size 1, got " + typeTextOf(x) +
               "; leave the call out, or slice the axis first",
           at);
  shape.erase(shape.begin() + i);
  return reshape(x, shape, at);
}

Tensor squeeze(const Tensor& x, std::source_location at) {
  const Composing composing("squeeze");
  expectTensor("squeeze", x, at);
  Dims shape = x.shape(at);
  const size_t rank = shape.size();
  std::erase(shape, Dim(1));
  return shape.size() == rank ? x : reshape(x, shape, at);
}

Tensor unsqueeze(const Tensor& x, int64_t axis, std::source_location at) {
  const Composing composing("unsqueeze");
  expectTensor("unsqueeze", x, at);
  Dims shape = x.shape(at);
  const int64_t rank = int64_t(shape.size());
  if (axis < -rank - 1 || axis > rank)
    failIn("unsqueeze",
           "expected an axis from " + std::to_string(-rank - 1) + " to " + std::to_string(rank) +
               " for " + typeTextOf(x) + ", got " + std::to_string(axis),
           at);
  shape.insert(shape.begin() + (axis < 0 ? axis + rank + 1 : axis), Dim(1));
  return reshape(x, shape, at);
}

Tensor flatten(const Tensor& x, int64_t first, int64_t last, std::source_location at) {
  const Composing composing("flatten");
  expectTensor("flatten", x, at);
  if (x.rank(at) == 0) return reshape(x, {1}, at);
  const int64_t from = axisIn("flatten", x, first, at), to = axisIn("flatten", x, last, at);
  if (from > to)
    failIn("flatten",
           "expected a first axis in front of the last, got " + std::to_string(first) + " and " +
               std::to_string(last) + " of " + typeTextOf(x),
           at);
  const Dims shape = x.shape(at);
  Dims flat(shape.begin(), shape.begin() + from);
  Dim merged(1);
  for (int64_t i = from; i <= to; ++i) merged = merged * shape[size_t(i)];
  flat.push_back(merged);
  flat.insert(flat.end(), shape.begin() + to + 1, shape.end());
  return from == to ? x : reshape(x, flat, at);
}

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t axis, std::source_location at) {
  const Composing composing("split");
  const int64_t i = axisIn("split", x, axis, at);
  if (size < 1)
    failIn("split", "expected pieces of size 1 or more, got " + std::to_string(size), at);
  return pieces(x, i, fixedSize("split", x, axis, kPieces, at), size, at);
}

std::vector<Tensor> splitSizes(const Tensor& x, const Dims& sizes, int64_t axis,
                               std::source_location at) {
  const Composing composing("splitSizes");
  const int64_t i = axisIn("splitSizes", x, axis, at);
  Dim total(0);
  std::string text;
  for (const Dim& size : sizes) {
    total = total + size;
    text += (text.empty() ? "" : ", ") + size.text();
  }
  if (sizes.empty() || !(total == x.dim(i)))
    failIn("splitSizes",
           "expected sizes that add up to " + x.dim(i).text() + ", axis " + std::to_string(axis) +
               " of " + typeTextOf(x) + ", got {" + text + "}",
           at);
  for (const Dim& size : sizes)
    if (size.asConstant().value_or(0) < 0)
      failIn("splitSizes", "expected sizes of 0 or more, got {" + text + "}", at);
  std::vector<Tensor> parts;
  Dim from(0);
  for (const Dim& size : sizes) {
    parts.push_back(sliceAxis(x, i, from, size, 1, at));
    from = from + size;
  }
  return parts;
}

std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t axis, std::source_location at) {
  const Composing composing("chunk");
  const int64_t i = axisIn("chunk", x, axis, at);
  if (count < 1) failIn("chunk", "expected 1 piece or more, got " + std::to_string(count), at);
  const int64_t total = fixedSize("chunk", x, axis, kPieces, at);
  const int64_t size = total / count + (total % count != 0);
  return pieces(x, i, total, std::max<int64_t>(size, 1), at);
}

Tensor stack(const std::vector<Tensor>& inputs, int64_t axis, std::source_location at) {
  const Composing composing("stack");
  if (inputs.empty()) failIn("stack", "expected at least one tensor, got none", at);
  std::vector<Tensor> parts;
  for (const Tensor& x : inputs) {
    expectTensor("stack", x, at);
    if (x.shape(at) != inputs[0].shape(at) || x.dtype(at) != inputs[0].dtype(at))
      failIn("stack",
             "expected tensors of one shape and dtype, got " + typeTextOf(inputs[0]) + " and " +
                 typeTextOf(x) + "; reshape or cast them",
             at);
    parts.push_back(unsqueeze(x, axis, at));
  }
  return concat(parts, axis < 0 ? axis + int64_t(parts[0].rank(at)) : axis, at);
}

Tensor shard(const Tensor& x, int64_t axis, std::string_view meshAxis, std::source_location at) {
  const Composing composing("shard");
  const int64_t i = axisIn("shard", x, axis, at);
  (void)fixedSize("shard", x, i, "a rank's piece is an equal share of it", at);
  if (meshAxis.empty())
    failIn("shard", "expected the name of an axis of the mesh, got an empty text; take \"tp\"", at);
  return OpRecording("lathe.shard", at)
      .operand("x", x)
      .attribute("axis", i)
      .attribute("mesh_axis", std::string(meshAxis))
      .record();
}

Tensor full(const Tensor& like, const Dims& shape, double value, DType dtype,
            std::source_location at) {
  const Composing composing("full");
  expectTensor("full", like, at);
  if (!holds(dtype, value))
    failIn("full",
           "expected a number that " + std::string(nameOf(dtype)) + " holds, got " +
               numberText(value) + "; give another dtype or number",
           at);
  Array scalar(dtype, {});
  scalar.set(0, value);
  Tensor x = like.recorder(at)->emit("lathe.constant", {}, {{"value", scalar}}, at);
  return shape.empty() ? x : broadcast(x, shape, at);
}
Tensor zeros(const Tensor& like, const Dims& shape, DType dtype, std::source_location at) {
  const Composing composing("zeros");
  return full(like, shape, 0, dtype, at);
}
Tensor ones(const Tensor& like, const Dims& shape, DType dtype, std::source_location at) {
  const Composing composing("ones");
  return full(like, shape, 1, dtype, at);
}
Tensor zerosLike(const Tensor& x, std::source_location at) {
  const Composing composing("zerosLike");
  expectTensor("zerosLike", x, at);
  return full(x, x.shape(at), 0, x.dtype(at), at);
}
Tensor onesLike(const Tensor& x, std::source_location at) {
  const Composing composing("onesLike");
  expectTensor("onesLike", x, at);
  return full(x, x.shape(at), 1, x.dtype(at), at);
}

Tensor oneHot(const Tensor& ids, int64_t depth, DType dtype, std::source_location at) {
  const Composing composing("oneHot");
  expectWholeNumbers("oneHot", ids, at);
  if (depth < 1)
    failIn("oneHot", "expected a depth of 1 or more, got " + std::to_string(depth), at);
  Tensor wide = ids.dtype() == DType::I64 ? ids : cast(ids, DType::I64, at);
  Tensor hits =
      compare(unsqueeze(wide, -1, at), iota(ids, {depth}, 0, DType::I64, at), Compare::eq, at);
  return dtype == DType::Bool ? hits : cast(hits, dtype, at);
}

}  // namespace lathe
