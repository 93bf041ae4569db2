# SPDX-License-Identifier: Apache-2.0
"""Processor time of a rank for a prompt and for a token, on 1, 2, ... ranks that are threads: what a busy
machine stretches least. All take turns on one processor, so that no rank waits for memory that another
one reads, as none does that has a machine of its own. `lathe bench` measures it, in turn for every number
of ranks; the table has the medians over the rounds.

    python3 rank_cpu_time.py PATH/lathe MODEL [--ranks 1,2] [-p 128] [-n 16] [FLAGS of lathe bench]
"""
import argparse
import json
import os
import statistics
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("lathe")
parser.add_argument("model")
parser.add_argument("--ranks", default="1,2")
parser.add_argument("-p", "--prompt", type=int, default=128)
parser.add_argument("-n", "--tokens", type=int, default=16)
parser.add_argument("--rounds", type=int, default=3)
options, flags = parser.parse_known_args()
counts = [int(n) for n in options.ranks.split(",")]
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measured(ranks):
    """Milliseconds of a rank for the prompt and for one token."""
    words = [options.lathe, "bench", options.model, "-q", "-t", "1", "-p", str(options.prompt),
             "-n", str(options.tokens), "--json", *flags]
    if ranks > 1:
        words += ["--ranks", str(ranks), "--rank-threads"]
    document = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
    return {test["name"]: test["cpu_s"] / (test["tokens"] if test["name"] == "decode" else 1) * 1e3
            for test in document["tests"]}


rounds = [{ranks: measured(ranks) for ranks in counts} for _ in range(options.rounds)]
medians = {ranks: {test: statistics.median(r[ranks][test] for r in rounds)
                   for test in ("prefill", "decode")} for ranks in counts}
print(f"| ranks | CPU ms of a rank, {options.prompt} tokens | of {counts[0]}'s | a token | of {counts[0]}'s |")
print("|--:|--:|--:|--:|--:|")
for ranks in counts:
    cells = [f"{medians[ranks][test]:.1f} | {medians[ranks][test] / medians[counts[0]][test]:.2f}"
             for test in ("prefill", "decode")]
    print(f"| {ranks} | {' | '.join(cells)} |")
