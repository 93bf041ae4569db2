// SPDX-License-Identifier: Apache-2.0
#include "frontend/onnx/convolved.h"

#include <algorithm>

#include <fmt/format.h>

namespace lathe::onnx {

constexpr int64_t kMostTaps = 1024;
// Terms of a sum of products, one for each element of the kernel.
constexpr int64_t kMostTerms = 128;
// Columns of so few elements are cheaper than a convolution for each group, of which there are few.
constexpr int64_t kFewTaps = 32, kMostApart = 64;
constexpr int64_t kMostPadding = 1 << 20;

int64_t tapsOf(Node& n, const Windows& windows) {
  const int64_t taps = countOf(windows.kernel);
  if (taps > kMostTaps)
    n.refuse(fmt::format("a kernel of {} elements, expected at most {}", taps, kMostTaps));
  return taps;
}

Windows windowsOf(Node& n, const Dims& shape, const std::vector<int64_t>& kernel) {
  const size_t axes = kernel.size();
  if (shape.size() != axes + 2 || !axes)
    n.fail(fmt::format("expected [n, c] and {} axes, got rank {}", axes, shape.size()));
  auto listOr = [&](const char* name, size_t count, int64_t otherwise) {
    std::vector<int64_t> list = n.list(name);
    if (!n.hasAttribute(name)) list.assign(count, otherwise);
    if (list.size() != count)
      n.fail(fmt::format("attribute '{}': expected {} numbers", name, count));
    for (int64_t v : list)
      if (v < (otherwise ? 1 : 0) || v > kMostPadding)
        n.fail(fmt::format("attribute '{}': {} is out of range", name, v));
    return list;
  };
  Windows w{.kernel = kernel,
            .strides = listOr("strides", axes, 1),
            .dilations = listOr("dilations", axes, 1),
            .low = {},
            .high = {},
            .ceil = n.attribute("ceil_mode", 0) != 0};
  for (int64_t k : kernel)
    if (k < 1 || k > kMostPadding) n.fail("a kernel without elements");
  const std::vector<int64_t> pads = listOr("pads", 2 * axes, 0);
  w.low.assign(pads.begin(), pads.begin() + int64_t(axes));
  w.high.assign(pads.begin() + int64_t(axes), pads.end());
  const std::string automatic = n.text("auto_pad", "NOTSET");
  for (size_t i = 0; i < axes; ++i) {
    const auto size = shape[i + 2].asConstant();
    const int64_t extent = (kernel[i] - 1) * w.dilations[i] + 1;
    if (!size && w.strides[i] != 1)
      n.refuse(fmt::format("a stride of {} along an axis of symbolic size", w.strides[i]));
    if (automatic == "VALID") w.low[i] = w.high[i] = 0;
    if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
      int64_t need = extent - 1;
      if (size) {
        const int64_t count = (*size + w.strides[i] - 1) / w.strides[i];
        need = std::max((count - 1) * w.strides[i] + extent - *size, int64_t(0));
      }
      const bool upper = automatic == "SAME_UPPER";
      w.low[i] = upper ? need / 2 : need - need / 2;
      w.high[i] = need - w.low[i];
    } else if (automatic != "NOTSET" && automatic != "VALID") {
      n.refuse("attribute 'auto_pad': got " + automatic);
    }
  }
  w.highGiven = w.high;
  if (!w.ceil) return w;
  for (size_t i = 0; i < axes; ++i) {
    const auto size = shape[i + 2].asConstant();
    if (!size) continue;  // the stride is 1: no window juts out
    const int64_t extent = (kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t room = *size + w.low[i] + w.high[i] - extent;
    if (room < 0) continue;
    int64_t count = (room + w.strides[i] - 1) / w.strides[i] + 1;
    // The last window starts inside of the image or in front of it.
    if ((count - 1) * w.strides[i] >= *size + w.low[i]) --count;
    w.high[i] += std::max((count - 1) * w.strides[i] - room, int64_t(0));
  }
  return w;
}

Dims windowCounts(Node& n, const Dims& shape, const Windows& w) {
  Dims counts;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const Dim room = shape[i + 2] + w.low[i] + w.high[i] - ((w.kernel[i] - 1) * w.dilations[i] + 1);
    const auto fixed = room.asConstant();
    if (fixed && *fixed < 0) n.fail(fmt::format("the kernel is larger than axis {}", i + 2));
    counts.push_back(fixed ? Dim(*fixed / w.strides[i] + 1) : room + 1);
  }
  return counts;
}

Tensor paddedFor(const Tensor& x, const Windows& w, const Tensor& value) {
  Axes low{0, 0}, high{0, 0};
  low.insert(low.end(), w.low.begin(), w.low.end());
  high.insert(high.end(), w.high.begin(), w.high.end());
  auto none = [](int64_t p) { return p == 0; };
  if (std::ranges::all_of(low, none) && std::ranges::all_of(high, none)) return x;
  return pad(x, value, low, high);
}

Tensor tapOf(const Tensor& padded, const Windows& w, const Dims& counts, int64_t tap) {
  Dims starts{0, 0}, sizes{padded.dim(0), padded.dim(1)};
  Axes strides{1, 1};
  std::vector<int64_t> at(w.kernel.size());
  for (size_t i = w.kernel.size(); i-- > 0;) {
    at[i] = tap % w.kernel[i];
    tap /= w.kernel[i];
  }
  for (size_t i = 0; i < at.size(); ++i) {
    starts.push_back(at[i] * w.dilations[i]);
    sizes.push_back(counts[i]);
    strides.push_back(counts[i] == Dim(1) ? 1 : w.strides[i]);
  }
  return slice(padded, starts, sizes, strides);
}

namespace {

// One group along one axis or two, whose sizes are numbers.
Tensor plain(const Tensor& x, const Tensor& w, const Windows& windows) {
  const size_t axes = windows.kernel.size();
  // One axis is two, the first of height 1.
  auto flat = [&](const Tensor& t) { return axes == 1 ? unsqueeze(t, 2) : t; };
  Axes strides = windows.strides, padding;
  if (axes == 1) {
    strides.insert(strides.begin(), 1);
    padding = {0, 0};
  }
  for (size_t i = 0; i < axes; ++i)
    padding.insert(padding.end(), {windows.low[i], windows.high[i]});
  const Tensor y = convolution(flat(x), flat(w), strides, padding);
  return axes == 1 ? squeeze(y, 2) : y;
}

// Each channel by itself: a sum of products, which is one kernel and needs no columns. `each`
// channels of the result belong to one of x.
Tensor depthwise(const Tensor& x, const Tensor& w, const Windows& windows, const Dims& counts,
                 const Dim& each) {
  const int64_t taps = countOf(windows.kernel);
  // Terms are added before they are rounded.
  const DType dtype = x.dtype(), sums = isFloat(dtype) && sizeOf(dtype) < 4 ? DType::F32 : dtype;
  const Tensor padded = cast(paddedFor(x, windows, like(x, 0)), sums);
  const Tensor factors = cast(reshape(w, {x.dim(1), each, taps}), sums);
  Dims shape{x.dim(1), each};
  shape.insert(shape.end(), counts.size(), Dim(1));
  Tensor sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    const Tensor term = mul(unsqueeze(tapOf(padded, windows, counts, tap), 2),
                            reshape(sliceAxis(factors, 2, tap, 1), shape));
    sum = sum.defined() ? add(sum, term) : term;
  }
  return cast(sum, dtype);
}

}  // namespace

Tensor convolved(Node& n, const Tensor& x, const Tensor& w, const Windows& windows,
                 int64_t groups) {
  const Dims shape = x.shape(), counts = windowCounts(n, shape, windows);
  const size_t axes = windows.kernel.size();
  bool isPlain = axes <= 2 && isFloat(x.dtype());
  for (size_t i = 0; i < axes; ++i)
    isPlain &= windows.dilations[i] == 1 && shape[i + 2].asConstant().has_value();
  if (isPlain && groups == 1 && shape[1] == w.dim(1)) return plain(x, w, windows);
  const int64_t taps = tapsOf(n, windows);
  const auto each = shape[1].dividedBy(Dim(groups)), out = w.dim(0).dividedBy(Dim(groups));
  if (!each || !out || !(w.dim(1) == *each)) n.fail("channels and groups do not fit the weight");
  Dims result{shape[0], w.dim(0)};
  result.insert(result.end(), counts.begin(), counts.end());
  if (groups > 1 && *each == Dim(1) && taps <= kMostTerms)
    return reshape(depthwise(x, w, windows, counts, *out), result);
  if (isPlain && taps > kFewTaps && groups <= kMostApart) {
    std::vector<Tensor> parts;
    for (int64_t g = 0; g < groups; ++g)
      parts.push_back(
          plain(sliceAxis(x, 1, *each * g, *each), sliceAxis(w, 0, *out * g, *out), windows));
    return concat(parts, 1);
  }
  // Otherwise windows are laid out as columns: [n, g, c/g * taps, places], one product a group.
  const Tensor padded = paddedFor(x, windows, like(x, 0));
  std::vector<Tensor> columns;
  for (int64_t tap = 0; tap < taps; ++tap)
    columns.push_back(unsqueeze(tapOf(padded, windows, counts, tap), 2));
  const Tensor all = columns.size() == 1 ? columns[0] : concat(columns, 2);
  const Dim places = product(counts);
  const Tensor matrix = reshape(w, {groups, *out, *each * taps});
  const Tensor y = matmul(matrix, reshape(all, {shape[0], groups, *each * taps, places}));
  return reshape(y, result);
}

Tensor overlapped(Node& n, const Tensor& columns, const Windows& w, const Dims& shape) {
  const int64_t taps = tapsOf(n, w);
  const Dims from = columns.shape();
  Tensor sum;
  for (int64_t tap = 0; tap < taps; ++tap) {
    Tensor part = squeeze(sliceAxis(columns, 2, tap, 1), 2);
    int64_t rest = tap;
    for (size_t i = w.kernel.size(); i-- > 0;) {
      const int64_t axis = int64_t(i) + 2, at = rest % w.kernel[i], stride = w.strides[i];
      rest /= w.kernel[i];
      // stride - 1 zeros behind each element, none behind the last.
      if (stride > 1) {
        Dims joined = part.shape();
        const Dim count = joined[size_t(axis)];
        joined[size_t(axis)] = count * stride;
        Axes low(size_t(part.rank() + 1), 0), high = low;
        high[size_t(axis) + 1] = stride - 1;
        part = reshape(zeroPadded(unsqueeze(part, axis + 1), low, high), joined);
        part = sliceAxis(part, axis, 0, count * stride - Dim(stride - 1));
      }
      // Then to its place; what lies outside is cut.
      const int64_t before = at * w.dilations[i] - w.low[i];
      const auto behind = (shape[i] - part.dim(axis) - before).asConstant();
      if (!behind) n.refuse("windows that overlap along an axis of symbolic size");
      const int64_t cutLow = std::max(-before, int64_t(0)),
                    cutHigh = std::max(-*behind, int64_t(0));
      if (cutLow || cutHigh) {
        const Dim left = part.dim(axis) - cutLow - cutHigh;
        if (auto fixed = left.asConstant(); fixed && *fixed <= 0) {
          part = {};
          break;
        }
        part = sliceAxis(part, axis, cutLow, left);
      }
      Axes low(size_t(part.rank()), 0), high = low;
      low[size_t(axis)] = std::max(before, int64_t(0));
      high[size_t(axis)] = std::max(*behind, int64_t(0));
      part = zeroPadded(part, low, high);
    }
    if (part.defined()) sum = sum.defined() ? add(sum, part) : part;
  }
  if (sum.defined()) return sum;
  Dims all{from[0], from[1]};
  all.insert(all.end(), shape.begin(), shape.end());
  return broadcast(like(columns, 0), all);
}

}  // namespace lathe::onnx
