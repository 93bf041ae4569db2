# SPDX-License-Identifier: Apache-2.0
"""Calls of an exported module: what it takes and gives, in the nesting of the module's own."""
import collections
import dataclasses

import torch
from torch.utils import _pytree as pytree

import lathe


@dataclasses.dataclass(frozen=True)
class Input:
    """`name`: of the graph's input; None where the graph reads none. `expected`: the number that it holds then."""
    label: str
    name: str | None = None
    expected: object = None
    is_constant: bool = False


@dataclasses.dataclass(frozen=True)
class Output:
    """`name`: of the graph's output, which is a size that comes back as a number if `is_size`; else a constant."""
    name: str | None = None
    value: object = None
    is_size: bool = False


@dataclasses.dataclass(frozen=True)
class Derived:
    """The axis of an input's that has `factor` times a symbol and `offset`, where no axis is the symbol itself."""
    position: int
    axis: int
    symbol: str
    factor: int
    offset: int

    def value(self, inputs):
        """The symbol's, None where there is none."""
        size = inputs[self.position].shape[self.axis] - self.offset
        return None if size % self.factor else size // self.factor

    def __str__(self):
        return f"{self.factor}*{self.symbol}" + (f"{self.offset:+}" if self.offset else "")


@dataclasses.dataclass(frozen=True)
class Entry:
    """`given`: the nesting of (inputs, keywords); `nesting`: of the results, flat ones without."""
    inputs: list
    outputs: list
    derived: list
    given: pytree.TreeSpec
    nesting: pytree.TreeSpec | None

    def __str__(self):
        return ", ".join(i.label for i in self.inputs)


def error(text, code="InvalidArgument"):
    made = lathe.Error(text)
    made.code = code
    return made


def nesting_of(spec):
    """The spec of results in tuples, lists and dictionaries; None of others, whose leaves come as a tuple."""
    plain = (tuple, list, dict, collections.OrderedDict)

    def is_plain(one):
        return one.is_leaf() or one.type in plain and all(map(is_plain, one.children()))

    return spec if spec is not None and is_plain(spec) else None


def leaves_of(value, spec, path):
    """The leaves of `value` in the order of a spec, whose nesting it must have; dictionaries may have another order."""
    if spec.is_leaf():
        return [value]
    if pytree._get_node_type(value) is not spec.type:  # a named tuple's is namedtuple, and its class the context
        raise error(f"{path}: expected a {spec.type.__name__}, as it was exported, got a {type(value).__name__}")
    children = spec.children()
    if isinstance(value, dict):
        names = list(spec.context[1] if spec.type is collections.defaultdict else spec.context)
        if set(value) != set(names):
            raise error(f"{path}: expected the keys {names}, as it was exported, got {list(value)}")
        parts = [(value[name], f"{path}[{name!r}]") for name in names]
    else:
        found, context = pytree.SUPPORTED_NODES[spec.type].flatten_fn(value)
        if context != spec.context:
            raise error(f"{path}: expected one of {spec.context}, as it was exported, got one of {context}")
        if len(found) != len(children):
            raise error(f"{path}: expected {len(children)} values, as it was exported, got {len(found)}")
        parts = [(one, f"{path}[{i}]") for i, one in enumerate(found)]
    return [leaf for (one, at), child in zip(parts, children) for leaf in leaves_of(one, child, at)]


class Runner:
    """Calls entry points with the module's arguments."""

    def __init__(self, exported, session):
        self.exported, self.session = exported, session

    def __call__(self, *inputs, entry="forward", **keywords):
        """What the module returns, in its tuples, lists and dictionaries; of other classes a tuple of all results.

        Tensors or anything that a Session takes, and numbers as they were when the module was exported. Raises
        lathe.Error (InvalidArgument) for another number, count or entry.
        """
        known = self.exported.entries
        if entry not in known:
            raise error(f"entry: expected one of {', '.join(known)}, got {entry!r}")
        called = known[entry]
        positions, names = called.given.children()
        count = len(positions.children())
        unnamed = dict(zip(names.context, inputs[count:]))  # keywords that come behind the positions
        if twice := set(unnamed) & set(keywords):
            raise error(f"{entry}: expected one value of {twice.pop()}, got two")
        keywords = unnamed | keywords
        if keywords and not set(keywords) <= set(names.context):
            raise error(f"{entry}: expected the keywords {list(names.context)}, as it was exported, got {list(keywords)}")
        if len(inputs) < count or len(keywords) != len(names.context) or len(inputs) > count + len(keywords):
            raise error(f"{entry} takes {called}, got {len(inputs)} inputs and the keywords {list(keywords)}")
        leaves = leaves_of(inputs[:count], positions, "inputs") + leaves_of(keywords, names, "keywords")
        given = {}
        for one, value in zip(called.inputs, leaves):
            if one.is_constant and (type(value) is not type(one.expected) or value != one.expected):
                raise error(f"{one.label}: expected {one.expected}, with which {entry} was exported, got {value}")
            if one.name is not None:
                given[one.name] = value.detach().resolve_neg() if isinstance(value, torch.Tensor) else value
        for one in called.derived:
            if (size := one.value(leaves)) is None:
                got = tuple(leaves[one.position].shape)
                raise error(f"{called.inputs[one.position].label}: expected {one} elements in axis {one.axis}, got {got}")
            self.session.set_symbol(one.symbol, size)
        results = self.session.run(entry, **given)
        found = [self._result(one, results) for one in called.outputs]
        if called.nesting is not None:
            return pytree.tree_unflatten(found, called.nesting)
        return found[0] if len(found) == 1 else tuple(found)

    @staticmethod
    def _result(one, results):
        if one.name is None:
            return one.value
        return results[one.name].item() if one.is_size else torch.from_dlpack(results[one.name])
