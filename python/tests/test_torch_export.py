# SPDX-License-Identifier: Apache-2.0
"""lathe.torch.export on models of many families against eager PyTorch."""
import collections
import re

import pytest
import torch
import torch_models as models
from torch_models import error

import lathe
import lathe.torch

pytestmark = pytest.mark.filterwarnings("ignore")


def fused(exported):
    """Fused ops by group at the stage `fused`, and the text."""
    text = lathe.ir(exported.graph, "fused")
    found = collections.Counter(re.findall(r"= lathe\.(\w+)", text))
    return {g: sum(found[x] for x in names) for g, names in models.GROUPS.items()}, text


@pytest.mark.parametrize("level", ["core", "named"])
@pytest.mark.parametrize("name", models.MODELS)
def test_a_model_keeps_its_fusions_and_numbers(name, level, record_property):
    # Core ATen of the attention that is spelled out; the hooks' attention at level "named".
    model, args, shapes = models.made(name, "eager" if level == "core" else None)
    exported = lathe.torch.export(model, args, dynamic_shapes=shapes, level=level)
    found, text = fused(exported)
    want = models.expected(model, args)
    got = exported.session()(*args).double()
    with torch.no_grad():  # PyTorch's own f32 is as far from the exact results as Lathe's
        wrong = error(got, model.double()(*(a.double() if a.is_floating_point() else a for a in args)))
    epilogues = len(re.findall(r"lathe\.linear[^\n]*activation gelu", text))
    # `--junitxml` keeps them: the table of what was found.
    for key, value in {**{g: f"{found[g]}/{want[g]}" for g in found}, "causal": text.count("causal"),
                       "window": len(re.findall(r"window \d", text)), "epilogue": f"{epilogues}/{want['epilogue']}",
                       "error": f"{wrong:.1e}"}.items():
        record_property(key, value)
    assert found == {group: want[group] for group in found}
    assert epilogues == want["epilogue"]
    assert wrong < 1e-6
    if "CausalLM" in repr(model) or name == "clip-text":
        # Nothing of the size of the scores: causality, windows and soft caps are attributes.
        assert "seq, seq>" not in text
        assert text.count("causal") == want["attention"]


@pytest.mark.parametrize("name", models.MODELS)
def test_bf16_is_as_near_as_pytorchs(name, record_property):
    model, args, shapes = models.made(name, "eager")
    model, whole = model.bfloat16(), [a.double() if a.is_floating_point() else a for a in args]
    args = tuple(a.bfloat16() if a.is_floating_point() else a for a in args)
    exported = lathe.torch.export(model, args, dynamic_shapes=shapes, level="core")
    with torch.no_grad():
        got, theirs = exported.session()(*args).double(), model(*args).double()
        exact = model.double()(*whole)
    mine, other = ((y - exact).square().mean().sqrt().item() for y in (got, theirs))
    record_property("bf16", f"{mine / other:.2f}")
    assert mine < 1.5 * other


@pytest.mark.parametrize("level", ["core", "named"])
def test_windows_and_soft_caps_are_attributes(level):
    model, args, shapes = models.made("gemma2", "eager" if level == "core" else None)
    _, text = fused(lathe.torch.export(model, args, dynamic_shapes=shapes, level=level))
    assert text.count("softcap 5.000000e+01") == 2
    assert text.count("window 5") == 1


def test_one_graph_serves_other_lengths():
    model, args, shapes = models.made("llama")
    run = lathe.torch.export(model, args, dynamic_shapes=shapes).session()
    for n, s in ((1, 2), (8, 64), (3, 7)):
        x = models.ids(n, s)
        with torch.no_grad():
            assert error(run(x), model(x)) < 1e-6


def test_weights_are_shared_not_copied():
    model, args, shapes = models.made("llama")
    exported = lathe.torch.export(model, args, dynamic_shapes=shapes)
    own = {p.data_ptr() for p in model.parameters()}
    assert sum(t.data_ptr() in own for t in exported.weights.values()) >= 20


def test_ops_carry_the_lines_and_paths_of_the_model():
    model, args, shapes = models.made("llama")
    exported = lathe.torch.export(model, args, dynamic_shapes=shapes)
    text = lathe.ir(exported.graph, "recorded", locations=True)
    assert "modeling_llama.py" in text and "model.model.layers.1.mlp.down_proj" in text


def test_an_op_without_a_lowering_is_named():
    class Bessel(torch.nn.Module):
        def forward(self, x):
            return torch.special.bessel_j0(x)

    with pytest.raises(lathe.Error, match=r"aten.special_bessel_j0.default at .*test_torch_export.py:\d+ .*no lowering") as e:
        lathe.torch.export(Bessel(), (torch.ones(3),))
    assert e.value.code == "Unsupported"


def test_an_argument_that_a_lowering_does_not_know_is_named():
    class Rounded(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.avg_pool2d(x, 2, ceil_mode=True)

    with pytest.raises(lathe.Error, match="ceil_mode=True"):
        lathe.torch.export(Rounded(), (torch.zeros(1, 4, 5, 5),))


def test_an_argument_that_no_lowering_reads_is_named():
    class Factor(torch.nn.Module):
        def forward(self, x):
            return torch.rsub(x, 3, alpha=2)

    with pytest.raises(lathe.Error, match=r"aten.rsub.Scalar at .*: alpha=2"):
        lathe.torch.export(Factor(), (torch.zeros(3),))


def test_a_write_into_an_input_is_named():
    class Writes(torch.nn.Module):
        def forward(self, x):
            return x.add_(1)

    with pytest.raises(lathe.Error, match="writes into its inputs x"):
        lathe.torch.export(Writes(), (torch.zeros(3),))


def test_a_write_into_a_weight_is_named():
    class Writes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            with torch.no_grad():
                self.weight.mul_(2)
            return x * self.weight

    with pytest.raises(lathe.Error, match="writes into weight"):
        lathe.torch.export(Writes(), (torch.zeros(3),))


class Counter(torch.nn.Module):
    def __init__(self, start):
        super().__init__()
        self.register_buffer("total", torch.full((2,), float(start)))

    def forward(self, x):
        self.total += x
        return self.total * 2


def test_a_buffer_that_changes_is_a_state():
    run = lathe.torch.export(Counter(0), (torch.ones(2),)).session()
    assert [run(torch.ones(2)).tolist() for _ in range(3)] == [[2, 2], [4, 4], [6, 6]]
    run.session.reset_states()
    assert run(torch.ones(2)).tolist() == [2, 2]


def test_numbers_that_two_entries_hold_are_two_weights():
    class Places(torch.nn.Module):
        def __init__(self, step):
            super().__init__()
            self.step = step

        def forward(self, x):
            return x.as_strided((40, 2), (self.step, 1))

    x = torch.arange(200.0).reshape(20, 10)
    exported = lathe.torch.export(Places(2), (x,), entry="near")
    run = lathe.torch.export(Places(4), (x,), entry="far", into=exported).session()
    for step, entry in ((2, "near"), (4, "far")):
        assert torch.equal(run(x, entry=entry), Places(step)(x))


def test_entries_with_other_values_of_a_weight_are_refused():
    x = torch.ones(2, 4)
    exported = lathe.torch.export(torch.nn.Linear(4, 3), (x,), entry="near")
    with pytest.raises(lathe.Error, match="the weight weight, which another entry point has with other values"):
        lathe.torch.export(torch.nn.Linear(4, 3), (x,), entry="far", into=exported)


def test_a_state_starts_at_zero():
    with pytest.raises(lathe.Error, match="total is changed by the module and does not start at zero"):
        lathe.torch.export(Counter(3), (torch.ones(2),))


@pytest.mark.parametrize("level", ["named"])
def test_a_static_cache_is_states_of_one_graph(level):
    model = models.made("llama")[0].model
    step = models.Step(model, 32)
    prompt = models.ids(1, 5)
    exported = lathe.torch.export(step, (prompt,), entry="prefill", level=level)
    lathe.torch.export(step, (prompt[:, :1],), entry="decode", into=exported, level=level)
    assert list(exported.entries) == ["prefill", "decode"]
    run = exported.session()
    ids, token = prompt, run(prompt, entry="prefill").argmax(-1, keepdim=True)
    for _ in range(20):
        with torch.no_grad():
            full = model(input_ids=ids, use_cache=False).logits[:, -1]
        assert token.item() == full.argmax(-1).item()
        memory = run.session.memory["states"]
        ids = torch.cat([ids, token], 1)
        token = run(token, entry="decode").argmax(-1, keepdim=True)
        assert run.session.memory["states"] == memory


def test_a_model_that_is_refused_has_its_own_attention_again():
    class Branch(torch.nn.Module):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def forward(self, x):
            y = self.model(input_ids=x, use_cache=False).logits
            return y if y.sum() > 0 else -y

    model = models.made("llama")[0].model
    before = model.config._attn_implementation
    with pytest.raises(Exception, match="data-dependent"):
        lathe.torch.export(Branch(model), (models.ids(1, 4),))
    assert model.config._attn_implementation == before != "lathe"


@pytest.mark.parametrize("level", ["core", "named"])
def test_a_mixture_of_experts_reads_the_chosen_ones(level):
    model, args, shapes = models.made("mixtral")
    model.model.config._experts_implementation = "eager"
    exported = lathe.torch.export(model, args, dynamic_shapes=shapes, level=level)
    with torch.no_grad():
        assert error(exported.session()(*args), model(*args)) < 1e-6
    assert model.model.config._experts_implementation == "eager"  # as it was
    text = lathe.ir(exported.graph, "fused")
    assert text.count("lathe.glu") == 2
    # Gate and up are one weight; no weight is copied.
    assert text.count("lathe.grouped_linear ") == 4 and "lathe.gather" not in text and "lathe.matmul" not in text


def test_weights_are_those_of_the_session_and_small_buffers_those_of_the_export():
    """Buffers of few elements are part of the graph."""
    x = torch.randn(3, 80)
    for size in (8, 80):
        norm = torch.nn.BatchNorm1d(size).eval()
        exported = lathe.torch.export(norm, (x[:, :size],))
        with torch.no_grad():
            norm.weight.fill_(2)
            torch.testing.assert_close(exported.session()(x[:, :size]), norm(x[:, :size]))
            norm.running_mean.fill_(3)
            if size == 80:
                torch.testing.assert_close(exported.session()(x), norm(x))
                continue
            with pytest.raises(lathe.Error, match="the buffer running_mean has changed since the export.*export the model again"):
                exported.session()
            with pytest.raises(lathe.Error, match="the buffer running_mean, which another entry point has with other values"):
                lathe.torch.export(norm, (x[:1, :size],), into=exported, entry="one")
    with pytest.raises(TypeError, match="into: expected a lathe.torch.Exported, got 3"):
        lathe.torch.export(norm, (x,), into=3)
