#!/usr/bin/env python3
"""ONNX's own node tests through Lathe: right, refused by name, or wrong, op by op.

usage: node_suite.py ONNX_CASES_PROGRAM [--backend reference] [--glob '*'] [--json OUT] [--list] [--right N]

ONNX_CASES_PROGRAM is build/release/bin/onnx_cases. The package `onnx`, which makes the cases and their expected
values, is Python's own or that of scripts/setup; without it the exit status is 77. A case whose shapes depend on an
input's values is run with these values as constants and counted as such. Exits with 1 where a value is wrong, the
program ended, or fewer than N cases are right.
"""
import argparse
import collections
import fnmatch
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / ".deps/onnx"))
try:
    import numpy as np
    import onnx
except ImportError:
    print("skipped: the package onnx is not installed; scripts/setup fetches it")
    sys.exit(77)

warnings.filterwarnings("ignore")


def write_case(case, folder):
    """model.onnx, input_N.pb and output_N.pb; False where a value is no tensor."""
    folder.mkdir()
    onnx.save(case.model, str(folder / "model.onnx"))
    inputs, outputs = case.data_sets[0]
    for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
        for i, (value, info) in enumerate(zip(values, infos)):
            if isinstance(value, onnx.TensorProto):
                tensor = value
            elif info.type.HasField("tensor_type"):
                tensor = onnx.numpy_helper.from_array(np.asarray(value), info.name)
                tensor.data_type = tensor.data_type or info.type.tensor_type.elem_type
            else:
                continue
            (folder / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--backend", default="reference")
    parser.add_argument("--glob", default="*")
    parser.add_argument("--json")
    parser.add_argument("--list", action="store_true", help="every case that is not right, with the words")
    parser.add_argument("--right", type=int, default=0, help="cases that are right at least")
    arguments = parser.parse_args()
    from onnx.backend.test.case.node import collect_testcases

    cases = [c for c in collect_testcases(None) if fnmatch.fnmatch(c.name, arguments.glob)]
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        ops = {}
        for case in cases:
            nodes = [n.op_type for n in case.model.graph.node]
            ops[case.name] = collections.Counter(nodes).most_common(1)[0][0]
            try:
                write_case(case, root / case.name)
            except Exception as e:  # a value that ONNX's own package cannot store
                results[case.name] = {"outcome": "unwritten", "words": f"{type(e).__name__}: {e}", "constants": []}
        waiting = [c.name for c in cases if c.name not in results]
        while waiting:
            command = [arguments.program, "--backend", arguments.backend] + [str(root / n) for n in waiting[:100]]
            run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
            for line in run.stdout.splitlines():
                result = json.loads(line)
                results[result["case"]] = result
            rest = [n for n in waiting[:100] if n not in results]
            if rest:  # the program ended in the first that it did not tell of
                results[rest[0]] = {"outcome": "wrong", "words": f"the program ended: {run.stderr[-300:]}",
                                    "constants": []}
            waiting = [n for n in waiting if n not in results]
    bad = False
    for title, expanded in (("node tests", False), ("functions spelled out", True)):
        rows = {n: r for n, r in results.items() if ("_expanded" in n) == expanded}
        counts = collections.Counter(r["outcome"] for r in rows.values())
        constants = sum(1 for r in rows.values() if r["outcome"] == "right" and r["constants"])
        print(f"{title}: {len(rows)}, " + ", ".join(f"{k} {v}" for k, v in sorted(counts.items())) +
              f"; {constants} of the right ones with inputs as constants")
        bad |= counts["wrong"] > 0
        by_op = collections.defaultdict(collections.Counter)
        for name, row in rows.items():
            key = name.removeprefix("test_").split("_expanded")[0].split("_")[0] if expanded else ops[name]
            by_op[key][row["outcome"]] += 1
        for op, outcome in sorted(by_op.items()):
            if set(outcome) != {"right"}:
                print(f"  {op}: " + ", ".join(f"{k} {v}" for k, v in sorted(outcome.items())))
    right = sum(r["outcome"] == "right" for r in results.values())
    if right < arguments.right:
        print(f"{right} cases are right, expected {arguments.right} at least")
        bad = True
    if arguments.list:
        for name, row in results.items():
            if row["outcome"] != "right":
                print(f"{row['outcome']} {name}: {row['words']}")
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(results, indent=0))
    sys.exit(bad)


if __name__ == "__main__":
    main()
