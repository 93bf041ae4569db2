# SPDX-License-Identifier: Apache-2.0
"""Decode or prefill of Lathe's compiled models with random weights.

    lathe_speed.py decode|prefill LATHE ARTIFACTS OUT.json [--device gpu] [--models 1B,8B,0.5B]

Each figure is the median of repetitions of one `lathe bench`, which warms up first; artifacts with
the entry point `greedy` choose their tokens on the device. Every measurement is saved at once; one that fails is listed under
`errors` and does not stop the others.
"""

import argparse
import json
import subprocess
import time
from pathlib import Path

from models import MODELS, config_of, decode_bytes, prefill_flops

CONTEXTS, DECODED = (128, 4096), 64
PROMPTS = (512, 2048, 8192)
SMALL = {"contexts": (16,), "decoded": 16, "prompts": (48,)}  # for host execution


def bench(arguments, name, prompt, new):
    command = [arguments.lathe, "bench", str(arguments.artifacts / f"{MODELS[name]}.lathe")]
    command += ["--random-weights", "--json", "--device", arguments.device]
    command += ["-p", str(prompt), "-n", str(new), "-r", "5"]
    seconds = 180 if arguments.device == "host" else 75  # one that hangs must not cost the others
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    if done.returncode:
        raise RuntimeError(f"status {done.returncode}: {done.stderr.strip()[-400:]}")
    return json.loads(done.stdout)


def decode(arguments, name, context, new):
    report = bench(arguments, name, context, new)
    test = next(t for t in report["tests"] if t["name"] == "decode")
    read = decode_bytes(config_of(name), context + new / 2)
    speed = test["tokens_per_second"]
    return {
        "ms_per_token": 1e3 / speed,
        "tokens_per_second": speed,
        "lowest": test["tokens_per_second_min"],
        "highest": test["tokens_per_second_max"],
        "streamed_bytes": read,
        "gbps": read * speed / 1e9,
        "memory": report["memory"],
        "device": report["device"],
    }


def prefill(arguments, name, prompt):
    report = bench(arguments, name, prompt, 0)
    test = report["tests"][0]
    speed = test["tokens_per_second"]
    return {
        "ms": 1e3 * prompt / speed,
        "tokens_per_second": speed,
        "lowest": test["tokens_per_second_min"],
        "highest": test["tokens_per_second_max"],
        "tflops": prefill_flops(config_of(name), prompt) * speed / prompt / 1e12,
        "device": report["device"],
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["decode", "prefill"])
    parser.add_argument("lathe")
    parser.add_argument("artifacts", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--models", help="default: 1B,8B,0.5B; by host execution: toy")
    arguments = parser.parse_args()
    small = arguments.device == "host"
    models = arguments.models or ("toy" if small else "1B,8B,0.5B")
    contexts, decoded = (SMALL["contexts"], SMALL["decoded"]) if small else (CONTEXTS, DECODED)
    report = {"check": f"lathe-{arguments.what}", "outcome": "failed", "results": {}, "errors": {}}
    begin = time.time()
    for name in models.split(","):
        if arguments.what == "decode":
            items = [(f"decode_{name}_ctx{c}", decode, (c, decoded)) for c in contexts]
        else:
            prompts = SMALL["prompts"] if small else PROMPTS
            items = [(f"prefill_{name}_{p}", prefill, (p,)) for p in prompts]
        for key, measure, sizes in items:
            try:
                report["results"][key] = measure(arguments, name, *sizes)
                print(f"  {key}: {report['results'][key]}", flush=True)
            except Exception as error:  # one that fails must not cost the others
                report["errors"][key] = str(error)
                print(f"  {key} FAILED: {error}", flush=True)
            report["seconds"] = round(time.time() - begin, 1)
            if report["results"] and not report["errors"]:
                report["outcome"] = "measured"
            else:
                report["outcome"] = "failed"
            arguments.output.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if report["outcome"] == "measured" else 1


if __name__ == "__main__":
    raise SystemExit(main())
