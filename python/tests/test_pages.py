# SPDX-License-Identifier: Apache-2.0
"""Every block of docs/python.md that needs no PyTorch runs, one after the other as a reader types them; and the
functions of its table are there."""
import pathlib
import re

import numpy as np
import pytest

import lathe

PAGE = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text()


def blocks(language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.S | re.M)


def test_blocks_run(capsys):
    here = {}
    # That of ONNX has a test of its own, with files that there are.
    ran = [block for block in blocks() if "lathe.torch" not in block and "lathe.onnx" not in block]
    assert len(ran) == 2
    for block in ran:
        exec(compile(block, "python.md", "exec"), here)
    assert np.asarray(here["y"]).shape == (3, 64)
    assert capsys.readouterr().out.strip() == "(3, 64)"


def test_the_mistake_reads_as_it_says():
    said = re.search(r"^model\.py:12: (.*)$", PAGE, re.M).group(1)
    g = lathe.Graph("m")
    with pytest.raises(lathe.Error) as caught:
        lathe.matmul(g.input("x", "f32", [3, 6]), g.input("w", "f32", [4, 5]))
    assert said in str(caught.value), str(caught.value)


def test_questions_of_the_table_are_answered():
    g = lathe.Graph("m")
    x = g.input("x", "f32", [2, 8])
    g.output("y", lathe.exp(x))
    rows = re.findall(r"^\| `lathe\.(\w+)\(([^)]*)\)`", PAGE, re.M)
    assert len(rows) >= 6
    for name, arguments in rows:
        answer = getattr(lathe, name)(*eval(f"({arguments},)", {"g": g, "a": g, "b": g}))
        assert str(answer), name


def test_names_of_the_text_exist():
    for dotted in set(re.findall(r"`lathe\.([\w.]+)`", PAGE)) - {"torch", "torch.fallbacks"}:
        found = lathe
        for part in dotted.split("."):
            found = getattr(found, part)
