# SPDX-License-Identifier: Apache-2.0
"""lathe.torch.export: a module of PyTorch as a lathe.Graph."""

import inspect

import sympy
import torch

import lathe

from . import elementwise, images, indices, products, reductions, shapes  # noqa: F401: they register their lowerings
from .fast_path import DECOMPOSITIONS
from .lowering import INLINE, OPS, Lowering, Unsupported, dtype_of, in_rows
from .runner import Derived, Entry, Input, Output, Runner, error, nesting_of
from .transformers import implementations_of

LEVELS = ("named", "core")
LARGEST = 4096  # of a symbol without an upper end


class Exported:
    """A graph with what belongs to it: weights (PyTorch's memory, not copied), inputs and outputs by entry."""

    def __init__(self, name):
        self.graph, self.weights, self.entries = lathe.Graph(name), {}, {}
        self._states, self._inline = set(), {}  # buffers that are part of the graph: name to the tensor and its values

    def compile(self, **options):
        """lathe.compile of the graph."""
        return lathe.compile(self.graph, **options)

    def session(self, threads=0, **options):
        """A Runner: a session with the weights bound as they are now. Options are those of lathe.compile.

        Raises lathe.Error (InvalidArgument) where a buffer that is part of the graph has changed since the export.
        """
        for name, (tensor, values) in self._inline.items():
            if not same(tensor, values):
                raise error(f"the buffer {name} has changed since the export, and is part of the graph: export the model again")
        return Runner(self, lathe.Session(self.compile(**options), arrays(self.weights), threads=threads))

    def __repr__(self):
        entries = ", ".join(f"{name}({entry})" for name, entry in self.entries.items())
        return f"lathe.torch.Exported({entries}; {len(self.weights)} weights)"


def same(a, b):
    """Whether two tensors hold the same numbers, and NaN in the same places."""
    return torch.equal(a.isnan(), b.isnan()) and torch.equal(*(t.masked_fill(t.isnan(), 0) for t in (a, b)))


def arrays(weights):
    """Tensors as DLPack producers: without gradients, in rows."""
    return {name: in_rows(tensor) for name, tensor in weights.items()}


def export(model, args=(), kwargs=None, *, dynamic_shapes=None, level="named", entry="forward", into=None,
           name=None, strict=False):
    """A module (or a torch.export.ExportedProgram) as an Exported.

    args, kwargs: example inputs, as torch.export.export takes them.
    dynamic_shapes: as there; a torch.export.Dim gives its name and range to a symbol.
    level: "named" keeps attention, norms and activations whole, and takes attention and masks of transformers
        through its hooks; "core" records core ATen and leaves it to the compiler to find them. With the hooks
        every row is taken to hold one sequence: a model that packs several into a row needs level "core".
    into, entry: adds an entry point to an Exported; weights and states are shared by name.
    Buffers that the module changes become states, which start at zero.
    Raises lathe.Error (Unsupported) that names the op, its line and its module.
    """
    if into is not None and not isinstance(into, Exported):
        raise TypeError(f"into: expected a lathe.torch.Exported, got {into!r}")
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
    exported = Exported(name or type(model).__name__) if into is None else into
    program = model
    try:
        if not isinstance(model, torch.export.ExportedProgram):
            with torch.no_grad(), implementations_of(model, attention=level == "named"):
                program = torch.export.export(model, tuple(args), kwargs or {}, dynamic_shapes=dynamic_shapes,
                                              strict=strict)
        names = _dim_names(model, args, kwargs or {}, dynamic_shapes)
        _record(program.run_decompositions(_table(level)), exported, entry, names)
    except Unsupported as e:
        raise error(str(e), "Unsupported") from e
    return exported


def _table(level):
    """The decompositions: at level "named" no op is taken apart that has a lowering, at none one that would become
    writes at any places."""
    table = torch.export.default_decompositions()
    for op in list(table):
        if str(op) in OPS and (level == "named" or str(op).startswith("aten.index_fill")):
            table.pop(op)
    table.update(DECOMPOSITIONS)
    return table


def _dim_names(model, args, kwargs, dynamic_shapes):
    """The caller's names of sizes: (position of the input, axis) to a name."""
    names = {}
    if dynamic_shapes is None or isinstance(model, torch.export.ExportedProgram):
        return names
    if isinstance(dynamic_shapes, dict):  # by the names of forward's arguments
        bound = inspect.signature(model.forward).bind_partial(*args).arguments | kwargs
        given, shapes = list(bound.values()), [dynamic_shapes.get(name) for name in bound]
    else:
        given, shapes = list(args), list(dynamic_shapes)
    position = 0

    def walk(value, shape):
        nonlocal position
        if isinstance(value, torch.Tensor):
            axes = shape.items() if isinstance(shape, dict) else enumerate(shape or ())
            for axis, dim in axes:
                root = getattr(dim, "root", dim)  # "2*batch" is derived from "batch"
                if str(getattr(root, "__name__", "")).isidentifier():
                    names[position, axis] = root.__name__
            position += 1
        elif isinstance(value, (list, tuple)):
            for i, v in enumerate(value):
                walk(v, shape[i] if shape else None)
        elif isinstance(value, dict):
            for k, v in value.items():
                walk(v, shape[k] if shape else None)
        else:
            position += 1

    for value, shape in zip(given, shapes):
        walk(value, shape)
    return names


def declare_symbols(graph, named, ranges, largest=LARGEST):
    """Declares torch's symbols with their ranges; symbol to the ends that it has."""
    ends = {}
    for symbol, name in named.items():
        known = ranges.get(symbol)
        low = int(known.lower) if known is not None and known.lower.is_finite else 1
        high = int(known.upper) if known is not None and known.upper.is_finite and known.upper < 1 << 31 else largest
        ends[symbol] = max(1, low), max(high, low)
        graph.dim(name, *ends[symbol])
    return ends


def _record(program, exported, entry, dim_names):
    graph, signature = exported.graph, program.graph_signature
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    symbols, inputs = {}, []
    for spec in signature.input_specs:
        if spec.kind.name == "USER_INPUT":
            inputs.append(spec)
            node = nodes.get(getattr(spec.arg, "name", None))
            fake = None if node is None else node.meta.get("val")
            for axis, size in enumerate(fake.shape if isinstance(fake, torch.Tensor) else ()):
                for symbol in size.node.expr.free_symbols if isinstance(size, torch.SymInt) else ():
                    symbols.setdefault(symbol, dim_names.get((len(inputs) - 1, axis), str(symbol)))
    derived = _derived(nodes, inputs, symbols)
    lowering = Lowering(graph, symbols, declare_symbols(graph, symbols, program.range_constraints))
    mutated = set(signature.buffers_to_mutate.values())
    if getattr(signature, "user_inputs_to_mutate", None):
        raise Unsupported("the module writes into its inputs "
                          f"{', '.join(signature.user_inputs_to_mutate.values())}; a buffer can be a state")
    for target in sorted(mutated):
        _declare_state(program, exported, target)
    graph.entry(entry)
    taken = []
    for spec in signature.input_specs:
        node, kind = nodes.get(getattr(spec.arg, "name", None)), spec.kind.name
        if node is None or not isinstance(node.meta.get("val"), torch.Tensor):
            if kind == "USER_INPUT":
                is_constant = hasattr(spec.arg, "value")
                taken.append(Input(spec.arg.name, None, getattr(spec.arg, "value", None), is_constant))
            continue
        if kind == "USER_INPUT":
            taken.append(Input(node.name, node.name if node.users else None))
        if not node.users:
            continue
        fake = node.meta["val"]
        if kind == "USER_INPUT":
            lowering.values[node] = graph.input(node.name, dtype_of(fake), lowering.shape(fake))
        elif spec.target in mutated:
            lowering.values[node] = graph.read_state(spec.target)
        elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            lowering.values[node] = _weight(program, exported, spec.target, kind)
            if kind != "PARAMETER" and _is_inline(program, spec.target):
                lowering.known[node] = _tensor(program, spec.target)
        else:
            raise Unsupported(f"the input {node.name} of kind {kind}")
    lowering.prefix = f"{entry}."
    results, outputs = lowering.run(program.graph), []
    exported.weights.update(lowering.literals)
    for spec, node in zip(signature.output_specs, results):
        if spec.kind.name == "BUFFER_MUTATION":
            graph.write_state(spec.target, lowering.values[node])
        elif spec.kind.name != "USER_OUTPUT":
            raise Unsupported(f"the module writes into {spec.target or spec.arg.name} ({spec.kind.name})")
        elif not isinstance(node, torch.fx.Node) or isinstance(node.meta["val"], (bool, int, float)):
            outputs.append(Output(value=node.meta["val"] if isinstance(node, torch.fx.Node) else node))
        else:
            value = lowering.value(node)
            outputs.append(Output(f"out{len(outputs)}", is_size=not isinstance(node.meta["val"], torch.Tensor)))
            graph.output(outputs[-1].name, value)
    called = program.call_spec
    exported.entries[entry] = Entry(taken, outputs, derived, called.in_spec, nesting_of(called.out_spec))


def _derived(nodes, inputs, symbols):
    """How symbols that are no axis of an input follow from one that is a multiple."""
    sizes = [(position, axis, size.node.expr) for position, spec in enumerate(inputs)
             if isinstance(fake := nodes[spec.arg.name].meta.get("val") if spec.arg.name in nodes else None, torch.Tensor)
             for axis, size in enumerate(fake.shape) if isinstance(size, torch.SymInt)]
    known = {expression for _, _, expression in sizes if expression.is_Symbol}
    found = []
    for position, axis, expression in sizes:
        free = expression.free_symbols - known
        if len(expression.free_symbols) == 1 and free and sympy.degree(expression, *free) == 1:
            known |= free
            factor, offset = sympy.Poly(expression, *free).all_coeffs()
            found.append(Derived(position, axis, symbols[free.pop()], int(factor), int(offset)))
    return found


def _tensor(program, target):
    tensor = program.state_dict.get(target)
    return program.constants[target] if tensor is None else tensor


def _is_inline(program, target):
    """Whether a buffer is a literal of the graph."""
    return _tensor(program, target).numel() <= INLINE


def _weight(program, exported, target, kind):
    tensor = _tensor(program, target).detach()
    if kind != "PARAMETER" and _is_inline(program, target):
        values = in_rows(tensor).clone()
        if kind == "BUFFER" and not same(exported._inline.setdefault(target, (tensor, values))[1], values):
            raise Unsupported(f"the buffer {target}, which another entry point has with other values")
        return exported.graph.constant(values)
    known = exported.weights.setdefault(target, tensor)
    if known is not tensor and known.data_ptr() != tensor.data_ptr() and not torch.equal(known, tensor):
        raise Unsupported(f"the weight {target}, which another entry point has with other values")
    return exported.graph.weight(target, dtype_of(tensor), list(tensor.shape))


def _declare_state(program, exported, target):
    if target in exported._states:
        return
    tensor = _tensor(program, target)
    if tensor.count_nonzero():
        raise Unsupported(f"the buffer {target} is changed by the module and does not start at zero")
    exported.graph.state(target, dtype_of(tensor), list(tensor.shape))
    exported._states.add(target)
