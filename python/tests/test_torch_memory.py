# SPDX-License-Identifier: Apache-2.0
"""What memory tensors have under torch.compile: strides, views of inputs and results, signs."""

import pytest
import torch

import lathe
import lathe.torch as lt

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    lt.reset()


def test_a_graph_that_is_read_by_strides_of_open_sizes_runs_in_pytorch():
    """Lathe's results lie in rows, where PyTorch's keep the strides of what they are made of."""
    def f(x):
        return (x * 2).as_strided(x.shape, (1, x.shape[0]))

    x = torch.randn(4, 6).t()
    with torch.no_grad():
        assert torch.equal(torch.compile(f, backend="lathe", dynamic=True)(x), f(x))
    assert not lt.compiled
    [(reason, count)] = lt.fallbacks.items()
    assert reason.startswith("aten.as_strided.default at ") and count == 1


@pytest.mark.parametrize("before", [lambda x: x * 2, lambda x: torch.atan2(x, x + 3)])
def test_views_that_run_in_pytorch_need_no_strides(before):
    """An input that lies in columns has results that do in eager PyTorch, so that an axis can be split and merged there
    without a copy. Lathe's lie in rows."""
    def halves(x):
        y = before(x).unflatten(0, (x.shape[0] // 2, 2)).permute(2, 0, 1)
        return y.flatten(), y.reshape(-1, 2) + 1

    run = torch.compile(halves, backend="lathe", dynamic=True)
    with torch.no_grad():
        for columns in (3, 5):
            x = torch.randn(columns, 8).t()
            for got, want in zip(run(x), halves(x), strict=True):
                torch.testing.assert_close(got, want)
    assert any("polynomials of symbols" in reason for reason in lt.fallbacks) and lt.compiled


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("before", [lambda x: x * 2, lambda x: torch.atan2(x, x + 3)])
def test_a_result_and_its_view_need_no_strides(before, dynamic):
    def both(x):
        y = before(x)
        return y, y.t().view(-1), y.unflatten(0, (x.shape[0] // 2, 2)).permute(2, 0, 1).flatten()[1:]

    run = torch.compile(both, backend="lathe", dynamic=dynamic)
    with torch.no_grad():
        for columns in (3, 5):
            x = torch.randn(columns, 8).t()
            for got, want in zip(run(x), both(x), strict=True):
                torch.testing.assert_close(got, want)


def test_results_outlive_later_calls():
    f = torch.compile(lambda x: x * 2, backend="lathe")
    with torch.no_grad():
        first, second = f(torch.ones(4)), f(torch.full((4,), 5.0))
    assert first.tolist() == [2] * 4 and second.tolist() == [10] * 4


def test_inputs_that_do_not_lie_in_rows():
    f = torch.compile(lambda x: x @ x.T + 1, backend="lathe")
    x = torch.randn(8, 6).T
    with torch.no_grad():
        torch.testing.assert_close(f(x), x @ x.T + 1)


def test_signs_that_pytorch_changes_later():
    """The imaginary part of a conjugate is the memory of another tensor and a bit, which DLPack does not hand over."""
    def later(*shape):
        x = torch.complex(torch.randn(shape), torch.randn(shape)).conj().imag
        assert x.is_neg()
        return x

    layer, x = torch.nn.Linear(3, 4), later(2, 3)
    layer.weight = torch.nn.Parameter(later(4, 3))
    layer.register_buffer("shift", later(4))
    layer.register_forward_hook(lambda layer, args, y: y + layer.shift)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(layer, backend="lathe")(x), layer(x))
        torch.testing.assert_close(lathe.torch.export(layer, (x,)).session()(x), layer(x))


def test_a_result_that_is_a_view_has_its_memory():
    """The memory and the strides of eager's, at every length."""
    def heads(x):
        y = x * 2
        return x.view(x.shape[0], 2, 3).transpose(0, 1), y[1:].t(), y

    run = torch.compile(heads, backend="lathe")
    with torch.no_grad():
        for rows in (4, 5, 7):
            x = torch.randn(rows, 6)
            (view, part, y), want = run(x), heads(x)
            for got, expected in zip((view, part, y), want):
                assert torch.equal(got, expected) and got.stride() == expected.stride()
            view[0, 0, 0] = 9
            part[0, 0] = 8
            assert x[0, 0] == 9 and y[1, 0] == 8


def test_views_of_inputs_alone_are_pytorchs():
    def views(x):
        return x.view(x.shape[0], 2, 2).transpose(1, 2), x.t()[1:]

    run = torch.compile(views, backend="lathe")
    for rows in (3, 5, 7):
        x = torch.randn(rows, 4)
        for got, want in zip(run(x), views(x)):
            assert torch.equal(got, want) and got.data_ptr() == want.data_ptr() and got.stride() == want.stride()
    assert not lt.compiled and not lt.fallbacks
