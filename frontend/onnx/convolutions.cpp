// SPDX-License-Identifier: Apache-2.0
// Convolutions: plain ones become the dialect's op, others products of windows laid out as columns.
#include <fmt/format.h>

#include "frontend/onnx/convolved.h"
#include "frontend/onnx/quantized.h"

namespace lathe::onnx {
namespace {

std::vector<int64_t> kernelOf(Node& n, const Tensor& w) {
  std::vector<int64_t> kernel;
  for (int64_t i = 2; i < w.rank(); ++i) {
    const auto size = w.dim(i).asConstant();
    if (!size) n.refuse("a kernel of symbolic size");
    kernel.push_back(*size);
  }
  if (n.hasAttribute("kernel_shape") && n.list("kernel_shape") != kernel)
    n.fail("attribute 'kernel_shape' is not the weight's");
  return kernel;
}
int64_t groupsOf(Node& n) {
  const int64_t groups = n.attribute("group", 1);
  if (groups < 1) n.fail("a group of less than 1");
  return groups;
}

void convolutionOf(Node& n) {
  const Tensor x = n.in(0), w = n.in(1);
  Tensor y = convolved(n, x, w, windowsOf(n, x.shape(), kernelOf(n, w)), groupsOf(n));
  if (n.has(2)) y = add(y, alongChannels(n.in(2), y.rank()));
  n.set(y);
}

Tensor lessZero(Node& n, size_t i, size_t zero, int64_t channelRank) {
  const Tensor x = n.in(i, DType::I32);
  if (!n.has(zero)) return x;
  Tensor z = n.in(zero, DType::I32);
  if (z.rank() == 1 && z.dim(0) == Dim(1)) z = reshape(z, {});
  if (z.rank() == 1) {
    Dims shape(size_t(channelRank), Dim(1));
    shape[0] = z.dim(0);
    z = reshape(z, shape);
  }
  return sub(x, z);
}

void convolutionOfIntegers(Node& n) {
  const Tensor x = lessZero(n, 0, 2, 0), w = lessZero(n, 1, 3, n.in(1).rank());
  n.set(convolved(n, x, w, windowsOf(n, x.shape(), kernelOf(n, w)), groupsOf(n)));
}

void quantizedConvolution(Node& n) {
  n.expectOperands(8);
  const Tensor x = lessZero(n, 0, 2, 0), w = lessZero(n, 3, 5, n.in(3).rank());
  Tensor sums = convolved(n, x, w, windowsOf(n, x.shape(), kernelOf(n, w)), groupsOf(n));
  if (n.has(8)) sums = add(sums, alongChannels(n.in(8, DType::I32), sums.rank()));
  Tensor ofWeight = n.in(4, DType::F32);
  ofWeight = ofWeight.rank() == 1 && !(ofWeight.dim(0) == Dim(1))
                 ? alongChannels(ofWeight, sums.rank())
                 : reshaped(ofWeight, {});
  const Tensor factor = div(mul(reshaped(n.in(1), {}), ofWeight), reshaped(n.in(6), {}));
  n.set(rounded(mul(as(sums, DType::F32), factor), reshaped(n.in(7), {}), n.in(7).dtype()));
}

// Every input element adds its multiple of the kernel to the result.
void transposedConvolution(Node& n) {
  const Tensor x = n.in(0), w = n.in(1);
  const std::vector<int64_t> kernel = kernelOf(n, w);
  const int64_t groups = groupsOf(n);
  const size_t axes = kernel.size();
  if (x.rank() != int64_t(axes) + 2 || !axes) n.fail("operands of different rank");
  auto listOr = [&](const char* name, size_t count, int64_t otherwise) {
    std::vector<int64_t> list = n.list(name);
    if (!n.hasAttribute(name)) list.assign(count, otherwise);
    if (list.size() != count)
      n.fail(fmt::format("attribute '{}': expected {} numbers", name, count));
    for (int64_t v : list)
      if (v < (otherwise ? 1 : 0) || v > 1 << 20)
        n.fail(fmt::format("attribute '{}': {} is out of range", name, v));
    return list;
  };
  Windows windows{.kernel = kernel,
                  .strides = listOr("strides", axes, 1),
                  .dilations = listOr("dilations", axes, 1),
                  .low = {},
                  .high = {}};
  const std::vector<int64_t> more = listOr("output_padding", axes, 0),
                             pads = listOr("pads", 2 * axes, 0);
  windows.low.assign(pads.begin(), pads.begin() + int64_t(axes));
  windows.high.assign(pads.begin() + int64_t(axes), pads.end());
  const std::string automatic = n.text("auto_pad", "NOTSET");
  std::vector<int64_t> asked = n.list("output_shape");
  if (asked.size() > axes) asked.erase(asked.begin(), asked.end() - int64_t(axes));
  Dims shape;
  for (size_t i = 0; i < axes; ++i) {
    const Dim size = x.dim(int64_t(i) + 2);
    const int64_t extent = (kernel[i] - 1) * windows.dilations[i] + 1;
    const Dim full = (size - 1) * windows.strides[i] + more[i] + extent;
    const bool same = automatic == "SAME_UPPER" || automatic == "SAME_LOWER";
    if (!asked.empty() || same) {
      const Dim wanted = asked.empty() ? size * windows.strides[i] : Dim(asked[i]);
      const auto total = (full - wanted).asConstant();
      if (!total) n.refuse("a padding of symbolic size");
      // What the windows do not reach is added at the end.
      const int64_t cut = std::max<int64_t>(*total, 0), half = cut / 2;
      windows.low[i] = automatic == "SAME_UPPER" ? half : cut - half;
      windows.high[i] = *total - windows.low[i];
      shape.push_back(wanted);
    } else {
      shape.push_back(full - windows.low[i] - windows.high[i]);
    }
  }
  const int64_t taps = tapsOf(n, windows);
  const auto each = x.dim(1).dividedBy(Dim(groups));
  if (!each || !(w.dim(0) == x.dim(1))) n.fail("channels and groups do not fit the weight");
  const Dim out = w.dim(1), places = product(x.shape(), 2);
  const Tensor matrix = transpose(reshape(w, {groups, *each, out * taps}), {0, 2, 1});
  const Tensor products = matmul(matrix, reshape(x, {x.dim(0), groups, *each, places}));
  Dims columns{x.dim(0), out * groups, taps};
  const Dims from = x.shape();
  columns.insert(columns.end(), from.begin() + 2, from.end());
  Tensor y = overlapped(n, reshape(products, columns), windows, shape);
  if (n.has(2)) y = add(y, alongChannels(n.in(2), y.rank()));
  n.set(y);
}

// Columns of blocks back into an image, overlaps added.
void columnsToImage(Node& n) {
  const Tensor x = n.in(0);
  const std::vector<int64_t> image = n.ints(1), block = n.ints(2);
  Dims shape{x.dim(0), 1};
  for (int64_t d : image) shape.push_back(d);
  const Windows windows = windowsOf(n, shape, block);
  const int64_t taps = tapsOf(n, windows);
  const auto channels = x.rank() == 3 ? x.dim(1).dividedBy(Dim(taps)) : std::nullopt;
  if (!channels) n.fail("expected [n, channels * block, places]");
  Dims columns{x.dim(0), *channels, taps};
  for (const Dim& count : windowCounts(n, shape, windows)) columns.push_back(count);
  n.set(overlapped(n, reshape(x, columns), windows, Dims(image.begin(), image.end())));
}

const Lowering kTable[] = {{"Col2Im",
                            {"dilations", "pads", "strides"},
                            columnsToImage,
                            "kernels of more than 1,024 elements"},
                           {"Conv",
                            {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"},
                            convolutionOf,
                            "strides along axes of symbolic size"},
                           {"ConvInteger",
                            {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"},
                            convolutionOfIntegers,
                            "as Conv"},
                           {"ConvTranspose",
                            {"auto_pad", "dilations", "group", "kernel_shape", "output_padding",
                             "output_shape", "pads", "strides"},
                            transposedConvolution,
                            "kernels of more than 1,024 elements"},
                           {"QLinearConv",
                            {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"},
                            quantizedConvolution,
                            "as Conv"}};

}  // namespace

std::span<const Lowering> convolutionLowerings() { return kTable; }

}  // namespace lathe::onnx
