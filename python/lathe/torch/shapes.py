# SPDX-License-Identifier: Apache-2.0
"""Lowerings of views, joins and of values made from nothing."""
import lathe

from .lowering import Unsupported, op


# --- views
@op("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default", "aten.unsqueeze.default",
    "aten.squeeze.dim", "aten.squeeze.dims", "aten.squeeze.default", "aten.flatten.using_ints",
    "aten.unflatten.int", "aten.view_copy.default")
def view(L, node, self_, **_):
    return L.reshape(L.value(self_), L.fake(node).shape)


@op("aten.expand.default", "aten.expand_copy.default")
def expand(L, node, self_, **_):
    return L.broadcast(L.value(self_), L.fake(node).shape)


@op("aten.permute.default")
def permute(L, self_, dims):
    x = L.value(self_)
    axes = [L.axis(d, x) for d in dims]
    return x if axes == list(range(x.ndim)) else lathe.transpose(x, axes)  # one that changes nothing is refused


@op("aten.transpose.int")
def transpose(L, self_, dim0, dim1):
    axes = list(range(L.fake(self_).dim()))
    if axes:
        axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return permute(L, self_, axes)


@op("aten.t.default")
def matrix_transpose(L, self_):
    x = L.value(self_)
    return lathe.transpose(x, [1, 0]) if x.ndim == 2 else x


@op("aten.slice.Tensor")
def slice_(L, node, self_, dim=0, start=None, end=None, step=1):
    x = L.value(self_)
    axis = L.axis(dim, x)
    first = L.place(0 if start is None else start, self_, axis)
    return L.slice(x, axis, first, L.shape(L.fake(node))[axis], step)


@op("aten.select.int")
def select(L, self_, dim, index):
    x = L.value(self_)
    axis = L.axis(dim, x)
    at = L.place(index, self_, axis)
    return L.reshape(L.slice(x, axis, at, 1), x.shape[:axis] + x.shape[axis + 1:])


@op("aten.unfold.default")
def unfold(L, node, self_, dimension, size, step):
    """Windows of `size` elements along one axis, as a new last axis."""
    x = L.value(self_)
    if not x.ndim:
        return L.reshape(x, [size])
    axis = L.axis(dimension, x)
    count = L.dim(L.fake(node).shape[axis])
    return lathe.stack([L.slice(x, axis, i, count, 1 if count == 1 else step) for i in range(size)], x.ndim)


@op("aten.cat.default")
def cat(L, node, tensors, dim=0):
    rank = L.fake(node).dim()
    parts = [L.value(t, L.dtype(node)) for t in tensors]
    parts = [p for p in parts if not (rank > 1 and p.ndim == 1)]  # PyTorch's legacy empty ones
    return parts[0] if len(parts) == 1 else lathe.concat(parts, dim % rank)


@op("aten.stack.default")
def stack(L, node, tensors, dim=0):
    return lathe.stack([L.value(t, L.dtype(node)) for t in tensors], dim % L.fake(node).dim())


@op("aten.split_with_sizes.default", "aten.split.Tensor", "aten.chunk.default", "aten.split_with_sizes_copy.default")
def split(L, node, self_, dim=0, **_):
    x = L.value(self_)
    axis, parts, start = L.axis(dim, x), [], 0
    for fake in L.fake(node):
        size = L.dim(fake.shape[axis])
        parts.append(L.slice(x, axis, start, size))
        start = start + size
    return parts


@op("aten.unbind.int")
def unbind(L, node, self_, dim=0):
    x = L.value(self_)
    axis = L.axis(dim, x)
    return [L.reshape(L.slice(x, axis, i, 1), fake.shape) for i, fake in enumerate(L.fake(node))]


@op("aten.repeat.default")
def repeat(L, node, self_, repeats):
    x, counts = L.value(self_), L.dims(repeats)
    shape = [1] * (len(counts) - x.ndim) + list(x.shape)
    parted = [d for s in shape for d in (1, s)]
    wide = [d for c, s in zip(counts, shape) for d in (c, s)]
    return L.reshape(L.broadcast(L.reshape(x, parted), wide), L.fake(node).shape)


@op("aten.repeat_interleave.self_int")
def repeat_interleave(L, node, self_, repeats, dim=None, output_size=None):
    x = L.value(self_)
    if dim is None:
        raise Unsupported("dim=None")
    axis = L.axis(dim, x)
    wide = list(x.shape[:axis + 1]) + [L.dim(repeats)] + list(x.shape[axis + 1:])
    return L.reshape(L.broadcast(lathe.unsqueeze(x, axis + 1), wide), L.fake(node).shape)


@op("aten.flip.default")
def flip(L, self_, dims):
    x = L.value(self_)
    return lathe.reverse(x, sorted(L.axis(d, x) for d in dims))


@op("aten.constant_pad_nd.default")
def pad(L, self_, pad, value=0):
    x = L.value(self_)
    filler = L.scalar(value, x.dtype)
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        axis, (first, last) = x.ndim - 1 - i, pad[2 * i:2 * i + 2]
        cuts = [0 - L.dim(n) if L.is_negative(n) else 0 for n in (first, last)]
        if any(c != 0 for c in cuts):
            x = L.slice(x, axis, cuts[0], x.shape[axis] - cuts[0] - cuts[1])
        low[axis], high[axis] = (L.dim(n) if c == 0 else 0 for n, c in zip((first, last), cuts))
        if not all(isinstance(n, int) for n in (low[axis], high[axis])):  # as many as a size
            parts = [lathe.broadcast(filler, [*x.shape[:axis], n, *x.shape[axis + 1:]]) for n in (low[axis], high[axis])]
            x = lathe.concat([p for p in (parts[0], x, parts[1]) if p.shape[axis] != 0], axis)
            low[axis] = high[axis] = 0
    return lathe.pad(x, filler, low, high) if any(low + high) else x


def _scattered(L, x, s, axis, first, step):
    """Every `step`-th element along an axis is one of `s`: each place asks how far it lies behind the first."""
    count = s.shape[axis]
    if count == 0:
        return x
    far = lathe.sub(L.graph.arange(x.shape[axis]), L.size_value(first))
    behind = lathe.compare(far, 0, "ge")
    hit = lathe.logical_and(behind, lathe.compare(far, L.size_value(count * step), "lt"))
    hit = lathe.logical_and(hit, lathe.compare(lathe.mod(far, step), 0, "eq"))
    at = lathe.where(hit, lathe.div(far, step), 0)
    hit = L.reshape(hit, [x.shape[axis]] + [1] * (x.ndim - 1 - axis))
    return lathe.where(hit, lathe.gather(s, at, axis), x)


@op("aten.slice_scatter.default")
def slice_scatter(L, self_, src, dim=0, start=None, end=None, step=1):
    x, s = L.value(self_), L.value(src)
    axis = L.axis(dim, x)
    first = L.place(start or 0, self_, axis)
    if step != 1:
        return _scattered(L, x, s, axis, first, step)
    last = first + s.shape[axis]
    parts = [L.slice(x, axis, 0, first)] if first != 0 else []
    parts.append(s)
    if x.shape[axis] - last != 0:
        parts.append(L.slice(x, axis, last, x.shape[axis] - last))
    return parts[0] if len(parts) == 1 else lathe.concat(parts, axis)


@op("aten.copy.default")
def copy(L, node, src, self_, **_):
    return L.broadcast(L.value(src, L.dtype(node)), L.fake(node).shape)


# --- values from nothing
def _filled(L, node, value):
    return L.broadcast(L.value(value, L.dtype(node)), L.fake(node).shape)


@op("aten.full.default", "aten.full_like.default", "aten.new_full.default")
def full(L, node, fill_value, **_):
    return _filled(L, node, fill_value)


@op("aten.fill.Scalar", "aten.fill.Tensor")
def fill(L, node, value, self_):
    return _filled(L, node, value)


@op("aten.scalar_tensor.default")
def scalar_tensor(L, node, s, **_):
    return _filled(L, node, s)


# What `empty` holds is never read: those who could see it write it first.
@op("aten.zeros.default", "aten.zeros_like.default", "aten.new_zeros.default", "aten.empty.memory_format",
    "aten.empty_like.default", "aten.empty_permuted.default", "aten.new_empty.default")
def zeros(L, node, **_):
    return _filled(L, node, 0)


@op("aten.ones.default", "aten.ones_like.default", "aten.new_ones.default")
def ones(L, node, **_):
    return _filled(L, node, 1)


@op("aten.arange.start_step", "aten.arange.default", "aten.arange.start")
def arange(L, node, start=0, step=1, **_):
    y = L.graph.arange(L.dim(L.fake(node).shape[0]), "i64" if L.dtype(node) == "bool" else L.dtype(node))
    if step != 1:
        y = lathe.mul(y, L.value(step, y.dtype))
    return y if isinstance(start, (int, float)) and start == 0 else lathe.add(y, L.value(start, y.dtype))


def _triangle(predicate):
    def lower(L, self_, diagonal=0):
        x = L.value(self_)
        rows = lathe.unsqueeze(L.graph.arange(x.shape[-2]), 1)
        columns = lathe.unsqueeze(L.graph.arange(x.shape[-1]), 0)
        if diagonal:
            rows = lathe.add(rows, L.scalar(diagonal, "i64"))
        keep = lathe.compare(columns, rows, predicate)
        return lathe.logical_and(x, keep) if x.dtype == "bool" else lathe.where(keep, x, L.scalar(0, x.dtype))
    return lower


op("aten.triu.default")(_triangle("ge"))
op("aten.tril.default")(_triangle("le"))
