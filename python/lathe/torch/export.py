# SPDX-License-Identifier: Apache-2.0
"""lathe.torch.export: a module of PyTorch as a lathe.Graph."""

import torch
from torch.utils import _pytree as pytree

import lathe

from . import elementwise, images, indices, products, reductions, shapes  # noqa: F401: they register their lowerings
from .fast_path import DECOMPOSITIONS
from .lowering import INLINE, OPS, Lowering, Unsupported, dtype_of
from .transformers import implementations_of

LEVELS = ("named", "core")
LARGEST = 4096  # of a symbol without an upper end


class Exported:
    """A graph with what belongs to it: weights (PyTorch's memory, not copied), inputs and outputs by entry."""

    def __init__(self, name):
        self.graph, self.weights, self.entries = lathe.Graph(name), {}, {}
        self._states = set()

    def compile(self, **options):
        """lathe.compile of the graph."""
        return lathe.compile(self.graph, **options)

    def session(self, threads=0, **options):
        """A Runner: a session with the weights bound. Options are those of lathe.compile."""
        return Runner(self, lathe.Session(self.compile(**options), arrays(self.weights), threads=threads))

    def __repr__(self):
        entries = ", ".join(f"{e}({', '.join(i)})" for e, (i, _) in self.entries.items())
        return f"lathe.torch.Exported({entries}; {len(self.weights)} weights)"


class Runner:
    """Calls entry points with tensors in the order of the module's inputs."""

    def __init__(self, exported, session):
        self.exported, self.session = exported, session

    def __call__(self, *inputs, entry="forward"):
        """The entry's result, or a tuple of several."""
        names, outputs = self.exported.entries[entry]
        tensors = pytree.tree_leaves(inputs)
        if len(tensors) != len(names):
            raise TypeError(f"{entry} takes {', '.join(names)}, got {len(tensors)} inputs")
        given = {n: t.detach() for n, t in zip(names, tensors) if n is not None}
        results = self.session.run(entry, **given)
        found = tuple(torch.from_dlpack(results[o]) for o in outputs)
        return found[0] if len(found) == 1 else found


def arrays(weights):
    """Tensors as DLPack producers: without gradients, in rows."""
    return {name: tensor.detach().contiguous() for name, tensor in weights.items()}


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
    if level not in LEVELS:
        raise ValueError(f"level: expected one of {', '.join(LEVELS)}, got {level!r}")
    exported = Exported(name or type(model).__name__) if into is None else into
    program = model
    try:
        if not isinstance(model, torch.export.ExportedProgram):
            with torch.no_grad(), implementations_of(model, attention=level == "named"):
                program = torch.export.export(model, tuple(args), kwargs or {}, dynamic_shapes=dynamic_shapes,
                                              strict=strict)
        names = _dim_names(program, args, kwargs or {}, dynamic_shapes)
        _record(program.run_decompositions(_table(level)), exported, entry, names)
    except Unsupported as e:
        raise unsupported(str(e)) from e
    return exported


def unsupported(text):
    error = lathe.Error(text)
    error.code = "Unsupported"
    return error


def _table(level):
    """The decompositions: at level "named" no op is taken apart that has a lowering."""
    table = torch.export.default_decompositions()
    if level == "named":
        for op in list(table):
            if str(op) in OPS:
                table.pop(op)
    table.update(DECOMPOSITIONS)
    return table


def _dim_names(program, args, kwargs, dynamic_shapes):
    """The caller's names of sizes: (position of the input, axis) to a name."""
    names = {}
    if dynamic_shapes is None:
        return names
    if isinstance(dynamic_shapes, dict):
        given = list(args) + list(kwargs.values())
        shapes = list(dynamic_shapes.values()) if len(dynamic_shapes) == len(given) else []
    else:
        given, shapes = list(args), list(dynamic_shapes)
    position = 0

    def walk(value, shape):
        nonlocal position
        if isinstance(value, torch.Tensor):
            axes = shape.items() if isinstance(shape, dict) else enumerate(shape or ())
            for axis, dim in axes:
                # Derived ones ("2*batch") follow from their roots.
                if str(getattr(dim, "__name__", "")).isidentifier():
                    names[position, axis] = dim.__name__
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
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    name = dim_names.get((len(inputs) - 1, axis), str(size.node.expr))
                    symbols.setdefault(size.node.expr, name)
    lowering = Lowering(graph, symbols, declare_symbols(graph, symbols, program.range_constraints))
    mutated = set(signature.buffers_to_mutate.values())
    if getattr(signature, "user_inputs_to_mutate", None):
        raise Unsupported("the module writes into its inputs "
                          f"{', '.join(signature.user_inputs_to_mutate.values())}; a buffer can be a state")
    for target in sorted(mutated):
        _declare_state(program, exported, target)
    graph.entry(entry)
    names = []
    for spec in signature.input_specs:
        node, kind = nodes.get(getattr(spec.arg, "name", None)), spec.kind.name
        if node is None or not isinstance(node.meta.get("val"), torch.Tensor):
            if kind == "USER_INPUT":
                names.append(None)  # a number, which the graph holds
            continue
        if kind == "USER_INPUT":
            names.append(node.name if node.users else None)
        if not node.users:
            continue
        fake = node.meta["val"]
        if kind == "USER_INPUT":
            lowering.values[node] = graph.input(node.name, dtype_of(fake), lowering.shape(fake))
        elif spec.target in mutated:
            lowering.values[node] = graph.read_state(spec.target)
        elif kind in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            learnt = kind == "PARAMETER"
            lowering.values[node] = _weight(program, exported, spec.target, learnt)
            if not learnt and _is_inline(program, spec.target):
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
        elif isinstance(node, torch.fx.Node) and isinstance(lowering.values.get(node), lathe.Tensor):
            outputs.append(f"out{len(outputs)}")
            graph.output(outputs[-1], lowering.values[node])
    exported.entries[entry] = (names, outputs)


def _tensor(program, target):
    tensor = program.state_dict.get(target)
    return program.constants[target] if tensor is None else tensor


def _is_inline(program, target):
    """Whether a buffer is a literal of the graph."""
    return _tensor(program, target).numel() <= INLINE


def _weight(program, exported, target, learnt):
    tensor = _tensor(program, target).detach()
    if not learnt and _is_inline(program, target):
        return exported.graph.constant(tensor.contiguous())
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
