#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CTest shows a GoogleTest program as skipped if one of its tests was, and never one that failed.

    skips_test.py CTEST REGULAR_EXPRESSION    the expression that tests/CMakeLists.txt gives to all
"""
import pathlib
import subprocess
import sys
import tempfile

RAN = "[==========] 2 tests from 1 test suite ran. (0 ms total)\n"
SKIPPED = "[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] Suite.Name\n"
DISABLED = "\n  YOU HAVE 1 DISABLED TEST\n\n"
# What a program prints, its exit status, and how CTest tells it.
PROGRAMS = {
    "passed": (RAN + "[  PASSED  ] 2 tests.\n", 0, "Passed"),
    "passed_with_disabled": (RAN + "[  PASSED  ] 2 tests.\n" + DISABLED, 0, "Passed"),
    "one_skipped": (RAN + SKIPPED, 0, "Skipped"),
    "all_skipped": (RAN + SKIPPED.replace("1 test.", "0 tests."), 0, "Skipped"),
    "skipped_with_disabled": (RAN + SKIPPED + DISABLED, 0, "Skipped"),
    "skipped_and_failed": (RAN + SKIPPED + "[  FAILED  ] 1 test, listed below:\n"
                           "[  FAILED  ] Suite.Other\n\n 1 FAILED TEST\n", 1, "Failed"),
    "stopped_after_a_skip": ("[  SKIPPED ] Suite.Name (0 ms)\n[ RUN      ] Suite.Other\n", 1,
                             "Failed"),
}


def main():
    ctest, expression = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        lines = []
        for name, (text, status, _) in PROGRAMS.items():
            path = pathlib.Path(folder, name + ".txt")
            path.write_text(text)
            lines += [f'add_test({name} sh -c "cat {path}; exit {status}")',
                      f'set_tests_properties({name} PROPERTIES SKIP_REGULAR_EXPRESSION '
                      f'[==[{expression}]==])']
        pathlib.Path(folder, "CTestTestfile.cmake").write_text("\n".join(lines) + "\n")
        told = subprocess.run([ctest], cwd=folder, capture_output=True, text=True).stdout
    wrong = 0
    for name, (_, _, wanted) in PROGRAMS.items():
        line = next((at for at in told.splitlines() if f" {name} ." in at), "nothing")
        if wanted not in line:
            print(f"{name}: expected {wanted}, got {line}")
            wrong += 1
    print(told if wrong else "skipped, passed and failed are told apart")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
