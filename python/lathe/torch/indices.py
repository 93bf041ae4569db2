# SPDX-License-Identifier: Apache-2.0
"""Lowerings of reads and writes by indices."""
import math
import operator

import torch

import lathe

from .lowering import Unsupported, op, wide_of
from .shapes import permute


@op("aten.embedding.default")
def embedding(L, weight, indices, **_):
    return lathe.gather(L.value(weight), L.value(indices), 0)


@op("aten.index_select.default")
def index_select(L, self_, dim, index):
    return lathe.gather(L.value(self_), L.value(index), dim)


# What keeps integers at 0 and above if its operand is, and if all of its operands are.
_KEEPS_SIGN = ("aten.view.", "aten.reshape.", "aten.unsqueeze.", "aten.expand.", "aten.squeeze.", "aten._to_copy.",
               "aten.clone.", "aten.alias.", "aten.cumsum.", "aten.slice.", "aten.select.", "aten.permute.")
_KEEPS_SIGNS = ("aten.add.", "aten.mul.")


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
    if name.startswith(_KEEPS_SIGNS):
        return all(_is_at_least_0(L, a) for a in (*node.args, *node.kwargs.values()))
    return name.startswith(_KEEPS_SIGN) and _is_at_least_0(L, node.args[0])


def _checked(L, places, size):
    """Places of an axis of `size`: another one is an error when it runs, also where it is a part of a larger index."""
    return lathe.gather(L.graph.arange(size), places, 0)


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


def _linear(L, x, indices):
    """(axes, places): the axes that indices are of, which follow each other, and their places in those axes as one."""
    at = [i for i, a in enumerate(indices) if a is not None]
    places = [L.value(indices[i]) for i in at]
    if any(p.dtype == "bool" for p in places):
        raise Unsupported("an index by a mask: the result's size depends on values")
    if at != list(range(at[0], at[0] + len(at))):
        raise Unsupported("indices of axes that are apart")
    places = [_from_the_front(L, indices[i], L.cast(p, "i64"), x.shape[i]) for p, i in zip(places, at)]
    if len(at) > 1:
        places = [_checked(L, p, x.shape[i]) for p, i in zip(places, at)]
    linear = places[0]
    for place, i in zip(places[1:], at[1:]):
        linear = lathe.add(lathe.mul(linear, L.size_value(x.shape[i])), place)
    return at, linear


def _merged(L, x, axes):
    """x with some axes that follow each other as one."""
    size = math.prod((x.shape[i] for i in axes), start=1)
    return L.reshape(x, [*x.shape[:axes[0]], size, *x.shape[axes[-1] + 1:]])


@op("aten.index.Tensor")
def index(L, self_, indices):
    x = L.value(self_)
    at, linear = _linear(L, x, indices)
    return lathe.gather(_merged(L, x, at), linear, at[0])


@op("aten.gather.default")
def gather(L, self_, dim, index, sparse_grad=False):
    x, places = L.value(self_), L.value(index, "i64")
    axis, linear = L.axis(dim, x), None
    if x.ndim > 1:
        places = _checked(L, places, x.shape[axis])
    for i in range(x.ndim):
        part = places
        if i != axis:
            part = L.reshape(L.graph.arange(places.shape[i]), [d if j == i else 1 for j, d in enumerate(places.shape)])
        linear = part if linear is None else lathe.add(lathe.mul(linear, L.size_value(x.shape[i])), part)
    return lathe.gather(L.reshape(x, [math.prod(x.shape, start=1)]), linear, 0)


def _written(L, x, value, places, node, axis):
    """A run of rows written into a cache. One position is exact; of several `ascending` must hold."""
    places = _from_the_front(L, node, places, x.shape[axis])
    first = L.broadcast(L.slice(places, 0, 0, 1), [x.shape[0]])
    return lathe.update(x, value, first, axis)


def _is_run(L, node, axis):
    """Whether indices are positions of a cache, arange(n) + start, one after the other: nothing else is an update."""
    fake = L.fake(node)
    return axis > 0 and fake.dim() == 1 and fake.dtype != torch.bool and (L.dim(fake.shape[0]) == 1 or _ascends(node))


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
            if not any(scalar) or not scalar[1] and node.kwargs.get("alpha", 1) != 1:  # alpha times b
                return False
            node = a if scalar[1] else b
        elif name in ("aten._to_copy.default", "aten.clone.default", "aten.alias.default"):
            node = node.args[0]
        else:
            return False
    return False


@op("aten.index_copy.default")
def index_copy(L, self_, dim, index, source):
    x = L.value(self_)
    if not x.ndim:
        raise Unsupported("of a scalar")
    return index_put(L, self_, [None] * L.axis(dim, x) + [index], source)


@op("aten.index_put.default")
def index_put(L, self_, indices, values, accumulate=False):
    """x[.., places, ..] = values: a run of an axis behind the first is how a static cache is written."""
    x, values = L.value(self_), L.value(values, L.dtype(self_))
    at = [i for i, a in enumerate(indices) if a is not None]
    first = indices[at[0]]
    if len(at) == 1 and L.dtype(first) == "bool" and all(n == 1 for n in values.shape) and not accumulate:
        mask = L.value(first)
        behind = x.ndim - at[0] - mask.ndim
        return lathe.where(L.reshape(mask, [*[1] * at[0], *mask.shape, *[1] * behind]), L.reshape(values, []), x)
    if len(at) == 1 and not accumulate and _is_run(L, first, at[0]):
        places = L.value(first, "i64")
        shape = [*x.shape[:at[0]], places.shape[0], *x.shape[at[0] + 1:]]
        return _written(L, x, L.broadcast(values, shape), places, first, at[0])
    at, places = _linear(L, x, indices)
    before, behind = x.shape[:at[0]], x.shape[at[-1] + 1:]
    count = math.prod(places.shape, start=1)
    values = L.reshape(L.broadcast(values, [*before, *places.shape, *behind]), [*before, count, *behind])
    places = L.reshape(places, [count] + [1] * len(behind))
    y = _put(L, _merged(L, x, at), L.broadcast(places, values.shape), values, at[0], accumulate)
    return L.reshape(y, x.shape)


def _put(L, x, places, values, axis, adds):
    """x with values, or sums with them, at places of one axis: sizes of the other axes are equal."""
    if any(n == 0 for n in values.shape):
        return x
    if not adds:
        return lathe.scatter(x, places, values, axis)
    wide = wide_of(x.dtype)
    return L.cast(lathe.scatter_add(L.cast(x, wide), places, L.cast(values, wide), axis), x.dtype)


def _put_in_part(L, x, places, values, axis, adds=False):
    """The same where the places reach but a part of the other axes. `values` have at least the places' sizes."""
    part, shorter = x, [a for a in range(x.ndim) if a != axis and x.shape[a] != places.shape[a]]
    for a in range(x.ndim):
        values = L.slice(values, a, 0, places.shape[a])
    for a in shorter:
        part = L.slice(part, a, 0, places.shape[a])
    if any(n == 0 for n in places.shape):
        return x
    y = _put(L, part, places, values, axis, adds)
    # What the places do not reach is put around it, axis by axis.
    for k, a in enumerate(shorter):
        around = x
        for later in shorter[k + 1:]:
            around = L.slice(around, later, 0, places.shape[later])
        y = lathe.concat([y, L.slice(around, a, places.shape[a], x.shape[a] - places.shape[a])], a)
    return y


def _scatter(adds):
    def lower(L, self_, dim, index, src):
        x, places = L.value(self_), L.value(index, "i64")
        if not x.ndim or not places.ndim:
            raise Unsupported("of a scalar")
        return _put_in_part(L, x, places, L.value(src), L.axis(dim, x), adds)
    return lower


op("aten.scatter.src")(_scatter(False))
op("aten.scatter_add.default")(_scatter(True))


@op("aten.as_strided.default")
def as_strided(L, self_, size, stride, storage_offset=None):
    """Elements by their places in memory, which are those of PyTorch's tensor: where it lies without gaps, axes in
    the order of their strides are rows of it."""
    fake, x = L.fake(self_), L.value(self_)
    if not all(isinstance(n, int) for n in (*fake.shape, *fake.stride(), *size, *stride, storage_offset or 0)):
        raise Unsupported("of sizes that are no numbers")
    order = sorted(range(x.ndim), key=lambda a: (-fake.stride(a), -fake.shape[a], a))
    if not fake.permute(order).is_contiguous():
        raise Unsupported("of a tensor with gaps")
    places = torch.tensor(0 if storage_offset is None else storage_offset - fake.storage_offset())
    for n, step in zip(size, stride):
        places = places[..., None] + torch.arange(n) * step
    if places.numel() and not 0 <= places.min() <= places.max() < fake.numel():
        raise Unsupported("outside of the tensor")
    return lathe.gather(L.reshape(permute(L, x, order), [fake.numel()]), L.literal(places), 0)


@op("aten.scatter.value")
def scatter_value(L, node, self_, dim, index, value):
    """One value at places of one axis: each element asks whether a place is its own."""
    x, places = L.value(self_), L.value(index, "i64")
    if not x.ndim or not places.ndim:
        raise Unsupported("of a scalar")
    axis = L.axis(dim, x)
    others = [[d for i, d in enumerate(t.shape) if i != axis] for t in (x, places)]
    if others[0] != others[1]:
        return _put_in_part(L, x, places, L.broadcast(L.value(value, x.dtype), places.shape), axis)
    if places.shape[axis] == 0:
        return x
    size = x.shape[axis]
    places = _checked(L, places, size)
    own = L.reshape(L.graph.arange(size), [size] + [1] * (x.ndim - axis))  # one axis more, for the places
    hit = lathe.compare(own, lathe.unsqueeze(places, axis), "eq")
    return lathe.where(lathe.reduce_any(hit, [axis + 1]), L.value(value, x.dtype), x)


@op("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(L, self_, dim, index, value):
    """One value at places of one axis, which may count from the back."""
    x = L.value(self_)
    if not x.ndim:
        raise Unsupported("of a scalar")
    axis = L.axis(dim, x)
    size = x.shape[axis]
    places = _from_the_front(L, index, L.value(index, "i64"), size)
    places = L.reshape(_checked(L, places, size), [math.prod(places.shape, start=1), 1])
    hit = lathe.reduce_any(lathe.compare(L.graph.arange(size), places, "eq"), [0])
    hit = L.reshape(hit, [size] + [1] * (x.ndim - 1 - axis))
    return lathe.where(hit, L.value(value, x.dtype), x)
