# SPDX-License-Identifier: Apache-2.0
"""Lowerings of views, joins, indices and of values made from nothing."""
import math
import operator

import torch

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
    return lathe.transpose(x, [d % x.ndim for d in dims])


@op("aten.transpose.int")
def transpose(L, self_, dim0, dim1):
    x = L.value(self_)
    axes = list(range(x.ndim))
    axes[dim0], axes[dim1] = axes[dim1], axes[dim0]
    return lathe.transpose(x, axes)


@op("aten.t.default")
def matrix_transpose(L, self_):
    x = L.value(self_)
    return lathe.transpose(x, [1, 0]) if x.ndim == 2 else x


@op("aten.slice.Tensor")
def slice_(L, node, self_, dim=0, start=None, end=None, step=1):
    x = L.value(self_)
    axis = dim % x.ndim
    first = L.place(0 if start is None else start, x.shape[axis])
    size = L.shape(L.fake(node))[axis]
    try:
        return L.slice(x, axis, first, size, step)
    except lathe.Error:
        if step != 1:
            raise
        # table[:seq], x[:, :past + 1]: only ranges or a guard of PyTorch's tell that the slice is inside, which are
        # not looked at; a gather of a ramp is checked when it runs.
        places = L.graph.arange(size)
        return lathe.gather(x, places if first == 0 else lathe.add(places, L.size_value(first)), axis)


@op("aten.select.int")
def select(L, self_, dim, index):
    x = L.value(self_)
    axis = dim % x.ndim
    at = L.place(index, x.shape[axis])
    return L.reshape(L.slice(x, axis, at, 1), x.shape[:axis] + x.shape[axis + 1:])


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
    axis, parts, start = dim % x.ndim, [], 0
    for fake in L.fake(node):
        size = L.dim(fake.shape[axis])
        parts.append(L.slice(x, axis, start, size))
        start = start + size
    return parts


@op("aten.unbind.int")
def unbind(L, node, self_, dim=0):
    x = L.value(self_)
    axis = dim % x.ndim
    return [L.reshape(L.slice(x, axis, i, 1), fake.shape) for i, fake in enumerate(L.fake(node))]


@op("aten.repeat.default")
def repeat(L, node, self_, repeats):
    x, counts = L.value(self_), L.dims(repeats)
    shape = [1] * (len(counts) - x.ndim) + list(x.shape)
    parted = [d for s in shape for d in (1, s)]
    wide = [d for c, s in zip(counts, shape) for d in (c, s)]
    return L.reshape(L.broadcast(L.reshape(x, parted), wide), L.fake(node).shape)


@op("aten.repeat_interleave.self_int")
def repeat_interleave(L, node, self_, repeats, dim=None):
    x = L.value(self_)
    if dim is None:
        raise Unsupported("dim=None")
    axis = dim % x.ndim
    wide = list(x.shape[:axis + 1]) + [L.dim(repeats)] + list(x.shape[axis + 1:])
    return L.reshape(L.broadcast(lathe.unsqueeze(x, axis + 1), wide), L.fake(node).shape)


@op("aten.flip.default")
def flip(L, self_, dims):
    x = L.value(self_)
    return lathe.reverse(x, sorted(d % x.ndim for d in dims))


@op("aten.constant_pad_nd.default", "aten.pad.default")
def pad(L, node, self_, pad, value=0, mode="constant"):
    x = L.value(self_)
    if mode != "constant" or min(pad) < 0:
        raise Unsupported(f"padding by {pad} of mode {mode}")
    low, high = [0] * x.ndim, [0] * x.ndim
    for i in range(len(pad) // 2):
        low[-1 - i], high[-1 - i] = pad[2 * i], pad[2 * i + 1]
    return lathe.pad(x, L.scalar(value or 0, x.dtype), low, high)


@op("aten.slice_scatter.default")
def slice_scatter(L, self_, src, dim=0, start=None, end=None, step=1):
    x, s = L.value(self_), L.value(src)
    axis = dim % x.ndim
    first = L.place(start or 0, x.shape[axis])
    if step != 1:
        raise Unsupported(f"step={step}")
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


# --- indices
@op("aten.embedding.default")
def embedding(L, weight, indices, **_):
    return lathe.gather(L.value(weight), L.value(indices), 0)


@op("aten.index_select.default")
def index_select(L, self_, dim, index):
    return lathe.gather(L.value(self_), L.value(index), dim)


# What keeps integers at 0 and above if its operands are.
_KEEPS_SIGN = ("aten.view", "aten.reshape", "aten.unsqueeze", "aten.expand", "aten.squeeze", "aten._to_copy", "aten.clone",
               "aten.alias", "aten.add", "aten.mul", "aten.cumsum", "aten.slice", "aten.select", "aten.permute")


def _known(L, node):
    """The values of a small constant, copies of it included; else None."""
    while node not in L.known and str(node.target).startswith(("aten.lift_fresh", "aten.clone", "aten.alias", "aten.detach")):
        node = node.args[0]
    return L.known.get(node)


def _is_at_least_0(L, node):
    """Whether integers are known not to be negative: ramps, sizes, conditions, known numbers, and sums of them."""
    if not isinstance(node, torch.fx.Node):
        return not isinstance(node, (int, float)) or node >= 0
    known = _known(L, node)
    if known is not None:
        return bool((known >= 0).all())
    value, name = L.fake(node), str(node.target)
    if isinstance(value, (int, torch.SymInt)):
        return bool(torch.fx.experimental.symbolic_shapes.statically_known_true(value >= 0))
    if value.dtype == torch.bool:
        return True
    if node.target is operator.getitem and str(node.args[0].target).startswith(("aten.topk", "aten.sort")):
        return node.args[1] == 1  # places
    if name.startswith(("aten.argmax", "aten.argmin", "aten.argsort")):
        return True
    if name.startswith("aten.arange"):
        return all(_is_at_least_0(L, a) for a in node.args)
    return name.startswith(_KEEPS_SIGN) and all(_is_at_least_0(L, a) for a in node.args if isinstance(a, torch.fx.Node))


def _from_the_front(L, node, places, size):
    """Indices of an axis of `size`; those below 0 count from the back."""
    if _is_at_least_0(L, node):
        return places
    known = _known(L, node)
    if known is not None and isinstance(size, int):
        known = known.to(torch.int64)
        return L.graph.constant(torch.where(known < 0, known + size, known).contiguous())
    back = lathe.add(places, L.size_value(size))
    return lathe.where(lathe.compare(places, L.scalar(0, "i64"), "lt"), back, places)


@op("aten.index.Tensor")
def index(L, self_, indices):
    x = L.value(self_)
    at = [i for i, a in enumerate(indices) if a is not None]
    places = [L.value(indices[i]) for i in at]
    if any(p.dtype == "bool" for p in places):
        raise Unsupported("an index by a mask: the result's size depends on values")
    if at != list(range(at[0], at[0] + len(at))):
        raise Unsupported("indices of axes that are apart")
    places = [_from_the_front(L, indices[i], L.cast(p, "i64"), x.shape[i]) for p, i in zip(places, at)]
    linear = places[0]
    for place, i in zip(places[1:], at[1:]):
        linear = lathe.add(lathe.mul(linear, L.size_value(x.shape[i])), place)
    flat = list(x.shape[:at[0]]) + [math.prod((x.shape[i] for i in at), start=1)] + list(x.shape[at[-1] + 1:])
    return lathe.gather(L.reshape(x, flat), linear, at[0])


@op("aten.gather.default")
def gather(L, self_, dim, index, sparse_grad=False):
    x, places = L.value(self_), L.value(index, "i64")
    axis, linear = dim % max(x.ndim, 1), None
    for i in range(x.ndim):
        part = places
        if i != axis:
            part = L.reshape(L.graph.arange(places.shape[i]), [d if j == i else 1 for j, d in enumerate(places.shape)])
        linear = part if linear is None else lathe.add(lathe.mul(linear, L.size_value(x.shape[i])), part)
    return lathe.gather(L.reshape(x, [math.prod(x.shape, start=1)]), linear, 0)


def _written(L, x, value, places, axis):
    """A run of rows written into a cache. One position is exact; of several `ascending` must hold."""
    first = L.broadcast(L.slice(places, 0, 0, 1), [x.shape[0]])
    return lathe.update(x, value, first, axis)


def _expect_run(L, places, node):
    """Positions of a cache are arange(n) + start, one after the other; nothing else is an update."""
    if places.shape[0] != 1 and not _ascends(node):
        raise Unsupported("a write at indices that are not known to follow each other")


def _ascends(node):
    """Whether integers are a ramp of step 1, perhaps with a scalar added."""
    while isinstance(node, torch.fx.Node):
        name = str(node.target)
        if name.startswith("aten.arange"):
            return len(node.args) < 3 or node.args[2] == 1
        if name == "aten.add.Tensor":
            a, b = node.args[:2]
            scalar = [not isinstance(v, torch.fx.Node) or not isinstance(v.meta["val"], torch.Tensor)
                      or v.meta["val"].dim() == 0 or v.meta["val"].numel() == 1 for v in (a, b)]
            if not any(scalar):
                return False
            node = a if scalar[1] else b
        elif name in ("aten._to_copy.default", "aten.clone.default", "aten.alias.default"):
            node = node.args[0]
        else:
            return False
    return False


@op("aten.index_copy.default")
def index_copy(L, self_, dim, index, source):
    x, places = L.value(self_), L.value(index, "i64")
    axis = dim % x.ndim
    if axis == 0:
        raise Unsupported("along axis 0: an update is along another axis")
    _expect_run(L, places, index)
    return _written(L, x, L.value(source), places, axis)


@op("aten.index_put.default")
def index_put(L, self_, indices, values, accumulate=False):
    """x[:, .., places] = values: how a static cache is written."""
    x = L.value(self_)
    at = [i for i, a in enumerate(indices) if a is not None]
    if len(at) != 1 or at[0] == 0 or accumulate or L.fake(indices[at[0]]).dim() != 1 \
            or L.dtype(indices[at[0]]) == "bool":
        raise Unsupported("a write that is not a run of one axis behind the first")
    places = L.value(indices[at[0]], "i64")
    _expect_run(L, places, indices[at[0]])
    shape = list(x.shape)
    shape[at[0]] = places.shape[0]
    return _written(L, x, L.broadcast(L.value(values, x.dtype), shape), places, at[0])
