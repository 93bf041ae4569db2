# SPDX-License-Identifier: Apache-2.0
"""The golden cases of the encoder-decoder, of positions and of DiT, as make_goldens.py takes them:
(case, class, constructor options, inputs); sizes are odd on purpose."""

import torch

import seed_dit as dit
import seed_encoder_decoder as rice


def normal(**shapes):
    return lambda draw: {name: draw.normal(*shape) for name, shape in shapes.items()}


def tokens(draw, limit, lengths, seq):
    """Ids from 1; what is past a row's length is padding, 0."""
    ids = draw.ids(limit - 1, len(lengths), seq) + 1
    for row, length in enumerate(lengths):
        ids[row, length:] = 0
    return ids


def cross(mask_shape, masked_row=None):
    """Queries of 3 tokens, keys of 7; every query sees the first key unless its row is named."""

    def make(draw):
        inputs = {"query": draw.normal(2, 3, 24), "key": draw.normal(2, 7, 24)}
        inputs["value"] = draw.normal(2, 7, 24)
        if mask_shape:
            mask = draw.mask(*mask_shape)
            mask[..., 0] = True
            if masked_row is not None:
                mask[:, :, masked_row] = False
            inputs["mask"] = mask
        return inputs

    return make


def translation(draw):
    source = draw.ids(31, 2, 7)
    source_mask = draw.mask(2, 1, 1, 7)
    source_mask[..., 0] = True
    return {
        "src": source,
        "tgt": draw.ids(37, 2, 5),
        "src_mask": source_mask,
        "tgt_mask": torch.tril(torch.ones(1, 1, 5, 5, dtype=torch.bool)),
    }


def decoder_inputs(draw):
    source_mask = draw.mask(2, 1, 1, 7)
    source_mask[..., 0] = True
    return {
        "x": draw.normal(2, 5, 24),
        "encoded": draw.normal(2, 7, 24),
        "src_mask": source_mask,
        "tgt_mask": torch.tril(torch.ones(1, 1, 5, 5, dtype=torch.bool)),
    }


def encoder_decoder_cases():
    heads = dict(d_model=24, n_heads=3)
    yield "attention_cross", rice.RiceMultiHeadAttention, heads, cross((2, 1, 1, 7))
    yield "attention_no_mask", rice.RiceMultiHeadAttention, heads, cross(None)
    yield "attention_masked_row", rice.RiceMultiHeadAttention, heads, cross((2, 1, 3, 7), 1)
    yield "feed_forward", rice.RiceFeedForward, dict(d_model=24, d_ff=50), normal(x=(3, 7, 24))
    layer = heads | dict(d_ff=50)
    yield (
        "encoder_layer",
        rice.RiceEncoderLayer,
        layer,
        lambda draw: {"x": draw.normal(3, 7, 24), "mask": draw.mask(3, 1, 7, 7)},
    )
    yield "decoder_layer", rice.RiceDecoderLayer, layer, decoder_inputs
    model = dict(src_vocab_size=31, tgt_vocab_size=37, d_model=24, n_heads=3, n_layers=2, d_ff=50)
    yield "model", rice.RiceTransformer, model | dict(max_len=16), translation
    model = model | dict(d_model=48, n_heads=4, n_layers=1, max_len=11, padding=0)
    yield (
        "model_padding",
        rice.RiceTransformer,
        model,
        lambda draw: {"src": tokens(draw, 31, [7, 4, 1], 7), "tgt": tokens(draw, 37, [2, 5, 3], 5)},
    )

    yield "tiled_softmax", rice.RiceTiledSoftmax, dict(block=4), normal(x=(3, 5, 13))
    yield (
        "tiled_softmax_large_values",
        rice.RiceTiledSoftmax,
        dict(block=5),
        lambda draw: {"x": draw.normal(2, 3, 11, scale=30.0)},
    )
    qkv = dict(Q=(2, 3, 7, 8), K=(2, 3, 13, 8), V=(2, 3, 13, 12))
    yield "tiled_attention", rice.RiceTiledAttention, dict(block=5), normal(**qkv)
    yield "tiled_attention_one_block", rice.RiceTiledAttention, dict(block=32), normal(**qkv)

    sines = rice.RicePositionalEncoding
    yield "sine_positions", sines, dict(d_model=24, max_len=32), normal(x=(3, 7, 24))
    yield "sine_positions_far", sines, dict(d_model=6, max_len=512), normal(x=(1, 512, 6))
    yield (
        "learnt_positions",
        rice.LearntPositions,
        dict(max_len=16, d_model=24),
        normal(x=(3, 7, 24)),
    )
    bias = dict(heads=3, buckets=32, max_distance=128)
    yield (
        "relative_bias_both_sides",
        rice.RelativePositionBias,
        bias | dict(both_sides=True),
        normal(q=(1, 3, 2), k=(1, 200, 2)),
    )
    yield (
        "relative_bias_one_side",
        rice.RelativePositionBias,
        bias | dict(both_sides=False),
        normal(q=(1, 200, 2), k=(1, 3, 2)),
    )
    yield "relative_keys", rice.ShawAttention, heads | dict(max_distance=3), normal(x=(2, 7, 24))
    yield (
        "relative_encoder",
        rice.RelativeEncoder,
        dict(vocab_size=31, n_layers=2, d_ff=50, buckets=8, max_distance=10) | heads,
        lambda draw: {"ids": draw.ids(31, 2, 13)},
    )


def dit_cases():
    yield (
        "patches",
        dit.PatchEmbedding,
        dict(channels=3, patch=2, d_model=24),
        normal(image=(2, 3, 6, 14)),
    )
    steps = torch.tensor([0.0, 1.0, 250.5, 999.0])
    yield (
        "timesteps",
        dit.TimestepEmbedder,
        dict(d_model=24, frequencies=16),
        lambda draw: {"t": steps},
    )
    yield (
        "timesteps_wide",
        dit.TimestepEmbedder,
        dict(d_model=8, frequencies=256),
        lambda draw: {"t": steps},
    )
    yield "attention", dit.DiTAttention, dict(d_model=24, num_heads=3), normal(x=(2, 21, 24))
    yield (
        "block",
        dit.DiTBlock,
        dict(d_model=24, num_heads=3, hidden=50),
        normal(x=(2, 21, 24), c=(2, 24)),
    )
    yield (
        "final_layer",
        dit.DiTFinalLayer,
        dict(d_model=24, outputs=20),
        normal(x=(2, 21, 24), c=(2, 24)),
    )

    def noisy(channels, height, width):
        return lambda draw: {
            "x": draw.normal(2, channels, height, width),
            "t": torch.tensor([3.0, 777.0]),
            "y": torch.tensor([10, 4]),
        }

    sizes = dict(d_model=24, depth=2, num_heads=3, hidden=50, labels=11, frequencies=16)
    yield (
        "model",
        dit.DiT,
        sizes | dict(height=6, width=14, patch=2, channels=3),
        noisy(3, 6, 14),
    )
    computed = dict(stored_positions=False, learn_sigma=False)
    yield (
        "model_computed_positions",
        dit.DiT,
        sizes | computed | dict(height=9, width=6, patch=3, channels=1),
        noisy(1, 9, 6),
    )
