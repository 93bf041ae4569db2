#!/usr/bin/env python3
"""torch.compile(backend="lathe") beside eager PyTorch and Inductor, in one run.

    PYTHONPATH=build/release/python python bench/torch_compile.py [--models llama,bert] [--dtype f32] [-t 2] [-o NAME]

The models of python/tests/torch_models.py with random weights, 512 wide, 4 layers, one row of 128 tokens (pictures
of 64 patches and the like). Calls take turns in rounds; times are medians over the rounds, ratios medians of the
rounds' own. Needs a build of the Python package, torch, transformers, and a C++ compiler for Inductor. `-o NAME`
writes bench/results/NAME.json.
"""
import argparse
import json
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "python/tests"))

import torch  # noqa: E402
import torch_models as models  # noqa: E402
import transformers  # noqa: E402

import lathe.torch as lt  # noqa: E402

SIZE = models.Size(width=512, inner=1536, layers=4, heads=8, groups=4, head=64, rotary=32, vocab=4000, positions=256,
                   window=64, batch=1, seq=128, image=32, mels=80, frames=300)
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}
SECONDS = 0.15  # of calls in a row


def row_of(functions, rounds):
    """Seconds per call by name, and the ratio of the fastest other one to Lathe, from calls in turn."""
    times, counts = {name: [] for name in functions}, {}
    for name, f in functions.items():
        f()
        start = time.perf_counter()
        f()
        counts[name] = max(1, round(SECONDS / (time.perf_counter() - start)))
    for _ in range(rounds):
        for name, f in functions.items():
            start = time.perf_counter()
            for _ in range(counts[name]):
                f()
            times[name].append((time.perf_counter() - start) / counts[name])
    ratios = [min(others) / own for *others, own in zip(*times.values())]
    return times, statistics.median(ratios)


def measure_model(name, arguments):
    torch._dynamo.reset()
    lt.reset()
    model, args, _ = models.made(name, size=models.TINY if arguments.tiny else SIZE)

    def args_as(dtype):
        return [a.to(dtype) if a.is_floating_point() else a for a in args]

    dtype = DTYPES[arguments.dtype]
    exact = model.to(dtype).double()(*args_as(torch.float64))
    model, args = model.to(dtype), args_as(dtype)
    functions = {"eager": model, "inductor": torch.compile(model, backend="inductor"),
                 "lathe": torch.compile(model, backend="lathe")}
    results = {k: f(*args).double() for k, f in functions.items()}
    errors = {k: ((r - exact).abs().max() / exact.abs().max()).item() for k, r in results.items()}
    times, ratio = row_of({k: (lambda f=f: f(*args)) for k, f in functions.items()}, arguments.rounds)
    return {"model": name, **{f"{k} ms": statistics.median(t) * 1e3 for k, t in times.items()}, "ratio": ratio,
            "graphs": len(lt.compiled), "fallbacks": sum(lt.fallbacks.values()),
            "error": errors["lathe"], "eager error": errors["eager"]}


def measure_call(rounds):
    """Microseconds of a call of one op on 32 elements, the best of the rounds."""
    torch._dynamo.reset()
    x = torch.randn(4, 8)
    functions = {"eager": lambda x: x * 2, "inductor": torch.compile(lambda x: x * 2, backend="inductor"),
                 "lathe": torch.compile(lambda x: x * 2, backend="lathe", options={"threads": 1})}
    times, _ = row_of({k: (lambda f=f: f(x)) for k, f in functions.items()}, rounds)
    return {k: min(t) * 1e6 for k, t in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", default=",".join(models.MODELS), help="names, separated by commas")
    parser.add_argument("--tiny", action="store_true", help="the tests' sizes, where calls and not products take the time")
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("-o", "--output", help="a name below bench/results")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.logging.set_verbosity_error()
    with torch.no_grad():
        call = measure_call(3 * arguments.rounds)
        print("a call of one op: " + ", ".join(f"{k} {t:.1f} us" for k, t in call.items()), flush=True)
        print(f"| {arguments.dtype} | eager ms | inductor ms | Lathe ms | ratio | graphs | fallbacks | error | eager's |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        rows = []
        for name in arguments.models.split(","):
            row = measure_model(name, arguments)
            rows.append(row)
            print(f"| {name} | {row['eager ms']:.2f} | {row['inductor ms']:.2f} | {row['lathe ms']:.2f} | {row['ratio']:.2f} | "
                  f"{row['graphs']} | {row['fallbacks']} | {row['error']:.1e} | {row['eager error']:.1e} |", flush=True)
    if arguments.output:
        facts = {"torch": torch.__version__, "transformers": transformers.__version__, "threads": arguments.threads,
                 "dtype": arguments.dtype, "rounds": arguments.rounds, "call us": call, "models": rows}
        (ROOT / f"bench/results/{arguments.output}.json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
