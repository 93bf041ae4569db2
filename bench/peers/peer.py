# SPDX-License-Identifier: Apache-2.0
"""What all peers have in common: their options, the timed runs, and the report of them as JSON."""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

FORMATS = ["bf16", "f32", "int8", "int4"]
CONFIG = Path(__file__).resolve().parents[1] / "configs/llama-0.5b.json"


def parse_arguments(description, formats):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--config", default=CONFIG, help="config.json of a Llama model")
    parser.add_argument("--format", choices=formats, default=formats[0], help="of the weights")
    parser.add_argument("-p", "--prompt", type=int, default=512, help="prompt tokens")
    parser.add_argument("-n", "--new", type=int, default=64, help="decoded tokens")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-r", "--runs", type=int, default=3)
    arguments = parser.parse_args()
    arguments.model = json.loads(Path(arguments.config).read_text())
    return arguments


def sizes(model):
    """[outputs, inputs] of a layer's linear weights, by name, and the size of a head."""
    hidden, heads = model["hidden_size"], model["num_attention_heads"]
    size = model.get("head_dim") or hidden // heads
    keys, inner = model["num_key_value_heads"] * size, model["intermediate_size"]
    layer = {
        "q": [heads * size, hidden],
        "k": [keys, hidden],
        "v": [keys, hidden],
        "o": [hidden, heads * size],
        "gate": [inner, hidden],
        "up": [inner, hidden],
        "down": [hidden, inner],
    }
    return layer, size


# Every weight is drawn anew: an engine computes products with equal weights once.
DRAWN = np.random.default_rng(0)


def random_bits(count, dtype):
    """`count` random whole numbers of all bits: a short row of them, repeated."""
    kind = np.dtype(dtype)
    some = DRAWN.integers(0, 1 << 8 * kind.itemsize, 1 << 20, dtype=np.int64)
    return np.resize(some.astype(kind), count)


def random_f32(*shape):
    some = DRAWN.standard_normal(1 << 20, dtype=np.float32) * np.float32(0.02)
    return np.resize(some, int(np.prod(shape))).reshape(shape)


def random_bf16(*shape):
    return (random_f32(*shape).view(np.uint32) >> 16).astype(np.uint16)


def measure(arguments, start, step, facts):
    """Times `start(ids)`, which reads a prompt on an empty cache, and `step(token)`; both return
    the logits of the last position. The first run warms up and does not count."""
    random = np.random.default_rng(1)
    prefills, decodes = [], []
    for run in range(arguments.runs + 1):
        ids = random.integers(0, arguments.model["vocab_size"], arguments.prompt)
        begin = time.perf_counter()
        token = int(np.argmax(start(ids)))
        read = time.perf_counter()
        steps = arguments.new if run else min(4, arguments.new)
        for _ in range(steps):
            token = int(np.argmax(step(token)))
        end = time.perf_counter()
        if run:
            prefills.append(arguments.prompt / (read - begin))
            decodes.append(arguments.new / (end - read))
    report = {
        **facts,
        "format": arguments.format,
        "threads": arguments.threads,
        "prefill_tokens_per_second": statistics.median(prefills),
        "decode_tokens_per_second": statistics.median(decodes),
        "prefill_runs": prefills,
        "decode_runs": decodes,
    }
    print(json.dumps(report))
