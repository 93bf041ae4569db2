# SPDX-License-Identifier: Apache-2.0
"""Lowerings of what moves windows over the axes behind [batch, channels], and of what such models have beside it."""
import itertools
import math

import torch

import lathe

from .lowering import Unsupported, op, wide_of

MOST_PLACES = 8  # that an interpolated element is made of before a product with a matrix is cheaper
MOST_TAPS = 1024  # elements of a window that is laid out as columns
MOST_TERMS = 128  # of a sum of products, one for each element of a window
FEW_TAPS, MOST_APART = 32, 64  # columns of few elements are cheaper than a convolution for each of the groups


def _each(values, axes):
    """A number for each axis: PyTorch takes one for all."""
    values = list(values) if isinstance(values, (list, tuple)) else [values]
    return values * axes if len(values) == 1 else values


def _taps(L, x, kernel, stride, padding, dilation, sizes, value):
    """x at each element of the window, row-major, in all `sizes` places of the window."""
    if math.prod(kernel) > MOST_TAPS:
        raise Unsupported(f"a window of {math.prod(kernel)} elements, expected at most {MOST_TAPS}")
    if any(padding):
        low = [0, 0] + list(padding)
        # Where a stride passes over the end, nothing is added there that no window reads.
        x = lathe.pad(x, L.scalar(value, x.dtype), low, low)
    for tap in itertools.product(*map(range, kernel)):
        part = x
        for i, at in enumerate(tap):
            part = L.slice(part, i + 2, at * dilation[i], sizes[i], 1 if sizes[i] == 1 else stride[i])
        yield part


def _plain(L, x, w, stride, padding):
    """One group along one axis or two, whose sizes are numbers."""
    lines = x.ndim == 3
    if lines:  # an image of height 1
        x, w = lathe.unsqueeze(x, 2), lathe.unsqueeze(w, 2)
        stride, padding = [1] + stride, [0] + padding
    y = lathe.convolution(x, w, stride, [padding[0], padding[0], padding[1], padding[1]])
    return lathe.squeeze(y, 2) if lines else y


def _depthwise(L, x, w, stride, padding, dilation, sizes):
    """Each channel by itself: a sum of products, which is one kernel and needs no columns."""
    kernel, channels, dtype = list(w.shape[2:]), x.shape[1], x.dtype
    each = w.shape[0] // channels  # channels of the result for one of x
    wide = None if dtype in ("f32", "f64") else "f32"  # terms are added before they are rounded
    taps = L.cast(L.reshape(w, [channels, each, math.prod(kernel)]), wide)
    y = None
    for i, part in enumerate(_taps(L, x, kernel, stride, padding, dilation, sizes, 0)):
        factor = L.reshape(L.slice(taps, 2, i, 1), [channels, each] + [1] * len(kernel))
        term = lathe.mul(lathe.unsqueeze(L.cast(part, wide), 2), factor)
        y = term if y is None else lathe.add(y, term)
    return L.cast(y, dtype)


def _turned(L, x, w, stride, padding, dilation, output_padding, groups):
    """(x, w) whose convolution with stride 1 is the transposed one: zeros lie between the elements of x and around
    them, the kernel runs backwards, and channels change places. Dumoulin and Visin, "A guide to convolution
    arithmetic for deep learning", 2016, section 4."""
    for i, step in enumerate(stride):
        axis, size = i + 2, x.shape[i + 2]
        if step > 1:
            behind = [0] * (x.ndim + 1)
            behind[axis + 1] = step - 1
            x = lathe.pad(lathe.unsqueeze(x, axis + 1), L.scalar(0, x.dtype), [0] * len(behind), behind)
            x = L.reshape(x, [*x.shape[:axis], size * step, *x.shape[axis + 2:]])
            x = L.slice(x, axis, 0, (size - 1) * step + 1)
    low, high = [0, 0], [0, 0]
    for i, kernel in enumerate(w.shape[2:]):
        around = dilation[i] * (kernel - 1) - padding[i]
        ends = (around, around + output_padding[i])
        cut = [max(-n, 0) for n in ends]
        x = L.slice(x, i + 2, cut[0], x.shape[i + 2] - sum(cut))
        low.append(max(ends[0], 0))
        high.append(max(ends[1], 0))
    if any(low + high):
        x = lathe.pad(x, L.scalar(0, x.dtype), low, high)
    inputs, outputs, kernel = w.shape[0] // groups, w.shape[1], list(w.shape[2:])
    if groups > 1:
        w = L.reshape(w, [groups, inputs, outputs, *kernel])
        w = lathe.transpose(w, [0, 2, 1, *range(3, w.ndim)])
        w = L.reshape(w, [groups * outputs, inputs, *kernel])
    else:
        w = lathe.transpose(w, [1, 0, *range(2, w.ndim)])
    return x, lathe.reverse(w, list(range(2, w.ndim)))


@op("aten.convolution.default")
def convolution(L, node, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    x, w = L.value(input), L.value(weight)
    shape = list(L.fake(node).shape)
    if x.ndim == w.ndim - 1:  # one image
        x, shape = lathe.unsqueeze(x, 0), [1] + shape
    axes = x.ndim - 2
    if axes not in (1, 2, 3):
        raise Unsupported(f"{axes} axes")
    stride, padding, dilation = _each(stride, axes), _each(padding, axes), _each(dilation, axes)
    if not all(isinstance(k, int) for k in w.shape):
        raise Unsupported("a weight whose sizes are no numbers")
    if transposed:
        x, w = _turned(L, x, w, stride, padding, dilation, _each(output_padding, axes), groups)
        stride, padding = [1] * axes, [0] * axes
    sizes, kernel = L.dims(shape[2:]), list(w.shape[2:])
    plain = axes < 3 and all(d == 1 for d in dilation) and all(isinstance(d, int) for d in x.shape[2:])
    if groups > 1 and groups == x.shape[1] and math.prod(kernel) <= MOST_TERMS:
        y = _depthwise(L, x, w, stride, padding, dilation, sizes)
    elif groups == 1 and plain:
        y = _plain(L, x, w, stride, padding)
    elif plain and math.prod(kernel) > FEW_TAPS and groups <= MOST_APART:
        inputs, outputs = w.shape[1], w.shape[0] // groups
        y = lathe.concat([_plain(L, L.slice(x, 1, g * inputs, inputs), L.slice(w, 0, g * outputs, outputs), stride, padding)
                          for g in range(groups)], 1)
    else:
        # Windows as columns, [n, groups, c / groups * taps, places], and one product a group.
        taps = [lathe.unsqueeze(t, 2) for t in _taps(L, x, kernel, stride, padding, dilation, sizes, 0)]
        columns = taps[0] if len(taps) == 1 else lathe.concat(taps, 2)
        depth, out = w.shape[1] * len(taps), w.shape[0]
        columns = L.reshape(columns, [x.shape[0], groups, depth, math.prod(sizes, start=1)])
        y = lathe.matmul(L.reshape(w, [groups, out // groups, depth]), columns)
    if bias is not None:
        b = L.value(bias)
        y = lathe.add(L.reshape(y, shape), L.reshape(b, [b.shape[0]] + [1] * axes))
    return L.reshape(y, L.fake(node).shape)


@op("aten.conv1d.default", "aten.conv2d.default", "aten.conv3d.default")
def conv(L, node, input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return convolution(L, node, input, weight, bias, stride, padding, dilation, False, 0, groups)


def _expect_images(x):
    if x.ndim != 4:
        raise Unsupported(f"of rank {x.ndim}, expected [batch, channels, height, width]")


@op("aten.avg_pool2d.default")
def avg_pool2d(L, node, self_, kernel_size, stride=(), padding=0, ceil_mode=False, count_include_pad=True,
               divisor_override=None):
    """Means of windows, added before they are rounded. What is padded counts, unless told otherwise."""
    x, kernel = L.value(self_), _each(kernel_size, 2)
    _expect_images(x)
    if ceil_mode:
        raise Unsupported("ceil_mode=True")
    stride, padding = _each(stride or kernel, 2), _each(padding, 2)
    sizes = L.dims(L.fake(node).shape[2:])
    wide = x.dtype if x.dtype == "f64" else "f32"

    def total(x):
        y = None
        for tap in _taps(L, x, kernel, stride, padding, [1, 1], sizes, 0):
            y = L.cast(tap, wide) if y is None else lathe.add(y, L.cast(tap, wide))
        return y

    count = L.scalar(divisor_override or math.prod(kernel), wide)
    if any(padding) and not count_include_pad and not divisor_override:
        count = total(L.broadcast(L.scalar(1, wide), [1, 1] + list(x.shape[2:])))
    return lathe.div(total(x), count)


@op("aten.max_pool2d_with_indices.default")
def max_pool2d(L, node, self_, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    """The largest of each window; the places beside it are for gradients."""
    x, kernel, shape = L.value(self_), _each(kernel_size, 2), L.fake(node)[0].shape
    if x.ndim == 3:  # one image
        x = lathe.unsqueeze(x, 0)
    _expect_images(x)
    stride, padding, dilation = _each(stride or kernel, 2), _each(padding, 2), _each(dilation, 2)
    sizes = L.dims(shape[-2:])
    if ceil_mode:  # the last windows may reach over the end
        reach = [(n - 1) * s + d * (k - 1) + 1 - 2 * p for n, s, d, k, p in zip(sizes, stride, dilation, kernel, padding)]
        more = [r - size for r, size in zip(reach, x.shape[2:])]
        if not all(isinstance(m, int) for m in more):
            raise Unsupported("ceil_mode=True with sizes that are no numbers")
        if any(m > 0 for m in more):
            x = lathe.pad(x, L.scalar(-math.inf, x.dtype), [0] * 4, [0, 0] + [max(m, 0) for m in more])
    y = None
    for tap in _taps(L, x, kernel, stride, padding, dilation, sizes, -math.inf):
        y = tap if y is None else lathe.max(y, tap)
    return [L.reshape(y, shape)]


@op("aten._native_batch_norm_legit_no_training.default")
def batch_norm(L, input, weight, bias, running_mean, running_var, momentum, eps):
    """With the statistics that were learnt; rounded once."""
    dtype = wide_of(L.dtype(input))
    x = L.value(input, dtype)

    def of_channels(argument):
        return L.reshape(L.value(argument, dtype), [x.shape[1]] + [1] * (x.ndim - 2))

    variance = of_channels(running_var)
    factor = lathe.rsqrt(lathe.add(variance, L.scalar(eps, variance.dtype)))
    if weight is not None:
        factor = lathe.mul(factor, of_channels(weight))
    y = lathe.mul(lathe.sub(x, of_channels(running_mean)), factor)
    return [L.cast(y if bias is None else lathe.add(y, of_channels(bias)), L.dtype(input))]


def _combined(L, x, axis, matrix):
    """x times the matrix [size, out] along one axis: few places for each element are read, many are a product."""
    count = int((matrix != 0).sum(0).max())
    if count > MOST_PLACES:
        order = [a for a in range(x.ndim) if a != axis] + [axis]
        x = lathe.matmul(lathe.transpose(x, order), L.literal(matrix.to(torch.float64 if x.dtype == "f64" else torch.float32)))
        return lathe.transpose(x, [order.index(a) for a in range(x.ndim)])
    # The places of each column that count, first; a column with fewer has the first once more, times 0.
    places = (matrix != 0).to(torch.int8).argsort(dim=0, descending=True, stable=True)[:count]
    factors = matrix.gather(0, places)
    places = torch.where(factors == 0, places[:1], places)
    y = None
    for at, factor in zip(places, factors):
        factor = L.reshape(L.cast(L.literal(factor), x.dtype), [-1 if a == axis else 1 for a in range(x.ndim)])
        term = lathe.mul(lathe.gather(x, L.literal(at), axis), factor)
        y = term if y is None else lathe.add(y, term)
    return y


def _interpolated(L, node, x, by):
    """Each axis apart, by a matrix: what `by` makes of images with a single 1. Rounded once, at the end."""
    if x.dtype != "f64":
        x = L.cast(x, "f32")
    for i, out in enumerate(L.fake(node).shape[2:]):
        axis = i + 2
        size = x.shape[axis]
        if not isinstance(size, int) or not isinstance(out, int):
            raise Unsupported("an axis whose size is not a number")
        ones = torch.eye(size).reshape([size, 1] + [size if j == i else 1 for j in range(x.ndim - 2)])
        matrix = by(i, ones, out).reshape(size, out)
        if size == out and torch.equal(matrix, torch.eye(size)):
            continue
        x = _combined(L, x, axis, matrix)
    return x


def _upsampled(name, has_corners=False):
    function = getattr(torch.ops.aten, name)

    def corners(align_corners):
        return [align_corners] if has_corners else []

    def by_factors(L, node, input, output_size, align_corners=None, scale_factors=None):
        def along(i, ones, out):
            only = [s if j == i else 1 for j, s in enumerate(scale_factors or [])] or None
            sizes = None if only else [out if j == i else 1 for j in range(ones.ndim - 2)]
            return function.vec(ones, sizes, *corners(align_corners), only)

        return _interpolated(L, node, L.value(input), along)

    def by_sizes(L, node, self_, output_size, align_corners=None, **scales):
        factors = [scales.get(key) for key in (["scales"] if "scales" in scales else ["scales_h", "scales_w"])]

        def along(i, ones, out):
            axes = range(ones.ndim - 2)
            return function.default(ones, [out if j == i else 1 for j in axes], *corners(align_corners),
                                    *(factors[j] if j == i else None for j in axes))

        return _interpolated(L, node, L.value(self_), along)

    op(f"aten.{name}.vec")(by_factors)
    op(f"aten.{name}.default")(by_sizes)


_upsampled("upsample_linear1d", has_corners=True)
_upsampled("upsample_bilinear2d", has_corners=True)
_upsampled("upsample_bicubic2d", has_corners=True)
_upsampled("upsample_nearest1d")
_upsampled("upsample_nearest2d")


@op("aten._adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(L, node, self_, output_size):
    x = L.value(self_)
    _expect_images(x)
    return _interpolated(L, node, x, lambda i, ones, out: torch.ops.aten._adaptive_avg_pool2d(
        ones, [out if j == i else 1 for j in range(2)]))
