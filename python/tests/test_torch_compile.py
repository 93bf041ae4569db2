# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="lathe") against eager PyTorch."""
import time

import pytest
import torch
import torch_models as models

import lathe
import lathe.torch as lt

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    lt.reset()


def error(got, want):
    return ((got - want).abs().max() / want.abs().max()).item()


@pytest.mark.parametrize("name", ["llama", "bert", "vit", "dit", "gpt2"])
def test_a_model_runs_as_one_graph(name):
    model, args, _ = models.made(name)
    with torch.no_grad():
        assert error(torch.compile(model, backend="lathe")(*args), model(*args)) < 1e-6
    assert len(lt.compiled) == 1 and not lt.fallbacks


@pytest.mark.parametrize("name, word", [("llama", "causal top_left"), ("mistral", "window 5"), ("bert", "xi1>")])
def test_attention_stays_whole(name, word):
    model, args, _ = models.made(name)
    model = model.bfloat16()
    with torch.no_grad():
        torch.compile(model, backend="lathe")(*args)
    calls = [line for line in lathe.ir(lt.compiled[0], "fused").splitlines() if "lathe.attention" in line]
    assert len(calls) == 2 and all(word in line and "bf16" in line for line in calls)


def test_another_length_gives_one_more_graph_and_then_none():
    model, _, _ = models.made("llama")
    run = torch.compile(model, backend="lathe", dynamic=True)
    with torch.no_grad():
        for n, s in ((2, 19), (3, 7), (4, 30), (2, 5)):
            x = models.ids(n, s)
            assert error(run(x), model(x)) < 1e-6
    assert len(lt.compiled) == 1 and not lt.fallbacks


def test_an_op_without_a_lowering_runs_in_pytorch_and_is_counted():
    def f(x):
        return torch.special.bessel_j0(x * 2 + 1) * 3 + x

    x = torch.randn(4, 8)
    with torch.no_grad():
        assert torch.equal(torch.compile(f, backend="lathe")(x), f(x))
    assert dict(lt.fallbacks) == {"aten.special_bessel_j0.default: there is no lowering of this op": 1}
    assert len(lt.compiled) == 2  # before it and behind it


def test_an_op_with_several_results_and_without_a_lowering_is_counted_once():
    def f(x):
        mantissa, exponent = torch.frexp(x * 2)
        return mantissa + 1, exponent * 2

    x = torch.randn(4, 8)
    with torch.no_grad():
        for got, want in zip(torch.compile(f, backend="lathe")(x), f(x), strict=True):
            assert torch.equal(got, want)
    assert dict(lt.fallbacks) == {"aten.frexp.Tensor: there is no lowering of this op": 1}


def test_gradients_are_those_of_pytorch():
    layer = torch.nn.Linear(8, 3)
    x, found = torch.randn(4, 8), []
    for run in (torch.compile(layer, backend="lathe"), layer):
        layer.zero_grad()
        run(x).square().sum().backward()
        found.append(layer.weight.grad.clone())
    torch.testing.assert_close(*found)


def test_gradients_of_attention_are_those_of_pytorch():
    def attend(x):
        return torch.nn.functional.scaled_dot_product_attention(x, x * 2, x + 1).sum()

    found = []
    for run in (torch.compile(attend, backend="lathe"), attend):
        x = torch.randn(1, 2, 5, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
        run(x).backward()
        found.append(x.grad)
    torch.testing.assert_close(*found)


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


def test_a_weight_that_changes_is_noticed():
    layer = torch.nn.Linear(8, 3)
    run = torch.compile(layer, backend="lathe")
    x = torch.randn(4, 8)
    with torch.no_grad():
        torch.testing.assert_close(run(x), layer(x))
        layer.weight.mul_(2)
        torch.testing.assert_close(run(x), layer(x))


def test_a_call_costs_little_more_than_eager():
    def best(f):
        times = []
        for _ in range(20):
            start = time.perf_counter()
            for _ in range(200):
                f()
            times.append((time.perf_counter() - start) / 200)
        return min(times)

    x = torch.randn(4, 8)
    with torch.no_grad():
        f = torch.compile(lambda x: x * 2, backend="lathe", options={"threads": 1})
        f(x)
        assert best(lambda: f(x)) - best(lambda: x * 2) < 60e-6  # 30 us where nothing else runs
