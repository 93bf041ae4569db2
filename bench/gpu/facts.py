# SPDX-License-Identifier: Apache-2.0
"""Writes what a result must say about the machine and the tree: facts.py OUT ROOT BUNDLE COMMAND"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import libraries


def told_by(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
        return done.stdout.strip() if done.returncode == 0 else ""
    except (OSError, subprocess.TimeoutExpired):
        return ""


def gpu():
    names = ["name", "memory.total", "driver_version", "clocks.max.sm", "clocks.max.mem"]
    names += ["power.limit", "ecc.mode.current"]
    text = told_by("nvidia-smi", "--query-gpu=" + ",".join(names), "--format=csv,noheader")
    values = text.splitlines()[0].split(", ") if text else []
    return dict(zip(names, values)) or "none"


def cpu():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


out, root, bundle, command = sys.argv[1:]
manifest = Path(bundle) / "manifest.json"
facts = {
    "date": time.strftime("%Y-%m-%d"),
    "command": command,
    # The tree may travel without its history: what was packed knows its commit.
    "bundle": json.loads(manifest.read_text()) if manifest.exists() else {},
    "commit_here": told_by("git", "-C", root, "rev-parse", "HEAD"),
    "device": gpu(),
    "toolkit": told_by("nvcc", "--version").splitlines()[-1:],
    **{name: library.found() for name, library in libraries.LIBRARIES.items()},
    "host": {"cpu": cpu(), "cores": os.cpu_count(), "system": platform.platform()},
}
Path(out).write_text(json.dumps(facts, indent=1) + "\n")
