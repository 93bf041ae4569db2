# SPDX-License-Identifier: Apache-2.0
"""Timing and the report of the PyTorch baselines."""

import json
import os
import statistics
import time
import traceback

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def run_ms(work):
    """Milliseconds of one run: by events on a GPU."""
    if DEVICE == "cpu":
        begin = time.perf_counter()
        work()
        return (time.perf_counter() - begin) * 1e3
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    work()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def timed(work, repetitions=11, warm_up=3):
    """The median and the ends of several runs."""
    for _ in range(warm_up):
        work()
    synchronize()
    all_ms = [run_ms(work) for _ in range(repetitions)]
    return {"ms": statistics.median(all_ms), "best_ms": min(all_ms), "worst_ms": max(all_ms)}


class Book:
    """A report that is saved after every measurement, each of which stands alone."""

    def __init__(self, path, check, budget):
        self.path, self.begin, self.budget = path, time.time(), budget
        self.data = {"check": check, "outcome": "failed", "results": {}, "errors": {}}

    def save(self):
        self.data["seconds"] = round(time.time() - self.begin, 1)
        with open(self.path + ".part", "w") as file:
            json.dump(self.data, file, indent=1)
        os.replace(self.path + ".part", self.path)

    def put(self, key, value):
        self.data["results"][key] = value
        self.data["outcome"] = "measured"
        self.save()
        print(f"  [{time.time() - self.begin:6.1f} s] {key}: {value}", flush=True)

    def run(self, key, needed, work):
        """Runs `work` unless fewer than `needed` seconds are left."""
        if time.time() - self.begin + needed > self.budget:
            self.data["errors"][key] = "left out: no time"
            self.save()
            return
        try:
            work()
        except Exception as error:  # one that fails must not cost the others
            self.data["errors"][key] = f"{type(error).__name__}: {error}"[:400]
            print(f"  {key} FAILED {self.data['errors'][key]}", flush=True)
            if os.environ.get("TRACE"):
                traceback.print_exc()
            self.save()
