#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lathe beside its peers on one model, in every format of weights, interleaved in one run.

    python bench/peers/run.py [-o NAME] [--formats bf16 int8] [--engines openvino torch] ...

A round measures Lathe and then every engine, format by format. Printed are the medians over the
rounds; see bench/README.md for the columns and for what to install.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

PEERS = Path(__file__).resolve().parent
BENCH = PEERS.parent
sys.path.insert(0, str(BENCH))
from compare import cpu_model, json_of, number_of_at_least  # noqa: E402

# The engines beside Lathe, and the formats that each has.
ENGINES = {
    "openvino": ["bf16", "f32", "int8", "int4"],
    "onnxruntime": ["f32", "int8", "int4"],
    "llama_cpp": ["bf16", "f32", "int8", "int4"],
    "torch": ["bf16", "f32"],
    "torch-compile": ["bf16", "f32"],
}
FORMATS = ["bf16", "f32", "int8", "int4"]
TESTS = ["prefill", "decode"]


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lathe", default=BENCH.parent / "build/release/bin/lathe")
    parser.add_argument("--python", default=sys.executable, help="a Python with the engines")
    parser.add_argument("--torch-python", help="another Python for PyTorch, if it needs one")
    parser.add_argument("--config", default=BENCH / "configs/llama-0.5b.json", type=Path)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=FORMATS)
    parser.add_argument("-p", "--prompt", type=number_of_at_least(1), default=512)
    parser.add_argument("-n", "--new", type=number_of_at_least(1), default=64)
    parser.add_argument("-t", "--threads", type=number_of_at_least(1), default=2)
    parser.add_argument("--rounds", type=number_of_at_least(1), default=3)
    parser.add_argument("-r", "--repetitions", type=number_of_at_least(1), default=3)
    parser.add_argument("--activations", choices=["stored", "int8"], default="stored",
                        help="what Lathe multiplies with weights in few bits; its peers round to 8 bits")  # fmt: skip
    parser.add_argument("--prefix", default="", help="put before each measured command")
    parser.add_argument("-o", "--output", help="NAME of NAME.json and NAME.md below bench/results")
    return parser.parse_args()


def counts(arguments):
    return ["-p", str(arguments.prompt), "-n", str(arguments.new)] + [
        *["-t", str(arguments.threads), "-r", str(arguments.repetitions)]
    ]


def run_lathe(arguments, form):
    quantized = form.startswith("int")
    command = [str(arguments.lathe), "bench", str(arguments.config), "--random-weights", "--json"]
    command += ["--dtype", "bf16" if quantized else form]
    activations = f",activations={arguments.activations}" if quantized else ""
    command += ["--weight-format", (form if quantized else "stored") + activations]
    command += counts(arguments)
    report = json_of(arguments.prefix.split() + command)
    tests = {test["name"]: test for test in report["tests"]}
    shares = [tests["prefill"]["peak_share"], tests["decode"]["bandwidth_share"]]
    if any(share and share > 1 for share in shares):
        sys.exit(f"a share of the machine above 1: {shares}; it was busy, measure again")
    return {
        **{f"{name}_tokens_per_second": tests[name]["tokens_per_second"] for name in TESTS},
        "prefill_share": shares[0],
        "decode_share": shares[1],
        "peak_flops_per_second": report["peak_flops_per_second"],
        "read_bytes_per_second": report["read_bytes_per_second"],
        "version": json_of([str(arguments.lathe), "env", "--json"])["version"],
    }


def run_engine(arguments, engine, form):
    python = str(arguments.python)
    if engine.startswith("torch"):
        python = str(arguments.torch_python or python)
        command = [python, str(BENCH / "torch_eager.py"), "--json", "--dtype", form]
        command += ["--compile"] if engine == "torch-compile" else []
    else:
        command = [python, str(PEERS / f"{engine}_peer.py"), "--format", form]
    command += ["--config", str(arguments.config)] + counts(arguments)
    report = json_of(arguments.prefix.split() + command)
    kept = [f"{name}_tokens_per_second" for name in TESTS]
    version = report.get("version") or report["torch"]
    return {**{name: report[name] for name in kept}, "version": version}


def summary_of(rounds, engine, form):
    samples = [measured[form][engine] for measured in rounds]
    row = {key: statistics.median(sample[key] for sample in samples)
           for key, value in samples[0].items() if isinstance(value, float)}  # fmt: skip
    return {"engine": engine, "version": samples[0]["version"], "format": form, **row}


def table_of(arguments, rows, rounds):
    lathe = {row["format"]: row for row in rows if row["engine"] == "lathe"}
    peak = statistics.median(row["peak_flops_per_second"] for row in lathe.values())
    read = statistics.median(row["read_bytes_per_second"] for row in lathe.values())
    lines = [
        f"{cpu_model()}, {arguments.config.stem}, {arguments.threads} threads, "
        f"{rounds} rounds of {arguments.repetitions}; peak {peak * 1e-12:.2f} TFLOP/s, "
        f"read {read * 1e-9:.1f} GB/s"
        + ("; Lathe's activations in 8 bits" if arguments.activations == "int8" else ""),
        "",
        f"| weights | engine | prefill {arguments.prompt} | Lathe / it | decode {arguments.new} "
        "| Lathe / it | of peak | of read |",
        "| --- | --- | --: | --: | --: | --: | --: | --: |",
    ]
    for row in rows:
        ours, cells = lathe[row["format"]], []
        for name in TESTS:
            key = f"{name}_tokens_per_second"
            ratio = "" if row is ours else f"{ours[key] / row[key]:.2f}"
            cells += [f"{row[key]:.1f}", ratio]
        for name in TESTS:
            share = row.get(name + "_share")
            cells.append("" if share is None else f"{share * 100:.0f} %")
        name = f"{row['engine']} {row['version']}"
        lines.append(f"| {row['format']} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def write(arguments, rounds):
    """Writes what has been measured so far, and returns the table."""
    rows = [
        summary_of(rounds, engine, form)
        for form in arguments.formats
        for engine in rounds[0][form]
    ]
    table = table_of(arguments, rows, len(rounds))
    if not arguments.output:
        return table
    report = {
        "cpu": cpu_model(),
        "config": arguments.config.name,
        "threads": arguments.threads,
        "prompt_tokens": arguments.prompt,
        "new_tokens": arguments.new,
        "repetitions": arguments.repetitions,
        "activations": arguments.activations,
        "summary": rows,
        "rounds": rounds,
    }
    base = BENCH / "results" / arguments.output
    base.with_suffix(".json").write_text(json.dumps(report, indent=2) + "\n")
    base.with_suffix(".md").write_text(table)
    return table


def main():
    arguments = parse_arguments()
    rounds = []
    for number in range(arguments.rounds):
        measured = {}
        for form in arguments.formats:
            measured[form] = {"lathe": run_lathe(arguments, form)}
            for engine in arguments.engines:
                if form in ENGINES[engine]:
                    measured[form][engine] = run_engine(arguments, engine, form)
            print(f"round {number + 1} of {arguments.rounds}: {form}", file=sys.stderr)
        rounds.append(measured)
        table = write(arguments, rounds)
    print(table, end="")


if __name__ == "__main__":
    main()
