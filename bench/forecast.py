#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How long a step of a language model will take on an H100, from its launches and machine code.

    bench/forecast.py LATHE [MODEL] [--entry greedy|decode] [--batch N] [--cache N] [--read TB/S]
                      [--folder FOLDER] [--json]

Nothing is run and no GPU is needed; it is arithmetic whose terms are shown, so that a change of a
kernel can be weighed before there is a GPU to time it on. Four things cost time:

  stream   every byte that is read or written, at REACH of the rate of a kernel that only reads
  borders  between two kernels the memory idles while the last blocks end and the first requests of
           the next kernel are on their way. What a kernel that overlaps has requested before
           griddepcontrol.wait shortens this: it is under way meanwhile, so that neither the first
           request's latency nor the stream of these bytes is left
  waits    loads that depend on each other behind the wait, one latency each: the input, what lies
           behind a barrier, what the epilogue reads
  host     the round trip at the end of a step; where the device chooses the next token, of which
           the host hears after 16 steps, a sixteenth of a shorter one

Launches and sizes come from the compiler, bytes before the wait and dependent loads from the
machine code. The constants below are the model. Of the kernels that ran on an H200 in November 2026,
whose kernel that only reads reached 4.65 TB/s, `--read 4.65` said 0.72, 3.69 and 0.49 ms for 1B, 8B
and 0.5B at 128 tokens, and 0.716, 3.80 and 0.535 ms were measured (docs/gpu-checks.md).
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BENCH = Path(__file__).resolve().parent
sys.path.insert(0, str(BENCH / "gpu"))
import sass  # noqa: E402

READ = 3.2  # TB/s of a kernel that only reads (an H100 SXM)
REACH = 0.95  # of it, by products
BORDER = 2.2e-6  # of an overlapped launch that requests nothing early
LEAST_BORDER = 0.6e-6  # however much is requested: the last block's end
PLAIN_BORDER = 2.8e-6  # of a launch that waits for the end of the one before
STEP_BORDER = 5.0e-6  # of the first launch of a graph behind another graph
FROM_MEMORY, FROM_L2 = 0.65e-6, 0.27e-6  # latencies of a load
MULTIPROCESSORS, REGISTERS = 132, 65536
HOST = 0.115e-3  # two uploads, the start, 513 KB of logits, the status words, the largest logit
GREEDY_HOST, GREEDY_STEPS = 0.055e-3, 16  # the same with the tokens in place of the logits


def calls_of(text, entry):
    """(callee, bytes read, bytes written) of the calls of an entry point, in order."""
    begin = text.index(f"func.func @{entry}(")
    calls = []
    for line in text[begin:].splitlines()[1:]:
        if line.startswith("  }"):
            break
        found = re.search(r'lathe\.kernel "(\w+)" @(\w+)\(', line)
        cost = re.search(r'read = "([^"]*)", written = "([^"]*)"', line)
        if found and found[1] != "copy":
            calls.append((found[2], cost[1] if cost else "0", cost[2] if cost else "0"))
    return calls


def value(polynomial, sizes):
    """Of "4096*batch+2048" (a number, or a size expression of the kernel table)."""
    total = 0
    for sign, term in re.findall(r"([+-]?)([^+-]+)", str(polynomial)):
        product = -1 if sign == "-" else 1
        for factor in term.strip().split("*"):
            factor = factor.strip()
            product *= int(factor) if factor.isdigit() else sizes[factor]
        total += product
    return total


def launches_of(table, callee, sizes):
    for variant in table[callee]:
        if all(c["low"] <= value(c["value"], sizes) <= c.get("high", 1 << 62) for c in variant["when"]):
            return [l for l in variant["launches"] if l["unless_same"][0] < 0]
    raise SystemExit(f"no variant of {callee} fits {sizes}")


def blocks_of(launch, sizes):
    blocks = 1
    for axis in launch["grid"].values():
        count = -(-value(axis["count"], sizes) // axis.get("per", 1))
        most = axis.get("most", 0)
        blocks *= min(count, most) if most else count
    return blocks


# An attention kernel's code has paths for many keys, and for none, that few keys never take. What
# these do wait for: the position, then keys, values and queries; and products, exponentials and sums
# over warps that last as long as five more latencies.
ATTENTION_ROUNDS, EARLY_ROUNDS = 7, 2
# Where the blocks of a cluster compute the heads that a product takes: the barrier of the cluster, and
# the reads of the others' shared memory.
EXCHANGE_ROUNDS = 2
# A flat region's code has a loop for the elements behind the last whole vector, several times over,
# of which a step with few elements takes the first ones: a load, or an index and what lies there.
FLAT_ROUNDS = 2


def dependent_loads(code, text):
    """Seconds of latencies behind the wait, and how many: of loads that others wait for. What the text
    asks L2 for beforehand, or a kernel before has written, lies there."""
    if "attentionDecode(" in text or "AttendedHooks<" in text:
        rounds = ATTENTION_ROUNDS - (EARLY_ROUNDS if "kOldKeys = true" in text else 0)
        rounds += EXCHANGE_ROUNDS if "AttendedHooks<" in text else 0
    else:
        rounds = code.rounds_behind_wait()
        if ": flat," in text.partition("\n")[0]:
            rounds = min(rounds, FLAT_ROUNDS)
    early = code.before_wait()
    cold = "norm_gain" in text and not any(x.is_a("UBLKPF", "CCTL") for x in early or [])
    return rounds * FROM_L2 + (FROM_MEMORY - FROM_L2 if cold else 0), rounds


def forecast(folder, calls, table, sizes, entry, rate):
    steps = []
    cubins = sorted(folder.glob("*.cubin"))
    machine = dict(zip((cubin.stem for cubin in cubins), sass.read_all(cubins)))
    for callee, read, written in calls:
        launches = launches_of(table, callee, sizes)
        for launch in launches:
            name = launch["kernel"]
            code, text = machine[name], (folder / f"{name}.cu").read_text()
            bytes_ = (value(read, sizes) + value(written, sizes)) / len(launches)
            early = sum(x.bytes for x in code.before_wait() or [] if x.is_load) * launch["threads"]
            per = max(1, min(REGISTERS // (-(-code.registers // 8) * 8 * launch["threads"]),
                             2048 // launch["threads"]))
            ahead = min(early * min(blocks_of(launch, sizes), per * MULTIPROCESSORS), bytes_)
            # What has been requested arrives in the gap; of the stream the rest is left.
            if launch["waits"] and steps:
                border = max(LEAST_BORDER, BORDER - (FROM_MEMORY if ahead else 0) - ahead / rate)
            else:
                border = PLAIN_BORDER if steps or entry != "greedy" else STEP_BORDER
            waits, groups = dependent_loads(code, text)
            steps.append({"kernel": name, "bytes": bytes_, "early": early, "groups": groups,
                          "stream": bytes_ / rate, "border": border, "waits": waits})
    return steps, GREEDY_HOST / GREEDY_STEPS if entry == "greedy" else HOST


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lathe")
    parser.add_argument("model", nargs="?", default=BENCH / "configs/llama-1b.json", type=Path)
    parser.add_argument("--entry", default="greedy")
    parser.add_argument("--batch", default=1, type=int)
    parser.add_argument("--cache", default=128, type=int)
    parser.add_argument("--read", default=READ, type=float, help="TB/s of a kernel that only reads")
    parser.add_argument("--folder", type=Path, help="kernels that `lathe inspect --kernels` wrote there")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if not sass.nvdisasm():
        sys.exit("forecast: no nvdisasm; scripts/setup fetches it, LATHE_NVDISASM names another one")
    with tempfile.TemporaryDirectory() as made:
        folder = args.folder or Path(made)
        base = [args.lathe, "inspect", args.model, "--dtype", "bf16", "--backend", "cuda", "--greedy"]
        if not (folder / "kernels.json").exists():
            subprocess.run(base + ["--target", "sm_90a", "--kernels", folder], check=True)
        text = subprocess.run(base + ["--stop-after=program"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        table = json.loads((folder / "kernels.json").read_text())
        sizes = {"batch": args.batch, "seq": 1, "cache": args.cache}
        rate = REACH * args.read * 1e12
        steps, host = forecast(folder, calls_of(text, args.entry), table, sizes, args.entry, rate)
    sums = {part: sum(s[part] for s in steps) for part in ("stream", "border", "waits")}
    total = sum(sums.values()) + host
    if args.json:
        print(json.dumps({"seconds": total, "host": host, **sums, "launches": steps}))
        return
    rows = {}
    for s in steps:
        row = rows.setdefault(s["kernel"], [0, s])
        row[0] += 1
    print(f"{'kernel':<26}{'launches':>9}{'MB':>9}{'early KB':>10}{'stream':>9}{'border':>8}{'waits':>8}  us")
    for name, (count, s) in rows.items():
        print(f"{name:<26}{count:>9}{s['bytes'] / 1e6:>9.2f}{s['early'] / 1024:>10.0f}"
              f"{s['stream'] * 1e6:>9.2f}{s['border'] * 1e6:>8.2f}{s['waits'] * 1e6:>8.2f}")
    print(f"{len(steps)} launches: stream {sums['stream'] * 1e3:.3f} ms, borders {sums['border'] * 1e3:.3f}, "
          f"waits {sums['waits'] * 1e3:.3f}, host {host * 1e3:.3f}: {total * 1e3:.3f} ms")


if __name__ == "__main__":
    main()
