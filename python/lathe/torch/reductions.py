# SPDX-License-Identifier: Apache-2.0
"""Lowerings of reductions, running sums and orders."""
import math

import lathe

from .elementwise import wide
from .lowering import op


def _reduction(function, logical=False):
    def lower(L, node, self_, dim=None, keepdim=False, dtype=None):
        x = L.value(self_, "bool" if logical else L.dtype(node))
        axes = list(range(x.ndim)) if dim is None or dim == [] else [dim] if isinstance(dim, int) else list(dim)
        return function(x, [L.axis(a, x) for a in axes], keepdim) if x.ndim else x
    return lower


for _aten, _function in {"mean.dim": lathe.reduce_mean, "mean.default": lathe.reduce_mean,
                         "sum.dim_IntList": lathe.reduce_sum, "sum.default": lathe.reduce_sum,
                         "amax.default": lathe.reduce_max, "amin.default": lathe.reduce_min,
                         "max.default": lathe.reduce_max, "min.default": lathe.reduce_min,
                         "prod.dim_int": lathe.reduce_prod, "prod.default": lathe.reduce_prod}.items():
    op("aten." + _aten)(_reduction(_function))
for _name in ("any", "all"):
    for _overload in ("dim", "dims", "default"):
        op(f"aten.{_name}.{_overload}")(_reduction(getattr(lathe, "reduce_" + _name), logical=True))


@op("aten.var.correction")
def var(L, self_, dim=None, correction=None, keepdim=False):
    x = L.value(self_)
    axes = [L.axis(a, x) for a in dim] if dim else list(range(x.ndim))
    correction = 1 if correction is None else correction
    if correction == int(correction):
        return lathe.var(x, axes, keepdim, int(correction))
    count = L.size_value(math.prod((x.shape[a] for a in axes), start=1), x.dtype)
    rest = lathe.max(lathe.sub(count, L.scalar(correction, x.dtype)), 0)
    return lathe.mul(lathe.var(x, axes, keepdim, 0), lathe.div(count, rest))


@op("aten.var_mean.correction")
def var_mean(L, self_, dim=None, correction=None, keepdim=False):
    x = L.value(self_)
    axes = [L.axis(a, x) for a in dim] if dim else list(range(x.ndim))
    return [var(L, self_, dim, correction, keepdim), lathe.reduce_mean(x, axes, keepdim)]


def _place(function):
    def lower(L, self_, dim=None, keepdim=False):
        x = L.value(self_)
        if dim is None:
            x, dim = L.reshape(x, [math.prod(x.shape, start=1)]), 0
        y = function(x, dim)
        return lathe.unsqueeze(y, L.axis(dim, x)) if keepdim else y
    return lower


op("aten.argmax.default")(_place(lathe.argmax))
op("aten.argmin.default")(_place(lathe.argmin))


def _end(values, places):
    def lower(L, self_, dim, keepdim=False):
        """The largest or smallest along an axis, and its place."""
        x = L.value(self_)
        axis = L.axis(dim, x)
        found = [values(x, [axis], False), places(x, axis)] if x.ndim else [x, L.scalar(0, "i64")]
        return [lathe.unsqueeze(y, axis) for y in found] if keepdim and x.ndim else found
    return lower


op("aten.max.dim")(_end(lathe.reduce_max, lathe.argmax))
op("aten.min.dim")(_end(lathe.reduce_min, lathe.argmin))


@op("aten.cumsum.default")
def cumsum(L, node, self_, dim, dtype=None):
    return lathe.cumsum(L.value(self_, L.dtype(node)), dim)


@op("aten.topk.default")
def topk(L, self_, k, dim=-1, largest=True, sorted=True):
    x = L.value(self_)
    if not x.ndim:
        return [x, L.scalar(0, "i64")]
    axis, count = L.axis(dim, x), L.dim(k)
    if largest and axis == x.ndim - 1 and isinstance(count, int):
        return list(lathe.top_k(x, count))
    return [L.slice(y, axis, 0, count) for y in lathe.sort(x, axis, largest)]


@op("aten.sort.default", "aten.sort.stable")
def sort(L, self_, dim=-1, descending=False, stable=None):
    return list(lathe.sort(L.value(self_), dim, descending))


@op("aten._softmax.default", "aten.softmax.int")
def softmax(L, node, self_, dim, half_to_float=False, dtype=None):
    return lathe.fused.softmax(L.value(self_, L.dtype(node)), dim)


@op("aten._safe_softmax.default")
def safe_softmax(L, node, self_, dim, dtype=None):
    """Rows of -inf give 0."""
    return lathe.fused.softmax(L.value(self_, L.dtype(node)), dim, masked_row="zero")


@op("aten._log_softmax.default", "aten.log_softmax.int")
def log_softmax(L, node, self_, dim, half_to_float=False, dtype=None):
    """A row that holds +inf is NaN as a whole, as PyTorch's; rounded once."""
    x = wide(L, node, self_)
    y = lathe.sub(x, lathe.reduce_max(x, [dim], True))
    return lathe.sub(y, lathe.log(lathe.reduce_sum(lathe.exp(y), [dim], True)))
