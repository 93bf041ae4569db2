# SPDX-License-Identifier: Apache-2.0
"""Lowerings of matrix products, norms and attention."""
import math

import lathe

from .lowering import Unsupported, op, wide_of


@op("aten.mm.default", "aten.bmm.default")
def matrix_product(L, self_, mat2):
    return lathe.matmul(L.value(self_), L.value(mat2))


@op("aten.matmul.default")
def matmul(L, node, self_, other):
    a, b = L.value(self_), L.value(other)
    a = lathe.unsqueeze(a, 0) if a.ndim == 1 else a
    b = lathe.unsqueeze(b, 1) if b.ndim == 1 else b
    return L.reshape(lathe.matmul(a, b), L.fake(node).shape)


@op("aten.addmm.default")
def addmm(L, self_, mat1, mat2, beta=1, alpha=1):
    return _added(L, self_, mat1, mat2, beta, alpha)


@op("aten.baddbmm.default")
def baddbmm(L, self_, batch1, batch2, beta=1, alpha=1):
    return _added(L, self_, batch1, batch2, beta, alpha)


def _added(L, c, a, b, beta, alpha):
    dtype = L.dtype(a)
    if alpha == 1 and beta == 1:
        return lathe.add(lathe.matmul(L.value(a), L.value(b)), L.value(c))
    # Product, factors and sum are rounded once.
    wide = wide_of(dtype)
    y = lathe.mul(lathe.matmul(L.value(a, wide), L.value(b, wide)), L.scalar(alpha, wide))
    if beta != 0:  # PyTorch does not read c then
        y = lathe.add(y, lathe.mul(L.value(c, wide), L.scalar(beta, wide)))
    return L.cast(y, dtype)


@op("aten.linear.default")
def linear(L, node, input, weight, bias=None):
    x, w = L.value(input), L.value(weight)
    rows = L.reshape(x, [1, x.shape[0]]) if x.ndim == 1 else x
    y = lathe.matmul(rows, lathe.transpose(w, [1, 0]))
    y = L.reshape(y, L.fake(node).shape)
    return y if bias is None else lathe.add(y, L.value(bias))


def _of_last_axis(shape):
    if len(shape) != 1:
        raise Unsupported(f"over the {len(shape)} axes {list(shape)}")


def _optional(L, argument):
    return None if argument is None else L.value(argument)


@op("aten.layer_norm.default")
def layer_norm(L, input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """In the dtype of the weights, as under autocast, where they are wider."""
    _of_last_axis(normalized_shape)
    x, w, b = L.value(input), _optional(L, weight), _optional(L, bias)
    wide = next((p.dtype for p in (w, b) if p is not None), x.dtype)
    return L.cast(lathe.fused.layer_norm(L.cast(x, wide), w, b, eps), x.dtype)


@op("aten.native_layer_norm.default")
def native_layer_norm(L, input, normalized_shape, weight, bias, eps):
    """The mean and the reciprocal deviation beside the result are for gradients."""
    return [layer_norm(L, input, normalized_shape, weight, bias, eps)]


@op("aten.rms_norm.default")
def rms_norm(L, input, normalized_shape, weight=None, eps=None):
    _of_last_axis(normalized_shape)
    x = L.value(input)
    if eps is None:  # the rounding step of the dtype that PyTorch computes in
        eps = 2.0**-52 if x.dtype == "f64" else 2.0**-23
    return lathe.fused.rms_norm(x, _optional(L, weight), eps)


@op("aten.native_group_norm.default")
def native_group_norm(L, input, weight, bias, N, C, HxW, group, eps):
    """Rounded once."""
    dtype = wide_of(L.dtype(input))
    x = L.value(input, dtype)
    flat = L.reshape(x, [x.shape[0], group, math.prod(x.shape[1:], start=1) // group])
    y = L.reshape(lathe.fused.layer_norm(flat, None, None, eps), x.shape)
    channels = [x.shape[1]] + [1] * (x.ndim - 2)
    if weight is not None:
        y = lathe.mul(y, L.reshape(L.value(weight, dtype), channels))
    if bias is not None:
        y = lathe.add(y, L.reshape(L.value(bias, dtype), channels))
    return [L.cast(y, L.dtype(input))]


def _attention(L, query, key, value, mask, scale, **options):
    q, k, v = (L.value(a) for a in (query, key, value))
    m, shape = _optional(L, mask), list(q.shape)
    if q.ndim < 3 or q.ndim > 4 and m is not None and m.ndim > 2:
        raise Unsupported(f"attention of rank {q.ndim}")
    if q.ndim > 4:  # leading axes as one
        q, k, v = (L.reshape(x, [math.prod(x.shape[:-3], start=1), *x.shape[-3:]]) for x in (q, k, v))
    if m is not None and m.dtype not in ("bool", q.dtype):
        m = L.cast(m, q.dtype)
    # A query that sees no key gets zeros: PyTorch's _safe_softmax.
    y = lathe.fused.attention(q, k, v, mask=m, scale=scale, masked_row="nan" if m is None else "zero", **options)
    return L.reshape(y, shape[:-1] + [v.shape[-1]])


@op("aten.scaled_dot_product_attention.default")
def scaled_dot_product_attention(L, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                 enable_gqa=False):
    if dropout_p:
        raise Unsupported("dropout")
    if scale is None:
        width = L.value(query).shape[-1]
        if not isinstance(width, int):
            raise Unsupported(f"a default scale for heads of width {width}: expected a number")
        scale = 1 / math.sqrt(width)
    return _attention(L, query, key, value, attn_mask, scale, causal="top_left" if is_causal else "none")


@op("aten._scaled_dot_product_flash_attention_for_cpu.default")
def flash_attention(L, query, key, value, dropout_p=0.0, is_causal=False, attn_mask=None, scale=None):
    """What AOTAutograd makes of the op above on a CPU. The logarithms of sums beside it are for gradients."""
    return [scaled_dot_product_attention(L, query, key, value, attn_mask, dropout_p, is_causal, scale)]


@op("lathe.attention.default")
def attention(L, q, k, v, mask, positions, scale, causal, window, softcap):
    """What transformers' models call under attn_implementation="lathe" (transformers.py)."""
    kind = "none" if not causal else "bottom_right" if positions is None else "positions"
    return _attention(L, q, k, v, mask, scale, causal=kind, positions=_optional(L, positions), window=window,
                      softcap=softcap)
