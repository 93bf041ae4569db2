# SPDX-License-Identifier: Apache-2.0
"""What the hooks of transformers are asked, and what they answer: masks and the arguments of attention."""
import pytest
import torch

transformers = pytest.importorskip("transformers")
from transformers import masking_utils  # noqa: E402

import lathe.torch  # noqa: E402, F401: registers the op
from lathe.torch import transformers as hooks  # noqa: E402

CAUSAL = masking_utils.causal_mask_function
SLIDING = masking_utils.sliding_window_causal_mask_function(3)


def test_a_mask_of_padding_is_that_of_the_keys():
    """Of a mask longer than the keys, as behind a window, the last columns are theirs."""
    mask = torch.tensor([[0, 0, 1, 1, 0, 1], [1, 0, 0, 1, 1, 1]])
    for length in (6, 4, 1):
        got = hooks.mask_hook(2, 1, length, q_offset=5, kv_offset=6 - length, mask_function=CAUSAL, attention_mask=mask)
        assert got.dtype == torch.bool and torch.equal(got, mask[:, 6 - length:].bool()), length
    assert hooks.mask_hook(2, 1, 6, q_offset=5, mask_function=SLIDING) is None
    assert hooks.mask_hook(2, 6, 6, mask_function=masking_utils.bidirectional_mask_function) is None


def test_a_cache_of_fixed_length_gives_the_first_position():
    first = torch.tensor(7)
    got = hooks.mask_hook(2, 1, 16, q_offset=first, mask_function=CAUSAL)
    assert torch.equal(got, first) and got is not first
    # With padding, or keys that begin later, all that is visible is said.
    for asked in ({"attention_mask": torch.ones(2, 16, dtype=torch.int64)}, {"kv_offset": 1}):
        assert hooks.mask_hook(2, 1, 16, q_offset=first, mask_function=CAUSAL, **asked).shape == (2, 1, 1, 16)
    # What no part of is known is a mask of all.
    odd = hooks.mask_hook(1, 3, 3, mask_function=lambda b, h, q, k: (q + k) % 2 == 0)
    assert odd.shape == (1, 1, 3, 3) and odd[0, 0].tolist() == [[True, False, True], [False, True, False], [True, False, True]]


class Layer(torch.nn.Module):
    is_causal = True


def asked(monkeypatch, mask=None, **options):
    """The arguments of lathe::attention that the hook makes of a call: mask, positions, scale, causal, window, softcap."""
    seen = []

    def attention(q, k, v, *given):
        seen.append(given)
        return torch.zeros(*q.shape[:-1], v.shape[-1])

    monkeypatch.setattr(torch.ops.lathe, "attention", attention)
    q, k = torch.zeros(2, 4, 3, 16), torch.zeros(2, 2, 5, 16)
    y, weights = hooks.attention_hook(options.pop("module", Layer()), q, k, k, mask, **options)
    assert y.shape == (2, 3, 4, 16) and weights is None
    return seen[0]


def test_what_a_layer_says_is_an_attribute(monkeypatch):
    mask, positions, scale, causal, window, softcap = asked(monkeypatch)
    assert mask is None and positions is None and (scale, causal, window, softcap) == (0.25, True, 0, 0.0)
    assert asked(monkeypatch, scaling=0.5)[2] == 0.5
    assert asked(monkeypatch, sliding_window=9)[4] == 9 and asked(monkeypatch, sliding_window=None)[4] == 0
    assert asked(monkeypatch, softcap=30.0)[5] == 30.0
    assert asked(monkeypatch, is_causal=False, sliding_window=9)[3:5] == (False, 0), "without causality there is no window"
    assert asked(monkeypatch, module=torch.nn.Identity())[3] is False


def test_masks_by_their_kind(monkeypatch):
    padding = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    mask, _, _, causal, *_ = asked(monkeypatch, padding)
    assert torch.equal(mask, padding.bool()[:, None, None]) and causal
    mask, positions, _, causal, *_ = asked(monkeypatch, torch.tensor(7), is_causal=False)
    assert mask is None and positions.tolist() == [7, 7] and causal
    whole = torch.ones(2, 1, 3, 5, dtype=torch.bool)
    mask, _, _, causal, window, _ = asked(monkeypatch, whole, sliding_window=9)
    assert mask is whole and not causal and window == 0, "it holds causality and the window"
    # A bias of positions is a mask of numbers, in which what is hidden is lowest.
    bias = torch.arange(15.0).reshape(1, 1, 3, 5)
    assert torch.equal(asked(monkeypatch, position_bias=bias)[0], bias)
    mask = asked(monkeypatch, padding, position_bias=bias)[0]
    assert mask.shape == (2, 1, 3, 5) and torch.equal(mask[1], bias[0]) and (mask[0, ..., -1] < -1e38).all()
    assert torch.equal(mask[0, ..., :-1], bias[0, ..., :-1])


def test_what_the_op_has_not_is_refused():
    q = torch.zeros(1, 1, 1, 4)
    with pytest.raises(lathe.torch.lowering.Unsupported, match="the argument head_mask of attention in Layer"):
        hooks.attention_hook(Layer(), q, q, q, None, head_mask=q)
    hooks.attention_hook(Layer(), q, q, q, None, position_ids=q, cache_position=q, other=3)
    with pytest.raises(ValueError, match="has no dropout"):
        hooks.attention_hook(Layer().train(), q, q, q, None, dropout=0.1)
    hooks.attention_hook(Layer().eval(), q, q, q, None, dropout=0.1)


def test_a_sink_takes_a_share_of_each_row():
    """Probabilities of the keys and of a logit of the head, whose value is 0."""
    torch.manual_seed(4)
    q, k, v, sinks = torch.randn(1, 2, 3, 4), torch.randn(1, 1, 5, 4), torch.randn(1, 1, 5, 4), torch.tensor([0.5, -1.0])
    y, _ = hooks.attention_hook(Layer(), q, k, v, None, is_causal=False, s_aux=sinks)
    scores = q @ k.transpose(-2, -1) / 2
    shares = torch.cat([scores, sinks.reshape(1, 2, 1, 1).expand(1, 2, 3, 1)], -1).softmax(-1)[..., :-1]
    torch.testing.assert_close(y, (shares @ v).transpose(1, 2))
