# SPDX-License-Identifier: Apache-2.0
"""Reference PyTorch modules of the post-norm encoder-decoder and of positions.

`Rice` is the week on transformers of a Rice University course: its slides give the classes and the
signature of the model, and leave the bodies to the paper and to a tutorial that they name. Other
positions than the sines are the usual ones; the post "Modern Transformers" names them without code.
`make_goldens.py` draws the parameters.
"""

import math

import torch
from torch import nn

from seed_modules import at_least_f32


# Encoder-decoder --------------------------------------------------------------------------------


class RiceMultiHeadAttention(nn.Module):
    """Queries, keys and values of their own; a hidden score becomes -1e9, not -inf."""

    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        def heads(y):
            return y.view(y.shape[0], y.shape[1], self.n_heads, -1).transpose(1, 2)

        q, k, v = heads(self.W_q(query)), heads(self.W_k(key)), heads(self.W_v(value))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        context = torch.matmul(torch.softmax(scores, dim=-1), v).transpose(1, 2)
        return self.W_o(context.reshape(query.shape))


class RiceFeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.fc1 = nn.Linear(d_model, d_ff)
        self.fc2 = nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


class RicePositionalEncoding(nn.Module):
    """Sines at even and cosines at odd elements; the table is a buffer and follows `.to(dtype)`."""

    def __init__(self, d_model, max_len):
        super().__init__()
        slopes = torch.exp(torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model))
        angles = torch.arange(max_len).float().unsqueeze(1) * slopes
        table = torch.stack((torch.sin(angles), torch.cos(angles)), dim=-1).flatten(start_dim=-2)
        self.register_buffer("pe", table.unsqueeze(0))

    def forward(self, x):
        return x + self.pe[:, : x.shape[1]]


class RiceEncoderLayer(nn.Module):
    """LayerNorm after the residual sum."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attn = RiceMultiHeadAttention(d_model, n_heads)
        self.feed_forward = RiceFeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        x = self.norm1(x + self.self_attn(x, x, x, mask))
        return self.norm2(x + self.feed_forward(x))


class RiceDecoderLayer(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attn = RiceMultiHeadAttention(d_model, n_heads)
        self.cross_attn = RiceMultiHeadAttention(d_model, n_heads)
        self.feed_forward = RiceFeedForward(d_model, d_ff)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(self, x, encoded, src_mask=None, tgt_mask=None):
        x = self.norm1(x + self.self_attn(x, x, x, tgt_mask))
        x = self.norm2(x + self.cross_attn(x, encoded, encoded, src_mask))
        return self.norm3(x + self.feed_forward(x))


class RiceEncoder(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers):
        super().__init__()
        self.layers = nn.ModuleList(
            [RiceEncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)]
        )

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


class RiceDecoder(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, n_layers):
        super().__init__()
        self.layers = nn.ModuleList(
            [RiceDecoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)]
        )

    def forward(self, x, encoded, src_mask=None, tgt_mask=None):
        for layer in self.layers:
            x = layer(x, encoded, src_mask, tgt_mask)
        return x


class RiceTransformer(nn.Module):
    """Source and target ids to logits. With `padding` the model makes both masks itself: sources
    that are padding are hidden, and targets that are padding see nothing."""

    def __init__(self, src_vocab_size, tgt_vocab_size, d_model, n_heads, n_layers, d_ff, max_len,
                 padding=None):  # fmt: skip
        super().__init__()
        self.padding = padding
        self.encoder_embedding = nn.Embedding(src_vocab_size, d_model)
        self.decoder_embedding = nn.Embedding(tgt_vocab_size, d_model)
        self.positional_encoding = RicePositionalEncoding(d_model, max_len)
        self.encoder = RiceEncoder(d_model, n_heads, d_ff, n_layers)
        self.decoder = RiceDecoder(d_model, n_heads, d_ff, n_layers)
        self.final_linear = nn.Linear(d_model, tgt_vocab_size)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None):
        if self.padding is not None:
            seq = tgt.shape[1]
            causal = torch.tril(torch.ones(1, seq, seq, dtype=torch.bool))
            src_mask = (src != self.padding).unsqueeze(1).unsqueeze(2)
            tgt_mask = (tgt != self.padding).unsqueeze(1).unsqueeze(3) & causal
        encoded = self.encoder(self.positional_encoding(self.encoder_embedding(src)), src_mask)
        x = self.positional_encoding(self.decoder_embedding(tgt))
        return self.final_linear(self.decoder(x, encoded, src_mask, tgt_mask))


# Tiles ------------------------------------------------------------------------------------------


class RiceTiledSoftmax(nn.Module):
    """Softmax of the last axis from the maxima and sums of its blocks."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        parts = at_least_f32(x).split(self.block, dim=-1)
        tops = [part.amax(-1, keepdim=True) for part in parts]
        powers = [torch.exp(part - top) for part, top in zip(parts, tops)]
        top = torch.stack(tops).amax(0)
        scales = [torch.exp(own - top) for own in tops]
        total = sum(s * p.sum(-1, keepdim=True) for s, p in zip(scales, powers))
        return (torch.cat([s * p for s, p in zip(scales, powers)], dim=-1) / total).to(x.dtype)


class RiceTiledAttention(nn.Module):
    """Attention without a mask over blocks of keys, with a running maximum, sum and result."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, Q, K, V):
        top = torch.full((*Q.shape[:-1], 1), float("-inf"))
        total, result = 0, 0
        for key, value in zip(K.split(self.block, dim=-2), V.split(self.block, dim=-2)):
            scores = at_least_f32(torch.matmul(Q, key.transpose(-2, -1))) / math.sqrt(Q.shape[-1])
            new_top = torch.maximum(top.to(scores.dtype), scores.amax(-1, keepdim=True))
            weights, shrink = torch.exp(scores - new_top), torch.exp(top - new_top)
            total = shrink * total + weights.sum(-1, keepdim=True)
            result = shrink * result + torch.matmul(weights, value.to(weights.dtype))
            top = new_top
        return (result / total).to(Q.dtype)


# Positions --------------------------------------------------------------------------------------


class LearntPositions(nn.Module):
    def __init__(self, max_len, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_len, d_model))

    def forward(self, x):
        return x + self.weight[: x.shape[1]]


class RelativePositionBias(nn.Module):
    """T5's: a number per head and bucket of distances; [1, heads, queries, keys]."""

    def __init__(self, heads, buckets, max_distance, both_sides):
        super().__init__()
        self.buckets, self.max_distance, self.both_sides = buckets, max_distance, both_sides
        self.weight = nn.Parameter(torch.empty(buckets, heads))

    def bucket_of(self, distance):
        buckets, start = self.buckets, torch.zeros_like(distance)
        if self.both_sides:
            buckets //= 2
            start = (distance > 0).long() * buckets
            distance = distance.abs()
        else:
            distance = (-distance).clamp(min=0)
        exact = buckets // 2
        part = torch.log(distance.float() / exact) / math.log(self.max_distance / exact)
        far = (exact + (part * (buckets - exact)).clamp(min=0).long()).clamp(max=buckets - 1)
        return start + torch.where(distance < exact, distance, far)

    def forward(self, q, k):
        distance = torch.arange(k.shape[1])[None, :] - torch.arange(q.shape[1])[:, None]
        return self.weight[self.bucket_of(distance)].permute(2, 0, 1).unsqueeze(0)


class ShawAttention(RiceMultiHeadAttention):
    """Self-attention whose keys have a learnt vector per clipped distance added."""

    def __init__(self, d_model, n_heads, max_distance):
        super().__init__(d_model, n_heads)
        self.max_distance = max_distance
        size = d_model // n_heads
        self.relative_keys = nn.Embedding(2 * max_distance + 1, size)

    def forward(self, x):
        batch, seq, d_model = x.shape

        def heads(y):
            return y.view(batch, seq, self.n_heads, -1).transpose(1, 2)

        q, k, v = heads(self.W_q(x)), heads(self.W_k(x)), heads(self.W_v(x))
        distance = torch.arange(seq)[None, :] - torch.arange(seq)[:, None]
        clipped = distance.clamp(-self.max_distance, self.max_distance) + self.max_distance
        relative = torch.einsum("bhqd,qkd->bhqk", q, self.relative_keys(clipped))
        scores = (torch.matmul(q, k.transpose(-2, -1)) + relative) / math.sqrt(q.shape[-1])
        context = torch.matmul(torch.softmax(scores, dim=-1), v).transpose(1, 2)
        return self.W_o(context.reshape(batch, seq, d_model))


class RelativeEncoder(nn.Module):
    """Post-norm encoder layers that share one T5 bias of the scores; ids to hidden states."""

    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, buckets, max_distance):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.bias = RelativePositionBias(n_heads, buckets, max_distance, both_sides=True)
        self.layers = nn.ModuleList(
            [RiceEncoderLayer(d_model, n_heads, d_ff) for _ in range(n_layers)]
        )
        for layer in self.layers:
            layer.self_attn = BiasedAttention(d_model, n_heads)

    def forward(self, ids):
        x = self.embedding(ids)
        bias = self.bias(x, x)
        for layer in self.layers:
            x = layer(x, bias)
        return x


class BiasedAttention(RiceMultiHeadAttention):
    """The last argument is added to the scores."""

    def forward(self, query, key, value, bias):
        def heads(y):
            return y.view(y.shape[0], y.shape[1], self.n_heads, -1).transpose(1, 2)

        q, k, v = heads(self.W_q(query)), heads(self.W_k(key)), heads(self.W_v(value))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1]) + bias
        context = torch.matmul(torch.softmax(scores, dim=-1), v).transpose(1, 2)
        return self.W_o(context.reshape(query.shape))
