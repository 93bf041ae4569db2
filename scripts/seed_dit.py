# SPDX-License-Identifier: Apache-2.0
"""Reference PyTorch modules of the diffusion transformer (DiT) with adaLN-Zero conditioning.

The course's slide names the architecture; parameter names and arithmetic are those of the paper's
authors. `make_goldens.py` draws the parameters.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class PatchEmbedding(nn.Module):
    """[N, C, H, W] to [N, T, D]; a patch is one step of the convolution."""

    def __init__(self, channels, patch, d_model):
        super().__init__()
        self.proj = nn.Conv2d(channels, d_model, kernel_size=patch, stride=patch)

    def forward(self, image):
        return self.proj(image).flatten(2).transpose(1, 2)


class TimestepEmbedder(nn.Module):
    def __init__(self, d_model, frequencies=256):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(frequencies, d_model), nn.SiLU(), nn.Linear(d_model, d_model)
        )
        half = frequencies // 2
        # No buffer: the angles are f32 whatever dtype the module has.
        self.slopes = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)

    def forward(self, t):
        angles = t[:, None].float() * self.slopes[None]
        waves = torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1)
        return self.mlp(waves.to(self.mlp[0].weight.dtype))


class LabelEmbedder(nn.Module):
    def __init__(self, labels, d_model):
        super().__init__()
        self.embedding_table = nn.Embedding(labels, d_model)

    def forward(self, labels):
        return self.embedding_table(labels)


class DiTAttention(nn.Module):
    """One weight for q, k and v; q is scaled before the product; no mask."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.proj = nn.Linear(d_model, d_model)

    def forward(self, x):
        batch, tokens, d_model = x.shape
        split = self.qkv(x).reshape(batch, tokens, 3, self.num_heads, -1)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        q = q * q.shape[-1] ** -0.5
        context = torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v
        return self.proj(context.transpose(1, 2).reshape(batch, tokens, d_model))


class DiTMlp(nn.Module):
    def __init__(self, d_model, hidden):
        super().__init__()
        self.fc1 = nn.Linear(d_model, hidden)
        self.fc2 = nn.Linear(hidden, d_model)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class DiTBlock(nn.Module):
    """adaLN-Zero: shift, scale and gate of both halves come from the condition c [N, D]."""

    def __init__(self, d_model, num_heads, hidden):
        super().__init__()
        self.norm1 = nn.LayerNorm(d_model, elementwise_affine=False, eps=1e-6)
        self.attn = DiTAttention(d_model, num_heads)
        self.norm2 = nn.LayerNorm(d_model, elementwise_affine=False, eps=1e-6)
        self.mlp = DiTMlp(d_model, hidden)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(d_model, 6 * d_model))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.adaLN_modulation(c).chunk(6, dim=1)
        x = x + gate1.unsqueeze(1) * self.attn(modulate(self.norm1(x), shift1, scale1))
        return x + gate2.unsqueeze(1) * self.mlp(modulate(self.norm2(x), shift2, scale2))


class DiTFinalLayer(nn.Module):
    def __init__(self, d_model, outputs):
        super().__init__()
        self.norm_final = nn.LayerNorm(d_model, elementwise_affine=False, eps=1e-6)
        self.linear = nn.Linear(d_model, outputs)
        self.adaLN_modulation = nn.Sequential(nn.SiLU(), nn.Linear(d_model, 2 * d_model))

    def forward(self, x, c):
        shift, scale = self.adaLN_modulation(c).chunk(2, dim=1)
        return self.linear(modulate(self.norm_final(x), shift, scale))


def sine_positions_2d(d_model, rows, columns):
    """[rows * columns, d_model]: the column in the first half, the row in the second; float64."""

    def line(positions):
        slopes = 10000.0 ** -(torch.arange(d_model // 4, dtype=torch.float64) / (d_model / 4))
        angles = torch.outer(positions, slopes)
        return torch.cat([torch.sin(angles), torch.cos(angles)], dim=1)

    row, column = torch.meshgrid(
        torch.arange(rows, dtype=torch.float64),
        torch.arange(columns, dtype=torch.float64),
        indexing="ij",
    )
    return torch.cat([line(column.flatten()), line(row.flatten())], dim=1)


class DiT(nn.Module):
    """The positions are a parameter, as a checkpoint of the authors has them, or a buffer."""

    def __init__(self, height, width, patch, channels, d_model, depth, num_heads, hidden, labels,
                 frequencies=256, learn_sigma=True, stored_positions=True):  # fmt: skip
        super().__init__()
        self.patch, self.rows, self.columns = patch, height // patch, width // patch
        self.out_channels = channels * 2 if learn_sigma else channels
        self.x_embedder = PatchEmbedding(channels, patch, d_model)
        self.t_embedder = TimestepEmbedder(d_model, frequencies)
        self.y_embedder = LabelEmbedder(labels, d_model)
        positions = sine_positions_2d(d_model, self.rows, self.columns).float().unsqueeze(0)
        if stored_positions:
            self.pos_embed = nn.Parameter(positions)
        else:
            self.register_buffer("pos_embed", positions)
        self.blocks = nn.ModuleList([DiTBlock(d_model, num_heads, hidden) for _ in range(depth)])
        self.final_layer = DiTFinalLayer(d_model, patch * patch * self.out_channels)

    def unpatchify(self, x):
        grid = x.reshape(-1, self.rows, self.columns, self.patch, self.patch, self.out_channels)
        image = torch.einsum("nhwpqc->nchpwq", grid)
        return image.reshape(-1, self.out_channels, self.rows * self.patch,
                             self.columns * self.patch)  # fmt: skip

    def forward(self, x, t, y):
        x = self.x_embedder(x) + self.pos_embed
        c = self.t_embedder(t) + self.y_embedder(y)
        for block in self.blocks:
            x = block(x, c)
        return self.unpatchify(self.final_layer(x, c))
