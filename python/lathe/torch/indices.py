# SPDX-License-Identifier: Apache-2.0
"""Lowerings of reads and writes by indices."""
import math
import operator

import torch

import lathe

from .lowering import Unsupported, op
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
    if len(at) > 1:
        places = [_checked(L, p, x.shape[i]) for p, i in zip(places, at)]
    linear = places[0]
    for place, i in zip(places[1:], at[1:]):
        linear = lathe.add(lathe.mul(linear, L.size_value(x.shape[i])), place)
    flat = list(x.shape[:at[0]]) + [math.prod((x.shape[i] for i in at), start=1)] + list(x.shape[at[-1] + 1:])
    return lathe.gather(L.reshape(x, flat), linear, at[0])


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
    x, places = L.value(self_), L.value(index, "i64")
    axis = L.axis(dim, x)
    if axis == 0:
        raise Unsupported("along axis 0: an update is along another axis")
    _expect_run(L, places, index)
    return _written(L, x, L.value(source), places, index, axis)


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
    return _written(L, x, L.broadcast(L.value(values, x.dtype), shape), places, indices[at[0]], at[0])


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
    axis = L.axis(dim, x)
    others = [[d for i, d in enumerate(t.shape) if i != axis] for t in (x, places)]
    if not x.ndim or others[0] != others[1]:
        raise Unsupported("a write into a part of the other axes")
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
