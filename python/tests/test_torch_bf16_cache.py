# SPDX-License-Identifier: Apache-2.0
"""A StaticCache in bf16. Random weights put tokens within a rounding of each other, so the tokens of two bf16 programs
part; what can be told is which logits are nearer to those of float64."""
import pytest
import torch
import torch_models as models

import lathe.torch

pytestmark = pytest.mark.filterwarnings("ignore")
PROMPT, STEPS = 9, 40


def logits_of(step, ids):
    """Of a prompt and then of tokens that are given, [PROMPT + .., vocabulary] each but the prompt's inner ones."""
    with torch.no_grad():
        found = [step(ids[:, :PROMPT], "prefill")]
        found += [step(ids[:, i:i + 1], "decode") for i in range(PROMPT, ids.shape[1])]
    return torch.cat(found).double()


@pytest.mark.parametrize("name", ["llama", "llama-mqa-tied", "qwen3"])
def test_logits_are_as_near_to_float64_as_those_of_transformers(name, record_property):
    size = models.Size(width=128, inner=256, layers=4, heads=4, head=32, vocab=512)
    model = models.made(name, size=size)[0].model.bfloat16()
    torch.manual_seed(4)
    ids = models.ids(1, PROMPT + STEPS, size.vocab)
    # The rotations and the widened weights of the exact model are those of the rounded one.
    exact = logits_of(lambda x, _, s=models.Step(models.made(name, size=size)[0].model.bfloat16().double(), 64): s(x), ids)
    theirs = logits_of(lambda x, _, s=models.Step(model, 64): s(x), ids)
    step = models.Step(model, 64)
    exported = lathe.torch.export(step, (ids[:, :PROMPT],), entry="prefill")
    lathe.torch.export(step, (ids[:, :1],), entry="decode", into=exported)
    run = exported.session()
    mine = logits_of(lambda x, entry: run(x, entry=entry), ids)
    errors = [(y - exact).square().mean().sqrt().item() for y in (mine, theirs)]
    same = [(y.argmax(-1) == exact.argmax(-1)).sum().item() for y in (mine, theirs)]
    record_property("error", f"{errors[0] / errors[1]:.3f}")
    record_property("tokens", f"{same[0]} and {same[1]} of {STEPS + 1} as in float64")
    assert 0 < errors[0] <= 1.1 * errors[1]
    # Where the two best tokens lie further apart than what rounding moves them, they are found.
    best = exact.topk(2).values
    clear = best[:, 0] - best[:, 1] > 2 * (mine - exact).abs().amax(-1)
    assert clear.any() and (mine.argmax(-1) == exact.argmax(-1))[clear].all()
