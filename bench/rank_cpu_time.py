# SPDX-License-Identifier: Apache-2.0
"""Processor time of a rank for a prompt and for a token, on 1, 2, ... ranks that are threads: what a busy
machine stretches least. All take turns on one processor, so that no rank waits for memory that another
one reads, as none does that has a machine of its own. `lathe bench` measures it, in turn for every number
of ranks; the table has the medians over the rounds.

Beside them stands what `lathe explain --mesh tp=N` predicts: one rank's measured time, which its roofs do
not know, times the share of the work that they leave to one of N, and the collectives over the link:
by default what a sum takes of ranks that are threads.

    python3 rank_cpu_time.py PATH/lathe MODEL [--ranks 1,2,4] [-p 512] [-n 16] [--dtype bf16]
        [--link 3us,2.5GB/s] [FLAGS of lathe bench]
"""
import argparse
import json
import os
import statistics
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("lathe")
parser.add_argument("model")
parser.add_argument("--ranks", default="1,2,4")
parser.add_argument("-p", "--prompt", type=int, default=512)
parser.add_argument("-n", "--tokens", type=int, default=16)
parser.add_argument("--dtype", default="bf16")
parser.add_argument("--link", default="2us,16GB/s")
parser.add_argument("--rounds", type=int, default=3)
options, flags = parser.parse_known_args()
counts = [int(n) for n in options.ranks.split(",")]
assert counts[0] == 1, "the first of --ranks is 1: all are compared with it"
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def json_of(*words):
    done = subprocess.run([options.lathe, *words, "--dtype", options.dtype, "--json"], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def measured(ranks):
    """Milliseconds of a rank for the prompt and for one token."""
    words = ["bench", options.model, "-q", "-t", "1", "-p", str(options.prompt), "-n", str(options.tokens)]
    if ranks > 1:
        words += ["--ranks", str(ranks), "--rank-threads"]
    return {test["name"]: test["cpu_s"] / (test["tokens"] if test["name"] == "decode" else 1) * 1e3
            for test in json_of(*words, *flags)["tests"]}


def predicted(ranks):
    """Milliseconds by the roofs for the work of a rank and for its collectives, by entry point."""
    words = ["explain", options.model, "--set", f"batch=1,seq={options.prompt},cache={options.prompt}"]
    if ranks > 1:
        words += ["--ranks", str(ranks), "--link", options.link]
    totals = {e["name"]: e["total"] for e in json_of(*words)["entries"]}
    return {name: ((totals[name]["time_s"] - totals[name].get("link_s", 0)) * 1e3,
                   totals[name].get("link_s", 0) * 1e3) for name in ("prefill", "decode")}


rounds = [{ranks: measured(ranks) for ranks in counts} for _ in range(options.rounds)]
roofs = {ranks: predicted(ranks) for ranks in counts}
print("| what | ranks | CPU ms of a rank | of one's | predicted ms | off by |")
print("|---|--:|--:|--:|--:|--:|")
for test, what in (("prefill", f"{options.prompt} tokens"), ("decode", "a token")):
    medians = {n: statistics.median(r[n][test] for r in rounds) for n in counts}
    for ranks in counts:
        work, link = roofs[ranks][test]
        forecast = medians[1] * work / roofs[1][test][0] + link
        print(f"| {what} | {ranks} | {medians[ranks]:.1f} | {medians[ranks] / medians[1]:.2f} | "
              f"{forecast:.1f} | {100 * (forecast / medians[ranks] - 1):+.0f} % |")
