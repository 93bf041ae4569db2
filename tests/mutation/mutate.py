#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants bugs, one at a time, and tells whether the tests notice.

    tests/mutation/mutate.py check                 every edit still fits its source file
    tests/mutation/mutate.py list
    tests/mutation/mutate.py run [--slice 2/8]     builds and tests each bug of the slice

`run` works on a copy of the last commit, build/mutation, with a build of its own; what it compiled
before comes from ccache. With --in-place it edits this checkout and uses build/release: fast after
a build, but nothing else may read the sources meanwhile. Each bug is built with the targets that
its tests need, and is "killed" as soon as one of them fails, crashes or does not end; tests must
pass without it, or the bug counts as "not tried". Exit status: 0 if at least 95 % of the bugs were
killed and all were tried. Bugs of the Python package run with LATHE_PYTHON (default: python3), and
are left out where that has no pytest, or no PyTorch for a test that needs it, or the build has no package.
"""
import argparse
import contextlib
import importlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

ROOT = HERE.parents[1]
MUTANTS = [mutant for table in sorted(HERE.glob("table_*.py"))
           for mutant in importlib.import_module(table.stem).MUTANTS]
WANTED = 0.95
PYTHON = os.environ.get("LATHE_PYTHON", "python3")
LEAST = 70  # bugs in the tables


def problem_of(mutant, root):
    """Why the edit does not fit the source, or nothing."""
    path = root / mutant.file
    if not path.is_file():
        return f"{mutant.file} does not exist"
    found = path.read_text().count(mutant.old)
    if found != 1:
        return f"the text to replace occurs {found} times in {mutant.file}, expected once"
    if mutant.old == mutant.new:
        return "the edit changes nothing"
    for test in mutant.tests:
        if why := problem_of_test(test, root):
            return why
    return None if mutant.tests else "no test is named"


def problem_of_test(test, root):
    kind, _, rest = test.partition(":")
    if kind == "ctest":
        return None
    if kind == "pytest":
        path, _, name = rest.partition("::")
        text = (root / path).read_text() if (root / path).is_file() else None
        if text is None or f"def {name.partition('[')[0]}(" not in text:
            return f"there is no test {rest}"
        return None
    if kind == "lit":
        some = any(re.search(rest, str(p)) for p in (root / "tests/lit").rglob("*.*"))
        return None if some else f"no lit file matches {rest}"
    # The programs of the AMX twin are made of other programs' tests.
    some = any((root / "tests").rglob(f"{kind.replace('_amx_twin', '')}.cpp"))
    return None if some else f"there is no test {kind}"


def check(root):
    problems = [f"{m.name}: {why}" for m in MUTANTS if (why := problem_of(m, root))]
    names = [m.name for m in MUTANTS]
    problems += [f"{n}: two bugs of this name" for n in sorted(set(names)) if names.count(n) > 1]
    known = {}  # by what the file is then
    for m in MUTANTS:
        if problem_of(m, root):
            continue
        edited = (m.file, (root / m.file).read_text().replace(m.old, m.new))
        twin = known.setdefault(edited, m.name)
        if twin != m.name:
            problems.append(f"{m.name}: the same edit as {twin}")
    if len(MUTANTS) < LEAST:
        problems.append(f"{len(MUTANTS)} bugs, expected at least {LEAST}")
    for line in problems:
        print(line)
    print(f"{len(MUTANTS)} bugs, {len(problems)} problems")
    return 1 if problems else 0


class Tree:
    """The sources and the build that bugs are planted in."""

    def __init__(self, root, build, build_with):
        self.root, self.build = root, build
        self.build_with = build_with or ["cmake", "--build", str(build), "--target"]
        self.undo = build / "mutation-undo.json"
        self.restore()  # what a run that was killed left behind
        self.baseline, self.modules = {}, {}

    def plant(self, mutant):
        path = self.root / mutant.file
        text = path.read_text()
        self.undo.write_text(json.dumps({"path": str(path), "text": text}))
        path.write_text(text.replace(mutant.old, mutant.new))

    def restore(self):
        if not self.undo.exists():
            return
        saved = json.loads(self.undo.read_text())
        pathlib.Path(saved["path"]).write_text(saved["text"])
        self.undo.unlink()

    def make(self, tests):
        """True if the targets of the tests build."""
        targets = sorted({t for test in tests if not self.lacks(test) for t in targets_of(test) + self.programs_of(test)})
        if not targets:
            return True
        done = subprocess.run(self.build_with + targets, cwd=self.root, capture_output=True)
        self.log = (done.stdout + done.stderr).decode(errors="replace")
        return done.returncode == 0

    def programs_of(self, test):
        """The targets of the built programs that an entry of CTest names: itself or for its script."""
        kind, _, rest = test.partition(":")
        if kind != "ctest":
            return []
        ctest = ["ctest", "--test-dir", str(self.build), "--show-only=json-v1", "-R", f"^{re.escape(rest)}$"]
        entries = json.loads(subprocess.run(ctest, capture_output=True).stdout)["tests"]
        words = [pathlib.Path(word) for entry in entries for word in entry.get("command", [])]
        return [{"lathe": "lathe-cli"}.get(w.name, w.name) for w in words if w.parent == self.build / "bin"]

    def lacks(self, test):
        """What a test needs that is not on this machine, or nothing."""
        kind, _, rest = test.partition(":")
        if kind != "pytest":
            return None
        if not (self.build / "python/lathe").is_dir():
            return "the build has no Python package (-DLATHE_PYTHON=ON)"
        for module, name in [("pytest", "pytest")] + [("torch", "PyTorch")] * ("torch" in rest):
            if module not in self.modules:
                self.modules[module] = subprocess.run([PYTHON, "-c", f"import {module}"],
                                                      capture_output=True).returncode == 0
            if not self.modules[module]:
                return f"{PYTHON} has no {name}"
        return None

    def passes(self, test, timeout):
        kind, _, rest = test.partition(":")
        env = {"LATHE_TEST_DEPTH": "all", **os.environ}  # tests/depth.h
        if kind == "pytest":
            env["PYTHONPATH"] = os.pathsep.join(map(str, [self.build / "python", self.root / "python/tests"]))
            env["PYTHONDONTWRITEBYTECODE"] = "1"
            command = [PYTHON, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", rest]
        elif kind == "lit":
            env["LIT_FILTER"] = rest
            command = ["ctest", "--test-dir", str(self.build), "-R", "^lit$"]
        elif kind == "ctest":
            command = ["ctest", "--test-dir", str(self.build), "-R", f"^{re.escape(rest)}$"]
        else:
            command = [str(self.build / "bin" / kind), "--gtest_brief=1"]
            # Without a colon GoogleTest stops at the first failure, which is all that is asked.
            command += ["--gtest_fail_fast"] + ([f"--gtest_filter={rest}"] if rest else [])
        # A test that a bug ends leaves its temporary files.
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as env["TMPDIR"]:
            test = subprocess.Popen(command, cwd=self.root, env=env, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)
            try:
                return test.wait(timeout) == 0
            except subprocess.TimeoutExpired:
                return False
            finally:
                # What it started goes on otherwise where a bug makes that endless.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(test.pid, signal.SIGKILL)
                test.wait()

    def good(self, test, timeout):
        """True if the test passes on the sources as they are."""
        if test not in self.baseline:
            self.baseline[test] = self.passes(test, timeout)
        return self.baseline[test]


def targets_of(test):
    kind, _, rest = test.partition(":")
    if kind == "lit":
        return ["lathe-opt", "lathe-cli", "seed_model_ops"]
    if kind == "pytest":
        return ["_compiler", "_runtime", "lathe_wheel"]
    if kind == "ctest":
        return ["lathe-cli", "lathe_serve"]
    cli = kind.startswith(("cli_", "questions_cli"))
    return [kind] + (["lathe-cli", "lathe_selftest"] if cli else [])


def try_mutant(tree, mutant, timeout):
    if why := problem_of(mutant, tree.root):
        return "not tried", why
    if missing := next((why for t in mutant.tests if (why := tree.lacks(t))), None):
        return "left out", missing
    broken = [t for t in mutant.tests if not tree.good(t, timeout)]
    if broken:
        return "not tried", f"without the bug {', '.join(broken)} fails already"
    tree.plant(mutant)
    try:
        # The package reads its sources where they lie.
        if not mutant.file.endswith(".py") and not tree.make(mutant.tests):
            return "not tried", "does not build: " + tree.log[-400:]
        for test in mutant.tests:
            if not tree.passes(test, timeout):
                return "killed", test
        return "survived", ", ".join(mutant.tests)
    finally:
        tree.restore()


def copy_of_commit():
    """build/mutation/tree: the last commit, with a build that earlier runs have left warm."""
    tree = ROOT / "build/mutation/tree"
    git = ["git", "-C", str(ROOT)]
    if not (tree / ".git").exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(git + ["worktree", "prune"], check=True)
        subprocess.run(git + ["worktree", "add", "--detach", str(tree), "HEAD"], check=True)
    head = subprocess.run(git + ["rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    subprocess.run(["git", "-C", str(tree), "checkout", "--quiet", "--force", "--detach",
                    head.stdout.strip()], check=True)
    if (ROOT / ".deps").exists() and not (tree / ".deps").exists():
        (tree / ".deps").symlink_to(ROOT / ".deps")
    subprocess.run(["cmake", "--preset", "release"], cwd=tree, check=True,
                   stdout=subprocess.DEVNULL)
    return Tree(tree, tree / "build/release", None)


def chosen(options):
    mutants = MUTANTS
    if options.only:
        mutants = [m for m in mutants if any(re.fullmatch(o, m.name) for o in options.only)]
        if not mutants:
            sys.exit(f"no bug is named {', '.join(options.only)}")
    index, _, count = options.slice.partition("/")
    if not (index.isdigit() and count.isdigit() and 1 <= int(index) <= int(count)):
        sys.exit(f"--slice: expected I/N with 1 <= I <= N, got {options.slice}")
    return mutants[int(index) - 1::int(count)]


def run(options):
    mutants = chosen(options)
    if options.in_place:
        tree = Tree(ROOT, options.build or ROOT / "build/release", options.build_with)
    else:
        tree = copy_of_commit()
    # A run that is stopped puts the sources back.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit("stopped"))
    tests = [t for m in mutants for t in m.tests]
    if not tree.make(tests):
        sys.exit("the tests do not build without any bug:\n" + tree.log[-4000:])
    for test in tests:
        if not tree.lacks(test):
            tree.good(test, options.timeout)
    rows = []
    for mutant in mutants:
        start = time.time()
        outcome, by = try_mutant(tree, mutant, options.timeout)
        rows.append({"name": mutant.name, "file": mutant.file, "what": mutant.what,
                     "outcome": outcome, "by": by, "seconds": round(time.time() - start, 1)})
        print(f"{outcome:9} {mutant.name}: {by} ({rows[-1]['seconds']} s)", flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    tree.make(tests)  # nothing planted stays in the build
    count = {k: sum(r["outcome"] == k for r in rows) for k in ("killed", "survived", "not tried", "left out")}
    tried = count["killed"] + count["survived"]
    print(", ".join(f"{n} {k}" for k, n in count.items()) + f" of {len(rows)}")
    for row in rows:
        if row["outcome"] == "survived":
            print(f"survived: {row['name']} ({row['file']}): {row['what']}")
    return 0 if tried + count["left out"] == len(rows) and count["killed"] >= WANTED * tried else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["check", "list", "run"])
    parser.add_argument("--slice", default="1/1", metavar="I/N", help="every N-th bug from the I-th")
    parser.add_argument("--only", action="append", metavar="NAME",
                        help="bugs whose name matches, as a regular expression; repeatable")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="results, bug by bug")
    parser.add_argument("--timeout", type=float, default=300, metavar="SECONDS",
                        help="of one test program (default 300)")
    parser.add_argument("--in-place", action="store_true", help="in this checkout, see above")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR",
                        help="with --in-place: the build (default build/release)")
    parser.add_argument("--build-with", type=str.split, metavar="COMMAND",
                        help="with --in-place: what builds the targets that follow it")
    options = parser.parse_args()
    if options.command == "check":
        return check(ROOT)
    if options.command == "list":
        for m in chosen(options):
            print(f"{m.name}: {m.what} ({m.file})")
        return 0
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
