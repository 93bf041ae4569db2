# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode speed of llama.cpp on a Llama configuration with random weights.

Runs `llama-bench` of the folder LLAMA_CPP_BIN, or of PATH, on a file that llama_cpp_model.py writes
once for each format, into LLAMA_CPP_MODELS or a folder of temporary files.
"""

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from pathlib import Path

import llama_cpp_model
import peer


def model_file(config, form):
    """The GGUF file of a configuration, written when it is first asked for."""
    folder = Path(os.environ.get("LLAMA_CPP_MODELS") or Path(tempfile.gettempdir(), "llama-cpp-models"))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{Path(config).stem}-{form}.gguf"
    if not path.exists():
        part = path.with_suffix(".part")
        llama_cpp_model.write(json.loads(Path(config).read_text()), form, part)
        part.rename(path)
    return path


def program(name):
    found = shutil.which(name, path=os.environ.get("LLAMA_CPP_BIN") or os.environ["PATH"])
    if not found:
        raise SystemExit(f"there is no {name}: set LLAMA_CPP_BIN to the folder of llama.cpp's programs")
    return found


def main():
    arguments = peer.parse_arguments(__doc__, peer.FORMATS)
    command = [program("llama-bench"), "-m", model_file(arguments.config, arguments.format), "-o", "json"]
    command += ["-p", arguments.prompt, "-n", arguments.new, "-t", arguments.threads, "-r", arguments.runs]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    prefill, decode = json.loads(done.stdout)
    report = {
        "engine": "llama.cpp",
        "version": f"b{prefill['build_number']}",
        "format": arguments.format,
        "threads": arguments.threads,
        "prefill_runs": prefill["samples_ts"],
        "decode_runs": decode["samples_ts"],
    }
    for name in ("prefill", "decode"):
        report[f"{name}_tokens_per_second"] = statistics.median(report[f"{name}_runs"])
    print(json.dumps(report))


if __name__ == "__main__":
    main()
