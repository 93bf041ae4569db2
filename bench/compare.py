#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lathe against PyTorch eager on one model: prefill and decode, interleaved in one run.

    python bench/compare.py [-o NAME.json] [--rounds 3] [--python PATH] [--prefix "nice -n -20"]

A round is one `lathe bench` and one `bench/torch_eager.py` on the same configuration with random
weights. Rounds alternate the two, so that a machine whose clock or neighbours change does so for
both. Printed are the medians over the rounds; see bench/README.md for the columns.
"""

import argparse
import json
import platform
import shlex
import statistics
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
ROOT = BENCH.parent
TESTS = ["prefill", "decode"]
# Of which limit of the machine a test's share is: arithmetic or reading from memory.
SHARES = {"prefill": "peak_share", "decode": "bandwidth_share"}


def number_of_at_least(lowest):
    def parse(text):
        value = int(text)
        if value < lowest:
            raise argparse.ArgumentTypeError(f"expected a number of at least {lowest}, got {text}")
        return value

    return parse


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lathe", default=ROOT / "build/release/bin/lathe", help="the command")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--config", default=BENCH / "configs/llama-0.5b.json", type=Path)
    parser.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("-p", "--prompt", type=number_of_at_least(1), default=512)
    parser.add_argument("-n", "--new", type=number_of_at_least(1), default=128)
    parser.add_argument("-t", "--threads", type=number_of_at_least(1), default=2)
    parser.add_argument("--rounds", type=number_of_at_least(3), default=3)
    parser.add_argument(
        "-r", "--repetitions", type=number_of_at_least(1), default=3, help="runs within a round"
    )
    parser.add_argument(
        "--prefix", default="", help='put before each measured command, e.g. "nice -n -20"'
    )
    parser.add_argument("-o", "--output", help="file name below bench/results")
    return parser.parse_args()


def json_of(command):
    """What a command prints as JSON; a failure ends this program with the command's own words."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        sys.exit(f"cannot run {command[0]}: {error.strerror}")
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit status {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def run_lathe(arguments):
    return json_of(
        shlex.split(arguments.prefix)
        + [str(arguments.lathe), "bench", str(arguments.config), "--random-weights", "--json"]
        + ["--dtype", arguments.dtype, "-t", str(arguments.threads)]
        + ["-p", str(arguments.prompt), "-n", str(arguments.new)]
        + ["-r", str(arguments.repetitions)]
    )


def run_torch(arguments):
    return json_of(
        shlex.split(arguments.prefix)
        + [str(arguments.python), str(BENCH / "torch_eager.py"), "--json"]
        + ["--config", str(arguments.config), "--dtype", arguments.dtype]
        + ["-t", str(arguments.threads), "-p", str(arguments.prompt), "-n", str(arguments.new)]
        + ["-r", str(arguments.repetitions)]
    )


def one_round(arguments):
    lathe, torch = run_lathe(arguments), run_torch(arguments)
    if lathe["parameters"] != torch["parameters"]:
        sys.exit(f"not one model: {lathe['parameters']} and {torch['parameters']} parameters")
    tests = {test["name"]: test for test in lathe["tests"]}
    speeds = {}
    for name in TESTS:
        ours, theirs = tests[name]["tokens_per_second"], torch[f"{name}_tokens_per_second"]
        speeds[name] = {
            "lathe": ours,
            "pytorch": theirs,
            "ratio": ours / theirs,
            "share": tests[name][SHARES[name]],
        }
    return {"speeds": speeds, "lathe": lathe, "pytorch": torch}


def summary_of(rounds):
    summary = {}
    for name in TESTS:
        speeds = [measured["speeds"][name] for measured in rounds]
        medians = {key: statistics.median(s[key] for s in speeds) for key in ["lathe", "pytorch"]}
        shares = [s["share"] for s in speeds if s["share"] is not None]
        summary[name] = {
            "lathe_tokens_per_second": medians["lathe"],
            "pytorch_tokens_per_second": medians["pytorch"],
            "ratio": medians["lathe"] / medians["pytorch"],
            "ratio_min": min(s["ratio"] for s in speeds),
            "ratio_max": max(s["ratio"] for s in speeds),
            "lathe_" + SHARES[name]: statistics.median(shares) if shares else None,
        }
    return summary


def cpu_model():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def machine_of(arguments, first):
    facts = json_of([str(arguments.lathe), "env", "--json"])
    names = ["system", "cpu_isa", "cpu_features", "memory_bytes"]
    return {
        "cpu": cpu_model(),
        **{name: facts[name] for name in names},
        "versions": {
            "lathe": facts["version"],
            "compiler": facts["compiler"],
            "onednn": facts["onednn"],
            "python": platform.python_version(),
            "torch": first["pytorch"]["torch"],
            "transformers": first["pytorch"]["transformers"],
        },
    }


def print_table(arguments, rounds, summary):
    lathe = rounds[0]["lathe"]
    peak = statistics.median(r["lathe"]["peak_flops_per_second"] for r in rounds)
    read = statistics.median(r["lathe"]["read_bytes_per_second"] for r in rounds)
    print(
        f"{arguments.config.stem}, {lathe['parameters'] / 1e6:.1f} M parameters, "
        f"{arguments.dtype}, {arguments.threads} threads, {lathe['cpu_isa']}, "
        f"{len(rounds)} rounds of {arguments.repetitions}; "
        f"peak {peak * 1e-12:.2f} TFLOP/s, read {read * 1e-9:.1f} GB/s\n"
    )
    print("| test | Lathe tok/s | PyTorch tok/s | ratio | ratios of the rounds | Lathe's share |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    tokens = {"prefill": arguments.prompt, "decode": arguments.new}
    for name in TESTS:
        row = summary[name]
        share = row["lathe_" + SHARES[name]]
        limit = "of the matrix peak" if name == "prefill" else "of the read bandwidth"
        print(
            f"| {name} {tokens[name]} | {row['lathe_tokens_per_second']:.1f} "
            f"| {row['pytorch_tokens_per_second']:.1f} | {row['ratio']:.2f} "
            f"| {row['ratio_min']:.2f} to {row['ratio_max']:.2f} "
            f"| {'none' if share is None else f'{share * 100:.1f} % {limit}'} |"
        )


def main():
    arguments = parse_arguments()
    rounds = []
    for number in range(arguments.rounds):
        print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
        rounds.append(one_round(arguments))
    summary = summary_of(rounds)
    print_table(arguments, rounds, summary)
    if not arguments.output:
        return
    path = BENCH / "results" / arguments.output
    path.parent.mkdir(parents=True, exist_ok=True)
    for measured in rounds:
        measured["lathe"]["model"] = arguments.config.name  # not where it lies on this machine
    report = {
        "config": arguments.config.name,
        "dtype": arguments.dtype,
        "threads": arguments.threads,
        "prompt_tokens": arguments.prompt,
        "new_tokens": arguments.new,
        "repetitions": arguments.repetitions,
        "prefix": arguments.prefix,
        "machine": machine_of(arguments, rounds[0]),
        "summary": summary,
        "rounds": rounds,
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
    print(f"\nwritten to bench/results/{arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
