# SPDX-License-Identifier: Apache-2.0
"""Lowerings of elementwise ops, comparisons and choices."""
import math

import torch

import lathe

from .lowering import FLOATS, Unsupported, op

NARROW = {"bf16": torch.bfloat16, "f16": torch.float16}
BOOLEAN = {"add": "logical_or", "mul": "logical_and", "bitwise_and": "logical_and", "bitwise_or": "logical_or"}


def _binary(function, aten):
    def lower(L, node, self_, other, alpha=1):
        dtype = L.dtype(node)
        if dtype == "bool":
            if aten == "bitwise_xor":
                return lathe.compare(L.value(self_, "bool"), L.value(other, "bool"), "ne")
            if aten not in BOOLEAN:
                raise Unsupported("on booleans")
            if not alpha:
                return L.value(self_, "bool")
            return getattr(lathe, BOOLEAN[aten])(L.value(self_, "bool"), L.value(other, "bool"))
        if aten == "mul":
            return function(*_operands(L, dtype, self_, other))
        x, y = L.value(self_, dtype), L.value(other, dtype)
        if alpha != 1:
            factor = L.scalar(alpha, dtype)
            if dtype in NARROW:  # the factor is rounded, the product is not, as PyTorch's
                x, y, factor = (L.cast(v, "f32") for v in (x, y, factor))
            y = lathe.mul(y, factor)
        return function(x, y)
    return lower


def _operands(L, dtype, x, y):
    """Of a product or a quotient. A number beside 16 bits, or a scalar tensor of another dtype, is one of f32, as PyTorch
    keeps it there and in no other op, and the result is rounded once."""
    number = L.fake(y)
    if isinstance(number, torch.Tensor):
        is_exact = number.dim() > 0 or number.dtype == NARROW.get(dtype)
    else:
        is_exact = isinstance(number, (int, float)) and torch.tensor(number, dtype=NARROW.get(dtype)).item() == number
    if dtype not in NARROW or is_exact:
        return L.value(x, dtype), L.value(y, dtype)
    return L.cast(L.value(x, dtype), "f32"), L.value(y, "f32")


for _aten, _name in {"add": "add", "sub": "sub", "mul": "mul", "maximum": "max", "minimum": "min",
                     "remainder": "mod", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
                     "bitwise_xor": "bitwise_xor"}.items():
    for _overload in ("Tensor", "Scalar", "default"):
        op(f"aten.{_aten}.{_overload}")(_binary(getattr(lathe, _name), _aten))


def _floor_divide(L, node, self_, other):
    """Of floats by the remainder, as PyTorch and Python: 1 // 0.1 is 9, though 1 / 0.1 rounds to 10."""
    if L.dtype(node) not in FLOATS:
        x, y = L.value(self_, L.dtype(node)), L.value(other, L.dtype(node))
        whole = lathe.div(x, y)  # toward zero
        return _lowered(whole, lathe.sub(x, lathe.mul(whole, y)), y)
    x, y = (v if v.dtype == "f64" else L.cast(v, "f32") for v in _operands(L, L.dtype(node), self_, other))
    rest = _remainder(x, y)
    whole = lathe.round(_lowered(lathe.div(lathe.sub(x, rest), y), rest, y))
    return lathe.where(lathe.compare(y, 0, "eq"), lathe.div(x, y), whole)


def _lowered(whole, rest, y):
    """A quotient toward zero as one toward minus infinity: one less where there is a rest of the other sign than y."""
    signs = lathe.compare(lathe.compare(rest, 0, "lt"), lathe.compare(y, 0, "lt"), "ne")
    return lathe.where(lathe.logical_and(signs, lathe.compare(rest, 0, "ne")), lathe.sub(whole, 1), whole)


def _remainder(x, y):
    """With the sign of x."""
    rest = lathe.mod(lathe.abs(x), lathe.abs(y))
    return lathe.where(lathe.compare(x, lathe.zeros_like(x), "lt"), lathe.neg(rest), rest)


@op("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor", "aten.div.Tensor_mode", "aten.div.Scalar_mode")
def divide(L, node, self_, other, rounding_mode=None):
    if rounding_mode == "floor":
        return _floor_divide(L, node, self_, other)
    dtype = L.dtype(node)
    x, y = _operands(L, dtype, self_, other)
    if rounding_mode == "trunc" and dtype in FLOATS:
        return _truncated(lathe.div(x, y))
    return lathe.div(x, y)


def _truncated(x):
    return lathe.where(lathe.compare(x, lathe.zeros_like(x), "lt"), lathe.ceil(x), lathe.floor(x))


@op("aten.trunc.default")
def trunc(L, self_):
    x = L.value(self_)
    return _truncated(x) if x.dtype in FLOATS else x


@op("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(L, node, self_, other):
    dtype = L.dtype(node)
    if dtype in FLOATS:
        return _remainder(L.value(self_, dtype), L.value(other, dtype))
    x, y = L.value(self_, dtype), L.value(other, dtype)
    return lathe.sub(x, lathe.mul(lathe.div(x, y), y))  # the smallest number has no absolute value


@op("aten.floor_divide.default", "aten.floor_divide.Scalar")
def floor_divide(L, node, self_, other):
    return _floor_divide(L, node, self_, other)


@op("aten.rsub.Scalar", "aten.rsub.Tensor")
def reversed_sub(L, node, self_, other):
    return lathe.sub(L.value(other, L.dtype(node)), L.value(self_, L.dtype(node)))


@op("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def power(L, node, self_, exponent):
    dtype = L.dtype(node)
    x = L.value(self_, dtype)
    if dtype not in FLOATS:
        if exponent not in (2, 3):
            raise Unsupported(f"the integer power {exponent}")
        y = lathe.mul(x, x)
        return y if exponent == 2 else lathe.mul(y, x)
    # Of -inf and -0.0 PyTorch gives what the root gives, but for a reciprocal one in f16.
    if exponent == 0.5:
        return lathe.sqrt(x)
    if exponent == -0.5 and dtype != "f16":
        return lathe.rsqrt(x)
    return lathe.pow(x, L.value(exponent, dtype))


def _unary(function, result=True):
    return lambda L, node, self_: function(L.value(self_, L.dtype(node) if result else None))


for _name in "neg abs exp log sqrt rsqrt reciprocal sin cos tanh erf sigmoid floor ceil round".split():
    op(f"aten.{_name}.default")(_unary(getattr(lathe, _name)))


@op("aten.sign.default")
def sign(L, self_):
    """0 of NaN, as PyTorch's."""
    x = L.value(self_)
    return lathe.where(lathe.is_nan(x), 0, lathe.sign(x)) if x.dtype in FLOATS else lathe.sign(x)


op("aten.isnan.default")(_unary(lathe.is_nan, result=False))


@op("aten.isinf.default")
def is_infinite(L, self_):
    x = L.value(self_)
    return lathe.compare(lathe.abs(x), L.scalar(math.inf, x.dtype), "eq")


@op("aten.square.default")
def square(L, self_):
    x = L.value(self_)
    return lathe.mul(x, x)


def wide(L, node, argument):
    """In f32 at least: what takes several steps is rounded once, at the end."""
    x = L.value(argument, L.dtype(node))
    return x if x.dtype == "f64" else L.cast(x, "f32")


def _log1p(L, x):
    """log(1 + x), exact for small x: Goldberg, "What Every Computer Scientist Should Know About Floating-Point
    Arithmetic", 1991, theorem 4."""
    one = L.scalar(1, x.dtype)
    u = lathe.add(one, x)
    y = lathe.div(lathe.mul(x, lathe.log(u)), lathe.sub(u, one))
    infinite = lathe.compare(u, L.scalar(math.inf, x.dtype), "eq")
    return lathe.where(lathe.logical_or(lathe.compare(u, one, "eq"), infinite), x, y)


@op("aten.log1p.default")
def log1p(L, node, self_):
    return _log1p(L, wide(L, node, self_))


def _expm1(L, x):
    """exp(x) - 1, exact for small x: 2 t / (1 - t) of t = tanh(x / 2)."""
    t = lathe.tanh(lathe.mul(x, L.scalar(0.5, x.dtype)))
    near = lathe.div(lathe.add(t, t), lathe.sub(L.scalar(1, x.dtype), t))
    small = lathe.compare(lathe.abs(x), L.scalar(0.5, x.dtype), "lt")
    return lathe.where(small, near, lathe.sub(lathe.exp(x), L.scalar(1, x.dtype)))


@op("aten.expm1.default")
def expm1(L, node, self_):
    return _expm1(L, wide(L, node, self_))


@op("aten.elu.default")
def elu(L, node, self_, alpha=1, scale=1, input_scale=1):
    x = wide(L, node, self_)
    below = lathe.mul(_expm1(L, lathe.mul(x, L.scalar(input_scale, x.dtype))), L.scalar(alpha * scale, x.dtype))
    return lathe.where(lathe.compare(x, L.scalar(0, x.dtype), "le"), below, lathe.mul(x, L.scalar(scale, x.dtype)))


@op("aten.leaky_relu.default")
def leaky_relu(L, node, self_, negative_slope=0.01):
    x = wide(L, node, self_)
    return lathe.where(lathe.compare(x, L.scalar(0, x.dtype), "gt"), x, lathe.mul(x, L.scalar(negative_slope, x.dtype)))


def _logarithm(base):
    def lower(L, node, self_):
        x = wide(L, node, self_)
        return lathe.mul(lathe.log(x), L.scalar(1 / math.log(base), x.dtype))
    return lower


op("aten.log2.default")(_logarithm(2))
op("aten.log10.default")(_logarithm(10))


@op("aten.exp2.default")
def exp2(L, node, self_):
    x = wide(L, node, self_)
    return lathe.pow(L.scalar(2, x.dtype), x)


@op("aten.logical_not.default")
def logical_not(L, self_):
    return lathe.logical_not(L.value(self_, "bool"))


@op("aten.bitwise_not.default")
def bitwise_not(L, self_):
    x = L.value(self_)
    if x.dtype == "bool":
        return lathe.logical_not(x)
    return lathe.bitwise_xor(x, 255 if x.dtype == "u8" else -1)


@op("aten.logical_and.default")
def logical_and(L, self_, other):
    return lathe.logical_and(L.value(self_, "bool"), L.value(other, "bool"))


@op("aten.logical_or.default")
def logical_or(L, self_, other):
    return lathe.logical_or(L.value(self_, "bool"), L.value(other, "bool"))


@op("aten.logical_xor.default")
def logical_xor(L, self_, other):
    return lathe.compare(L.value(self_, "bool"), L.value(other, "bool"), "ne")


def _comparison(predicate):
    def lower(L, self_, other):
        dtype = L.promoted(self_, other)
        return lathe.compare(L.value(self_, dtype), L.value(other, dtype), predicate)
    return lower


for _predicate in ("eq", "ne", "lt", "le", "gt", "ge"):
    op(f"aten.{_predicate}.Tensor", f"aten.{_predicate}.Scalar")(_comparison(_predicate))


@op("aten.where.self", "aten.where.ScalarOther", "aten.where.Scalar", "aten.where.ScalarSelf")
def where(L, node, condition, self_, other):
    return lathe.where(L.value(condition, "bool"), L.value(self_, L.dtype(node)), L.value(other, L.dtype(node)))


@op("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(L, node, self_, mask, value):
    return lathe.where(L.value(mask, "bool"), L.value(value, L.dtype(node)), L.value(self_, L.dtype(node)))


def _bounded(L, node, x, low, high):
    dtype = L.dtype(node)
    x = L.value(x, dtype)
    if low is not None:
        x = lathe.max(x, L.value(low, dtype))
    return x if high is None else lathe.min(x, L.value(high, dtype))


@op("aten.clamp.default", "aten.clamp.Tensor", "aten.clamp_min.default", "aten.clamp_max.default")
def clamp(L, node, self_, min=None, max=None):
    return _bounded(L, node, self_, min, max)


@op("aten.hardtanh.default")
def hardtanh(L, node, self_, min_val, max_val):
    return _bounded(L, node, self_, min_val, max_val)


@op("aten.relu.default")
def relu(L, self_):
    return lathe.nn.relu(L.value(self_))


@op("aten.silu.default")
def silu(L, self_):
    return lathe.nn.silu(L.value(self_))


@op("aten.gelu.default")
def gelu(L, self_, approximate="none"):
    x = L.value(self_)
    return lathe.nn.gelu_tanh(x) if approximate == "tanh" else lathe.nn.gelu(x)


@op("aten.softplus.default")
def softplus(L, node, self_, beta=1, threshold=20):
    x = wide(L, node, self_)
    scaled = lathe.mul(x, L.scalar(beta, x.dtype))
    y = lathe.div(_log1p(L, lathe.exp(scaled)), L.scalar(beta, x.dtype))
    return lathe.where(lathe.compare(scaled, L.scalar(threshold, x.dtype), "gt"), x, y)


def _same(L, self_, **_):
    return L.value(self_)


for _name in ("clone", "alias", "detach", "contiguous", "lift_fresh_copy", "lift_fresh"):
    op(f"aten.{_name}.default")(_same)


@op("aten.dropout.default")
def dropout(L, input, p, train):
    if train and p:
        raise Unsupported("dropout while training")
    return L.value(input)


@op("aten.view.dtype")
def view_as_dtype(L, node, self_, **_):
    """The same bits as numbers of another dtype."""
    fake = L.fake(self_)
    if fake.dtype.itemsize != L.fake(node).dtype.itemsize:
        raise Unsupported(f"of elements of {fake.dtype.itemsize} bytes as {L.dtype(node)}")
    x, dtype = L.value(self_), L.dtype(node)
    return x if x.dtype == dtype else lathe.bitcast(x, dtype)


@op("aten._to_copy.default", "aten.to.dtype", "aten.type_as.default", "aten.to.dtype_layout", "aten.to.device",
    "prims.convert_element_type.default")
def cast(L, node, **given):
    return L.value(given.get("self_", given.get("a")), L.dtype(node))
