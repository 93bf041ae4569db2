#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a machine with a GPU and without the compiler is given, tried without a GPU.

    gpu_bundle_test.py runtime CMAKE FOLDER WRITE_CASES   the runtime alone, built anew in FOLDER
    gpu_bundle_test.py nvcc FOLDER                        every CUDA text of bench/gpu (77: no nvcc)
    gpu_bundle_test.py golden                             no device primitive is left out
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "backends/cuda/include"
CASE = "add/f32"


def told_by(*command, status=0):
    words = [str(word) for word in command]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = done.stdout.decode(errors="replace")
    if done.returncode != status:
        sys.exit(f"{' '.join(words)}: status {done.returncode}, not {status}\n{text}")
    return text


def build(cmake, folder):
    """With g++ and the dependencies that travel, from nothing; the build folder."""
    shutil.rmtree(folder, ignore_errors=True)
    carried, built = folder / "deps", folder / "build"
    told_by(ROOT / "scripts/gpu-bundle", "--dependencies", carried)
    options = ["-G", "Ninja"] if shutil.which("ninja") else []
    options += ["-DLATHE_RUNTIME_ONLY=ON", f"-DCMAKE_PREFIX_PATH={carried}"]
    # What is asked is whether it builds and runs, not how fast: optimisation is most of a build.
    options += ["-DCMAKE_CXX_COMPILER=g++", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG="]
    told_by(cmake, "-S", ROOT, "-B", built, *options)
    cache = (built / "CMakeCache.txt").read_text()
    found = re.findall(r"^LATHE_(?:INCLUDE|LIBRARY)_\w+:\w+=(.*)$", cache, re.M)
    strangers = [path for path in found if not path.startswith(str(carried))]
    if len(found) != 8 or strangers:
        sys.exit(f"expected 8 dependencies below {carried}, found {found}")
    told_by(cmake, "--build", built, "-j", os.cpu_count())
    return built


def spoil(path):
    """Changes one expected value of a case."""
    data = bytearray(path.read_bytes())
    length = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + length])
    outputs = [name for name in header if "/out/" in name]
    name = next(n for n in outputs if header[n]["shape"] and 0 not in header[n]["shape"])
    at = 8 + length + header[name]["data_offsets"][0]
    data[at + 3] ^= 0x40  # the exponent of an f32
    path.write_bytes(data)


def runtime(cmake, folder, write_cases):
    folder = Path(folder)
    built = build(cmake, folder)
    programs = built / "bin"
    env = json.loads(told_by(programs / "lathe", "env", "--json"))
    if env["compiler_library"]:
        sys.exit("a runtime alone found a compiler library")
    needed = told_by("ldd", programs / "lathe")
    if re.search("LLVM|MLIR|dnnl|not found", needed):
        sys.exit(f"lathe links what it must not, or lacks something:\n{needed}")
    story = told_by(programs / "lathe", "run", ROOT / "examples/models/stories", status=4)
    if "compiler library" not in story:
        sys.exit(f"a model that is not compiled: expected a word on the compiler library\n{story}")
    cases, report = folder / "cases.safetensors", folder / "cases.json"
    told_by(write_cases, cases, CASE)
    told_by(programs / "lathe-gpu-cases", "host", cases, report)
    result = json.loads(report.read_text())
    if result["outcome"] != "passed" or result["passed"] != [CASE]:
        sys.exit(f"expected one case to pass: {result}")
    spoil(cases)
    told_by(programs / "lathe-gpu-cases", "host", cases, report, status=1)
    wrong = json.loads(report.read_text())["wrong"]
    if len(wrong) != 1 or len(wrong[0]["mismatches"]) != 1:
        sys.exit(f"expected one mismatch in one case: {wrong}")
    golden, dump = folder / "golden.json", folder / "golden.bin"
    told_by(programs / "lathe-gpu-golden", "host", ROOT / "bench/gpu/golden", golden, dump)
    by_manual = [r for r in json.loads(golden.read_text())["results"] if "manual" in r]
    if len(by_manual) < 4:
        sys.exit("expected four fragment maps held against the PTX manual")


def nvcc(folder):
    compiler = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    if not Path(compiler).exists():
        print("no nvcc here")
        sys.exit(77)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    options = ["-arch=sm_90a", "-std=c++17", "-I", INCLUDE / "device", "-I", INCLUDE / "common"]
    for text in sorted((ROOT / "bench/gpu/golden").glob("*.cu")):
        cubin = folder / (text.stem + ".cubin")
        told_by(compiler, "-cubin", "-fmad=false", *options, text, "-o", cubin)
    for text in sorted((ROOT / "bench/gpu/roofs").glob("*.cu")):
        told_by(compiler, "-c", "-O1", *options, text, "-o", folder / (text.stem + ".o"))


def golden():
    header = (INCLUDE / "device/lathe_device.cuh").read_text()
    texts = "".join(path.read_text() for path in (ROOT / "bench/gpu/golden").glob("*.cu"))
    names = set(re.findall(r"^LT_FN [\w<>:]+ (\w+)\(", header, re.M)) - {"lt_by_words"}
    missing = sorted(name for name in names if not re.search(rf"\b{name}\b", texts))
    if len(names) < 80 or missing:
        sys.exit(f"primitives without a golden dump: {missing} (of {len(names)})")


if __name__ == "__main__":
    {"runtime": runtime, "nvcc": nvcc, "golden": golden}[sys.argv[1]](*sys.argv[2:])
