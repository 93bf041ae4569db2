# SPDX-License-Identifier: Apache-2.0
"""torch.compile(backend="lathe") against eager PyTorch."""

import concurrent.futures
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


def attend_cached(q, k, v, keys, values, mask=None):
    keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
    return torch.nn.functional.scaled_dot_product_attention(q, keys, values, attn_mask=mask), keys, values


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dynamic", [None, True])
def test_a_cache_that_is_joined_grows_without_fallbacks(dynamic, masked):
    run = torch.compile(attend_cached, backend="lathe", dynamic=dynamic)
    torch.manual_seed(3)
    for new, past in ((1, 5), (1, 6), (2, 7), (3, 8), (3, 5)):
        q, k, v, keys, values = (torch.randn(1, 4, n, 8) for n in (new, new, new, past, past))
        mask = torch.randn(new, new + past) if masked else None
        with torch.no_grad():
            want = attend_cached(q, k, v, keys, values, mask)
            for got, exact in zip(run(q, k, v, keys, values, mask), want, strict=True):
                torch.testing.assert_close(got, exact)
    # One for each kind of length that PyTorch tells apart: as given, 1, and any.
    assert 1 < len(lt.compiled) <= 3 and not lt.fallbacks
    assert all("lathe.attention" in lathe.ir(graph, "fused") for graph in lt.compiled)


def test_keys_and_values_of_lengths_that_part_are_compiled_again():
    """Equal lengths were a guard: what was compiled for them does not serve values that are cut."""
    def f(q, k, keys, values):
        keys = torch.cat([keys, k], 2)
        return torch.nn.functional.scaled_dot_product_attention(q, keys, values[:, :, :keys.shape[2]])

    run = torch.compile(f, backend="lathe", dynamic=True)
    for past, length in ((5, 7), (6, 8), (6, 12), (9, 11)):
        q, k, keys, values = (torch.randn(1, 2, n, 8) for n in (3, 2, past, length))
        with torch.no_grad():
            torch.testing.assert_close(run(q, k, keys, values), f(q, k, keys, values))
    assert not lt.fallbacks


PADDING = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
LATER = torch.triu(torch.ones(7, 7, dtype=torch.bool), 1)
MASKS = {"none": {}, "padding": {"src_key_padding_mask": PADDING}, "causal": {"src_mask": LATER},
         "floats": {"src_mask": torch.zeros(7, 7).masked_fill(LATER, float("-inf"))},
         "both": {"src_mask": LATER, "src_key_padding_mask": PADDING}}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_of_pytorch_in_evaluation_has_parts(norm_first, mask):
    torch.manual_seed(5)
    activation = "gelu" if norm_first else "relu"
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, activation=activation, batch_first=True, norm_first=norm_first).eval()
    x = torch.randn(2, 7, 32)
    with torch.no_grad():
        assert error(torch.compile(layer, backend="lathe")(x, **MASKS[mask]), layer(x, **MASKS[mask])) < 1e-6
    text = lathe.ir(lt.compiled[0], "fused")
    assert len(lt.compiled) == 1 and not lt.fallbacks
    assert text.count("lathe.attention") == 1 and text.count("lathe.linear") == 4


def test_pytorchs_encoder_decoder_has_no_fallbacks():
    torch.manual_seed(5)
    model = torch.nn.Transformer(32, 4, 2, 2, 64, batch_first=True).eval()
    x, y = torch.randn(2, 7, 32), torch.randn(2, 5, 32)
    with torch.no_grad():
        assert error(torch.compile(model, backend="lathe")(x, y), model(x, y)) < 1e-6
    assert len(lt.compiled) == 1 and not lt.fallbacks
    assert lathe.ir(lt.compiled[0], "fused").count("lathe.attention") == 6


@pytest.mark.parametrize("weights", [None, "mean", "heads"])
@pytest.mark.parametrize("mask, kind", [(None, None), (LATER, 0), (PADDING, 1), ((LATER | PADDING[:, None, None]).expand(2, 4, 7, 7), 2),
                                        (PADDING * -2.0, 1), (PADDING | True, 1)])
def test_pytorchs_attention_in_one_op_has_parts(mask, kind, weights):
    """The last mask hides all: NaN, in both."""
    torch.manual_seed(5)
    into, out, x = torch.nn.Linear(32, 96), torch.nn.Linear(32, 32), torch.randn(2, 7, 32)

    def f(x):
        y = torch.ops.aten._native_multi_head_attention(x, x, x, 32, 4, into.weight, into.bias, out.weight, out.bias, mask,
                                                        weights is not None, weights == "mean", kind)
        return y if weights else y[:1]

    with torch.no_grad():
        for got, want in zip(torch.compile(f, backend="lathe")(x), f(x), strict=True):
            torch.testing.assert_close(got, want, equal_nan=True)
    assert not lt.fallbacks


def test_an_op_without_a_lowering_runs_in_pytorch_and_is_counted():
    def f(x):
        return torch.special.bessel_j0(x * 2 + 1) * 3 + x

    x = torch.randn(4, 8)
    with torch.no_grad():
        assert torch.equal(torch.compile(f, backend="lathe")(x), f(x))
    assert dict(lt.fallbacks) == {"aten.special_bessel_j0.default: there is no lowering of this op": 1}
    assert len(lt.compiled) == 2  # before it and behind it


def test_each_use_of_an_op_without_a_lowering_is_counted():
    def f(x):
        return torch.special.bessel_j0(x) + torch.special.bessel_j0(x * 2)

    x = torch.randn(4, 8)
    with torch.no_grad():
        torch.testing.assert_close(torch.compile(f, backend="lathe")(x), f(x))
    assert dict(lt.fallbacks) == {"aten.special_bessel_j0.default: there is no lowering of this op": 2}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_result_of_pytorch_of_another_dtype_than_announced(dtype):
    """The statistics of a norm whose learnt ones have 16 bits, while training."""
    mine, theirs = (torch.nn.BatchNorm1d(4).to(dtype) for _ in range(2))
    run, x = torch.compile(mine, backend="lathe"), torch.randn(5, 4, 3).to(dtype)
    with torch.no_grad():
        for _ in range(2):
            torch.testing.assert_close(run(x * 2), theirs(x * 2))
    for got, want in zip(mine.buffers(), theirs.buffers(), strict=True):
        torch.testing.assert_close(got, want)


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


def test_the_way_back_has_no_weights_of_the_way_there():
    """Values of the way there are other tensors at each call: as weights they would be packed anew each time."""
    layer, x = torch.nn.Linear(8, 3), torch.randn(4, 8, requires_grad=True)
    run = torch.compile(lambda x: torch.tanh(layer(x)).sum(), backend="lathe")
    run(x).backward()
    want = torch.autograd.grad(torch.tanh(layer(x)).sum(), x)[0]
    torch.testing.assert_close(x.grad, want)
    there, *back = ("lathe.weight" in lathe.ir(graph, "recorded") for graph in lt.compiled)
    assert there and back and not any(back)


def test_gradients_of_attention_are_those_of_pytorch():
    def attend(x):
        return torch.nn.functional.scaled_dot_product_attention(x, x * 2, x + 1).sum()

    found = []
    for run in (torch.compile(attend, backend="lathe"), attend):
        x = torch.randn(1, 2, 5, 8, generator=torch.Generator().manual_seed(1)).requires_grad_()
        run(x).backward()
        found.append(x.grad)
    torch.testing.assert_close(*found)


@pytest.mark.parametrize("change", [
    lambda layer: layer.weight.mul_(2),
    lambda layer: setattr(layer.weight, "data", torch.ones(3, 8)),
    lambda layer: setattr(layer, "weight", torch.nn.Parameter(torch.ones(3, 8))),
    lambda layer: torch.nn.utils.vector_to_parameters(torch.linspace(-1, 1, 27), layer.parameters()),
    lambda layer: layer.load_state_dict({"weight": torch.ones(3, 8), "bias": torch.zeros(3)}, assign=True),
    lambda layer: (layer.weight.data.mul_(2), lt.rebind()),
    lambda layer: (layer.weight.numpy().fill(2), lt.rebind())])
def test_a_weight_that_changes_is_noticed(change):
    layer = torch.nn.Linear(8, 3)
    run = torch.compile(layer, backend="lathe")
    x = torch.randn(4, 8)
    with torch.no_grad():
        before = run(x).clone()
        change(layer)
        torch.testing.assert_close(run(x), layer(x))
        assert error(run(x), before) > 0.1


def test_threads_share_a_compiled_model():
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 64))
    run = torch.compile(model, backend="lathe")
    inputs = [torch.randn(32, 64) for _ in range(4)]
    with torch.no_grad():
        run(inputs[0])

    def work(x):
        with torch.no_grad():
            return max(error(run(x), model(x)) for _ in range(20))

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert max(pool.map(work, inputs)) < 1e-5


def test_the_end_of_a_context_may_be_longer_than_it():
    run = torch.compile(lambda x: x[:, -16:] * 2, backend="lathe")
    with torch.no_grad():
        for n in (20, 18, 9, 16, 33):
            x = torch.randn(2, n)
            assert torch.equal(run(x), x[:, -16:] * 2)
    assert not lt.fallbacks


def test_a_size_may_grow_beyond_a_million():
    run = torch.compile(lambda x: x.sum(), backend="lathe")
    with torch.no_grad():
        for n in (1000, 1100, 2_000_000):
            assert run(torch.ones(n)).item() == n


def test_symbols_are_as_large_as_their_products_allow():
    layers = torch.nn.Sequential(torch.nn.Linear(64, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 32000))
    run = torch.compile(layers, backend="lathe", dynamic=True)
    with torch.no_grad():
        for shape in ((2, 3, 64), (3, 2, 64)):
            x = torch.randn(shape)
            assert error(run(x), layers(x)) < 1e-5
    assert len(lt.compiled) == 1 and not lt.fallbacks


def test_sizes_are_results():
    def f(x, y):
        return torch.cat([x, y], 0), x.shape[0] * y.shape[0], x.shape[1], None

    run = torch.compile(f, backend="lathe", dynamic=True)
    with torch.no_grad():
        for rows in (3, 5):
            x, y = torch.randn(rows, 2), torch.randn(4, 2)
            joined, *rest = run(x, y)
            assert torch.equal(joined, torch.cat([x, y], 0)) and rest == [rows * 4, 2, None]
    assert len(lt.compiled) == 1 and not lt.fallbacks


def test_norms_under_autocast_have_wider_weights():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 4))
    torch.nn.init.normal_(model[1].weight)
    x = torch.randn(5, 8)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        got, want = torch.compile(model, backend="lathe")(x), model(x)
    assert got.dtype == want.dtype == torch.bfloat16 and not lt.fallbacks
    torch.testing.assert_close(got, want, rtol=1e-2, atol=1e-2)


def test_statistics_that_gradients_need_are_named():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8), torch.nn.GELU())
    x = torch.randn(3, 8)
    torch.testing.assert_close(torch.compile(model, backend="lathe")(x), model(x))
    reason, = lt.fallbacks
    assert reason.startswith("aten.native_layer_norm.default") and "torch.no_grad()" in reason
    assert len(lt.compiled) == 2  # before it and behind it


def test_other_weights_of_the_same_shapes_are_bound():
    """They are other tensors, which were written as often."""
    layer, x = torch.nn.Linear(8, 3), torch.randn(4, 8)
    run = torch.compile(lambda x, w: torch.func.functional_call(layer, w, (x,)), backend="lathe")
    with torch.no_grad():
        for _ in range(3):
            weights = {"weight": torch.nn.Parameter(torch.randn(3, 8)), "bias": torch.nn.Parameter(torch.randn(3))}
            torch.testing.assert_close(run(x, weights), torch.func.functional_call(layer, weights, (x,)))
    assert len(lt.compiled) == 1


def test_a_call_costs_little_more_than_eager():
    """In the processor's time of this thread, which other programs do not have a part in."""
    def best(f):
        times = []
        for _ in range(20):
            start = time.thread_time()
            for _ in range(200):
                f()
            times.append((time.thread_time() - start) / 200)
        return min(times)

    x = torch.randn(4, 8)
    with torch.no_grad():
        f = torch.compile(lambda x: x * 2, backend="lathe", options={"threads": 1})
        f(x)
        assert best(lambda: f(x)) - best(lambda: x * 2) < 60e-6  # 15 us where nothing else runs


@pytest.mark.parametrize("options, words", [
    ({"mood": "strict"}, "there is no option .'mood'."), ({"threads": -1}, "threads: expected at least 1, got -1"),
    ({"threads": "2"}, "threads: expected a whole number, got '2'"), ({"threads": 2, "mode": "loose"}, "mode 'loose' is none of")])
def test_a_mistake_in_options_is_an_error(options, words):
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match=words):
        torch.compile(lambda x: x * 2, backend="lathe", options=options)(torch.ones(3))
    assert not lt.fallbacks
