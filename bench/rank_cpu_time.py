# SPDX-License-Identifier: Apache-2.0
"""CPU time of a rank for a prompt and for a token, on 1, 2, ... ranks that are threads: what a busy machine
stretches least. Every figure is the difference of two runs of `lathe bench` that differ in their
repetitions alone, so that compiling and loading are not in it.

    python3 rank_cpu_time.py PATH/lathe MODEL [--ranks 1,2] [--prompt 128] [FLAGS of lathe bench]
"""
import argparse
import resource
import statistics
import subprocess

parser = argparse.ArgumentParser()
parser.add_argument("lathe")
parser.add_argument("model")
parser.add_argument("--ranks", default="1,2")
parser.add_argument("--prompt", type=int, default=128)
parser.add_argument("--rounds", type=int, default=3)
options, flags = parser.parse_known_args()


def cpu_seconds(ranks, prompt, tokens, repetitions):
    words = [options.lathe, "bench", options.model, "-q", "-t", "1", "-p", str(prompt), "-n", str(tokens),
             "-r", str(repetitions), *flags]
    if ranks > 1:
        words += ["--ranks", str(ranks), "--rank-threads"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


few, many = 1, 31  # bench measures the machine, too: what it takes for that differs a little
one = {}
print("| ranks | CPU ms of a rank, prompt | of one rank's | CPU ms of a rank, token | of one rank's |")
print("|--:|--:|--:|--:|--:|")
for ranks in map(int, options.ranks.split(",")):
    own = {}
    for what, prompt, tokens, runs in (("prompt", options.prompt, 0, 1), ("token", 0, 8, 8)):
        own[what] = statistics.median(
            (cpu_seconds(ranks, prompt, tokens, many) - cpu_seconds(ranks, prompt, tokens, few))
            / (many - few) / runs / ranks * 1e3 for _ in range(options.rounds))
    one = one or own
    print(f"| {ranks} | {own['prompt']:.1f} | {own['prompt'] / one['prompt']:.2f} | {own['token']:.1f} "
          f"| {own['token'] / one['token']:.2f} |", flush=True)
