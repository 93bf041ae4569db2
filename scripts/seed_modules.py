# SPDX-License-Identifier: Apache-2.0
"""Reference PyTorch modules with the semantics and names of the courses' language models.

The prefix names the course: `Cs190c` (ShanghaiTech CS190C), `Cs336` (Stanford CS336) and `Modern`
(the post "Modern Transformers"). Where the courses differ, each class keeps its own habit; the
differences are listed in docs/seeds.md. Three things are common to all:

- "computed in f32" means `at_least_f32`: a float64 input stays float64, so that a module moved to
  float64 is an oracle for its f32 self. RoPE tables are made in f32 and only then widened.
- `device` and `dtype` arguments are left out: `module.to(dtype)` gives them.
- Parameters are created empty or as ones; `make_goldens.py` draws them.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


def at_least_f32(x):
    return x.to(torch.promote_types(x.dtype, torch.float32))


# CS336 ------------------------------------------------------------------------------------------


class Cs336Linear(nn.Module):
    """y = x W^T; `W` is [out, in]."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.W = nn.Parameter(torch.empty(out_features, in_features))

    def forward(self, x):
        return torch.matmul(x, self.W.T)


class Cs336Embedding(nn.Module):
    def __init__(self, num_embeddings, embedding_dim):
        super().__init__()
        self.embeddings = nn.Parameter(torch.empty(num_embeddings, embedding_dim))

    def forward(self, token_ids):
        return self.embeddings[token_ids]


class Cs336Softmax(nn.Module):
    """Softmax over `dim` with the maximum subtracted; a row of -inf gives NaN."""

    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        exponentials = torch.exp(x - torch.max(x, dim=self.dim, keepdim=True).values)
        return exponentials / torch.sum(exponentials, dim=self.dim, keepdim=True)


class Cs336RMSNorm(nn.Module):
    """x / rms(x) * g with the gain applied in f32, before the cast back."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        wide = at_least_f32(x)
        rms = torch.sqrt(torch.mean(wide**2, dim=-1, keepdim=True) + self.eps)
        return ((wide / rms) * self.g).to(x.dtype)


class Cs336SiLU(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


class Cs336Attention(nn.Module):
    """softmax(Q K^T / sqrt(d_k)) V; mask True attends; a fully masked row gives zeros."""

    def forward(self, Q, K, V, mask=None):
        scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = Cs336Softmax(-1)(scores)
        if mask is not None:
            weights = torch.where(torch.isnan(weights), torch.zeros_like(weights), weights)
        return torch.matmul(weights, V)


class Cs336RoPE(nn.Module):
    """Rotates the pairs (2i, 2i+1) of the last axis.

    x: [..., seq, d_k], token_positions: [..., seq] int64 with the leading axes of x.
    """

    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        frequencies = theta ** (-2.0 * torch.arange(d_k // 2, dtype=torch.float32) / d_k)
        angles = torch.outer(torch.arange(max_seq_len, dtype=torch.float32), frequencies)
        self.register_buffer("cos_cached", torch.cos(angles).repeat_interleave(2, dim=-1))
        self.register_buffer("sin_cached", torch.sin(angles).repeat_interleave(2, dim=-1))

    def forward(self, x, token_positions):
        turned = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(start_dim=-2)
        return x * self.cos_cached[token_positions] + turned * self.sin_cached[token_positions]


class Cs336SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff=None):
        super().__init__()
        if d_ff is None:
            d_ff = ((int(8 / 3 * d_model) + 31) // 64) * 64
        self.W1 = Cs336Linear(d_model, d_ff)
        self.W2 = Cs336Linear(d_ff, d_model)
        self.W3 = Cs336Linear(d_model, d_ff)

    def forward(self, x):
        return self.W2(Cs336SiLU()(self.W1(x)) * self.W3(x))


class Cs336MultiHeadSelfAttention(nn.Module):
    """Causal self-attention; RoPE is a module of the caller and optional.

    `theta` and `max_seq_len` build that module here, so that the class can be called on its own.
    """

    def __init__(self, d_model, num_heads, theta=None, max_seq_len=None):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = Cs336Linear(d_model, d_model)
        self.W_k = Cs336Linear(d_model, d_model)
        self.W_v = Cs336Linear(d_model, d_model)
        self.W_o = Cs336Linear(d_model, d_model)
        self.rope = None
        if theta is not None:
            self.rope = Cs336RoPE(theta, d_model // num_heads, max_seq_len)

    def forward(self, x, token_positions=None, rope=None):
        batch, seq, d_model = x.shape
        rope = rope or self.rope

        def heads(y):
            return y.view(batch, seq, self.num_heads, -1).transpose(1, 2)

        Q, K, V = heads(self.W_q(x)), heads(self.W_k(x)), heads(self.W_v(x))
        if rope is not None and token_positions is not None:
            positions = token_positions.unsqueeze(1).expand(batch, self.num_heads, seq)
            Q, K = rope(Q, positions), rope(K, positions)
        mask = ~torch.triu(torch.ones(seq, seq, dtype=torch.bool), diagonal=1)
        context = Cs336Attention()(Q, K, V, mask)
        return self.W_o(context.transpose(1, 2).reshape(batch, seq, d_model))


class Cs336TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, theta=None, max_seq_len=None):
        super().__init__()
        self.ln1 = Cs336RMSNorm(d_model)
        self.ln2 = Cs336RMSNorm(d_model)
        self.attn = Cs336MultiHeadSelfAttention(d_model, num_heads, theta, max_seq_len)
        self.ffn = Cs336SwiGLU(d_model, d_ff)

    def forward(self, x, token_positions=None, rope=None):
        x = x + self.attn(self.ln1(x), token_positions, rope)
        return x + self.ffn(self.ln2(x))


class Cs336TransformerLM(nn.Module):
    """Token ids [batch, seq] to logits, or to probabilities as the course's default has it."""

    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff,
                 rope_theta=10000.0, apply_softmax=True):  # fmt: skip
        super().__init__()
        self.apply_softmax = apply_softmax
        self.token_embeddings = Cs336Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            [Cs336TransformerBlock(d_model, num_heads, d_ff) for _ in range(num_layers)]
        )
        self.ln_f = Cs336RMSNorm(d_model)
        self.lm_head = Cs336Linear(d_model, vocab_size)
        self.rope = Cs336RoPE(rope_theta, d_model // num_heads, context_length)

    def forward(self, input_ids):
        batch, seq = input_ids.shape
        positions = torch.arange(seq).unsqueeze(0).expand(batch, -1)
        x = self.token_embeddings(input_ids)
        for layer in self.layers:
            x = layer(x, positions, self.rope)
        logits = self.lm_head(self.ln_f(x))
        return Cs336Softmax(-1)(logits) if self.apply_softmax else logits


class LearntPositionsLM(nn.Module):
    """The CS336 model with a learnt table of positions in place of RoPE; returns logits."""

    def __init__(self, vocab_size, context_length, d_model, num_layers, num_heads, d_ff):
        super().__init__()
        self.token_embeddings = Cs336Embedding(vocab_size, d_model)
        self.position_embeddings = Cs336Embedding(context_length, d_model)
        self.layers = nn.ModuleList(
            [Cs336TransformerBlock(d_model, num_heads, d_ff) for _ in range(num_layers)]
        )
        self.ln_f = Cs336RMSNorm(d_model)
        self.lm_head = Cs336Linear(d_model, vocab_size)

    def forward(self, input_ids):
        positions = torch.arange(input_ids.shape[1])
        x = self.token_embeddings(input_ids) + self.position_embeddings(positions)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.ln_f(x))


# CS190C -----------------------------------------------------------------------------------------


class Cs190cLinear(nn.Module):
    """y = x W; the parameter is [in, out], a transposed view of [out, in] memory."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.linear_matrix = nn.Parameter(torch.empty(out_features, in_features).transpose(-2, -1))

    def forward(self, x):
        return torch.matmul(x, self.linear_matrix)


class Cs190cEmbedding(nn.Module):
    """The table is a plain tensor: neither a parameter nor a buffer."""

    def __init__(self, number_embeddings, embedding_dim):
        super().__init__()
        self.embedding_matrix = torch.empty(number_embeddings, embedding_dim)

    def forward(self, token_ids):
        return self.embedding_matrix[token_ids]


class Cs190cRMSNorm(nn.Module):
    """x / rms(x), cast back, then times the gain in the input's dtype."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.g = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        wide = at_least_f32(x)
        mean_square = torch.sum(wide**2, dim=-1, keepdim=True) / x.shape[-1]
        return (wide / torch.sqrt(mean_square + self.eps)).to(x.dtype) * self.g


class Cs190cSigmoid(nn.Module):
    def forward(self, x):
        return 1 / (1 + torch.exp(-x))


class Cs190cSiLU(nn.Module):
    def forward(self, x):
        return x * Cs190cSigmoid()(x)


class Cs190cSoftmax(Cs336Softmax):
    """The same steps as CS336's; the last axis is the default."""

    def __init__(self, dim=-1):
        super().__init__(dim)


class Cs190cRoPE(nn.Module):
    """Rotates the pairs (2i, 2i+1) of the last axis.

    x: [..., seq, d_k] with one or two leading axes, token_positions: [seq] int64, shared by the
    batch. The frequency divides the position (CS336 multiplies): the tables differ in last bits.
    """

    def __init__(self, theta, d_k, max_seq_len):
        super().__init__()
        self.d_k = d_k
        positions = torch.arange(max_seq_len).unsqueeze(1)
        angles = positions / (theta ** (2 * torch.arange(d_k // 2).unsqueeze(0) / d_k))
        self.register_buffer("cos_values", torch.cos(angles).unsqueeze(0))
        self.register_buffer("sin_values", torch.sin(angles).unsqueeze(0))

    def forward(self, x, token_positions):
        pairs = x.reshape(*x.shape[:-1], self.d_k // 2, 2)
        cos = self.cos_values[:, token_positions, :]
        sin = self.sin_values[:, token_positions, :]
        first = torch.sum(pairs * torch.stack([cos, -sin], dim=-1), dim=-1)
        second = torch.sum(pairs * torch.stack([sin, cos], dim=-1), dim=-1)
        return torch.stack([first, second], dim=-1).reshape(x.shape)


class Cs190cAttention(nn.Module):
    """softmax(Q K^T / sqrt(d_k)) V; mask True attends; a fully masked row gives NaN."""

    def forward(self, Q, K, V, mask=None):
        scores = torch.matmul(Q, K.transpose(-2, -1)) / math.sqrt(Q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(mask == 0, float("-inf"))
        return torch.matmul(Cs190cSoftmax(-1)(scores), V)


class Cs190cFeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.linear_w1 = Cs190cLinear(d_model, d_ff)
        self.linear_w3 = Cs190cLinear(d_model, d_ff)
        self.linear_w2 = Cs190cLinear(d_ff, d_model)

    def forward(self, x):
        return self.linear_w2(Cs190cSiLU()(self.linear_w1(x)) * self.linear_w3(x))


class Cs190cMultiheadAttention(nn.Module):
    """Causal self-attention, with RoPE if both `max_seq_length` and `theta` are given."""

    def __init__(self, d_model, num_heads, max_seq_length=None, theta=None):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = Cs190cLinear(d_model, d_model)
        self.k_proj = Cs190cLinear(d_model, d_model)
        self.v_proj = Cs190cLinear(d_model, d_model)
        self.o_proj = Cs190cLinear(d_model, d_model)
        self.rope = None
        if max_seq_length is not None and theta is not None:
            self.rope = Cs190cRoPE(theta, d_model // num_heads, max_seq_length)

    def forward(self, x, token_positions=None):
        batch, seq, d_model = x.shape

        def heads(y):
            return y.reshape(batch, seq, self.num_heads, -1).transpose(1, 2)

        Q, K, V = heads(self.q_proj(x)), heads(self.k_proj(x)), heads(self.v_proj(x))
        if self.rope is not None:
            Q, K = self.rope(Q, token_positions), self.rope(K, token_positions)
        mask = (torch.triu(torch.ones(seq, seq), diagonal=1) == 0).unsqueeze(0).unsqueeze(1)
        context = Cs190cAttention()(Q, K, V, mask)
        return self.o_proj(context.transpose(1, 2).reshape(batch, seq, d_model))


class Cs190cTransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, max_seq_length=None, theta=None):
        super().__init__()
        self.RMSNorm_Attn = Cs190cRMSNorm(d_model)
        self.RMSNorm_FF = Cs190cRMSNorm(d_model)
        self.Multihead_Attn = Cs190cMultiheadAttention(d_model, num_heads, max_seq_length, theta)
        self.Feed_Forward = Cs190cFeedForward(d_model, d_ff)

    def forward(self, x, token_positions):
        x = x + self.Multihead_Attn(self.RMSNorm_Attn(x), token_positions)
        return x + self.Feed_Forward(self.RMSNorm_FF(x))


class Cs190cTransformerLM(nn.Module):
    """Token ids [batch, seq] and positions [seq] to logits [batch, seq, vocab]."""

    def __init__(self, d_model, num_heads, d_ff, vocab_size, num_layers, max_seq_length=None,
                 theta=None):  # fmt: skip
        super().__init__()
        self.embeddings = Cs190cEmbedding(vocab_size, d_model)
        self.transformer_blocks = nn.ModuleList([
            Cs190cTransformerBlock(d_model, num_heads, d_ff, max_seq_length, theta)
            for _ in range(num_layers)
        ])  # fmt: skip
        self.final_norm = Cs190cRMSNorm(d_model)
        self.final_layer = Cs190cLinear(d_model, vocab_size)

    def forward(self, token_ids, token_positions):
        x = self.embeddings(token_ids)
        for block in self.transformer_blocks:
            x = block(x, token_positions)
        return self.final_layer(self.final_norm(x))


# Modern Transformers ----------------------------------------------------------------------------


class ModernRMSNorm(nn.Module):
    """x * rsqrt(mean(x^2) + eps) in f32, cast back, then times the weight."""

    def __init__(self, hidden_size, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size))

    def forward(self, x):
        wide = at_least_f32(x)
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return scaled.type_as(x) * self.weight


class ModernMLP(nn.Module):
    """The gate and the projections are all [hidden, hidden]."""

    def __init__(self, hidden_size):
        super().__init__()
        self.w1 = nn.Linear(hidden_size, hidden_size, bias=False)
        self.w2 = nn.Linear(hidden_size, hidden_size, bias=False)
        self.w3 = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class ModernCausalAttention(nn.Module):
    """Fused qkv, split by the post's own view: [B, T, 3D] read as [3, B, T, head_size, n_heads].

    The view cuts row-major memory and so mixes q, k, v, positions and batches; it is kept. `o` is
    a parameter that the forward pass never applies. The post's mask view lacks its sizes (a typo):
    here it is [1, 1, seq_len, seq_len].
    """

    def __init__(self, hidden_size, n_heads, seq_len):
        super().__init__()
        self.n_heads = n_heads
        self.head_size = hidden_size // n_heads
        self.scale = self.head_size**-0.5
        self.qkv = nn.Linear(hidden_size, hidden_size * 3)
        self.o = nn.Linear(hidden_size, hidden_size)
        mask = torch.tril(torch.ones(seq_len, seq_len)).view(1, 1, seq_len, seq_len)
        self.register_buffer("mask", mask)

    def forward(self, x):
        batch, seq, hidden = x.shape
        mixed = self.qkv(x).view(3, batch, seq, self.head_size, self.n_heads)
        q, k, v = mixed.permute(0, 1, 4, 2, 3)
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.scale
        scores = scores.masked_fill(self.mask[:, :, :seq, :seq] == 0, float("-inf"))
        context = F.softmax(scores, dim=-1) @ v
        return context.transpose(1, 2).reshape(batch, seq, hidden)


class ModernBlock(nn.Module):
    """The post's attention and MLP, put together as usual: the post does not say how."""

    def __init__(self, hidden_size, n_heads, seq_len, eps):
        super().__init__()
        self.norm1 = ModernRMSNorm(hidden_size, eps)
        self.attn = ModernCausalAttention(hidden_size, n_heads, seq_len)
        self.norm2 = ModernRMSNorm(hidden_size, eps)
        self.mlp = ModernMLP(hidden_size)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ModernLM(nn.Module):
    """Learnt positions, ModernBlocks and a head of its own; returns logits."""

    def __init__(self, vocab_size, seq_len, hidden_size, n_layers, n_heads, eps=1e-5):
        super().__init__()
        self.token_embeddings = nn.Embedding(vocab_size, hidden_size)
        self.position_embeddings = nn.Embedding(seq_len, hidden_size)
        self.layers = nn.ModuleList(
            [ModernBlock(hidden_size, n_heads, seq_len, eps) for _ in range(n_layers)]
        )
        self.norm = ModernRMSNorm(hidden_size, eps)
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, ids):
        x = self.token_embeddings(ids) + self.position_embeddings(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x))


# Hugging Face conventions -----------------------------------------------------------------------


class HalfSplitRoPE(nn.Module):
    """Rotates the pairs (i, i + d/2) of the last axis, as Hugging Face's Llama does.

    x: [batch, heads, seq, d], positions: [batch, seq] int64. The tables are made in f32 and cast
    to the dtype of x.
    """

    def __init__(self, theta, d):
        super().__init__()
        self.inverse_frequencies = 1.0 / (theta ** (torch.arange(0, d, 2).float() / d))

    def forward(self, x, positions):
        angles = positions[..., None].float() * self.inverse_frequencies
        angles = torch.cat((angles, angles), dim=-1).unsqueeze(1)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
        return x * cos + turned * sin


class GroupedQueryAttention(nn.Module):
    """Causal attention with fewer key/value heads than query heads and half-split RoPE."""

    def __init__(self, hidden_size, num_heads, num_kv_heads, head_dim, theta=10000.0, bias=False):
        super().__init__()
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_kv_heads, head_dim
        self.q_proj = nn.Linear(hidden_size, num_heads * head_dim, bias=bias)
        self.k_proj = nn.Linear(hidden_size, num_kv_heads * head_dim, bias=bias)
        self.v_proj = nn.Linear(hidden_size, num_kv_heads * head_dim, bias=bias)
        self.o_proj = nn.Linear(num_heads * head_dim, hidden_size, bias=bias)
        self.rope = HalfSplitRoPE(theta, head_dim)

    def forward(self, x, positions):
        batch, seq, _ = x.shape

        def heads(y):
            return y.view(batch, seq, -1, self.head_dim).transpose(1, 2)

        q = self.rope(heads(self.q_proj(x)), positions)
        k = self.rope(heads(self.k_proj(x)), positions)
        groups = self.num_heads // self.num_kv_heads
        k = k.repeat_interleave(groups, dim=1)
        v = heads(self.v_proj(x)).repeat_interleave(groups, dim=1)
        scores = torch.matmul(q, k.transpose(-2, -1)) * self.head_dim**-0.5
        future = torch.triu(torch.ones(seq, seq, dtype=torch.bool), diagonal=1)
        scores = at_least_f32(scores.masked_fill(future, float("-inf")))
        weights = F.softmax(scores, dim=-1).to(q.dtype)
        context = torch.matmul(weights, v).transpose(1, 2).reshape(batch, seq, -1)
        return self.o_proj(context)


# GPT --------------------------------------------------------------------------------------------


class GptAttention(nn.Module):
    """Causal attention with one weight for q, k and v, split in that order."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.c_attn = nn.Linear(d_model, 3 * d_model)
        self.c_proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        batch, seq, d_model = x.shape

        def heads(y):
            return y.view(batch, seq, self.num_heads, -1).transpose(1, 2)

        q, k, v = (heads(y) for y in self.c_attn(x).split(d_model, dim=2))
        scores = (q @ k.transpose(-2, -1)) * k.shape[-1] ** -0.5
        future = torch.triu(torch.ones(seq, seq, dtype=torch.bool), diagonal=1)
        context = F.softmax(scores.masked_fill(future, float("-inf")), dim=-1) @ v
        return self.c_proj(context.transpose(1, 2).reshape(batch, seq, d_model))


class GptMlp(nn.Module):
    def __init__(self, d_model, hidden):
        super().__init__()
        self.c_fc = nn.Linear(d_model, hidden)
        self.c_proj = nn.Linear(hidden, d_model)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class GptBlock(nn.Module):
    def __init__(self, d_model, num_heads, hidden):
        super().__init__()
        self.ln_1 = nn.LayerNorm(d_model)
        self.attn = GptAttention(d_model, num_heads)
        self.ln_2 = nn.LayerNorm(d_model)
        self.mlp = GptMlp(d_model, hidden)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Token ids to logits; the head is the token table."""

    def __init__(self, vocab_size, max_len, d_model, num_layers, num_heads, hidden):
        super().__init__()
        self.wte = nn.Embedding(vocab_size, d_model)
        self.wpe = nn.Embedding(max_len, d_model)
        self.h = nn.ModuleList([GptBlock(d_model, num_heads, hidden) for _ in range(num_layers)])
        self.ln_f = nn.LayerNorm(d_model)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)
