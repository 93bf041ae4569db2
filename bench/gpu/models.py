# SPDX-License-Identifier: Apache-2.0
"""The models that are measured, and what one step of them must read and compute."""

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Names of artifacts; the last one, of 1.4 million parameters, is for host execution.
MODELS = {"0.5B": "llama-0.5b", "1B": "llama-1b", "8B": "llama-8b", "toy": "stories"}


def config_of(name):
    if name == "toy":
        return json.loads((ROOT / "examples/models/stories/config.json").read_text())
    return json.loads((ROOT / f"bench/configs/{MODELS[name]}.json").read_text())


def head_size(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def layer_parameters(c):
    """Of the linear layers of one block."""
    hidden, head = c["hidden_size"], head_size(c)
    queries, keys = c["num_attention_heads"] * head, c["num_key_value_heads"] * head
    return 2 * hidden * queries + 2 * hidden * keys + 3 * hidden * c["intermediate_size"]


def decode_bytes(c, context):
    """A bf16 decode step at `context` tokens: linear weights, head, keys and values."""
    head = c["hidden_size"] * c["vocab_size"]
    cache = context * c["num_hidden_layers"] * 2 * c["num_key_value_heads"] * head_size(c)
    return 2 * (c["num_hidden_layers"] * layer_parameters(c) + head + cache)


def prefill_flops(c, tokens):
    """Linear layers, causal attention, and the head on the last token only."""
    attention = 2.0 * tokens * tokens * c["num_attention_heads"] * head_size(c)
    layer = 2.0 * tokens * layer_parameters(c) + attention
    return c["num_hidden_layers"] * layer + 2.0 * c["hidden_size"] * c["vocab_size"]
