# SPDX-License-Identifier: Apache-2.0
"""PyTorch results of the elementary ops, one or more cases for each; make_goldens.py stores them.

`cases()` yields (case, op, attributes, inputs, outputs). Attribute names are those of the dialect,
dtypes are spelled f32, bf16, f16, f64, i64, i32 and bool. A slice is given by `limits` and by
`sizes`, which say the same. Where PyTorch has no such op (logical right shift, random bits) the
result comes from a few lines here.
"""

import math
import zlib

import torch

INF, NAN = float("inf"), float("nan")
DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "i64": torch.int64,
    "i32": torch.int32,
    "bool": torch.bool,
}


class Draw:
    """Random inputs of one op."""

    def __init__(self, name):
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def normal(self, *shape, scale=1.0):
        return torch.randn(shape, generator=self.generator) * scale

    def uniform(self, low, high, *shape):
        return torch.rand(shape, generator=self.generator) * (high - low) + low

    def integers(self, low, high, *shape, dtype=torch.int64):
        return torch.randint(low, high, shape, generator=self.generator, dtype=dtype)

    def bools(self, *shape):
        return torch.rand(shape, generator=self.generator) < 0.5

    def distinct(self, *shape):
        """Values without ties."""
        count = math.prod(shape)
        order = torch.randperm(count, generator=self.generator)
        return (order.float() - count / 2).reshape(shape) * 0.37


# Signed zeros, infinities, NaN, the smallest and a middling denormal, the smallest normal and the
# largest finite f32, and ordinary magnitudes of both signs.
SPECIAL = torch.tensor(
    [0.0, -0.0, INF, -INF, NAN, 1e-45, -1e-45, 3e-39, -3e-39, 1.1754944e-38, 3.4028235e38,
     -3.4028235e38, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 88.0, 89.0, -87.0, -104.0, 1e-8,
     20.0, -20.0, 1e10, -1e10]
)  # fmt: skip

UNARY = {
    "neg": torch.neg, "abs": torch.abs, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "sin": torch.sin, "cos": torch.cos,
    "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid, "floor": torch.floor,
    "ceil": torch.ceil, "round": torch.round, "is_nan": torch.isnan,
}  # fmt: skip


def sign(x):
    """torch.sign, except that NaN stays NaN (PyTorch gives 0)."""
    return torch.where(torch.isnan(x), x, torch.sign(x))


def unary_cases():
    for op, function in (UNARY | {"sign": sign}).items():
        draw = Draw(op)
        positive = op in ("log", "sqrt", "rsqrt")
        x = draw.uniform(1e-3, 50.0, 3, 31) if positive else draw.normal(3, 31, scale=4.0)
        yield "f32", op, {}, [x], [function(x)]
        yield "special", op, {}, [SPECIAL], [function(SPECIAL)]
    halves = torch.arange(-9, 10) / 2
    yield "halves", "round", {}, [halves], [torch.round(halves)]
    for op in ["sin", "cos"]:
        far = torch.tensor([8191.0, -8191.0, 1000.5, 1e5, 1e6])
        yield "far", op, {}, [far], [UNARY[op](far)]
    for op, function in [("neg", torch.neg), ("abs", torch.abs), ("sign", torch.sign)]:
        x = torch.tensor([[0, 5, -7], [2**40, -(2**40), 1]])
        yield "i64", op, {}, [x], [function(x)]
    x = torch.tensor([[True, False, False]])
    yield "bool", "logical_not", {}, [x], [torch.logical_not(x)]


def divide_integers(a, b):
    return torch.div(a, b, rounding_mode="trunc")


def binary_cases():
    pairs = {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div,
             "max": torch.maximum, "min": torch.minimum, "mod": torch.remainder}  # fmt: skip
    for op, function in pairs.items():
        draw = Draw(op)
        a, b = draw.normal(2, 7, 13, scale=3.0), draw.normal(2, 7, 13, scale=3.0)
        yield "f32", op, {}, [a, b], [function(a, b)]
        a, b = draw.normal(5, 1, 7), draw.normal(3, 1)
        yield "broadcast", op, {}, [a, b], [function(a, b)]
        a, b = draw.integers(-50, 50, 31), draw.integers(1, 9, 31)
        b[::2] *= -1
        exact = divide_integers if op == "div" else function
        yield "i64", op, {}, [a, b], [exact(a, b)]
    for op in ["add", "sub", "mul", "div", "max", "min"]:
        a = torch.tensor([INF, INF, NAN, 1.0, 0.0, 1.0, -INF, 3e38])
        b = torch.tensor([INF, -INF, 2.0, NAN, 0.0, 0.0, 1.0, 3e38])
        yield "special", op, {}, [a, b], [pairs[op](a, b)]
    a = torch.tensor([5.5, -5.5, 5.5, -5.5, 6.0, -6.0, 0.25])
    b = torch.tensor([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, 1.0])
    yield "signs", "mod", {}, [a, b], [torch.remainder(a, b)]

    draw = Draw("pow")
    a, b = draw.uniform(0.1, 4.0, 3, 13), draw.normal(3, 13, scale=2.0)
    yield "f32", "pow", {}, [a, b], [torch.pow(a, b)]
    a = torch.tensor([-2.0, -2.0, -2.0, 0.0, 0.0, 2.0, 1.0, -1.0])
    b = torch.tensor([2.0, 3.0, 0.5, 0.0, -1.0, INF, NAN, -3.0])
    yield "special", "pow", {}, [a, b], [torch.pow(a, b)]

    for op, function in [("logical_and", torch.logical_and), ("logical_or", torch.logical_or)]:
        a, b = torch.tensor([[True], [False]]), torch.tensor([True, False])
        yield "broadcast", op, {}, [a, b], [function(a, b)]
    for op, function in [("bitwise_and", torch.bitwise_and), ("bitwise_or", torch.bitwise_or),
                         ("bitwise_xor", torch.bitwise_xor)]:  # fmt: skip
        draw = Draw(op)
        for label in ["i64", "i32"]:
            dtype = DTYPES[label]
            a = draw.integers(-1000, 1000, 4, 7, dtype=dtype)
            b = draw.integers(-1000, 1000, 7, dtype=dtype)
            yield label, op, {}, [a, b], [function(a, b)]
    for label, width in [("i64", 64), ("i32", 32)]:
        dtype = DTYPES[label]
        a = torch.tensor([1, 5, -1, -8, 2**20 + 3, 7], dtype=dtype)
        b = torch.tensor([0, 3, 4, 1, 10, width - 1], dtype=dtype)
        yield label, "shift_left", {}, [a, b], [torch.bitwise_left_shift(a, b)]
        bits = [(x % 2**width) >> y for x, y in zip(a.tolist(), b.tolist())]
        logical = [x - 2**width if x >= 2 ** (width - 1) else x for x in bits]
        yield label, "shift_right", {}, [a, b], [torch.tensor(logical, dtype=dtype)]


def choice_cases():
    draw = Draw("compare")
    functions = {"eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt,
                 "ge": torch.ge}  # fmt: skip
    for predicate, function in functions.items():
        attrs = {"predicate": predicate}
        a = torch.tensor([[NAN, 1.0, 0.0, INF, -1.0], [2.0, 2.0, -0.0, -INF, 3.0]])
        b = torch.tensor([NAN, 2.0, -0.0, INF, -2.0])
        yield f"{predicate}_f32", "compare", attrs, [a, b], [function(a, b)]
        a, b = draw.integers(-3, 3, 3, 7), draw.integers(-3, 3, 3, 1)
        yield f"{predicate}_i64", "compare", attrs, [a, b], [function(a, b)]
    draw = Draw("select")
    condition, a, b = draw.bools(2, 1, 7), draw.normal(2, 3, 7), draw.normal(3, 1)
    yield "broadcast", "select", {}, [condition, a, b], [torch.where(condition, a, b)]
    condition, a, b = draw.bools(13), draw.integers(0, 9, 13), draw.integers(10, 19, 13)
    yield "i64", "select", {}, [condition, a, b], [torch.where(condition, a, b)]

    narrow = torch.tensor(
        [0.0, -0.0, 1.0, 1.00390625, 1.01171875, 65504.0, 65519.9, 65520.0, 1e-8, 6e-8, INF, -INF,
         NAN, 3.4e38, 1e-40, 3.14159265]
    )  # fmt: skip
    for label in ["bf16", "f16", "f64"]:
        yield f"f32_{label}", "cast", {"dtype": label}, [narrow], [narrow.to(DTYPES[label])]
    for label in ["bf16", "f16"]:
        x = Draw("cast").normal(3, 7).to(DTYPES[label])
        yield f"{label}_f32", "cast", {"dtype": "f32"}, [x], [x.float()]
    x = torch.tensor([0.0, 0.9, -0.9, 1.5, -1.5, 1000.99, -7.0])
    for label in ["i64", "i32", "bool"]:
        yield f"f32_{label}", "cast", {"dtype": label}, [x], [x.to(DTYPES[label])]
    x = torch.tensor([0, 1, -5, 16777217, -16777219])
    for label in ["f32", "i32", "bool"]:
        yield f"i64_{label}", "cast", {"dtype": label}, [x], [x.to(DTYPES[label])]
    x = torch.tensor([True, False])
    for label in ["f32", "i64"]:
        yield f"bool_{label}", "cast", {"dtype": label}, [x], [x.to(DTYPES[label])]
    x = torch.tensor([0.0, -0.0, 1.0, -2.5, INF])
    yield "f32_i32", "bitcast", {"dtype": "i32"}, [x], [x.view(torch.int32)]
    x = torch.tensor([0, 0x3F800000, -1082130432], dtype=torch.int32)
    yield "i32_f32", "bitcast", {"dtype": "f32"}, [x], [x.view(torch.float32)]


def reduction_cases():
    folds = {
        "reduce_sum": torch.sum,
        "reduce_mean": torch.mean,
        "reduce_max": torch.amax,
        "reduce_min": torch.amin,
        "reduce_any": torch.any,
        "reduce_all": torch.all,
    }

    def product(x, dim, keepdim):
        for axis in sorted(dim, reverse=True):
            x = torch.prod(x, axis, keepdim=keepdim)
        return x

    for op, function in (folds | {"reduce_prod": product}).items():
        draw = Draw(op)
        truth = op in ("reduce_any", "reduce_all")
        x = draw.bools(3, 7, 4) if truth else draw.normal(3, 7, 13)
        for label, axes, keep in [("last_kept", [2], True), ("middle", [1], False),
                                  ("outer", [0, 2], False), ("all", [0, 1, 2], False)]:  # fmt: skip
            y = function(x, dim=axes, keepdim=keep)
            yield label, op, {"axes": axes, "keep_dims": keep}, [x], [y]
    attrs = {"axes": [1], "keep_dims": False}
    x = torch.tensor([[1.0, NAN, 3.0], [INF, 1.0, -INF], [-INF, -INF, -INF]])
    for op in ["reduce_sum", "reduce_max", "reduce_min"]:
        yield "special", op, attrs, [x], [folds[op](x, dim=1)]
    x = Draw("reduce_i64").integers(-9, 9, 3, 7)
    for op in ["reduce_sum", "reduce_max", "reduce_min"]:
        yield "i64", op, attrs, [x], [folds[op](x, dim=1)]

    for op, function in [("argmax", torch.argmax), ("argmin", torch.argmin)]:
        x = Draw(op).distinct(3, 7, 13)
        for axis in range(3):
            yield f"axis{axis}", op, {"axis": axis}, [x], [function(x, dim=axis)]
    ties = torch.tensor([[1.0, 3.0, 3.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    first = {"argmax": [1, 0], "argmin": [0, 0]}
    for op, expected in first.items():
        yield "ties", op, {"axis": 1}, [ties], [torch.tensor(expected)]
    draw = Draw("cumsum")
    x = draw.normal(3, 7, 13)
    for axis in range(3):
        yield f"axis{axis}", "cumsum", {"axis": axis}, [x], [torch.cumsum(x, axis)]
    x = draw.integers(-9, 9, 2, 13)
    yield "i64", "cumsum", {"axis": 1}, [x], [torch.cumsum(x, 1)]
    x = Draw("top_k").distinct(3, 31)
    for k in [1, 5, 31]:
        yield f"k{k}", "top_k", {"k": k}, [x], list(torch.topk(x, k))


def shape_cases():
    draw = Draw("shape")
    x = draw.normal(2, 3, 5)
    for label, order in [("swap", [0, 2, 1]), ("rotate", [2, 0, 1]), ("same", [0, 1, 2])]:
        yield label, "transpose", {"permutation": order}, [x], [x.permute(order)]
    heads = draw.normal(2, 7, 3, 4)
    order = [0, 2, 1, 3]
    yield "heads", "transpose", {"permutation": order}, [heads], [heads.permute(order)]
    for label, shape in [("split", [2, 3, 5, 1]), ("flat", [30]), ("merge", [6, 5])]:
        yield label, "reshape", {"shape": shape}, [x], [x.reshape(shape)]
    small = draw.normal(3, 1)
    yield "stretch", "broadcast", {"shape": [2, 3, 5]}, [small], [small.expand(2, 3, 5)]
    scalar = torch.tensor(1.25)
    yield "scalar", "broadcast", {"shape": [3, 7]}, [scalar], [scalar.expand(3, 7)]
    x = draw.normal(7, 13)
    for label, starts, limits, strides in [("box", [1, 2], [5, 9], [1, 1]),
                                           ("strided", [0, 1], [7, 13], [3, 2]),
                                           ("empty", [3, 0], [3, 13], [1, 1])]:  # fmt: skip
        box = tuple(slice(*part) for part in zip(starts, limits, strides))
        y = x[box]
        attrs = {"starts": starts, "limits": limits, "sizes": list(y.shape), "strides": strides}
        yield label, "slice", attrs, [x], [y]
    parts = [draw.normal(2, 3, 5), draw.normal(2, 1, 5), draw.normal(2, 4, 5)]
    yield "axis1", "concat", {"axis": 1}, parts, [torch.cat(parts, 1)]
    parts = [draw.normal(3, 7), draw.normal(3, 6)]
    yield "last", "concat", {"axis": 1}, parts, [torch.cat(parts, 1)]
    x, value = draw.normal(3, 5), torch.tensor(-1.5)
    y = torch.nn.functional.pad(x, (2, 3, 1, 0), value=-1.5)
    attrs = {"low": [1, 2], "high": [0, 3], "value": -1.5}
    yield "both_axes", "pad", attrs, [x, value], [y]
    x = draw.normal(2, 3, 5)
    for label, axes in [("last", [2]), ("two", [0, 2])]:
        yield label, "reverse", {"axes": axes}, [x], [torch.flip(x, axes)]


def contraction_cases():
    draw = Draw("matmul")
    for label, a, b in [("2d", (7, 13), (13, 5)), ("batched", (2, 3, 7, 13), (2, 3, 13, 5)),
                        ("broadcast", (2, 1, 7, 13), (3, 13, 5)), ("one_row", (1, 33), (33, 31)),
                        ("shared_right", (2, 7, 24), (24, 40))]:  # fmt: skip
        a, b = draw.normal(*a), draw.normal(*b)
        yield label, "matmul", {}, [a, b], [a @ b]
    a, b = draw.integers(-9, 9, 3, 7), draw.integers(-9, 9, 7, 5)
    yield "i64", "matmul", {}, [a, b], [a @ b]
    draw = Draw("convolution")
    for label, x, w, strides, padding in [
        ("plain", (2, 3, 7, 9), (5, 3, 3, 3), [1, 1], [[0, 0], [0, 0]]),
        ("patches", (1, 3, 8, 12), (6, 3, 4, 4), [4, 4], [[0, 0], [0, 0]]),
        ("padded", (2, 3, 7, 9), (4, 3, 3, 2), [2, 1], [[1, 2], [0, 1]]),
    ]:
        x, w = draw.normal(*x), draw.normal(*w)
        (top, bottom), (left, right) = padding
        padded = torch.nn.functional.pad(x, (left, right, top, bottom))
        y = torch.nn.functional.conv2d(padded, w, stride=strides)
        yield label, "convolution", {"strides": strides, "padding": padding}, [x, w], [y]


def gather_general(table, indices, axis):
    """index_select along one axis with indices of any rank, whose dims replace the axis."""
    flat = torch.index_select(table, axis, indices.reshape(-1).long())
    return flat.reshape(*table.shape[:axis], *indices.shape, *table.shape[axis + 1 :])


def philox(seed, count):
    """Philox-4x32-10: `count` words of the blocks 0, 1, ... under the 64-bit key `seed`."""
    words = []
    for block in range((count + 3) // 4):
        c = [block & 0xFFFFFFFF, block >> 32, 0, 0]
        k = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k[0], b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
        words += c
    return words[:count]


def index_cases():
    for label, shape, axis, dtype in [("rows", [3, 5], 0, "i64"), ("columns", [3, 5], 1, "f32"),
                                      ("middle", [2, 4, 3], 1, "i32")]:  # fmt: skip
        steps = torch.arange(shape[axis], dtype=DTYPES[dtype])
        steps = steps.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        attrs = {"shape": shape, "axis": axis, "dtype": dtype}
        yield label, "iota", attrs, [], [steps.expand(shape)]
    draw = Draw("gather")
    table = draw.normal(31, 5)
    ids = draw.integers(0, 31, 2, 7)
    yield "rows", "gather", {"axis": 0}, [table, ids], [gather_general(table, ids, 0)]
    table = draw.normal(2, 13, 5)
    for label, shape in [("axis1", (3,)), ("axis1_2d", (2, 3)), ("axis1_scalar", ())]:
        ids = draw.integers(0, 13, *shape, dtype=torch.int32)
        yield label, "gather", {"axis": 1}, [table, ids], [gather_general(table, ids, 1)]
    ids = draw.integers(0, 5, 4)
    yield "last", "gather", {"axis": 2}, [table, ids], [gather_general(table, ids, 2)]

    draw = Draw("update")
    for label, steps, positions in [("append", 1, [4, 0]), ("block", 3, [2, 5])]:
        base, value = draw.normal(2, 3, 8, 4), draw.normal(2, 3, steps, 4)
        y = base.clone()
        for b, position in enumerate(positions):
            y[b, :, position : position + steps] = value[b]
        operands = [base, value, torch.tensor(positions)]
        yield label, "update", {"axis": 2}, operands, [y]

    # The first known-answer vector of Random123 for philox4x32-10: counter 0, key 0.
    if philox(0, 4) != [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]:
        raise AssertionError("philox4x32-10 does not give its published vector")
    for label, seed, shape in [("zero", 0, [4]), ("odd", 20240229123456789, [3, 7])]:
        words = philox(seed, math.prod(shape))
        bits = [w - 2**32 if w >= 2**31 else w for w in words]
        y = torch.tensor(bits, dtype=torch.int32).reshape(shape)
        yield label, "random_bits", {"shape": shape}, [torch.tensor(seed)], [y]


def cases():
    for group in [unary_cases, binary_cases, choice_cases, reduction_cases, shape_cases,
                  contraction_cases, index_cases]:  # fmt: skip
        yield from group()
