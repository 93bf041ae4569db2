# SPDX-License-Identifier: Apache-2.0
"""What an import costs and loads."""
import os
import subprocess
import sys

import lathe


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_an_import_loads_no_compiler():
    maps = run("import lathe; print(open('/proc/self/maps').read())")
    assert "liblathe_runtime" in maps
    assert "liblathe.so" not in maps and "libLLVM" not in maps and "numpy" not in maps


def test_an_import_takes_less_than_a_fifth_of_a_second():
    code = "import time; t = time.process_time(); import lathe; print(time.process_time() - t)"
    assert min(float(run(code)) for _ in range(5)) < 0.2


def test_the_first_graph_loads_the_compiler():
    maps = run("import lathe; lathe.Graph(); print(open('/proc/self/maps').read())")
    assert "liblathe.so" in maps and "libLLVM" not in maps and "libMLIR" not in maps


def test_the_command():
    shown = subprocess.run([sys.executable, "-m", "lathe", "env"], check=True, capture_output=True, text=True)
    assert lathe.__version__ in shown.stdout


def test_only_the_names_of_lathe_are_seen():
    library = os.path.join(os.path.dirname(lathe.__file__), "lib", "liblathe.so.0")
    names = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                           text=True).stdout.split("\n")
    foreign = [n for n in names if "4llvm" in n.split("lathe")[0] or "4mlir" in n.split("lathe")[0]]
    assert names and not foreign
