# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode speed of PyTorch eager on a Llama configuration: the peer of `lathe bench`.

    python bench/torch_eager.py [--config config.json] [-p 512] [-n 128] [-t 2] [--json]

Hugging Face's LlamaForCausalLM with random weights, sdpa attention and, but for `--compile`, no
compilation. Prefill
computes logits for the last position only; decode feeds each greedy token back with a KV cache.
Every run has a fresh random prompt and a fresh cache; what is reported is the median of the runs.
Both of the library's caches are measured and the faster one counts (`--cache` fixes one).
Without --config: 0.5B parameters (hidden 896, 24 layers, 14 heads, 2 KV heads, intermediate 4864,
vocabulary 151936, tied head).
"""

import argparse
import json
import statistics
import time

import torch
import torch._inductor.config as inductor
import transformers
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

HALF_BILLION = {
    "hidden_act": "silu",
    "hidden_size": 896,
    "intermediate_size": 4864,
    "max_position_embeddings": 32768,
    "num_attention_heads": 14,
    "num_hidden_layers": 24,
    "num_key_value_heads": 2,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "tie_word_embeddings": True,
    "vocab_size": 151936,
}
DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}


def new_cache(kind, config, capacity):
    if kind == "static":
        return StaticCache(config=config, max_cache_len=capacity)
    return DynamicCache(config=config)


def one_run(model, kind, prompt, steps):
    """Seconds of the prefill and of `steps` decode steps, on a fresh cache."""
    length = prompt.shape[1]
    cache = new_cache(kind, model.config, length + steps)
    start = time.perf_counter()
    out = model(prompt, past_key_values=cache, use_cache=True, logits_to_keep=1)
    token = out.logits[:, -1].argmax(-1, keepdim=True)
    prefilled = time.perf_counter()
    for _ in range(steps):
        out = model(token, past_key_values=cache, use_cache=True, logits_to_keep=1)
        token = out.logits[:, -1].argmax(-1, keepdim=True)
    return prefilled - start, time.perf_counter() - prefilled


def measure(model, kind, arguments, generator):
    """Median tokens per second of prefill and decode, after one short run that warms up."""
    prefills, decodes = [], []
    for run in range(arguments.runs + 1):
        warm_up = run == 0
        shape = (1, arguments.prompt)
        prompt = torch.randint(0, model.config.vocab_size, shape, generator=generator)
        seconds = one_run(model, kind, prompt, min(4, arguments.new) if warm_up else arguments.new)
        if not warm_up:
            prefills.append(arguments.prompt / seconds[0])
            decodes.append(arguments.new / seconds[1])
    return {
        "cache": kind,
        "prefill_tokens_per_second": statistics.median(prefills),
        "decode_tokens_per_second": statistics.median(decodes),
        "prefill_runs": prefills,
        "decode_runs": decodes,
    }


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number of at least 1, got {text}")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", help="config.json of a Llama model (default: built-in 0.5B)")
    parser.add_argument("-p", "--prompt", type=positive, default=512, help="prompt tokens")
    parser.add_argument("-n", "--new", type=positive, default=128, help="decoded tokens")
    parser.add_argument("-t", "--threads", type=positive, default=2)
    parser.add_argument("-r", "--runs", type=positive, default=3)
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("--cache", choices=["static", "dynamic", "both"], default="both")
    parser.add_argument("--compile", action="store_true", help="torch.compile with frozen weights")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    values = HALF_BILLION
    if arguments.config:
        with open(arguments.config) as file:
            values = json.load(file)
    config = LlamaConfig(**values)
    torch.manual_seed(arguments.seed)
    generator = torch.Generator().manual_seed(arguments.seed)
    model = LlamaForCausalLM._from_config(
        config, dtype=DTYPES[arguments.dtype], attn_implementation="sdpa"
    ).eval()
    if arguments.compile:
        inductor.freezing = True
        model.forward = torch.compile(model.forward)
        arguments.cache = "static"  # a growing cache is compiled again at every step
    kinds = ["static", "dynamic"] if arguments.cache == "both" else [arguments.cache]
    with torch.inference_mode():
        results = [measure(model, kind, arguments, generator) for kind in kinds]
    speeds = ["prefill_tokens_per_second", "decode_tokens_per_second"]
    best = {speed: max(result[speed] for result in results) for speed in speeds}
    report = {
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "parameters": sum(p.numel() for p in model.parameters()),
        "dtype": arguments.dtype,
        "threads": arguments.threads,
        "prompt": arguments.prompt,
        "new": arguments.new,
        **best,
        "caches": results,
    }
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    print(
        f"torch {torch.__version__}, {report['parameters'] / 1e6:.1f} M parameters, "
        f"{arguments.dtype}, {arguments.threads} threads"
    )
    for result in results:
        print(
            f"{result['cache']:>8} cache: "
            f"prefill {arguments.prompt}: {result['prefill_tokens_per_second']:8.1f} tok/s, "
            f"decode {arguments.new}: {result['decode_tokens_per_second']:6.2f} tok/s"
        )


if __name__ == "__main__":
    main()
