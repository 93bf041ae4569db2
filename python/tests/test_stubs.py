# SPDX-License-Identifier: Apache-2.0
"""The stubs name what the modules hold, with the docstrings that they have."""
import ast
import pathlib

import pytest

import lathe

FOLDER = pathlib.Path(lathe.__file__).parent


@pytest.mark.parametrize("module, file", [("_runtime", "_runtime.pyi"), ("_compiler", "_compiler/__init__.pyi"),
                                          ("_compiler.nn", "_compiler/nn.pyi"),
                                          ("_compiler.fused", "_compiler/fused.pyi")])
def test_a_stub_has_all_names(module, file):
    tree = ast.parse((FOLDER / file).read_text())
    named = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    named |= {a.asname or a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    lathe.Graph()  # loads the compiler
    value = lathe
    for part in module.split("."):
        value = vars(value)[part]
    assert {n for n in dir(value) if not n.startswith("_")} <= named


def test_docstrings_come_from_the_headers():
    text = (FOLDER / "_compiler/nn.pyi").read_text()
    assert "x W^T + b over the last axis: [..., in] -> [..., out], in x's dtype." in text
    assert "def __init__(self, graph: Graph, path: str, in_: int, out: int, *, bias: bool = True" in text
    assert "x W^T + b over the last axis" in lathe.nn.Linear.__doc__
