// SPDX-License-Identifier: Apache-2.0
#pragma once
// Windows that move over the axes behind [batch, channels]: what convolutions and pooling share.
#include "frontend/onnx/node.h"

namespace lathe::onnx {

struct Windows {
  std::vector<int64_t> kernel, strides, dilations, low, high;
  bool ceil = false;                    ///< `high` holds what a window that juts out needs, too
  std::vector<int64_t> highGiven = {};  ///< without that
};

/// Reads strides, dilations, pads, auto_pad and ceil_mode for a kernel. Throws Unsupported for
/// strides over axes of symbolic size.
Windows windowsOf(Node& n, const Dims& shape, const std::vector<int64_t>& kernel);
/// The number of windows along each axis.
Dims windowCounts(Node& n, const Dims& shape, const Windows& windows);
/// The places of one element of the kernel, row-major, in all windows of a padded x.
Tensor tapOf(const Tensor& padded, const Windows& windows, const Dims& counts, int64_t tap);
int64_t tapsOf(Node& n, const Windows& windows);
/// Pads the axes behind the first two by the windows' paddings.
Tensor paddedFor(const Tensor& x, const Windows& windows, const Tensor& value);

/// x [n, c, ...], w [o, c / groups, ...] -> [n, o, ...]
Tensor convolved(Node& n, const Tensor& x, const Tensor& w, const Windows& windows, int64_t groups);
/// The opposite of taking taps: each of the columns [n, c, taps, places...] is added at its place
/// of the window, in a result of the sizes `shape` behind [n, c].
Tensor overlapped(Node& n, const Tensor& columns, const Windows& windows, const Dims& shape);

}  // namespace lathe::onnx
