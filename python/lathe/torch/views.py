# SPDX-License-Identifier: Apache-2.0
"""Results of torch.compile's graphs that are views: PyTorch takes them itself, of the tensors that hold their memory.

AOTAutograd gives such a result the memory of an input, or of another result, by the strides of what the graph
returned. Lathe's results lie in rows, so those strides would be others.
"""
import operator

import torch
from torch.multiprocessing.reductions import StorageWeakRef


def _tensors(node):
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return [v for v in (value if isinstance(value, (tuple, list)) else [value]) if isinstance(v, torch.Tensor)]


def _storages(node):
    return {StorageWeakRef(t.untyped_storage()) for t in _tensors(node)}


def root_of(node):
    """The node whose memory a node's value is, as far as PyTorch can read it there: places in the memory of a tensor are
    those of PyTorch's strides, which only inputs have."""
    last, by_places = node, False
    while True:
        by_places |= str(node.target).startswith("aten.as_strided")
        # One of several results is the op's itself, or a part of what the op reads, as of a split.
        op = node.args[0] if node.target is operator.getitem else node
        mine = _storages(node)
        source = next((i for i in op.all_input_nodes if mine & _storages(i)), None)
        if source is None:
            return last if by_places and node.op != "placeholder" else node
        node = source


def without_strides(node):
    """A view of a result reads strides, and Lathe's results lie in rows: where those do not allow it, it is a copy."""
    if node.target in (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default):
        node.target = torch.ops.aten.reshape.default
    return node


class Views:
    """Views of inputs and of other results, as one function of both."""

    def __init__(self, places):
        self.places, self.roots, self.nodes = places, [], []

    def add(self, node, root):
        """The view's number. A root that is no input becomes an argument behind them."""
        if root not in self.places and root not in self.roots:
            self.roots.append(root)
        self.nodes.append(node)
        return len(self.nodes) - 1

    def function(self):
        graph = torch.fx.Graph()
        known = {node: graph.placeholder(node.name) for node in (*self.places, *self.roots)}

        def copied(node):
            if node not in known:
                known[node] = without_strides(graph.node_copy(node, copied))
            return known[node]

        graph.output(tuple(map(copied, self.nodes)))
        return torch.fx.GraphModule(torch.nn.Module(), graph).forward
