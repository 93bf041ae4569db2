#!/usr/bin/env python3
"""A mixture of experts beside the form that computes all of them and beside PyTorch, in one run.

    PYTHONPATH=build/release/python python bench/mixture.py [--dtype f32] [-t 2] [--rounds 15]

One layer as Qwen3-MoE has them, with random weights: `nn.Mixture`, whose tokens meet their chosen experts alone;
the same with every expert computed and a share of 0 for those that were not chosen; for tokens the same with copies of
the chosen weights; and transformers' block with the implementations of its experts. A prompt, and a token of one and of
eight sequences. Calls take turns in rounds; times
are medians over the rounds, ratios medians of the rounds' own. Needs a build of the Python package, torch and
transformers.
"""
import argparse
import statistics
import time

import torch
import transformers as tf
from transformers.models.qwen3_moe.modeling_qwen3_moe import Qwen3MoeSparseMoeBlock

import lathe

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
SECONDS = 0.1  # of calls in a row


def chosen_alone(g, x, a):
    return lathe.nn.Mixture(g, "moe", d_model=a.width, d_hidden=a.hidden, experts=a.experts, chosen=a.chosen)(x)


def routed(g, x, a):
    """Shares, chosen experts, and what gives a weight of all experts, [experts, out, in]."""
    scores = lathe.nn.Linear(g, "moe.gate", a.width, a.experts, bias=False)(x)
    shares, chosen = lathe.top_k(lathe.nn.softmax(lathe.cast(scores, "f32")), a.chosen)
    shares = shares / lathe.reduce_sum(shares, [-1], keep_dims=True)

    def stacked(name, out, inner):
        return lathe.stack([g.weight(f"moe.experts.{i}.{name}.weight", a.dtype, [out, inner])
                            for i in range(a.experts)])

    return lathe.cast(shares, a.dtype), chosen, stacked


def all_of_them(g, x, a):
    """Shares of every expert on its hidden values, so that one product sums over experts and values."""
    shares, chosen, stacked = routed(g, x, a)
    hot = lathe.one_hot(chosen, a.experts, a.dtype) * lathe.unsqueeze(shares, -1)
    every = lathe.reduce_sum(hot, [-2])
    gate = lathe.einsum("bsd,ehd->bseh", [x, stacked("gate_proj", a.hidden, a.width)])
    up = lathe.einsum("bsd,ehd->bseh", [x, stacked("up_proj", a.hidden, a.width)])
    hidden = lathe.nn.silu(gate) * up * lathe.unsqueeze(every, -1)
    return lathe.einsum("bseh,edh->bsd", [hidden, stacked("down_proj", a.width, a.hidden)])


def copies(g, x, a):
    """Weights of a rank that the fusion does not take."""
    shares, chosen, stacked = routed(g, x, a)

    def products(weights, rows):
        chosen_ones = lathe.gather(lathe.unsqueeze(weights, 1), chosen, 0)
        return lathe.matmul(chosen_ones, rows[..., None, :, None])[..., 0, :, 0]

    rows = lathe.unsqueeze(x, -2)
    gate = products(stacked("gate_proj", a.hidden, a.width), rows)
    up = products(stacked("up_proj", a.hidden, a.width), rows)
    y = products(stacked("down_proj", a.width, a.hidden), lathe.nn.silu(gate) * up)
    return lathe.reduce_sum(y * lathe.unsqueeze(shares, -1), [-2])


def session(form, a, block):
    g = lathe.Graph()
    batch, seq = g.dim("batch", 1, 64), g.dim("seq", 1, 4096)
    for entry, length in (("prompt", seq), ("token", 1))[form == copies:]:
        g.entry(entry)
        g.output("y", form(g, g.input("x", a.dtype, [batch, length, a.width]), a))
    weights = {"moe.gate.weight": block.gate.weight}
    gate, up = block.experts.gate_up_proj.chunk(2, dim=1)
    for i in range(a.experts):
        for name, stack in (("gate_proj", gate), ("up_proj", up), ("down_proj", block.experts.down_proj)):
            weights[f"moe.experts.{i}.{name}.weight"] = stack[i].contiguous()
    run = lathe.Session(lathe.compile(g), weights, threads=a.threads)
    return lambda x: torch.from_dlpack(run.run("prompt" if x.shape[1] > 1 else "token", x=x)["y"])


def eager(block, implementation):
    def run(x):
        block.experts.config._experts_implementation = implementation
        y = block(x)
        return y[0] if isinstance(y, tuple) else y
    return run


def measured(functions, x, rounds):
    """Milliseconds of the rounds, by name."""
    counts, times = {}, {name: [] for name in functions}
    for name, f in functions.items():
        f(x)
        start = time.perf_counter()
        f(x)
        counts[name] = max(1, round(SECONDS / (time.perf_counter() - start)))
    for _ in range(rounds):
        for name, f in functions.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                f(x)
            times[name].append((time.perf_counter() - start) / counts[name] * 1e3)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dtype", choices=DTYPES, default="bf16")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("-p", "--prompt", type=int, default=512)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--hidden", type=int, default=512)
    parser.add_argument("--experts", type=int, default=32)
    parser.add_argument("--chosen", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=15)
    a = parser.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    config = tf.Qwen3MoeConfig(hidden_size=a.width, moe_intermediate_size=a.hidden, num_experts=a.experts,
                               num_experts_per_tok=a.chosen, norm_topk_prob=True)
    block = Qwen3MoeSparseMoeBlock(config)
    for weight in block.parameters():
        torch.nn.init.normal_(weight, std=weight.shape[-1] ** -0.5)
    with torch.no_grad():
        shapes = {f"prompt of {a.prompt}": (1, a.prompt), "token of 1": (1, 1), "tokens of 8": (8, 1)}
        inputs = {name: torch.randn(*shape, a.width, dtype=torch.float64) for name, shape in shapes.items()}
        inputs = {name: x.to(DTYPES[a.dtype]) for name, x in inputs.items()}
        block = block.to(DTYPES[a.dtype])
        exact = Qwen3MoeSparseMoeBlock(config).double()
        exact.load_state_dict({k: v.double() for k, v in block.state_dict().items()})
        functions = {"Lathe": session(chosen_alone, a, block), "all experts": session(all_of_them, a, block),
                     "copies": session(copies, a, block),
                     **{f"PyTorch {name}": eager(block, name) for name in ("eager", "batched_mm", "grouped_mm")}}
        print(f"| {a.dtype}, {a.threads} threads | " + " | ".join(f"{name} ms" for name in functions) +
              " | ratio to the better of both | to the fastest of PyTorch | error | PyTorch's |")
        print("|---" * (len(functions) + 5) + "|", flush=True)
        for name, x in inputs.items():
            truth = eager(exact, "eager")(x.double())
            # Of the middle token: where two experts nearly tie, another rounding chooses the other.
            errors = [((functions[f](x).double() - truth).abs().amax(-1) / truth.abs().amax(-1)).median().item()
                      for f in ("Lathe", "PyTorch eager")]
            # Of a prompt the copies would take gigabytes.
            some = {f: run for f, run in functions.items() if f != "copies" or x.shape[1] == 1}
            times = measured(some, x, a.rounds)

            def ratio(names):
                rounds = zip(times["Lathe"], *(times[name] for name in names if name in times))
                return statistics.median(min(others) / own for own, *others in rounds)

            print(f"| {name} | " +
                  " | ".join(f"{statistics.median(times[f]):.3f}" if f in times else "-" for f in functions) +
                  f" | {ratio(['all experts', 'copies']):.2f}"
                  f" | {ratio([f for f in functions if f.startswith('PyTorch')]):.2f}"
                  f" | {errors[0]:.1e} | {errors[1]:.1e} |", flush=True)


if __name__ == "__main__":
    main()
