#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps what a GPU window brought back: bench/results/DATE-DEVICE-CHECK.json, one for each stage.

    python3 bench/gpu/record.py OUT [OUT...] [--print-only]

Each file has the keys that docs/gpu-checks.md names. Prints the table of Lathe against PyTorch and
the roofs, which takes stages from all folders together.
"""

import argparse
import json
import re
import shutil
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent / "results"
CHECKS = ["build", "roofs", "golden", "conformance", "lathe-decode", "lathe-prefill", "choices"]
CHECKS += ["cudnn", "nccl", "torch-decode", "torch-prefill"]


def read(folder, name):
    path = folder / f"{name}.json"
    try:
        return json.loads(path.read_text()) if path.exists() else None
    except json.JSONDecodeError as error:  # cut off while it was written
        return {"check": name, "outcome": "failed", "error": f"not JSON: {error}"}


def roofs_of(stages):
    """Read roof in GB/s and matrix roof in TFLOP/s: the best that anything reached."""
    roofs = stages.get("roofs", {})
    reads = [v["gbps"] for k, v in roofs.items() if k.startswith(("read_parts", "read_strided"))]
    torch = stages.get("torch-prefill", {}).get("results", {})
    products = [v["tflops"] for k, v in torch.items() if k.startswith("product_")]
    products += [
        v["tflops"] for k, v in roofs.items() if k.startswith("mma_sync_bf16_b")
    ]
    return {"read_gbps": max(reads, default=None), "matrix_tflops": max(products, default=None)}


def device_name(facts):
    device = facts["device"]
    name = device["name"] if isinstance(device, dict) else "no-gpu"
    return re.sub(r"[^a-z0-9]+", "-", name.lower().replace("nvidia", "")).strip("-")


def result_of(check, stage, facts, roofs):
    kept = ("check", "outcome", "device")
    bundle = facts["bundle"]
    return {
        "check": check,
        "command": facts["command"],
        "commit": bundle.get("commit") or facts["commit_here"],  # of what ran
        "tree_changed": bundle.get("changed_since"),
        "device": facts["device"],
        "toolkit": facts["toolkit"],
        "cublaslt": facts.get("cublaslt"),
        "cudnn": facts.get("cudnn"),
        "nccl": facts.get("nccl"),
        "host": facts["host"],
        "outcome": stage.get("outcome", "failed"),
        "numbers": {key: value for key, value in stage.items() if key not in kept},
        "roofs": roofs,
    }


def best_torch(stages, what, name, size):
    results = stages.get(f"torch-{what}", {}).get("results", {})
    keys = [f"{what}_{name}_{how}_{size}" for how in ("eager", "compiled")]
    speeds = {key: results[key]["tokens_per_second"] for key in keys if key in results}
    return max(speeds.values(), default=None)


def print_table(stages, roofs):
    print("| test | Lathe tok/s | lowest to highest | PyTorch tok/s | ratio | of the roof |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for what, figure, roof in (
        ("decode", "gbps", "read_gbps"),
        ("prefill", "tflops", "matrix_tflops"),
    ):
        for key, ours in stages.get(f"lathe-{what}", {}).get("results", {}).items():
            _, name, size = key.split("_")
            torch = best_torch(stages, what, name, size)
            ratio = f"{ours['tokens_per_second'] / torch:.2f}" if torch else "-"
            share = f"{100 * ours[figure] / roofs[roof]:.1f} %" if roofs[roof] else "-"
            print(
                f"| {what} {name} {size} | {ours['tokens_per_second']:.1f} "
                f"| {ours['lowest']:.1f} to {ours['highest']:.1f} "
                f"| {f'{torch:.1f}' if torch else '-'} | {ratio} | {share} |"
            )
    print(f"\nroofs: {roofs['read_gbps']} GB/s read, {roofs['matrix_tflops']} TFLOP/s")


def print_products(stages):
    """Who computed Lathe's large products, as its device says."""
    for what in ("decode", "prefill"):
        for key, ours in stages.get(f"lathe-{what}", {}).get("results", {}).items():
            for line in ours.get("device", []):
                if line.startswith("large products"):
                    print(f"{key}: {line}")


def write_records(path, stage):
    """The lines of a choices stage, as backends/cuda/tuning and LATHE_TUNING take them."""
    records = [p["record"] for p in stage.get("problems", []) if "record" in p]
    if records:
        path.write_text("\n".join(records) + "\n")
        print(f"written: bench/results/{path.name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--print-only", action="store_true")
    arguments = parser.parse_args()
    stages, facts, folders = {}, {}, {}
    for folder in arguments.folders:
        for check in CHECKS:
            if stage := read(folder, check):
                stages[check], facts[check] = stage, read(folder, "facts")
                folders[check] = folder
    roofs = roofs_of(stages)
    print_table(stages, roofs)
    print_products(stages)
    for check, stage in stages.items():
        print(f"{check}: {stage.get('outcome', 'failed')}")
    if arguments.print_only:
        return
    RESULTS.mkdir(exist_ok=True)
    for check, stage in stages.items():
        start = f"{facts[check]['date']}-{device_name(facts[check])}-{check}"
        path = RESULTS / f"{start}.json"
        number = 1
        while path.exists():  # a result is never edited
            number += 1
            path = RESULTS / f"{start}-{number}.json"
        result = result_of(check, stage, facts[check], roofs)
        path.write_text(json.dumps(result, indent=1) + "\n")
        print(f"written: bench/results/{path.name}")
        write_records(path.with_suffix(".txt"), stage)
        dump = folders[check] / "golden.bin.xz"
        if check == "golden" and dump.exists():
            shutil.copy(dump, path.with_suffix(".bin.xz"))


if __name__ == "__main__":
    main()
