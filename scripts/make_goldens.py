# SPDX-License-Identifier: Apache-2.0
"""Writes the PyTorch goldens of the modules and ops into tests/golden/seeds and tests/golden/ops.

    python scripts/make_goldens.py [--out tests/golden]

A module file, seeds/<case>.safetensors or seeds/<family>/<case>.safetensors, holds
  in.<argument>      the arguments of forward, f32, i64 or bool
  w.<parameter>      the weights in f32, under the module's own names
  out                forward in f32
  out.f64            forward in float64 with the same weights
  out.bf16           forward in bf16, run by PyTorch after `module.to(bfloat16)`
  out.f64_of_bf16    float64 forward on inputs and weights rounded to bf16: the truth for out.bf16
and the metadata "class", "options" (JSON, the constructor's arguments), "inputs" (JSON list, the
arguments in order) and "plain_tensors" (JSON list of weights that are no parameters of the module).

An op file, ops/<op>_<case>.safetensors, holds in.0, in.1, ... and out, or out.0, out.1 where the op
has two results, and the metadata "op" and "attrs" (JSON).

Every tensor is drawn from a seed that depends on the case's name only.
"""

import argparse
import copy
import json
import math
import pathlib
import zlib

import torch
from torch import nn

import op_goldens
import seed_model_cases
import seed_modules as seeds
from golden_file import write_golden


class Draw:
    """Random inputs of one case."""

    def __init__(self, name):
        self.generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))

    def normal(self, *shape, scale=1.0):
        return torch.randn(shape, generator=self.generator) * scale

    def ids(self, limit, *shape):
        return torch.randint(0, limit, shape, generator=self.generator)

    def mask(self, *shape, keep=0.6):
        return torch.rand(shape, generator=self.generator) < keep


def plain_tensors(module):
    """The modules that hold a weight as a plain tensor, by the weight's full name."""
    return {
        f"{prefix}.embedding_matrix".lstrip("."): child
        for prefix, child in module.named_modules()
        if isinstance(child, seeds.Cs190cEmbedding)
    }


def draw_weights(module, draw):
    """Gains near 1, biases near 0, matrices scaled so that outputs stay near 1."""
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            leaf = name.rsplit(".", 1)[-1]
            if parameter.dim() == 1:
                centre = 0.0 if leaf == "bias" else 1.0
                parameter.copy_(centre + draw.normal(*parameter.shape, scale=0.2))
            else:
                fan_in = parameter.shape[0 if leaf == "linear_matrix" else 1]
                scale = 1.0 if leaf == "embeddings" else 1 / math.sqrt(fan_in)
                parameter.copy_(draw.normal(*parameter.shape, scale=scale))
        for child in plain_tensors(module).values():
            child.embedding_matrix = draw.normal(*child.embedding_matrix.shape)


def to(module, dtype):
    """A copy of the module with weights, plain tensors and buffers in another dtype."""
    other = copy.deepcopy(module).to(dtype)
    for child in plain_tensors(other).values():
        child.embedding_matrix = child.embedding_matrix.to(dtype)
    return other


def cast(inputs, dtype):
    return [x.to(dtype) if x.is_floating_point() else x for x in inputs]


def rounded_weights(module):
    """A copy in f32 whose weights are rounded to bf16; buffers, such as RoPE tables, are not."""
    other = copy.deepcopy(module)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).float())
    for child in plain_tensors(other).values():
        child.embedding_matrix = child.embedding_matrix.to(torch.bfloat16).float()
    return other


@torch.no_grad()
def write_module(folder, name, kind, options, make_inputs):
    draw = Draw(name)
    module = kind(**options)
    draw_weights(module, draw)
    inputs = make_inputs(draw)
    values = list(inputs.values())
    narrow = cast(values, torch.bfloat16)
    tensors = {f"in.{key}": value for key, value in inputs.items()}
    tensors |= {f"w.{key}": value.detach() for key, value in module.named_parameters()}
    plain = plain_tensors(module)
    tensors |= {f"w.{key}": child.embedding_matrix for key, child in plain.items()}
    tensors["out"] = module(*values)
    tensors["out.f64"] = to(module, torch.float64)(*cast(values, torch.float64))
    tensors["out.bf16"] = to(module, torch.bfloat16)(*narrow)
    tensors["out.f64_of_bf16"] = to(rounded_weights(module), torch.float64)(
        *cast(narrow, torch.float64)
    )
    expected = {"out": torch.float32, "out.bf16": torch.bfloat16}
    for key in ["out", "out.f64", "out.bf16", "out.f64_of_bf16"]:
        assert tensors[key].dtype == expected.get(key, torch.float64), (name, key)
    write_golden(
        folder / f"{name}.safetensors",
        tensors,
        {
            "class": kind.__name__,
            "options": json.dumps(options),
            "inputs": json.dumps(list(inputs)),
            "plain_tensors": json.dumps(sorted(plain)),
        },
    )


def x_of(*shape, scale=1.0):
    return lambda draw: {"x": draw.normal(*shape, scale=scale)}


def extremes(*shape):
    """Normal values, with zeros of both signs and saturating magnitudes at the front."""

    def make(draw):
        x = draw.normal(*shape, scale=3.0)
        special = torch.tensor([0.0, -0.0, 20.0, -20.0, 80.0, -80.0, 1e-6, -1e-6])
        x.view(-1)[: len(special)] = special
        return {"x": x}

    return make


def scores(*shape):
    """Large values, one -inf and a row of equal values."""

    def make(draw):
        x = draw.normal(*shape, scale=4.0)
        x[0, 0] = 1000.0
        x[0, 1, 1] = float("-inf")
        x[1, 0] = 2.5
        return {"x": x}

    return make


def queries(q_shape, kv_shape, mask_shape=None, masked_row=None, masked_batch=None):
    """Q, K, V and a random mask; each row keeps its first key unless it is named fully masked."""

    def make(draw):
        inputs = {"Q": draw.normal(*q_shape), "K": draw.normal(*kv_shape)}
        inputs["V"] = draw.normal(*kv_shape)
        if mask_shape:
            mask = draw.mask(*mask_shape)
            mask[..., 0] = True
            if masked_row is not None:
                mask[..., masked_row, :] = False
            if masked_batch is not None:
                mask[masked_batch] = False
            inputs["mask"] = mask
        return inputs

    return make


def x_positions(shape, positions):
    return lambda draw: {"x": draw.normal(*shape), "token_positions": torch.tensor(positions)}


def positions_of(seq, start=0):
    return list(range(start, start + seq))


def ids_of(limit, *shape, name="token_ids"):
    return lambda draw: {name: draw.ids(limit, *shape)}


def module_cases():
    """(case, class, constructor options, inputs); sizes are odd on purpose."""
    rope_rows = [positions_of(7), [9, 2, 2, 30, 0, 11, 5]]
    yield "linear_cs336", seeds.Cs336Linear, dict(in_features=24, out_features=40), x_of(2, 7, 24)
    yield "linear_cs190c", seeds.Cs190cLinear, dict(in_features=24, out_features=40), x_of(2, 7, 24)
    yield (
        "embedding_cs336",
        seeds.Cs336Embedding,
        dict(num_embeddings=61, embedding_dim=24),
        ids_of(61, 2, 7),
    )
    yield (
        "embedding_cs190c",
        seeds.Cs190cEmbedding,
        dict(number_embeddings=61, embedding_dim=24),
        ids_of(61, 2, 7),
    )

    for course, kind, size in [("cs336", seeds.Cs336RMSNorm, "d_model"),
                               ("cs190c", seeds.Cs190cRMSNorm, "d_model"),
                               ("modern", seeds.ModernRMSNorm, "hidden_size")]:  # fmt: skip
        yield f"rms_norm_{course}", kind, {size: 40, "eps": 1e-5}, x_of(2, 7, 40)
        yield (
            f"rms_norm_{course}_tiny_values",
            kind,
            {size: 24, "eps": 1e-6},
            x_of(3, 5, 24, scale=1e-3),
        )
    yield "layer_norm", nn.LayerNorm, dict(normalized_shape=40, eps=1e-5), x_of(2, 7, 40)
    yield (
        "layer_norm_no_bias",
        nn.LayerNorm,
        dict(normalized_shape=24, eps=1e-6, bias=False),
        x_of(2, 13, 24),
    )

    for name, kind, options in [
        ("sigmoid_cs190c", seeds.Cs190cSigmoid, {}), ("sigmoid_torch", nn.Sigmoid, {}),
        ("silu_cs190c", seeds.Cs190cSiLU, {}), ("silu_cs336", seeds.Cs336SiLU, {}),
        ("gelu_erf", nn.GELU, {"approximate": "none"}),
        ("gelu_tanh", nn.GELU, {"approximate": "tanh"}),
    ]:  # fmt: skip
        yield name, kind, options, extremes(2, 7, 13)
    for dim, label in [(0, "dim0"), (1, "dim1"), (-1, "last")]:
        yield f"softmax_cs336_{label}", seeds.Cs336Softmax, dict(dim=dim), scores(3, 7, 13)
        yield f"softmax_cs190c_{label}", seeds.Cs190cSoftmax, dict(dim=dim), scores(3, 7, 13)

    table = dict(theta=10000.0, d_k=12, max_seq_len=32)
    long_table = dict(theta=10000.0, d_k=12, max_seq_len=8192)
    far = [0, 1, 100, 4095, 4096, 8190, 8191]
    yield "rope_cs336", seeds.Cs336RoPE, table, x_positions((2, 7, 12), rope_rows)
    yield "rope_cs336_far", seeds.Cs336RoPE, long_table, x_positions((1, 7, 12), [far])
    yield "rope_cs190c_3d", seeds.Cs190cRoPE, table, x_positions((2, 7, 12), positions_of(7, 3))
    yield "rope_cs190c_4d", seeds.Cs190cRoPE, table, x_positions((2, 3, 7, 12), rope_rows[1])
    yield "rope_cs190c_far", seeds.Cs190cRoPE, long_table, x_positions((1, 7, 12), far)
    yield (
        "rope_half",
        seeds.HalfSplitRoPE,
        dict(theta=10000.0, d=12),
        lambda draw: {"x": draw.normal(2, 3, 7, 12), "positions": torch.tensor(rope_rows)},
    )

    for course, kind in [("cs336", seeds.Cs336Attention), ("cs190c", seeds.Cs190cAttention)]:
        yield f"sdpa_{course}_no_mask", kind, {}, queries((2, 7, 12), (2, 13, 12))
        yield f"sdpa_{course}_3d", kind, {}, queries((2, 7, 12), (2, 13, 12), (2, 7, 13))
        yield f"sdpa_{course}_3d_shared_mask", kind, {}, queries((2, 7, 12), (2, 7, 12), (7, 7))
        yield (
            f"sdpa_{course}_4d",
            kind,
            {},
            queries((2, 3, 7, 8), (2, 3, 13, 8), (2, 3, 7, 13)),
        )
        yield (
            f"sdpa_{course}_4d_shared_mask",
            kind,
            {},
            queries((2, 3, 13, 8), (2, 3, 13, 8), (1, 1, 13, 13)),
        )
        yield (
            f"sdpa_{course}_3d_masked_rows",
            kind,
            {},
            queries((2, 7, 12), (2, 7, 12), (2, 7, 7), masked_row=3),
        )
        yield (
            f"sdpa_{course}_4d_masked_batch",
            kind,
            {},
            queries((2, 3, 7, 8), (2, 3, 13, 8), (2, 1, 7, 13), masked_row=0, masked_batch=1),
        )

    positions = torch.tensor([positions_of(7), positions_of(7, 4)])
    yield (
        "mha_cs336",
        seeds.Cs336MultiHeadSelfAttention,
        dict(d_model=24, num_heads=3),
        x_of(2, 13, 24),
    )
    yield (
        "mha_cs336_rope",
        seeds.Cs336MultiHeadSelfAttention,
        dict(d_model=40, num_heads=2, theta=10000.0, max_seq_len=32),
        lambda draw: {"x": draw.normal(2, 7, 40), "token_positions": positions},
    )
    yield (
        "mha_cs190c",
        seeds.Cs190cMultiheadAttention,
        dict(d_model=24, num_heads=3),
        x_of(2, 13, 24),
    )
    yield (
        "mha_cs190c_rope",
        seeds.Cs190cMultiheadAttention,
        dict(d_model=40, num_heads=2, max_seq_length=32, theta=10000),
        x_positions((2, 7, 40), positions_of(7, 2)),
    )
    yield (
        "gqa",
        seeds.GroupedQueryAttention,
        dict(hidden_size=40, num_heads=6, num_kv_heads=2, head_dim=12),
        lambda draw: {"x": draw.normal(2, 7, 40), "positions": positions},
    )
    yield (
        "gqa_one_kv_head_bias",
        seeds.GroupedQueryAttention,
        dict(hidden_size=24, num_heads=3, num_kv_heads=1, head_dim=8, theta=500000.0, bias=True),
        lambda draw: {"x": draw.normal(2, 7, 24), "positions": positions},
    )
    yield (
        "causal_attention_modern",
        seeds.ModernCausalAttention,
        dict(hidden_size=24, n_heads=3, seq_len=16),
        x_of(2, 13, 24),
    )
    yield (
        "causal_attention_modern_batch3",
        seeds.ModernCausalAttention,
        dict(hidden_size=40, n_heads=2, seq_len=7),
        x_of(3, 7, 40),
    )

    yield "swiglu_cs336", seeds.Cs336SwiGLU, dict(d_model=24, d_ff=50), x_of(2, 7, 24)
    yield "swiglu_cs336_default_d_ff", seeds.Cs336SwiGLU, dict(d_model=40), x_of(2, 7, 40)
    yield "swiglu_cs190c", seeds.Cs190cFeedForward, dict(d_model=24, d_ff=50), x_of(2, 7, 24)
    yield "swiglu_modern", seeds.ModernMLP, dict(hidden_size=40), x_of(2, 7, 40)

    yield (
        "block_cs336",
        seeds.Cs336TransformerBlock,
        dict(d_model=24, num_heads=3, d_ff=50),
        x_of(2, 13, 24),
    )
    yield (
        "block_cs336_rope",
        seeds.Cs336TransformerBlock,
        dict(d_model=40, num_heads=2, d_ff=64, theta=10000.0, max_seq_len=32),
        lambda draw: {"x": draw.normal(2, 7, 40), "token_positions": positions},
    )
    yield (
        "block_cs190c",
        seeds.Cs190cTransformerBlock,
        dict(d_model=24, num_heads=3, d_ff=50, max_seq_length=32, theta=10000),
        x_positions((2, 13, 24), positions_of(13)),
    )

    lm = dict(vocab_size=61, context_length=16, d_model=24, num_layers=2, num_heads=3, d_ff=50)
    ids = ids_of(61, 2, 13, name="input_ids")
    yield "lm_cs336_logits", seeds.Cs336TransformerLM, lm | dict(apply_softmax=False), ids
    yield "lm_cs336_probabilities", seeds.Cs336TransformerLM, lm, ids
    yield "lm_learnt_positions", seeds.LearntPositionsLM, lm, ids
    lm = dict(d_model=40, num_heads=2, d_ff=64, vocab_size=61, num_layers=2)
    for name, rope in [("lm_cs190c", {}),
                       ("lm_cs190c_rope", dict(max_seq_length=16, theta=10000))]:  # fmt: skip
        yield (
            name,
            seeds.Cs190cTransformerLM,
            lm | rope,
            lambda draw: {"token_ids": draw.ids(61, 2, 7), "token_positions": torch.arange(7)},
        )
    lm = dict(vocab_size=61, seq_len=16, hidden_size=24, n_layers=2, n_heads=3)
    block = dict(hidden_size=40, n_heads=2, seq_len=7, eps=1e-5)
    yield "block_modern", seeds.ModernBlock, block, x_of(2, 7, 40)
    yield "lm_modern", seeds.ModernLM, lm, ids_of(61, 2, 13)
    yield "mha_gpt", seeds.GptAttention, dict(d_model=40, num_heads=2), x_of(3, 7, 40)
    yield "block_gpt", seeds.GptBlock, dict(d_model=24, num_heads=3, hidden=50), x_of(2, 13, 24)
    lm = dict(vocab_size=61, max_len=16, d_model=24, num_layers=2, num_heads=3, hidden=50)
    yield "lm_gpt", seeds.Gpt, lm, ids_of(61, 2, 13)


FAMILIES = {
    "": module_cases,
    "encoder_decoder": seed_model_cases.encoder_decoder_cases,
    "dit": seed_model_cases.dit_cases,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parent.parent
    parser.add_argument("--out", type=pathlib.Path, default=root / "tests" / "golden")
    out = parser.parse_args().out
    torch.set_num_threads(1)
    (out / "ops").mkdir(parents=True, exist_ok=True)
    modules = 0
    for family, cases in FAMILIES.items():
        (out / "seeds" / family).mkdir(parents=True, exist_ok=True)
        for case in cases():
            write_module(out / "seeds" / family, *case)
            modules += 1
    ops = list(op_goldens.cases())
    for name, op, attrs, inputs, outputs in ops:
        tensors = {f"in.{i}": x for i, x in enumerate(inputs)}
        if len(outputs) == 1:
            tensors["out"] = outputs[0]
        else:
            tensors |= {f"out.{i}": y for i, y in enumerate(outputs)}
        path = out / "ops" / f"{op}_{name}.safetensors"
        write_golden(path, tensors, {"op": op, "attrs": json.dumps(attrs)})
    print(f"{modules} module files, {len(ops)} op files")


if __name__ == "__main__":
    main()
