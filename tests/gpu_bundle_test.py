#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a machine with a GPU and without the compiler is given, tried without a GPU.

    gpu_bundle_test.py runtime CMAKE FOLDER WRITE_CASES   the runtime alone, built anew in FOLDER
    gpu_bundle_test.py nvcc FOLDER                        every CUDA text of bench/gpu (77: no nvcc)
    gpu_bundle_test.py golden                             no device primitive is left out
    gpu_bundle_test.py libraries FOLDER                   PyTorch's copies of libraries are found
    gpu_bundle_test.py story                              which other tokens of a model are right
    gpu_bundle_test.py candidates                         a library that computed nothing is told
    gpu_bundle_test.py nccl PROGRAM CUDA NCCL FOLDER      sums of ranks, with mocks of these libraries
    gpu_bundle_test.py isolated FOLDER                    what hangs in a child process costs its item
    gpu_bundle_test.py failures FOLDER                    what a stage leaves that failed
    gpu_bundle_test.py stale FOLDER                       artifacts of an older bundle are not run
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import time
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
    options += ["-DLATHE_RUNTIME_ONLY=ON", "-DLATHE_UNITY=ON", f"-DCMAKE_PREFIX_PATH={carried}"]
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


def libraries(folder):
    returns, writes = "unsigned long {}(void) {{ return 130207; }}", "int {}(int* to) {{ *to = 130207; return 0; }}"
    for name, wanted, older, version in (
            ("cublaslt", "cu13/lib/libcublasLt.so.13", "cublas/lib/libcublasLt.so.12",
             returns.format("cublasLtGetVersion")),
            ("cudnn", "cudnn/lib/libcudnn.so.9", "cudnn8/lib/libcudnn.so.8", returns.format("cudnnGetVersion")),
            ("nccl", "nccl/lib/libnccl.so.2", "nccl1/lib/libnccl.so.1", writes.format("ncclGetVersion"))):
        found_library(Path(folder) / name, name, wanted, older, version)


def found_library(folder, name, wanted, older, version):
    """`version`: the text of the function that tells it."""
    script, site = ROOT / "bench/gpu/libraries.py", folder / "site"
    ours, old = site / "nvidia" / wanted, site / "nvidia" / older
    variable = "LATHE_" + name.upper()
    for path in (ours, old):
        path.parent.mkdir(parents=True, exist_ok=True)
    text = folder / "library.c"
    text.write_text(version + "\n")
    told_by("cc", "-shared", "-fPIC", text, "-o", ours)
    old.write_text("of another version\n")
    environment = {k: v for k, v in os.environ.items() if k != variable}

    def answer(expression, **variables):
        code = f"import libraries; print(libraries.LIBRARIES['{name}'].{expression})"
        paths = os.pathsep.join([str(site), str(script.parent)])
        env = environment | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"} | variables
        done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
        return done.stdout.strip() or done.stderr

    # Another installation's may follow; the toolkits' come first, and what is named is all.
    listed = json.loads(answer("candidates()").replace("'", '"'))
    if listed[0] != ours.name or str(ours) not in listed[1:] or str(old) in listed:
        sys.exit(f"expected the loader's library and {ours} among {listed}")
    found = answer("found()", **{variable: str(ours)})
    if found != str({"file": str(ours), "version": 130207}):
        sys.exit(f"expected {ours} of version 130207: {found}")
    missing = answer("found()", **{variable: f"/nowhere/{ours.name}"})
    if "missing" not in missing or str(old) not in missing:
        sys.exit(f"expected no library, and a word on {old}: {missing}")


def story():
    sys.path.insert(0, str(ROOT / "bench/gpu"))
    sys.dont_write_bytecode = True
    from story import judged

    # The reference writes 5 for ever; 9 is `gap` less likely.
    def want(*gaps):
        likeliest = [[{"id": 5, "logprob": -1.0}, {"id": 9, "logprob": -1.0 - gap}] for gap in gaps]
        return {"prompt_ids": [1, 2], "ids": [5] * len(gaps), "logprobs": [{"likeliest": p} for p in likeliest]}

    asked = []

    # What stands at these places of the text; behind another token than the expected ones nothing is as it was.
    def writer(others, most=99):
        def write(ids, count):
            asked.append(len(ids) - 2)
            text, expected = [], ids == [1, 2] + [5] * (len(ids) - 2)
            for at in range(len(ids) - 2, min(len(ids) - 2 + count, most)):
                text.append(others.get(at, 5) if expected else 3)
                expected &= text[-1] == 5
            return text
        return write

    cases = [({}, want(1, 1, 1), True, [0]), ({1: 9}, want(1, 1e-2, 1), True, [0, 2]),
             ({1: 9}, want(1, 0.1, 1), False, [0]), ({1: 7}, want(1, 1e-4, 1), False, [0]),
             ({0: 9, 2: 9}, want(1e-5, 1, 1e-5), True, [0, 1]), ({1: 9, 2: 7}, want(1, 0, 0), False, [0, 2]),
             ({i: 9 for i in range(9)}, want(*[0] * 9), False, list(range(9)))]
    for others, expected, right, begins in cases:
        asked.clear()
        passed, said = judged(expected, writer(others))
        if passed != right or asked != begins:
            sys.exit(f"{others} against {expected}: {said}, written from {asked}")
    if judged(want(1, 1, 1), writer({}, most=2))[0]:
        sys.exit("a text that ends early is taken for the whole one")


def candidates():
    sys.path.insert(0, str(ROOT / "bench/gpu"))
    sys.dont_write_bytecode = True
    from library_candidates import judged

    def problem(**of_library):
        own = {"choice": "tiled4x2x64", "us": 2.0}
        return {"problem": "attention a", "choices": [own, {"choice": "library", **of_library}]}

    missing = {"error": "no libcudnn.so.9"}
    for problems, passes, part in (
            ([problem(us=1.0), problem(us=3.0)], True, "computed 2 candidates"),
            ([problem(us=1.0), problem(**missing)], False, "1 of 2 candidates of a library: attention a: no libcudnn"),
            ([{"problem": "attention a", "choices": [{"choice": "tiled4x2x64", "us": 2.0}]}], False, "no candidate"),
            ([{"problem": "attention a", "error": "a crash"}], False, "no candidate")):
        passed, said = judged({"problems": problems})
        if passed != passes or part not in said:
            sys.exit(f"{problems}: {passed}, {said}")


def nccl(program, cuda, library, folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    report = folder / "nccl.json"

    def ranks(device, count, status=0, **variables):
        os.environ.update(variables)
        told_by(program, device, count, report, status=status)
        return json.loads(report.read_text())

    on_host = ranks("host", 2)
    mocks = {"LATHE_LIBCUDA": cuda, "LATHE_NCCL": library}
    on_gpu = ranks("gpu", 1, **mocks)
    for found, by in ((on_host, "on the host"), (on_gpu, "NCCL 2.28.9")):
        if found["outcome"] != "passed" or by not in found["by"] or found["checked"] < 18:
            sys.exit(f"expected sums and gathers {by}: {found}")
    failed = ranks("gpu", 1, 1, LATHE_MOCK_NCCL_FAIL="ncclReduceScatter:6")
    if failed["outcome"] != "failed" or "reduce_scatter" not in failed["error"]:
        sys.exit(f"expected NCCL's words for what fails: {failed}")


def function_of_run(name):
    script = (ROOT / "bench/gpu/run").read_text()
    text = script[script.index(f"\n{name}() {{") + 1:]
    return text[: text.index("\n}\n") + 3]


ISOLATED = """#include "bench/gpu/isolated.h"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
#include <string>
int main() {  // the first item leaves a process behind and hangs, the second one is well
  auto work = [](size_t i) {
    if (i == 0) { (void)std::system("sleep 60 >/dev/null 2>&1 &"); pause(); }
    return "item " + std::to_string(i);
  };
  lathe::cuda::runIsolated(2, work, [](size_t i, const std::string& text, bool failed) {
    std::printf("%zu %d %s;", i, failed, text.c_str());
  }, 1);
}
"""


def isolated(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text, program = folder / "isolated.cpp", folder / "isolated"
    text.write_text(ISOLATED)
    told_by("c++", "-std=c++20", "-I", ROOT, text, ROOT / "bench/gpu/isolated.cpp", "-o", program)
    begin = time.monotonic()
    said, seconds = told_by(program), time.monotonic() - begin
    if said != "0 1 the process: Alarm clock;1 0 item 1;" or seconds > 30:
        sys.exit(f"expected the second item behind one that hangs: {said} after {seconds:.0f} s")


def failures(folder):
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    left = {"passed": '{"outcome": "passed", "checked": 1}', "measured": '{"outcome": "measured"}', "cut": '{"outc'}
    for stage, text in left.items():
        (folder / f"{stage}.json").write_text(text)
    for stage in (*left, "none"):
        told_by("bash", "-c", f"out={folder}\n{function_of_run('failure')}failure {stage} 'status 124: \"slow\"'")
        report = json.loads((folder / f"{stage}.json").read_text())
        if stage == "measured":  # what had been measured is kept
            expected = {"outcome": "measured"}
        else:
            expected = {"outcome": "failed", "error": 'status 124: "slow"'}
            expected |= {"checked": 1} if stage == "passed" else {"check": stage}
        if report != expected:
            sys.exit(f"a stage that failed and left {left.get(stage, 'nothing')}: {report}, expected {expected}")


def stale(folder):
    folder = Path(folder)
    shutil.rmtree(folder, ignore_errors=True)
    bundle, work = folder / "bundle", folder / "work"
    unpacked = function_of_run("unpacked")
    for version in ("old", "new", "new"):
        (bundle / "artifacts").mkdir(parents=True, exist_ok=True)
        for file in (bundle / "artifacts/manifest.json", bundle / "manifest.json"):
            file.write_text(version)
        (bundle / "artifacts" / version).write_text(version)
        told_by("tar", "-C", bundle, "-cJf", bundle / "artifacts.tar.xz", "artifacts")
        shutil.rmtree(bundle / "artifacts")
        work.mkdir(exist_ok=True)
        told_by("bash", "-c", f"bundle={bundle} work={work}\n{unpacked}unpacked")
        found = sorted(path.name for path in (work / "artifacts").iterdir())
        if found != sorted(["manifest.json", version]):
            sys.exit(f"a bundle with {version}, unpacked over another one: {found}")


if __name__ == "__main__":
    tests = {test.__name__: test for test in (runtime, nvcc, golden, libraries, story, candidates, nccl, isolated, failures, stale)}
    tests[sys.argv[1]](*sys.argv[2:])
