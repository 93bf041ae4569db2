# SPDX-License-Identifier: Apache-2.0
"""The fused ops that nn.TransformerEncoderLayer and nn.MultiheadAttention call in evaluation, taken apart.

They are PyTorch's fast path: one op for a whole layer, which hides its products, norms and attention. Their parts
are those of aten/src/ATen/native/transformers/{transformer,attention}.cpp.
"""
import torch
import torch.nn.functional as F


def _hidden(mask, mask_type):
    """Which keys are hidden, to be broadcast to [b, h, t, t]. A mask of floats hides what is not 0, as PyTorch's does."""
    mask = mask.to(torch.bool)
    if mask_type == 0:  # of queries and keys, [t, t]
        return mask[None, None]
    return mask[:, None, None] if mask_type == 1 else mask  # of keys, [b, t]; of all, [b, h, t, t]


def native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias,
                                mask=None, need_weights=True, average_attn_weights=True, mask_type=None):
    """(y [b, t, e], weights [b, t, t] or by head [b, h, t, t], None where not needed) of x [b, t, e]. A query that
    sees no key gives NaN, unlike in scaled_dot_product_attention."""
    if query is key and key is value:
        parts = F.linear(query, qkv_weight, qkv_bias).chunk(3, -1)
    else:
        parts = [F.linear(x, w, b) for x, w, b in zip((query, key, value), qkv_weight.chunk(3), qkv_bias.chunk(3))]
    width = embed_dim // num_head
    q, k, v = (x.reshape(*x.shape[:2], num_head, width).transpose(1, 2) for x in parts)
    scores = q * width**-0.5 @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(_hidden(mask, mask_type), float("-inf"))
    weights = torch.softmax(scores, -1)
    y = F.linear((weights @ v).transpose(1, 2).reshape(query.shape), proj_weight, proj_bias)
    if not need_weights:
        return y, None
    return y, weights.mean(1) if average_attn_weights else weights


def transformer_encoder_layer(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first,
                              eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, ffn_weight_1, ffn_bias_1,
                              ffn_weight_2, ffn_bias_2, mask=None, mask_type=None):
    """An encoder's layer of x [b, t, e], with its norms in front of attention and products or behind the sums."""
    def attend(x):
        return native_multi_head_attention(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias,
                                           mask, False, True, mask_type)[0]

    def feed(x):
        x = F.linear(x, ffn_weight_1, ffn_bias_1)
        return F.linear(F.gelu(x) if use_gelu else F.relu(x), ffn_weight_2, ffn_bias_2)

    def first(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x):
        return F.layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    if norm_first:
        x = src + attend(first(src))
        return x + feed(second(x))
    x = first(src + attend(src))
    return second(x + feed(x))


DECOMPOSITIONS = {torch.ops.aten._native_multi_head_attention.default: native_multi_head_attention,
                  torch.ops.aten._transformer_encoder_layer_fwd.default: transformer_encoder_layer}
