# SPDX-License-Identifier: Apache-2.0
"""torch.compile(model, backend="lathe"): AOTAutograd's graphs of ATen ops, in process, without copies.

Parameters become weights, bound (and packed) at the first call; other inputs pass by DLPack. A graph with an op
that has no lowering is cut around it: the op runs in PyTorch, the rest in Lathe, and `fallbacks` counts the reason.
"""
import collections
import functools
import importlib.metadata
import logging
import math
import operator
import threading
import weakref

import sympy
import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import register_backend
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils._sympy.printers import PythonPrinter

import lathe

from .export import _table, arrays, declare_symbols
from .lowering import DTYPES, IGNORED, OPS, Lowering, Unsupported, dtype_of, name_of
from .views import Views, root_of, without_strides

log = logging.getLogger("lathe.torch")
fallbacks = collections.Counter()  # reason to count, since the process began or reset()
compiled = []  # the lathe.Graphs that were compiled, in order
POWERS = (31, 24, 20, 16, 14, 12, 10)  # of two, below which symbols stay: the first that all products of sizes allow
NO_RESULTS = "a graph without results"
ATTENTION = {"aten._scaled_dot_product_flash_attention_for_cpu.default", "aten.scaled_dot_product_attention.default",
             "lathe.attention.default"}


def reset():
    """Forgets what was counted and compiled."""
    fallbacks.clear()
    compiled.clear()


def _static_inputs():
    """Positions of inputs that stay the same from call to call: parameters and buffers."""
    context = torch._guards.TracingContext.try_get()
    meta = getattr(context, "fw_metadata", None)
    return set(getattr(meta, "static_input_indices", None) or ())


def _ranges(nodes):
    for node in nodes:
        value = node.meta.get("val")
        for size in getattr(value, "shape", ()):
            if isinstance(size, torch.SymInt):
                return size.node.shape_env.var_to_range
    return {}


def _settle_attention(nodes):
    """Asks PyTorch whether sizes of attention are equal that have to be: lengths of keys and values that grow apart,
    by `cat`, are sums of different symbols. The answers become guards. Heads get a width that is a number."""
    symbols = {}  # in the order of the inputs

    def settle(a, b):
        if not isinstance(a, torch.SymInt) or not isinstance(b, torch.SymInt) or not bool(a == b):
            return
        # Sums are one polynomial only if their symbols are equal one by one; those that are now, are asked for.
        mine, other = a.node.expr.free_symbols, b.node.expr.free_symbols
        pairs = zip(*([s for s in symbols if s in one] for one in (mine - other, other - mine)))
        for x, y in ((symbols[x], symbols[y]) for x, y in pairs):
            if x.node.hint == y.node.hint:
                bool(x == y)

    for node in nodes:
        value = node.meta.get("val")
        if node.op == "placeholder":
            for size in (value, *getattr(value, "shape", ())):
                if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                    symbols.setdefault(size.node.expr, size)
        if name_of(node.target) not in ATTENTION:
            continue
        arguments = dict(zip((a.name for a in node.target._schema.arguments), node.args)) | node.kwargs
        q, k, v = (a.meta["val"] for a in node.args[:3])
        int(q.shape[-1])
        settle(q.shape[-1], k.shape[-1])
        for a, b in zip(k.shape[:-1], v.shape[:-1]):
            settle(a, b)
        mask = arguments.get("attn_mask", arguments.get("mask"))
        if mask is not None:
            for size, whole in zip(mask.meta["val"].shape[::-1], (k.shape[-2], *q.shape[-2::-1])):
                settle(size, whole)


# How often a tensor was written; one of inference mode has no counter.
_writes = operator.attrgetter("_version")
_memory = operator.methodcaller("data_ptr")
_running = weakref.WeakSet()  # every _Compiled


def rebind():
    """Weights are read anew at the next call: for writes that PyTorch does not count, those through `.data` and NumPy,
    and into tensors of inference mode."""
    for one in _running:
        one.bound = None


def _begin(module, power=POWERS[-1]):
    """(lowering, placeholders) of a graph whose inputs are not recorded yet."""
    places = [n for n in module.graph.nodes if n.op == "placeholder"]
    free = {s for n in places for d in getattr(n.meta.get("val"), "shape", ()) if isinstance(d, torch.SymInt)
            for s in d.node.expr.free_symbols}
    graph = lathe.Graph("compiled")
    instead = _instead(places)
    free = free - {s for whole in instead for s in whole.free_symbols} | set(instead.values())
    named = {s: str(s) for s in sorted(free, key=str)}
    lowering = Lowering(graph, named, declare_symbols(graph, named, _ranges(places), (1 << power) - 1))
    lowering.instead = instead
    return lowering, places


def _instead(places):
    """Symbols for sizes of inputs whose own symbols are no input's size: s0*s1 behind a merge of axes in PyTorch."""
    sizes = [d.node.expr for n in places if n.users for d in getattr(n.meta.get("val"), "shape", ())
             if isinstance(d, torch.SymInt)]
    known, instead = {e for e in sizes if e.is_Symbol}, {}
    for whole in sizes:
        if whole.free_symbols - known and whole not in instead:
            instead[whole] = sympy.Symbol(f"size_{len(instead)}", integer=True, positive=True)
    return instead


def _size_of(expression, places):
    """A size as a function of the inputs of a call."""
    sources = {}
    for i, node in enumerate(places):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt) and value.node.expr.is_Symbol:
            sources.setdefault(value.node.expr, lambda args, i=i: args[i])
        for axis, size in enumerate(getattr(value, "shape", ())):
            if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
                sources.setdefault(size.node.expr, lambda args, i=i, axis=axis: args[i].shape[axis])
    symbols = sorted(expression.free_symbols, key=str)
    if missing := [s for s in symbols if s not in sources]:
        raise Unsupported(f"the result {expression}: no input has {missing[0]}")
    function = sympy.lambdify(symbols, expression, [{"math": math, "torch": torch}, "math"], printer=PythonPrinter())
    return lambda args: int(function(*(sources[s](args) for s in symbols)))


class _Compiled:
    """One graph, recorded and compiled; called with a list of inputs, which it empties."""

    def __init__(self, module, static, options, power):
        lowering, places = _begin(module, power)
        graph = lowering.graph
        self.weights, self.feeds = {}, []
        for i, node in enumerate(places):
            fake = node.meta.get("val")
            if not isinstance(fake, torch.Tensor) or not node.users:
                continue  # a size is known from the shapes of the tensors
            if fake.device.type != "cpu":
                raise Unsupported(f"an input on {fake.device}")
            dtype, shape = dtype_of(fake), lowering.shape(fake)
            if i in static and all(isinstance(d, int) for d in shape):
                self.weights[node.name] = i
                lowering.values[node] = graph.weight(node.name, dtype, shape)
            else:
                lowering.values[node] = graph.input(node.name, dtype, shape)
                self.feeds.append(i)
        results = lowering.run(module.graph)
        self.literals = lowering.literals
        self.single = not isinstance(results, (tuple, list))  # of a part of a graph
        results = [results] if self.single else results
        # A result is a number, or the place of a tensor among the session's results, of a size, or of a view.
        self.kinds, self.sizes, seen, views = [], [], {}, Views(places)
        for node in results:
            root = root_of(node) if isinstance(node, torch.fx.Node) else node
            size = node.meta["val"] if isinstance(node, torch.fx.Node) else node
            if root is not node:
                self.kinds.append(("view", views.add(node, root)))
            elif isinstance(size, torch.SymInt):
                self.kinds.append(("size", len(self.sizes)))
                self.sizes.append(_size_of(size.node.expr, places))
            elif size is None or isinstance(size, (int, float)):
                self.kinds.append(("number", size))
            else:
                self.kinds.append(("tensor", self._output(lowering, seen, node)))
        self.roots = [self._output(lowering, seen, node) for node in views.roots]
        self.show = views.function() if views.nodes else None
        if not seen:
            raise Unsupported(NO_RESULTS)
        self.plain = self.kinds == [("tensor", k) for k in range(len(seen))]
        options = {"threads": torch.get_num_threads(), **options}
        threads = options.pop("threads")
        self.session = lathe.Session(lathe.compile(graph, **options), threads=threads)
        self.run = self.session._run_torch
        # What was bound: the tensors in the order of their places, and the writes into those that count them.
        self.places, self.bound, self.counting, self.writes = list(self.weights.values()), None, (), []
        self.lock = threading.Lock()  # a session runs in one thread at a time
        compiled.append(graph)
        _running.add(self)

    @staticmethod
    def _output(lowering, seen, node):
        """The number of a node among the graph's outputs."""
        if not isinstance(lowering.values.get(node), lathe.Tensor):
            raise Unsupported(f"the output {node}, which is no tensor")
        if node not in seen:
            seen[node] = len(seen)
            lowering.graph.output(f"o{seen[node]:04}", lowering.values[node])
        return seen[node]

    def __call__(self, args):
        # What PyTorch negates later, imaginary parts of conjugates, has its signs before others read its memory.
        inputs = [(args[i].detach() if args[i].requires_grad else args[i]).resolve_neg() for i in self.feeds]
        sizes = [size(args) for size in self.sizes]
        kept = [a.detach() if isinstance(a, torch.Tensor) else a for a in args] if self.show else []
        with self.lock:
            if not self._is_bound(args):
                self._bind(args)
            args.clear()
            found = self.run(inputs)
        if self.plain:
            return found
        shown = self.show(*kept, *(found[k] for k in self.roots)) if self.show else ()
        of = {"tensor": found, "size": sizes, "view": shown}
        return [value if kind == "number" else of[kind][value] for kind, value in self.kinds]

    def _bind(self, args):
        self.session.bind_weights(arrays({n: args[i] for n, i in self.weights.items()}) | self.literals)
        self.bound = [args[i] for i in self.places]
        self.memory = list(map(_memory, self.bound))
        self.counting = [t for t in self.bound if not t.is_inference()]
        self.writes = list(map(_writes, self.counting))

    def _is_bound(self, args):
        """Whether the session holds these weights as they are now. Asked in every call."""
        if self.bound is None or not all(map(operator.is_, map(args.__getitem__, self.places), self.bound)):
            return False
        return list(map(_writes, self.counting)) == self.writes and list(map(_memory, self.bound)) == self.memory


def _compile_whole(module, static, options):
    """A _Compiled with symbols as large as the products of its sizes allow."""
    _settle_attention(module.graph.nodes)
    for power in POWERS:
        try:
            return _Compiled(module, static, options, power)
        except (Unsupported, lathe.Error) as e:
            if " elements, at most " not in str(e) or power == POWERS[-1]:
                raise


class _Supported(OperatorSupportBase):
    def __init__(self, refused):
        self.refused = refused

    def is_node_supported(self, submodules, node):
        if node.op != "call_function" or node.name in self.refused:
            return False
        if node.target is operator.getitem:  # goes where its source is
            return self.is_node_supported(submodules, node.args[0])
        name = name_of(node.target)
        return name in OPS or name in IGNORED


def _boxed(call):
    """AOTAutograd's mark of what takes a list and empties it; decorators keep it of functions alone."""
    def run(args):
        return call(args)

    run._boxed_call = True
    return run


def _refused(module):
    """Every node that has no lowering, by name, with the reason."""
    lowering, places = _begin(module)
    refused = {}
    for node in places:
        fake = node.meta.get("val")
        if isinstance(fake, torch.Tensor) and node.users and fake.dtype in DTYPES and fake.device.type == "cpu":
            lowering.values[node] = lowering.graph.input(node.name, dtype_of(fake), lowering.shape(fake))
    lowering.run(module.graph, refused)
    return refused


def _note(reason):
    fallbacks[reason] += 1
    log.warning("runs in PyTorch: %s", reason)


def _compile(module, static, options):
    """Compiles the whole graph, else all that lies between the ops that have no lowering as they are used."""
    try:
        call = _compile_whole(module, static, options).__call__
        return _boxed(call)
    except (Unsupported, lathe.Error) as e:
        first = str(e)
    if first == NO_RESULTS:  # numbers and views of inputs: there is nothing to compile
        return make_boxed_func(module.forward)
    refused = _refused(module)
    # Where results of Lathe lie in memory is no business of PyTorch's ops, but of those that read by strides.
    if not refused or any(name_of(n.target).startswith("aten.as_strided") and n.name in refused for n in module.graph.nodes):
        _note(first)
        return make_boxed_func(module.forward)
    for reason in refused.values():
        _note(reason)
    for node in module.graph.nodes:
        without_strides(node)
    parts = CapabilityBasedPartitioner(module, _Supported(refused), allows_single_node_partition=True)
    whole = parts.fuse_partitions(parts.propose_partitions())
    for name, part in list(whole.named_children()):
        if name.startswith("fused_"):
            setattr(whole, name, _Part(part, options))
    whole.recompile()
    return make_boxed_func(whole.forward)


class _Part(torch.nn.Module):
    """A part of a graph that was cut."""

    def __init__(self, part, options):
        super().__init__()
        self.run, self.part = None, part
        # Some ops of PyTorch give another dtype than they announce, statistics of norms in 16 bits say.
        self.dtypes = [getattr(n.meta.get("val"), "dtype", None) for n in part.graph.nodes if n.op == "placeholder"]
        try:
            self.run = _compile_whole(part, set(), options)
        except (Unsupported, lathe.Error) as e:
            if str(e) != NO_RESULTS:
                _note(str(e))

    def forward(self, *args):
        if self.run is None:
            return self.part(*args)
        results = self.run([a if d is None or a.dtype == d else a.to(d) for a, d in zip(args, self.dtypes)])
        return results[0] if self.run.single else tuple(results)


def _check(options):
    """A mistake in options is the user's, and no reason to run in PyTorch."""
    if not options:
        return
    threads = options.get("threads", 0)
    if type(threads) is not int:
        raise lathe.Error(f"threads: expected a whole number, got {threads!r}")
    graph = lathe.Graph("options")
    graph.output("y", lathe.neg(graph.input("x", "f32", [1])))
    lathe.Session(lathe.compile(graph, **{k: v for k, v in options.items() if k != "threads"}), threads=threads)


def lathe_backend(module, example_inputs, options=None, **_):
    """What torch.compile calls. `options` are those of lathe.compile, options={"mode": "strict"}, and `threads`,
    PyTorch's number unless given."""
    given = dict(options or {})
    _check(given)

    def compile_fx(graph_module, inputs, is_back=False):
        static = set() if is_back else _static_inputs()  # the inputs of the way back are values of the way there
        with unset_fake_temporarily():  # numbers that a graph holds are read
            return _compile(graph_module, static, given)

    return aot_autograd(fw_compiler=compile_fx, bw_compiler=functools.partial(compile_fx, is_back=True),
                        inference_compiler=compile_fx, decompositions=_table("named"))(module, example_inputs)


# An installed package says the name in its metadata, so that torch.compile finds it without this import.
if not any(e.name == "lathe" for e in importlib.metadata.entry_points(group="torch_dynamo_backends")):
    register_backend(lathe_backend, name="lathe")
