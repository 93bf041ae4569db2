# SPDX-License-Identifier: Apache-2.0
"""What calls of an exported module take and give."""
import collections

import numpy as np
import pytest
import torch

import lathe
import lathe.torch

Dim = torch.export.Dim
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))


class Scaled(torch.nn.Module):
    def forward(self, x, n, flag=True):
        return x * n if flag else x


class Given(torch.nn.Module):
    def __init__(self, results):
        super().__init__()
        self.results = results

    def forward(self, x):
        return self.results(x)


class Keywords(torch.nn.Module):
    def forward(self, a, *, b, c=None):
        return a - 2 * b if c is None else a - 2 * b + 3 * c


def test_numbers_of_a_call_are_those_of_the_export():
    run = lathe.torch.export(Scaled(), (X, 3, True)).session()
    torch.testing.assert_close(run(X, 3, True), X * 3)
    for call, words in (((X, 5, True), "n: expected 3, with which forward was exported, got 5"),
                        ((X, 3.0, True), "n: expected 3, .*got 3.0"), ((X, 3, 1), "flag: expected True, .*got 1"), ((X, 3, False), "flag: expected True, .*got False")):
        with pytest.raises(lathe.Error, match=words) as caught:
            run(*call)
        assert caught.value.code == "InvalidArgument"


@pytest.mark.parametrize("shapes", [None, {"x": {0: Dim("b", max=9)}}])
@pytest.mark.parametrize("results", [
    lambda x: (x + 1, None, 7, x.shape[0], x.shape[0] * 2 + 1, x), lambda x: (x * 2,), lambda x: x * 2,
    lambda x: {"b": x + 1, "a": [x * 2, (x.shape[1], 2.5)]}, lambda x: [x, x, x.T]])
def test_results_have_the_nesting_of_the_module(results, shapes):
    model = Given(results)
    run = lathe.torch.export(model, (X,), dynamic_shapes=shapes).session()
    got, want = (torch.utils._pytree.tree_flatten(f(X if shapes is None else X.repeat(2, 1))) for f in (run, model))
    assert got[1] == want[1]
    for g, w in zip(got[0], want[0], strict=True):
        assert type(g) is type(w)
        assert torch.equal(g, w) if isinstance(w, torch.Tensor) else g == w


def test_keywords_in_any_order():
    b, c = X + 1, X * 2
    run = lathe.torch.export(Keywords(), (X,), {"c": c, "b": b}).session()
    for got in (run(X, c=c, b=b), run(X, b=b, c=c), run(X, c, b)):
        torch.testing.assert_close(got, X - 2 * b + 3 * c)
    with pytest.raises(lathe.Error, match="expected the keywords .'c', 'b'., as it was exported, got .'d'."):
        run(X, d=c)


def test_dictionaries_are_read_by_their_keys():
    class Nested(torch.nn.Module):
        def forward(self, d, pair):
            return d["a"] - 2 * d["b"] + pair[0] * pair[1]

    a, b = X + 1, X * 2
    model = Nested()
    run = lathe.torch.export(model, ({"a": a, "b": b}, (a, b))).session()
    torch.testing.assert_close(run({"b": b, "a": a}, (a, b)), model({"a": a, "b": b}, (a, b)))
    with pytest.raises(lathe.Error, match=r"inputs\[0\]: expected the keys .'a', 'b'., as it was exported, got .'a', 'c'."):
        run({"a": a, "c": b}, (a, b))
    with pytest.raises(lathe.Error, match=r"inputs\[1\]: expected a tuple, as it was exported, got a list"):
        run({"a": a, "b": b}, [a, b])
    with pytest.raises(lathe.Error, match=r"inputs\[1\]: expected 2 values, as it was exported, got 3"):
        run({"a": a, "b": b}, (a, b, b))


def test_named_tuples_are_inputs():
    Pair, Other = collections.namedtuple("Pair", "a b"), collections.namedtuple("Other", "a b")

    class Difference(torch.nn.Module):
        def forward(self, pair, *, c):
            return pair.a - 2 * pair.b + c

    run = lathe.torch.export(Difference(), (Pair(X, X + 1),), {"c": X}).session()
    torch.testing.assert_close(run(Pair(X, 3 * X), c=X), -4 * X)
    with pytest.raises(lathe.Error, match="expected one of .*Pair.*, as it was exported, got one of .*Other"):
        run(Other(X, X), c=X)
    with pytest.raises(lathe.Error, match="expected one value of c, got two"):
        run(Pair(X, X), X, c=X)


def test_sizes_are_named_by_the_arguments_they_are_of():
    shapes = {"b": {0: Dim("rows", max=9)}, "a": {0: Dim("lines", max=7)}}

    class Two(torch.nn.Module):
        def forward(self, a, b):
            return a.sum() * b

    exported = lathe.torch.export(Two(), (X, X.repeat(2, 1)), dynamic_shapes=shapes)
    text = lathe.ir(exported.graph, "recorded")
    assert "dims<lines, 4>> {lathe.name = \"a\"" in text and "dims<rows, 4>> {lathe.name = \"b\"" in text
    exported = lathe.torch.export(Two(), (X,), {"b": X.repeat(2, 1)}, dynamic_shapes=shapes)
    assert "dims<lines, 4>> {lathe.name = \"a\"" in lathe.ir(exported.graph, "recorded")


def test_a_size_that_follows_from_an_axis():
    run = lathe.torch.export(Given(lambda x: x.reshape(-1, 2, 4)), (X.repeat(2, 1),),
                             dynamic_shapes={"x": {0: 2 * Dim("h", max=9)}}).session()
    for n in (4, 6, 18):
        assert torch.equal(run(torch.arange(4.0 * n).reshape(n, 4)), torch.arange(4.0 * n).reshape(-1, 2, 4))
    with pytest.raises(lathe.Error, match=r"x: expected 2\*h elements in axis 0, got \(5, 4\)"):
        run(torch.zeros(5, 4))


def test_a_size_that_follows_from_an_axis_with_an_offset():
    h = Dim("h", max=9)
    run = lathe.torch.export(Given(lambda x: (x[1:].reshape(-1, 2, 4), x.shape[0])), (torch.zeros(7, 4),),
                             dynamic_shapes={"x": {0: 2 * h + 1}}).session()
    for n in (5, 9, 19):
        x = torch.arange(4.0 * n).reshape(n, 4)
        rest, size = run(x)
        assert torch.equal(rest, x[1:].reshape(-1, 2, 4)) and size == n
    with pytest.raises(lathe.Error, match=r"x: expected 2\*h\+1 elements in axis 0, got \(6, 4\)"):
        run(torch.zeros(6, 4))


def test_other_arrays_and_mistakes():
    layer = torch.nn.Linear(4, 2)
    run = lathe.torch.export(layer, (X,)).session()
    torch.testing.assert_close(run(X.numpy()), layer(X).detach())
    for call, words in ((lambda: run(None), "'input': expected an array"), (lambda: run(X, X), "forward takes input, got 2 inputs"),
                        (lambda: run(X, entry="decode"), "entry: expected one of forward, got 'decode'"),
                        (lambda: run(np.zeros(4)), "expected f32.3, 4., got f64.4.")):
        with pytest.raises(lathe.Error, match=words):
            call()
