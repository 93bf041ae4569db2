# SPDX-License-Identifier: Apache-2.0
"""ONNX files as graphs: the cases of the C++ tests, which lie in ONNX's own layout."""
import pathlib

import numpy as np
import pytest

import lathe

CASES = pathlib.Path(__file__).parents[2] / "tests/onnx/cases"


@pytest.mark.parametrize("name", ["attention_block", "mlp", "integers"])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_case_gives_its_outputs(name, backend):
    folder = CASES / name
    model = lathe.onnx.load(folder / "model.onnx")
    session = lathe.Session(lathe.compile(model.graph, backend=backend), model.weights)
    assert len(model.inputs) == len(list(folder.glob("input_*.pb"))) > 0
    inputs = {n: lathe.onnx.load_tensor(folder / f"input_{i}.pb") for i, n in enumerate(model.inputs)}
    results = session.run(**inputs)
    assert len(model.outputs) == len(list(folder.glob("output_*.pb"))) > 0
    for i, output in enumerate(model.outputs):
        want = np.asarray(lathe.onnx.load_tensor(folder / f"output_{i}.pb"))
        got = np.asarray(results[output])
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=2e-6)


def test_weights_are_also_bound_by_the_file():
    path = CASES / "attention_block/model.onnx"
    model = lathe.onnx.load(str(path))
    assert sorted(model.weights) == ["wk", "wo", "wq", "wv"]
    assert np.asarray(model.weights["wk"]).shape == (16, 8)
    program = lathe.compile(model.graph)
    x = np.linspace(-1, 1, 2 * 3 * 16, dtype="f4").reshape(2, 3, 16)
    by_file, by_name = lathe.Session(program, path), lathe.Session(program, model.weights)
    assert np.array_equal(by_file.run(x=x)["y"], by_name.run(x=x)["y"])


def test_what_is_open_has_the_range_that_is_asked_for():
    model = lathe.onnx.load(CASES / "attention_block/model.onnx", largest=7)
    session = lathe.Session(lathe.compile(model.graph), model.weights)
    with pytest.raises(lathe.Error, match="seq"):
        session.run(x=np.zeros((1, 8, 16), "f4"))


def test_a_constant_is_no_input():
    model = lathe.onnx.load(CASES / "mlp/model.onnx")
    values = lathe.onnx.load_tensor(CASES / "mlp/input_0.pb")
    known = lathe.onnx.load(CASES / "mlp/model.onnx", constants={model.inputs[0]: values})
    assert known.inputs == model.inputs[1:]


def test_a_bad_file_is_an_error(tmp_path):
    bad = tmp_path / "model.onnx"
    bad.write_bytes(b"\xff" * 40)
    with pytest.raises(lathe.Error) as caught:
        lathe.onnx.load(bad)
    assert caught.value.code == "InvalidFile" and str(bad) in str(caught.value)
