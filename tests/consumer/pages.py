#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the pages say works for somebody who has an installed Lathe and nothing else: every command is
run, every C++ and CMake block is compiled, in one project.

Usage: pages.py PREFIX WORK CMAKE CXX MLIR_DIR
"""
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import time

PREFIX, WORK, CMAKE, CXX, MLIR = sys.argv[1:6]
DOC = pathlib.Path(PREFIX, "share", "doc", "lathe")
WORK = pathlib.Path(WORK)
PAGES = ["README.md", "docs/getting-started.md", "docs/write-a-fusion.md", "docs/adding-a-pass.md",
         "docs/adding-a-backend.md"]
BLOCK = re.compile(r"(?:<!-- identical to (\S+) -->\n)?^```(\w*)\n(.*?)^```$", re.S | re.M)

# Blocks that are no whole file: what stands around them.
FRAMES = {
    "docs/getting-started.md": """#include <vector>
{includes}
#include <lathe/runtime/chat_template.h>
#include <lathe/runtime/checkpoint.h>
using namespace lathe;
int main() {{
  try {{
    std::vector<float> values(3 * 64, 0.5f);
    Array weights = Array(DType::F32, {{10, 64}});
    {body}
    return first > 0 ? 0 : 1;
  }} catch (const Error& e) {{
    std::fprintf(stderr, "%s\\n", e.what());
    return 1;
  }}
}}
""",
    "docs/adding-a-pass.md": """#include <lathe/lathe.h>
using namespace lathe;
{body}
int main() {{
  PatternLibrary (*fusions)(mlir::MLIRContext*) = [](mlir::MLIRContext* context) {{
    PatternLibrary library;
    addMyPatterns(library, context);
    return library;
  }};
  Graph g("gate");
  Tensor x = g.input("x", DType::F32, {{3, 64}});
  g.output("y", mul(mul(x, sigmoid(x)), x));
  CompileRecord record;
  compile(g, {{.patterns = fusions, .record = &record}});
  for (const auto& rewrite : record.rewrites)
    if (rewrite.what == "my_pattern") return 0;
  return 1;
}}
""",
    "docs/adding-a-backend.md": """#include <lathe/backends/backend.h>
#include <lathe/runtime/backend_plugin.h>
#include <lathe/runtime/device.h>
static std::unique_ptr<lathe::Backend> makeBackend() {{ return nullptr; }}
static std::unique_ptr<lathe::Device> makeDevice(std::shared_ptr<const lathe::Program>,
                                                 const lathe::DeviceOptions&) {{
  return nullptr;
}}
{body}
int main() {{ return lathe_backend_plugin()->name == std::string("table") ? 0 : 1; }}
""",
}
# Words that stand for something of the reader's.
WORDS = [(r"build/release/bin/", ""), (r"\bMODEL\b", "examples/models/stories"), (r"\bDIR\b", "examples/models/stories"),
         (r"\bdiff A B\b", "diff examples/models/stories examples/models/stories"),
         # Sampling all ops and a picture take longer or other programs than a test may.
         (r"selftest --mode test", "selftest --mode test --op softmax"), (r"\| dot -Tsvg >graph.svg", ">graph.dot")]
# Of the tree that is built, not of an installed Lathe.
OF_THE_TREE = ("scripts/demo", "scripts/test")


def run(command, **options):
    start = time.monotonic()
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    shown = command if isinstance(command, str) else " ".join(map(str, command))
    print(f"{time.monotonic() - start:6.1f} s  {shown.splitlines()[0][:120]}", flush=True)
    if result.returncode:
        sys.exit(f"{shown}\nended with {result.returncode}:\n{result.stdout}")
    return result.stdout


def commands(text):
    """Commands of a block: lines, with those that a backslash or a here-document goes on with."""
    found, here = [], None
    for line in text.splitlines():
        if here or (found and found[-1].endswith("\\")):
            found[-1] += "\n" + line
            here = None if line == here else here
        elif line.strip():
            found.append(re.sub(r"\s+# .*$", "", line))
            match = re.search(r"<<'(\w+)'", line)
            here = match and match.group(1)
    return [c for c in found if c.split()[0] not in OF_THE_TREE]


def framed(page, blocks):
    text = "\n".join(blocks)
    lines = text.splitlines()
    includes = [line for line in lines if line.startswith("#include")]
    body = "\n".join(line for line in lines if line not in includes and line != "using namespace lathe;")
    return FRAMES[page].format(includes="\n".join(includes), body=body)


def main():
    blocks = [(page, *m.groups()) for page in PAGES for m in BLOCK.finditer((DOC / page).read_text())]
    source = WORK / "pages"
    source.mkdir()
    for page, file, language, text in blocks:
        if file:
            (source / pathlib.Path(file).name).write_text(text)
    shutil.copy(DOC / "examples/fusions/trial.h", source)

    # One project: each page's CMake lines as they are, and a target for each program without any.
    lists = ["cmake_minimum_required(VERSION 3.25)", "project(Pages LANGUAGES C CXX)",
             "find_package(Lathe 0.1 REQUIRED CONFIG)",
             "add_executable(my_compiler swiglu.cpp)", "add_executable(my_server my_server.cpp)"]
    (source / "my_server.cpp").write_text("#include <lathe/runtime/session.h>\nint main() {}\n")
    lists += [text for _, _, language, text in blocks if language == "cmake"]
    listed = " ".join(lists)
    programs = ["my_compiler"]
    for page, file, language, text in blocks:
        name = pathlib.Path(file).stem if file else ""
        if file and file.endswith(".cpp") and f"{name}.cpp" not in listed:
            lists += [f"add_executable({name} {name}.cpp)", f"target_link_libraries({name} PRIVATE lathe::lathe)"]
        if file and file.endswith(".cpp") and name not in ("swiglu", "round_weights_plugin"):
            programs.append(name)
    for page in FRAMES:
        pieces = [text for p, file, language, text in blocks if p == page and language == "cpp" and not file]
        if not pieces:
            sys.exit(f"{page}: no C++ block was found")
        name = pathlib.Path(page).stem
        (source / f"{name}.cpp").write_text(framed(page, pieces))
        lists += [f"add_executable({name} {name}.cpp)", f"target_link_libraries({name} PRIVATE lathe::lathe)"]
        if page == "docs/adding-a-backend.md":  # the compile side sees MLIR
            lists += [f"target_include_directories({name} SYSTEM PRIVATE ${{MLIR_INCLUDE_DIRS}} ${{LLVM_INCLUDE_DIRS}})",
                      f"target_link_libraries({name} PRIVATE MLIR LLVM)"]
        programs.append(name)
    (source / "CMakeLists.txt").write_text("\n".join(lists) + "\n")
    build = WORK / "pages-build"
    run([CMAKE, "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DMLIR_DIR={MLIR}",
         f"-DCMAKE_CXX_COMPILER={CXX}", "-DCMAKE_BUILD_TYPE=None"])
    run([CMAKE, "--build", build])

    # A folder as the pages have it: the examples beside the reader, the installed programs on the path.
    folder = WORK / "reader"
    folder.mkdir()
    (folder / "examples").symlink_to(DOC / "examples")
    for file in list(source.iterdir()) + [build / "round_weights_plugin.so"]:
        shutil.copy(file, folder)
    for side in ("table_backend.so", "table_device.so"):
        shutil.copy(WORK / "table" / side, folder)
    ids = struct.pack("<4q", 0, 5, 6, 7)
    header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1, 4), }".ljust(117) + b"\n"
    (folder / "ids.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + ids)
    environment = dict(os.environ, PATH=f"{PREFIX}/bin:{os.environ['PATH']}", NO_COLOR="1", LATHE_NUM_THREADS="1")
    arguments = {"pattern_file": ["silu_gate.pdl.mlir", "silu_gate_pdl"], "load_plugin": ["./round_weights_plugin.so"]}
    own = WORK / "own"  # getting-started binds the weights of a folder `model`, of its own graph
    (own / "model").mkdir(parents=True)
    header = b'{"head.weight":{"dtype":"F32","shape":[10,64],"data_offsets":[0,2560]}}'.ljust(72)
    (own / "model/model.safetensors").write_bytes(struct.pack("<Q", 72) + header + bytes(2560))
    for program in programs:
        run([build / program, *arguments.get(program, [])], env=environment,
            cwd=own if program == "getting-started" else folder)
    count = 0
    for page, file, language, text in blocks:
        for command in commands(text) if language == "sh" else []:
            for word, meaning in WORDS:
                command = re.sub(word, meaning, command)
            run("set -e -o pipefail; " + command, shell=True, executable="/bin/bash", cwd=folder, env=environment)
            count += 1
    if count < 30:
        sys.exit(f"only {count} commands were found")
    print(f"{count} commands and {len(programs)} programs of {len(PAGES)} pages work")


if __name__ == "__main__":
    main()
