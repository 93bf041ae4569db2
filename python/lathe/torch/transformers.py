# SPDX-License-Identifier: Apache-2.0
"""Attention of Hugging Face's transformers as one op, attn_implementation="lathe", and experts by gathered rows.

The library's public hooks AttentionInterface and AttentionMaskInterface ask this module for attention and for
masks. So what is causal, windowed, soft-capped or grouped arrives as an attribute of `lathe::attention` and not
as a mask of zeros and -inf.
"""
import contextlib

import torch

from .lowering import Unsupported

# Tensors that transformers hands to attention and that rotations and caches have read before.
WITHOUT_EFFECT = {"position_ids", "cache_position"}
# What the mask hook hands to the attention hook:
#   None            nothing is hidden beyond causality and the window
#   bool [b, t]     padding: keys that are visible, causality and the window beside it
#   bool [b, 1, s, t]  all that is visible, causality and the window included
#   integers []     the position of the first query: causality counts from it (static caches)
CAUSAL = {"causal_mask_function", "and_masks", "sliding_window_overlay"}
# Found while tracing, where values are unknown: rows are taken to hold one sequence each.
PACKED = {"packed_sequence_mask_function", "remap_positions_for_packed_sequence"}
BIDIRECTIONAL = {"bidirectional_mask_function", "and_masks"}


@torch.library.custom_op("lathe::attention", mutates_args=())
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None,
              positions: torch.Tensor | None, scale: float, causal: bool, window: int,
              softcap: float) -> torch.Tensor:
    """softmax(softcap(scale q k^T) + mask) v with grouped heads: q [b, h, s, d], k and v [b, g, t, d]. Causal:
    query i sees keys up to i + t - s, or up to i + positions[b]."""
    scores, v = masked_scores(q, k, v, mask, positions, scale, causal, window, softcap)
    return torch.softmax(scores, -1).nan_to_num(0.0).to(v.dtype) @ v


def masked_scores(q, k, v, mask, positions, scale, causal, window, softcap):
    """(scores [b, h, s, t] in f32, -inf where a key is hidden, values by head) of the op's arguments."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = (q.float() @ k.float().transpose(-2, -1)) * scale
    if softcap:
        scores = softcap * torch.tanh(scores / softcap)
    visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device)
    if causal:
        s, t = scores.shape[-2:]
        last = torch.arange(s, device=q.device) + (t - s)
        if positions is not None:
            last = torch.arange(s, device=q.device) + positions.reshape(-1, 1, 1)
        last, keys = last[..., None], torch.arange(t, device=q.device)
        visible = keys <= last
        if window:
            visible &= keys > last - window
    if mask is not None and mask.dtype != torch.bool:
        scores = scores + mask
    elif mask is not None:
        visible = visible & mask
    return scores.masked_fill(~visible, float("-inf")), v


@attention.register_fake
def _(q, k, v, mask, positions, scale, causal, window, softcap):
    return q.new_empty([*q.shape[:-1], v.shape[-1]])


def attention_hook(module, query, key, value, attention_mask, scaling=None, dropout=0.0, sliding_window=None,
                   softcap=None, is_causal=None, position_bias=None, s_aux=None, **others):
    """What transformers calls for each layer; [b, s, h, d] and no weights. `s_aux` [h] is a logit beside those of the
    keys, whose value is 0: a sink."""
    for name, argument in others.items():
        if isinstance(argument, torch.Tensor) and name not in WITHOUT_EFFECT:
            raise Unsupported(f"the argument {name} of attention in {type(module).__name__}: level core reads it")
    if dropout and module.training:
        raise ValueError('attn_implementation="lathe" has no dropout; call model.eval()')
    scale = query.shape[-1] ** -0.5 if scaling is None else float(scaling)
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    mask, positions = attention_mask, None
    if mask is not None and mask.dim() == 2:
        mask = mask.to(torch.bool)[:, None, None, :]
    elif mask is not None and not mask.is_floating_point() and mask.dtype != torch.bool:
        mask, positions, causal = None, mask.reshape(-1).expand(query.shape[0]), True
    elif mask is not None:
        causal = False
    if position_bias is not None:
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.zeros((), dtype=position_bias.dtype).masked_fill(~mask, torch.finfo(position_bias.dtype).min)
        mask = position_bias if mask is None else position_bias + mask
    window = int(sliding_window) if sliding_window and causal else 0
    given = query, key, value, mask, positions, scale, causal, window, float(softcap or 0)
    if s_aux is None:
        y = torch.ops.lathe.attention(*given)
    else:
        scores, value = masked_scores(*given)
        sinks = s_aux.float().reshape(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        y = torch.softmax(torch.cat([scores, sinks], -1), -1)[..., :-1].to(value.dtype) @ value
    return y.transpose(1, 2).contiguous(), None


def _parts(function, found):
    """Names of the functions that a mask function is made of."""
    found.add(function.__qualname__.split(".")[0])
    for cell in function.__closure__ or ():
        inner = cell.cell_contents
        for part in inner if isinstance(inner, (tuple, list)) else [inner]:
            if callable(part) and hasattr(part, "__qualname__"):
                _parts(part, found)
    return found


def mask_hook(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, mask_function=None, attention_mask=None,
              **options):
    """What transformers calls once for all layers of a kind."""
    from transformers.masking_utils import sdpa_mask
    parts = _parts(mask_function, set())
    known = parts <= CAUSAL | PACKED or parts <= BIDIRECTIONAL
    if known and isinstance(q_offset, torch.Tensor) and attention_mask is None and isinstance(kv_offset, int) \
            and kv_offset == 0:
        return q_offset.clone()  # a cache counts on in the same memory before attention reads it
    if known and not isinstance(q_offset, torch.Tensor):
        return None if attention_mask is None else attention_mask.to(torch.bool)[:, -kv_length:]
    options["allow_is_causal_skip"] = options["allow_is_bidirectional_skip"] = False
    return sdpa_mask(batch_size, q_length, kv_length, q_offset, kv_offset, mask_function, attention_mask, **options)


@contextlib.contextmanager
def implementations_of(model, attention):
    """Sets what every model of transformers inside `model` is asked to compute with: for mixtures of experts
    products with the rows' own matrices, whose sizes do not depend on values, and attn_implementation="lathe" where
    `attention` is true and the model follows the hooks."""
    import sys
    changed = []

    def change(config, name, value):
        changed.append((config, name, getattr(config, name)))
        setattr(config, name, value)

    if "transformers" in sys.modules and isinstance(model, torch.nn.Module):
        from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
        AttentionInterface.register("lathe", attention_hook)
        AttentionMaskInterface.register("lathe", mask_hook)
        for part in model.modules():
            if not isinstance(part, PreTrainedModel):
                continue
            if attention and part._can_set_attn_implementation():
                change(part.config, "_attn_implementation", "lathe")
            if getattr(part, "_can_set_experts_implementation", bool)():
                change(part.config, "_experts_implementation", "batched_mm")
    try:
        yield
    finally:
        for config, name, value in reversed(changed):
            setattr(config, name, value)
