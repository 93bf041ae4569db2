# SPDX-License-Identifier: Apache-2.0
"""From a graph of ATen ops (torch.fx, every node with `meta["val"]`) to a lathe.Graph, op by op.

Each ATen op has one function in a table. What is not in it, and an argument that a function does not know, is
`Unsupported` with the op's name: nothing is passed over.
"""
import inspect
import operator

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import statically_known_true

import lathe

DTYPES = {torch.float64: "f64", torch.float32: "f32", torch.bfloat16: "bf16", torch.float16: "f16",
          torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
          torch.uint8: "u8", torch.bool: "bool"}
FLOATS = ("f64", "f32", "bf16", "f16")
INLINE = 64  # elements of a constant that goes into the IR; larger ones are weights


class Unsupported(Exception):
    """An op, or a use of one, that has no lowering."""


def dtype_of(value):
    """The name of a tensor's dtype, or of a dtype itself."""
    dtype = getattr(value, "dtype", value)
    if dtype not in DTYPES:
        raise Unsupported(f"the dtype {dtype}")
    return DTYPES[dtype]


def wide_of(dtype):
    """The dtype in which several steps on 16 bits are computed, so that they are rounded once; others stay."""
    return "f32" if dtype in ("bf16", "f16") else dtype


def in_rows(tensor):
    """A tensor without gradients as its memory is read: in rows, and with its signs, which PyTorch may change later."""
    return tensor.detach().resolve_neg().contiguous()


OPS = {}


def op(*names):
    """Registers a lowering for overloads "aten.add.Tensor". It is called with the lowering and the op's
    arguments by name; those that it does not name must have the schema's default."""
    def add(function):
        taken = inspect.signature(function).parameters
        free = any(p.kind is p.VAR_KEYWORD for p in taken.values())
        for name in names:
            OPS[name] = (function, None if free else list(taken)[1:])
        return function
    return add


MISSING = "there is no lowering of this op"
# Say nothing about a value, or only what memory it has.
IGNORED = {"aten._assert_scalar.default", "aten._assert_async.msg", "aten._assert_tensor_metadata.default",
           "aten.sym_constrain_range_for_size.default", "aten.sym_constrain_range.default"}
MEMORY = {"memory_format", "pin_memory", "device", "layout", "non_blocking", "copy"}


def name_of(target):
    if isinstance(target, torch._ops.OpOverload):
        return str(target)
    return getattr(target, "__module__", "") + "." + getattr(target, "__name__", str(target))


def line_of(node):
    """(module path, file, line) of the user's code that a node came from."""
    path = ""
    if stack := node.meta.get("nn_module_stack"):
        path = list(stack.values())[-1][0].removeprefix("L['self'].").removeprefix("L['self']")
    frames = [f.strip() for f in (node.meta.get("stack_trace") or "").splitlines() if f.strip().startswith("File ")]
    frames = [f for f in frames if "/torch/" not in f] or frames
    if not frames:
        return path or "graph", "<torch>", 1
    parts = frames[-1].split('"')
    return path or "graph", parts[1], int(parts[2].split("line")[1].split(",")[0])


class Lowering:
    """The values of one graph under construction. `symbols` gives names to torch's symbols, `ranges` their ends."""

    def __init__(self, graph, symbols, ranges):
        self.ranges = ranges
        self.graph, self.symbols, self.values = graph, symbols, {}
        self.instead = {}  # sizes of which only the whole is known to a symbol of that
        self.known = {}  # nodes that are small tensors with known values
        self.literals, self.prefix = {}, ""  # weights that the graph itself holds, by name; how their names begin

    # --- sizes
    def dim(self, size):
        """An int, Dim, SymInt, node of one, or sympy expression as a number or a Dim."""
        if isinstance(size, torch.fx.Node):
            size = size.meta["val"]
        if isinstance(size, torch.SymInt):
            size = size.node.expr
        if isinstance(size, lathe.Dim):
            return size
        if not isinstance(size, sympy.Basic):
            return int(size)
        total, terms = lathe.Dim(0), self._terms(size)
        if terms[0][1] == ():
            return terms[0][0]
        for factor, symbols in terms:
            term = lathe.Dim(factor)
            for symbol in symbols:
                term = term * lathe.Dim(self.symbols[symbol])
            total = total + term
        return total

    def _terms(self, size):
        """A sympy expression as the terms of a polynomial: (factor, its symbols, each as often as its power)."""
        expression = sympy.expand(size.replace(lambda e: type(e).__name__ in ("Max", "Min"), self._extremum))
        for whole, symbol in self.instead.items():
            expression = expression.subs(whole, symbol)
        free = sorted(expression.free_symbols, key=str)
        if not expression.is_polynomial(*free):
            raise Unsupported(f"the size {size}: sizes are polynomials of symbols")
        if unknown := [s for s in free if s not in self.symbols]:
            raise Unsupported(f"the size {size}: no input has {unknown[0]}")
        if not free:
            return [(int(expression), ())]
        terms = []
        for powers, factor in sympy.Poly(expression, *free).terms():
            if not factor.is_Integer:
                raise Unsupported(f"the size {size}: its factors are no whole numbers")
            terms.append((int(factor), [s for s, power in zip(free, powers) for _ in range(power)]))
        return terms

    def _is_at_most(self, a, b):
        """Whether a <= b for all sizes: a symbol is its lower end and a number that is not negative, or its upper end
        less one."""
        lower, upper = {}, {}
        for symbol in (b - a).free_symbols:
            more = sympy.Dummy(integer=True, nonnegative=True)
            low, high = self.ranges.get(symbol, (1, None))
            lower[symbol] = low + more
            upper[symbol] = low + more if high is None else high - more
        return any(bool(sympy.expand((b - a).xreplace(ends)).is_nonnegative) for ends in (lower, upper))

    def _extremum(self, e):
        """The operand of a Max or Min that it is for all sizes; the whole where none is."""
        largest = type(e).__name__ == "Max"
        for one in e.args:
            if all(self._is_at_most(*((other, one) if largest else (one, other))) for other in e.args):
                return one
        return e

    def place(self, size, x, axis):
        """A place of an axis of the node `x`, as Python's slices take it: negative ones, -1 or -seq, count from the
        back, and what lies beyond an end is that end."""
        at, end = self.fake(size), self.fake(x).shape[axis]
        if statically_known_true(at < 0):
            at = at + end
        if statically_known_true(at < 0):
            at = 0
        elif statically_known_true(at > end):
            at = end
        return self.dim(at)

    def is_negative(self, size):
        """Whether a number or a size is below 0; where that depends on the sizes, PyTorch has decided it for those at
        hand, which is a guard."""
        fake = self.fake(size)
        return bool(fake < 0)

    def axis(self, dim, x):
        """An axis from the front; scalars have the one of PyTorch's."""
        return dim % max(x.ndim, 1)

    def shape(self, fake):
        return [self.dim(d) for d in fake.shape]

    def dims(self, sizes):
        return [self.dim(d) for d in sizes]

    # --- values
    def fake(self, node):
        return node.meta["val"] if isinstance(node, torch.fx.Node) else node

    def dtype(self, node):
        return dtype_of(self.fake(node))

    def scalar(self, value, dtype):
        if isinstance(value, (torch.fx.Node, torch.SymInt, lathe.Dim)):
            return self.size_value(value, dtype)
        return self.graph.constant(int(value) if isinstance(value, bool) else value, dtype)

    def size_value(self, size, dtype="i64"):
        """A size as a value. There is no op for it: the sum of that many ones. What may be negative, 2 - n, is a
        difference of two."""
        fake = self.fake(size)
        less = []
        if isinstance(fake, torch.SymInt) and not statically_known_true(fake >= 0):
            less = [-sympy.Mul(factor, *symbols) for factor, symbols in self._terms(fake.node.expr) if factor < 0]
        if less:
            less = sympy.Add(*less)
            more, less = (self.size_value(self.dim(e)) for e in (fake.node.expr + less, less))
            return self.cast(lathe.sub(more, less), dtype)
        size = self.dim(size)
        if isinstance(size, int):
            return self.scalar(size, dtype)
        return self.cast(lathe.reduce_sum(self.graph.full([size], 1, "i64"), [0]), dtype)

    def literal(self, tensor):
        """Known numbers: in the IR if there are few, else a weight that the caller binds."""
        tensor = in_rows(tensor)
        if tensor.numel() <= INLINE:
            return self.graph.constant(tensor)
        name = f"{self.prefix}literal.{len(self.literals)}"
        self.literals[name] = tensor
        return self.graph.weight(name, dtype_of(tensor), list(tensor.shape))

    def value(self, argument, dtype=None):
        """An argument as a Tensor, converted to `dtype`."""
        if isinstance(argument, lathe.Tensor):
            return self.cast(argument, dtype)
        if isinstance(argument, torch.fx.Node) and isinstance(argument.meta.get("val"), torch.Tensor):
            if argument not in self.values:
                raise Unsupported(f"the value of {argument.name}")
            return self.cast(self.values[argument], dtype)
        if isinstance(argument, (torch.fx.Node, torch.SymInt)):
            if not isinstance(self.fake(argument), (torch.SymInt, int)):
                raise Unsupported(f"the number {argument}, which depends on values")
            return self.size_value(argument, dtype or "i64")
        return self.scalar(argument, dtype or ("f32" if isinstance(argument, float) else "i64"))

    def cast(self, x, dtype):
        if dtype == "u8" and x.dtype in FLOATS:
            x = lathe.cast(x, "i64")  # -1.0 becomes 255, as PyTorch's
        return x if dtype is None or x.dtype == dtype else lathe.cast(x, dtype)

    def promoted(self, *arguments):
        """The dtype that PyTorch computes in for these operands together."""
        fakes = [self.fake(a) for a in arguments]
        return dtype_of(torch.result_type(*[1 if isinstance(f, torch.SymInt) else f for f in fakes]))

    def reshape(self, x, shape):
        shape = self.dims(shape)
        return x if list(x.shape) == shape else lathe.reshape(x, shape)

    def broadcast(self, x, shape):
        shape = self.dims(shape)
        return x if list(x.shape) == shape else lathe.broadcast(x, shape)

    def slice(self, x, axis, start, size, step=1):
        if start == 0 and step == 1 and x.shape[axis] == size:
            return x
        starts, sizes, steps = [0] * x.ndim, list(x.shape), [1] * x.ndim
        starts[axis], sizes[axis], steps[axis] = start, size, step
        try:
            return lathe.slice(x, starts, sizes, steps)
        except lathe.Error:
            if step != 1:
                raise
            # table[:seq], x[:, :past + 1]: only ranges or a guard of PyTorch's tell that the slice is inside, which are
            # not looked at; a gather of a ramp is checked when it runs.
            places = self.graph.arange(size)
            return lathe.gather(x, places if start == 0 else lathe.add(places, self.size_value(start)), axis)

    # --- graphs
    def run(self, graph, refused=None):
        """Records every node; returns the nodes (and numbers) of the output. A node that has no lowering is an error,
        or an entry of `refused`, its name to the reason: inputs stand in for what it gives then."""
        for node in graph.nodes:
            if node.op == "output":
                return node.args[0]
            if node.op not in ("call_function", "get_attr"):
                continue
            path, file, line = line_of(node)
            try:
                with self.graph.scope(path, file, line):
                    if node.op == "get_attr":
                        self._literal(node, operator.attrgetter(node.target)(graph.owning_module))
                    else:
                        self.node(node)
            except Exception as e:  # also what a lowering does not expect is no reason to end the user's program
                name, told = name_of(node.target), str(e) if isinstance(e, (Unsupported, lathe.Error)) else repr(e)
                reason = f"{name} at {file}:{line} ({path}): {told}"
                if refused is None:
                    raise Unsupported(reason) from e
                refused[node.name] = reason if name in OPS or node.op == "get_attr" else f"{name}: {MISSING}"
                self._stand_in(node)
        raise Unsupported("a graph without an output")

    def _literal(self, node, value):
        """A tensor that the model makes of numbers."""
        if not isinstance(value, torch.Tensor):
            return
        value = in_rows(value)
        self.values[node] = self.literal(value)
        if value.numel() <= INLINE:
            self.known[node] = value

    def _stand_in(self, node):
        fakes = node.meta.get("val")
        single = isinstance(fakes, torch.Tensor)
        if not single and not isinstance(fakes, (tuple, list)):
            return
        try:
            inputs = [self.graph.input(f"{node.name}_{i}", dtype_of(f), self.shape(f))
                      for i, f in enumerate([fakes] if single else fakes)]
        except Unsupported:
            return  # what follows is refused too
        self.values[node] = inputs[0] if single else inputs

    def node(self, node):
        if node.target is operator.getitem:
            source = self.values.get(node.args[0])
            if source is not None:
                self.values[node] = source[node.args[1]]
            return
        name = name_of(node.target)
        if name in IGNORED or not node.users and name not in OPS:
            return
        value = node.meta.get("val")
        if isinstance(value, (torch.SymInt, torch.SymBool, torch.SymFloat, int, float, bool)):
            return  # sizes are read from the shapes where they are used
        if name not in OPS:
            raise Unsupported(MISSING)
        function, taken = OPS[name]
        y = function(self, **self.arguments(node, taken))
        if isinstance(y, list):
            self._expect_results(node, len(y))
        if isinstance(y, lathe.Tensor):
            y = self.broadcast(self.cast(y, self.dtype(node)), value.shape)
        self.values[node] = y

    def _expect_results(self, node, count):
        """Lowerings leave out what only the way back needs, statistics of norms say."""
        for user in node.users:
            if user.target is operator.getitem and user.args[1] >= count and user.users:
                raise Unsupported(f"the result {user.args[1]}, which only gradients need; torch.no_grad() asks for none")

    def arguments(self, node, taken):
        """The op's arguments by the names of its schema, checked against those that its lowering takes."""
        schema = node.target._schema.arguments
        given = {a.name: v for a, v in zip(schema, node.args)} | dict(node.kwargs)
        for argument in schema:
            if argument.name in given or not argument.has_default_value():
                continue
            given[argument.name] = argument.default_value
        if "self" in given:
            given["self_"] = given.pop("self")
        if taken is None:
            return given | {"node": node}
        defaults = {a.name: a.default_value for a in schema if a.has_default_value()}
        arguments = {}
        for name, value in given.items():
            if name in taken:
                arguments[name] = value
            elif name not in MEMORY and name in defaults and value != defaults[name]:
                raise Unsupported(f"{name}={value}")
            elif name not in MEMORY and name not in defaults:
                raise Unsupported(f"the argument {name}")
        if "node" in taken:
            arguments["node"] = node
        return arguments
