// SPDX-License-Identifier: Apache-2.0
// Padding, tiling, triangles and other movements of elements.
#include <algorithm>

#include <fmt/format.h>

#include "frontend/onnx/node.h"

namespace lathe::onnx {
namespace {

int64_t fixed(Node& n, const Tensor& x, int64_t axis) {
  if (auto size = x.dim(axis).asConstant()) return *size;
  n.refuse(fmt::format("axis {} has the symbolic size {}", axis, x.dim(axis).text()));
}

// Elements of an axis by place, in the order given.
Tensor placesOf(Node& n, const Tensor& x, int64_t axis, const std::vector<int64_t>& places) {
  return gather(x, n.constant(Array::fromInts(places, {int64_t(places.size())})), axis);
}

Tensor paddedBy(Node& n, Tensor x, const std::string& mode, const Axes& low, const Axes& high,
                const Tensor& value) {
  const size_t rank = size_t(x.rank());
  Axes up(rank), down(rank);
  for (size_t i = 0; i < rank; ++i) {
    up[i] = std::max(low[i], int64_t(0));
    down[i] = std::max(high[i], int64_t(0));
    if (low[i] < -(1 << 30) || high[i] < -(1 << 30) || up[i] > 1 << 30 || down[i] > 1 << 30)
      n.fail("a padding of more than 2^30");
  }
  // Negative paddings cut.
  for (size_t i = 0; i < rank; ++i)
    if (low[i] < 0 || high[i] < 0) {
      const Dim cutLow(std::max(-low[i], int64_t(0))), cutHigh(std::max(-high[i], int64_t(0)));
      x = sliceAxis(x, int64_t(i), cutLow, x.dim(int64_t(i)) - cutLow - cutHigh);
    }
  auto none = [](int64_t p) { return p == 0; };
  if (std::ranges::all_of(up, none) && std::ranges::all_of(down, none)) return x;
  if (mode == "constant") return pad(x, value.defined() ? value : like(x, 0), up, down);
  for (size_t i = 0; i < rank; ++i) {
    if (!up[i] && !down[i]) continue;
    const int64_t axis = int64_t(i), size = fixed(n, x, axis);
    if (size == 0) n.fail(fmt::format("mode {} along an empty axis", mode));
    if (up[i] + size + down[i] > 1 << 20) n.refuse("a padding of more than 2^20 places");
    std::vector<int64_t> places;
    const int64_t period = mode == "reflect" ? std::max(2 * (size - 1), int64_t(1)) : size;
    for (int64_t p = -up[i]; p < size + down[i]; ++p) {
      int64_t at = ((p % period) + period) % period;
      if (mode == "edge") at = std::clamp(p, int64_t(0), size - 1);
      if (mode == "reflect" && at >= size) at = period - at;
      places.push_back(at);
    }
    x = placesOf(n, x, axis, places);
  }
  return x;
}

void padded(Node& n) {
  const Tensor x = n.in(0);
  const std::string mode = n.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    n.refuse("attribute 'mode': expected constant, edge, reflect or wrap, got " + mode);
  const std::vector<int64_t> pads = n.has(1) ? n.ints(1) : n.list("pads");
  auto axes = n.axes(3, x.rank());
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < x.rank(); ++i) axes->push_back(i);
  }
  if (pads.size() != 2 * axes->size())
    n.fail(fmt::format("expected {} paddings, got {}", 2 * axes->size(), pads.size()));
  Axes low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
  for (size_t i = 0; i < axes->size(); ++i) {
    low[size_t((*axes)[i])] = pads[i];
    high[size_t((*axes)[i])] = pads[i + axes->size()];
  }
  Tensor value;
  if (n.has(2)) value = as(reshaped(n.in(2), {}), x.dtype());
  if (n.hasAttribute("value")) value = like(x, n.real("value", 0));
  n.set(paddedBy(n, x, mode, low, high, value));
}

void centred(Node& n) {
  Tensor x = n.in(0);
  const std::vector<int64_t> shape = n.ints(1);
  auto axes = n.axes(2, x.rank());
  if (!axes) {
    axes.emplace();
    for (int64_t i = 0; i < x.rank(); ++i) axes->push_back(i);
  }
  if (shape.size() != axes->size()) n.fail("expected a size for each axis");
  Axes low(size_t(x.rank()), 0), high(size_t(x.rank()), 0);
  for (size_t i = 0; i < axes->size(); ++i) {
    const int64_t size = fixed(n, x, (*axes)[i]), more = shape[i] - size;
    if (shape[i] < 0) n.fail("a negative size");
    // Halves are rounded down, of what is cut and of what is added.
    const int64_t before = more < 0 ? -(-more / 2) : more / 2;
    low[size_t((*axes)[i])] = before;
    high[size_t((*axes)[i])] = more - before;
  }
  n.set(paddedBy(n, x, "constant", low, high, Tensor()));
}

void tiled(Node& n) {
  Tensor x = n.in(0);
  const Dims repeats = n.dims(1), from = x.shape();
  if (repeats.size() != from.size()) n.fail("expected a number of repeats for each axis");
  Dims split, wide, joined;
  for (size_t i = 0; i < from.size(); ++i) {
    split.insert(split.end(), {Dim(1), from[i]});
    wide.insert(wide.end(), {repeats[i], from[i]});
    joined.push_back(repeats[i] * from[i]);
  }
  n.set(reshaped(broadcasted(reshaped(x, split), wide), joined));
}

// The last two axes above or below a diagonal.
void triangle(Node& n) {
  const Tensor x = n.in(0);
  if (x.rank() < 2) n.fail("expected two axes at least");
  const int64_t diagonal = n.has(1) ? n.integer(1) : 0;
  const bool upper = n.attribute("upper", 1);
  if (diagonal < -(int64_t(1) << 40) || diagonal > int64_t(1) << 40)
    n.fail("a diagonal beyond 2^40");
  n.set(upper ? triu(x, diagonal) : tril(x, diagonal));
}

void depthToSpace(Node& n) {
  const Tensor x = n.in(0);
  const int64_t b = n.attribute("blocksize", 0);
  if (x.rank() != 4 || b < 1 || b > 1 << 15)
    n.fail("expected rank 4 and a block size of at least 1");
  const Dims s = x.shape();
  const auto c = s[1].dividedBy(Dim(b * b));
  if (!c) n.fail("the channels are not divided by the block's area");
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.refuse("attribute 'mode': got " + mode);
  const Tensor y = mode == "DCR"
                       ? transpose(reshape(x, {s[0], b, b, *c, s[2], s[3]}), {0, 3, 4, 1, 5, 2})
                       : transpose(reshape(x, {s[0], *c, b, b, s[2], s[3]}), {0, 1, 4, 2, 5, 3});
  n.set(reshape(y, {s[0], *c, s[2] * b, s[3] * b}));
}
void spaceToDepth(Node& n) {
  const Tensor x = n.in(0);
  const int64_t b = n.attribute("blocksize", 0);
  if (x.rank() != 4 || b < 1 || b > 1 << 15)
    n.fail("expected rank 4 and a block size of at least 1");
  const std::string mode = n.text("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") n.refuse("attribute 'mode': got " + mode);
  const Dims s = x.shape();
  const auto h = s[2].dividedBy(Dim(b)), w = s[3].dividedBy(Dim(b));
  if (!h || !w) n.fail("the block size does not divide height and width");
  const Tensor parts = reshape(x, {s[0], s[1], *h, b, *w, b});
  const Axes order = mode == "DCR" ? Axes{0, 3, 5, 1, 2, 4} : Axes{0, 1, 3, 5, 2, 4};
  n.set(reshape(transpose(parts, order), {s[0], s[1] * b * b, *h, *w}));
}

// Of each sequence of a batch the first so many elements are turned around.
void reverseSequence(Node& n) {
  const Tensor x = n.in(0), lengths = n.in(1, DType::I64);
  const int64_t batch = n.axis(n.attribute("batch_axis", 1), x.rank());
  const int64_t time = n.axis(n.attribute("time_axis", 0), x.rank());
  if (batch == time || lengths.rank() != 1) n.fail("expected two axes and a list of lengths");
  Dims perBatch(size_t(x.rank()), Dim(1)), perTime = perBatch;
  perBatch[size_t(batch)] = x.dim(batch);
  perTime[size_t(time)] = x.dim(time);
  const Tensor place = iota(x, perTime, time), end = reshape(lengths, perBatch);
  const Tensor turned = sub(end, place) - 1.0;
  const Tensor chosen = select(place < end, turned, place);
  n.set(takeAlongAxis(x, broadcasted(chosen, x.shape()), time));
}

const Lowering kTable[] = {
    {"CenterCropPad", {"axes"}, centred, "symbolic sizes"},
    {"DepthToSpace", {"blocksize", "mode"}, depthToSpace},
    {"Pad", {"mode", "pads", "value"}, padded, "modes other than constant along symbolic axes"},
    {"ReverseSequence", {"batch_axis", "time_axis"}, reverseSequence},
    {"SpaceToDepth", {"blocksize", "mode"}, spaceToDepth},
    {"Tile", {}, tiled},
    {"Trilu", {"upper"}, triangle}};

}  // namespace

std::span<const Lowering> rearrangementLowerings() { return kTable; }

}  // namespace lathe::onnx
