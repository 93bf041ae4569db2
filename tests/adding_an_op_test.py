#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds the op of docs/adding-an-op.md by the patch that the page shows.

    tests/adding_an_op_test.py check     the patch fits the sources, and is as short as the page promises
    tests/adding_an_op_test.py build     on a copy of the last commit: the patch, what the page says to run, and the
                                         tests of the new op on every backend; a whole build, for the nightly run
    tests/adding_an_op_test.py build --in-place   the same in this checkout, which must be clean, and in build/release
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/mutation"))
sys.dont_write_bytecode = True
import mutate  # noqa: E402

MOST_FILES = 5
TARGETS = ["backends_test", "scalar_emission_test", "onnx_cases", "lathe-cli", "lathe-opt", "seed_model_ops"]


def patch_of(root):
    """The patch, and the files that it changes."""
    page = (root / "docs/adding-an-op.md").read_text()
    patches = re.findall(r"^```diff\n(.*?)^```$", page, re.M | re.S)
    assert len(patches) == 1, f"docs/adding-an-op.md: expected one patch, found {len(patches)}"
    return patches[0], re.findall(r"^\+\+\+ b/(.*)$", patches[0], re.M)


def apply(root, patch, *options):
    done = subprocess.run(["git", "apply", *options, "-"], cwd=root, input=patch, text=True, capture_output=True)
    assert done.returncode == 0, f"the patch of docs/adding-an-op.md does not fit:\n{done.stderr}"


def check():
    patch, files = patch_of(ROOT)
    assert 1 < len(files) <= MOST_FILES, f"an elementwise op costs {len(files)} edits, at most {MOST_FILES} are promised"
    apply(ROOT, patch, "--check")


def run(root, *command):
    print("adding an op:", *command, flush=True)
    subprocess.run(command, cwd=root, check=True)


def output(root, *command):
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def build(in_place):
    if in_place and output(ROOT, "git", "status", "--porcelain"):
        sys.exit("adding an op: this checkout has changes; commit them first")
    tree = mutate.Tree(ROOT, ROOT / "build/release", None) if in_place else mutate.copy_of_commit()
    root, bin = tree.root, str(tree.build / "bin")
    patch, files = patch_of(root)
    apply(root, patch)
    try:
        for script in ("generate_api", "generate_reference", "generate_python"):
            run(root, f"scripts/{script}")
        run(root, "scripts/build", "release", *TARGETS)
        run(root, "scripts/generate_docs")
        assert "softsign" in (root / "include/lathe/ir/recorded_ops.h").read_text()
        assert "### `lathe.softsign`" in (root / "docs/ops.md").read_text()
        ran = subprocess.run([f"{bin}/backends_test", "--gtest_filter=*softsign*"], cwd=root, text=True, stdout=subprocess.PIPE)
        print(ran.stdout)
        assert ran.returncode == 0
        for backend in ("reference", "cpu", "cuda"):
            assert re.search(rf"\[       OK \].*{backend}.*softsign|\[       OK \].*softsign.*{backend}", ran.stdout), \
                f"no test of the op on {backend}"
        run(root, f"{bin}/scalar_emission_test")
        run(root, "ctest", "--test-dir", str(tree.build), "--output-on-failure", "-R", "^(lit|layout/generated_.*)$")
        changed = output(root, "git", "diff", "--name-only").split()
        by_hand = set(changed) - {"include/lathe/ir/recorded_ops.h", "ir/recorded_ops.cpp", "python/src/generated/recorded_ops.cpp"}
        by_hand = {f for f in by_hand if not f.startswith("docs/")}
        assert by_hand == set(files), f"changed by hand: {sorted(by_hand)}"
    finally:
        subprocess.run(["git", "checkout", "--quiet", "--force", "."], cwd=root, check=True)
    print(f"adding an op: {len(files)} edits")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["check"]:
            check()
        case ["build", *rest] if rest in ([], ["--in-place"]):
            build(in_place=bool(rest))
        case _:
            sys.exit(__doc__)
