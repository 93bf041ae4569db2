# SPDX-License-Identifier: Apache-2.0
"""Graphs recorded in Python, compiled and run; every number is checked against NumPy."""
import collections
import functools
import inspect
import pathlib
import types

import numpy as np
import pytest

import lathe


def line():
    return inspect.currentframe().f_back.f_lineno


def mlp():
    g = lathe.Graph("mlp")
    x = g.input("x", "f32", [g.dim("batch", 1, 64), 64])
    g.output("y", lathe.nn.SwiGLU(g, "mlp", 64, 172)(x))
    return g


def glu(x, weights):
    gate, up, down = (weights[f"mlp.{n}_proj.weight"].astype("f8") for n in ("gate", "up", "down"))
    a = x @ gate.T
    return (a / (1 + np.exp(-a)) * (x @ up.T)) @ down.T


def test_a_module_agrees_with_numpy_at_every_batch():
    program = lathe.compile(mlp())
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(shape).astype("f4") * 0.1 for n, (_, shape) in program.weights.items()}
    session = lathe.Session(program, weights)
    for batch in (1, 3, 64):
        x = rng.standard_normal((batch, 64)).astype("f4")
        y = np.asarray(session.run(x=x)["y"])
        assert y.shape == (batch, 64)
        np.testing.assert_allclose(y, glu(x.astype("f8"), weights), rtol=1e-5, atol=1e-5)
        np.testing.assert_array_equal(np.asarray(session(x)), y)


def test_operators_indices_and_numbers():
    g = lathe.Graph()
    x = g.input("x", "f32", [4, 6])
    g.output("a", 1 - x * 2 + x / 4)
    g.output("b", x[1:3, ::2])
    g.output("c", x[..., -1])
    g.output("d", lathe.where(x > 0, x, 0.0))
    g.output("e", x @ x.T)
    g.output("f", (x[:, None] ** 2)[:, 0])
    values = np.linspace(-2, 2, 24, dtype="f4").reshape(4, 6)
    out = {k: np.asarray(v) for k, v in lathe.Session(lathe.compile(g, backend="reference")).run(x=values).items()}
    np.testing.assert_allclose(out["a"], 1 - values * 2 + values / 4, rtol=1e-6)
    np.testing.assert_array_equal(out["b"], values[1:3, ::2])
    np.testing.assert_array_equal(out["c"], values[..., -1])
    np.testing.assert_array_equal(out["d"], np.where(values > 0, values, 0))
    np.testing.assert_allclose(out["e"], values @ values.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out["f"], values**2, rtol=1e-6)


def test_numbers_are_operands_of_functions():
    g = lathe.Graph()
    x, i = g.input("x", "f32", [3]), g.input("i", "i64", [3])
    g.output("a", lathe.min(x, 1))
    g.output("b", lathe.pow(2.0, x))
    g.output("c", lathe.bitwise_and(i, 3))
    g.output("d", lathe.where(lathe.compare(x, 0.5, "lt"), -1, x))
    values, ids = np.array([-2, 0.5, 3], "f4"), np.array([5, -2, 3])
    out = {k: np.asarray(v) for k, v in lathe.Session(lathe.compile(g, backend="reference")).run(x=values, i=ids).items()}
    np.testing.assert_array_equal(out["a"], np.minimum(values, 1))
    np.testing.assert_allclose(out["b"], 2**values, rtol=1e-6)
    np.testing.assert_array_equal(out["c"], ids & 3)
    np.testing.assert_array_equal(out["d"], np.where(values < 0.5, -1, values))


@pytest.mark.parametrize("record, words", [
    (lambda x: lathe.where(x > 0, 0.0, -1), "where: .*got a float and a int"),
    (lambda x: lathe.max(x, "1"), "max: .*got a Tensor and a str"),
    (lambda x: lathe.add(None, x), "add: .*got a NoneType and a Tensor"),
    (lambda x: lathe.mul(x, np.ones(3)), "record it with Graph.constant"),
])
def test_other_operands_are_refused_at_their_line(record, words):
    g = lathe.Graph()
    with pytest.raises(lathe.Error, match=words) as caught:
        record(g.input("x", "f32", [3]))
    assert pathlib.Path(caught.value.file).name == "test_graph.py"


def test_arrays_of_ml_dtypes_bf16_are_read():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    g = lathe.Graph()
    x = g.input("x", "bf16", [2, 3])
    g.output("y", lathe.cast(x, "f32"))
    given = np.arange(6).reshape(3, 2).astype(bfloat16).T / 3  # rows that do not lie in order
    y = np.asarray(lathe.Session(lathe.compile(g, backend="reference")).run(x=given)["y"])
    np.testing.assert_array_equal(y, given.astype("f4"))


def test_a_mistake_names_the_line_of_python():
    g = lathe.Graph()
    x = g.input("x", "f32", [4, 6])
    with pytest.raises(lathe.Error) as caught:
        expected = line() + 1
        lathe.matmul(x, x)
    assert caught.value.code == "InvalidArgument"
    assert pathlib.Path(caught.value.file).name == "test_graph.py"
    assert caught.value.line == expected
    assert f"test_graph.py:{expected}: " in str(caught.value)


def test_ops_carry_the_line_and_path_of_python():
    g = mlp()
    text = lathe.ir(g, "recorded", locations=True)
    assert "test_graph.py" in text and '"mlp' in text
    assert lathe.Graph.parse(text)._text() == g._text()


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"])
def test_numpy_goes_in_and_comes_out_without_a_copy(dtype):
    values = np.ones((2, 3), dtype)
    array = lathe.Array(values)
    assert array.shape == (2, 3)
    back = np.asarray(array)
    assert back.dtype == values.dtype
    assert back.ctypes.data == values.ctypes.data
    assert np.from_dlpack(array).ctypes.data == values.ctypes.data


def test_a_copy_that_is_asked_for_is_one():
    array = lathe.Array(np.ones((2, 3), "f4"))
    for make in (lambda: np.array(array, copy=True), lambda: array.__array__(copy=True),
                 lambda: np.asarray(array, dtype="f8")):
        copy = make()
        copy[...] = 7
        np.testing.assert_array_equal(np.asarray(array), np.ones((2, 3)))
    view = np.asarray(array)
    view[0, 0] = 5
    assert array.__array__(copy=False)[0, 0] == 5 and array.__array__()[0, 0] == 5


def test_arrays_of_rank_0_and_without_elements():
    assert lathe.Array(np.float32(3)).shape == ()
    assert lathe.Array(np.array(3, "f4")).item() == 3
    assert lathe.Array(np.zeros((0, 2), "f4")).shape == (0, 2)


@pytest.mark.parametrize("key", [0, np.s_[1:3], np.s_[...], [0, 2], np.array([1, 3]), True, None, np.s_[:, [0, 1]], (1, 2), np.s_[::-1]])
def test_arrays_have_the_items_of_numpy(key):
    values = np.arange(24, dtype="f4").reshape(4, 6)
    g = lathe.Graph()
    g.output("y", g.input("x", "f32", [4, 6]) * 1)
    item = lathe.Session(lathe.compile(g)).run(x=values)["y"][key]  # the array itself is gone
    np.testing.assert_array_equal(item, values[key])


def test_arrays_of_bf16_are_shown_by_ml_dtypes():
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    values = np.arange(6).reshape(2, 3).astype(bfloat16)
    y = lathe.Array(values)
    assert np.asarray(y).dtype == bfloat16 and y.numpy().dtype == bfloat16
    np.testing.assert_array_equal(np.asarray(y), values)
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]] and y[1, 2] == 5


def test_items_are_exact():
    assert lathe.Array(np.array([2**53 + 1], "i8")).item() == 2**53 + 1
    assert lathe.Array(np.array([-(2**63)], "i8")).item() == -(2**63)
    assert lathe.Array(np.array([True])).item() is True


WHOLE_NUMBERS = [sign * (2**power + more) for power in (31, 32, 53, 54, 62) for more in (-1, 0, 1)
                 for sign in (1, -1)] + [2**63 - 1, -(2**63), -(2**63) + 1]


def test_whole_numbers_are_exact():
    # A float64 holds none of those that are odd and beyond 2^53, of either sign.
    assert [lathe.Array(np.array([number], "i8")).item() for number in WHOLE_NUMBERS] == WHOLE_NUMBERS
    g = lathe.Graph()
    for i, number in enumerate(WHOLE_NUMBERS):
        g.output(f"{i}", g.constant(number))
        g.output(f"{i} as i64", g.constant(number, "i64"))
    session = lathe.Session(lathe.compile(g, backend="reference"))
    results = session.run()
    for i, number in enumerate(WHOLE_NUMBERS):
        assert results[f"{i}"].item() == number == results[f"{i} as i64"].item()


@pytest.mark.parametrize("key", [np.s_[-10:], np.s_[5:], np.s_[3:1], np.s_[:-9], np.s_[1:9:2], np.s_[-3:-1],
                                 np.s_[-10:3:2], np.s_[..., 2:], np.s_[:, 1:2]])
def test_slices_are_those_of_python(key):
    values = np.arange(12, dtype="f4").reshape(4, 3)
    g = lathe.Graph()
    g.output("y", g.input("x", "f32", [4, 3])[key] * 1)
    np.testing.assert_array_equal(lathe.Session(lathe.compile(g))(values), values[key])


def test_arrays_are_recorded_before_they_are_operands():
    g = lathe.Graph()
    x = g.input("x", "f32", [3, 4])
    array = np.ones(4, "f4")
    for mistake in (lambda: x + array, lambda: array * x, lambda: x @ np.ones((4, 2), "f4"), lambda: x > array):
        with pytest.raises(lathe.Error, match="expected a Tensor or a number, got an array .*Graph.constant"):
            mistake()
    g.output("y", np.float32(2) * x + np.int64(1) + g.constant(array))
    np.testing.assert_array_equal(lathe.Session(lathe.compile(g))(np.ones((3, 4), "f4")), np.full((3, 4), 4))


def test_rows_are_counted_and_handed_out():
    g = lathe.Graph()
    x = g.input("x", "f32", [3, 4])
    assert len(x) == 3
    first, second, third = x
    g.output("y", first * 2 + second - third)
    values = np.arange(12, dtype="f4").reshape(3, 4)
    np.testing.assert_array_equal(lathe.Session(lathe.compile(g))(values), values[0] * 2 + values[1] - values[2])
    with pytest.raises(TypeError, match="symbolic size"):
        len(g.input("n", "f32", [g.dim("n", 1, 8)]))


def test_what_is_no_index_says_so():
    x = lathe.Graph().input("x", "f32", [3, 4])
    for key in (True, [0, 1], x, np.array([0])):
        with pytest.raises(lathe.Error, match="as an index, got a .*gather"):
            x[key]


def test_an_op_has_no_other_attributes():
    g = lathe.Graph()
    x = g.input("x", "f32", [1, 4])
    with pytest.raises(lathe.Error, match="'lathe.softmax' has no attribute 'scales'; it has axis, "):
        g.op("softmax", [x, None], axis=1, scales=3.0)
    with pytest.raises(lathe.Error, match="'lathe.exp' has no attribute 'axis'; it has none"):
        g.op("exp", [x], axis=1)


@pytest.mark.parametrize("name, attributes, words", [
    ("transpose", dict(permutation=[1.0, 0]), r"attribute 'permutation': expected .*, got \[1.0, 0\]"),
    ("softmax", dict(axis=None), "attribute 'axis': expected .*, got None"),
    ("kernel", dict(kind="a", config={}), "attribute 'config': expected .*, got {}"),
    ("softmax", dict(axis=1.5), "'lathe.softmax': attribute 'axis' cannot be 1.5"),
    ("cast", dict(dtype=3), "'lathe.cast': attribute 'dtype' cannot be 3"),
    ("softmax", dict(), "lathe.softmax.* requires attribute 'axis'"),
    ("region", dict(), "'lathe.region' cannot be recorded by its name"),
    ("dim", dict(), "'lathe.dim' cannot be recorded|no op 'lathe.dim'"),
    ("yield", dict(), "'lathe.yield' cannot be recorded by its name"),
])
def test_what_no_op_can_have_is_named(name, attributes, words):
    g = lathe.Graph()
    x = g.input("x", "f32", [2, 4])
    operands = [] if name == "dim" else [x, None] if name == "softmax" else [x]
    with pytest.raises(lathe.Error, match=words) as e:
        g.op(name, operands, **attributes)
    assert "test_graph.py" in str(e.value)


def test_an_attribute_may_have_the_name_of_a_parameter():
    g = lathe.Graph()
    with pytest.raises(lathe.Error, match="'lathe.weight' cannot be recorded|attribute"):
        g.op("weight", [], name="w")
    x = g.input("x", "f32", [2, 3])
    g.output("y", g.op("softmax", [x, None], axis=np.int64(0)))
    given = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2
    e = np.exp(given - given.max(0))
    got = lathe.Session(lathe.compile(g)).run(x=given)["y"]
    np.testing.assert_allclose(np.asarray(got), e / e.sum(0), rtol=1e-6)


def test_memory_of_results_is_not_used_again_while_they_live():
    g = lathe.Graph()
    g.output("y", g.input("x", "f32", [3]) * 2)
    session = lathe.Session(lathe.compile(g))
    first = np.asarray(session(np.array([1, 2, 3], "f4")))
    session(np.array([7, 8, 9], "f4"))
    np.testing.assert_array_equal(first, [2, 4, 6])


def test_runs_do_not_hold_memory():
    g = lathe.Graph()
    g.output("y", g.input("x", "f32", [1024]) * 2)
    session = lathe.Session(lathe.compile(g))
    x = np.ones(1024, "f4")
    for _ in range(10):
        session(x)
    before = lathe.allocations()
    for _ in range(2000):
        np.asarray(session(x))
    assert lathe.allocations() == before


def test_mistakes_of_a_call():
    session = lathe.Session(lathe.compile(mlp()))
    session.bind_random_weights(1)
    g = lathe.Graph()
    x = g.input("x", "f32", [2])
    with pytest.raises(lathe.Error, match="input 'x' is missing; it takes x"):
        session.run()
    with pytest.raises(lathe.Error, match="has no input 'z'"):
        session.run(x=np.zeros((1, 64), "f4"), z=np.zeros(1, "f4"))
    with pytest.raises(lathe.Error, match="numpy.asarray"):
        session.run(x=[[1.0] * 64])
    with pytest.raises(lathe.Error, match="there is no option"):
        lathe.compile(mlp(), bakend="cpu")
    with pytest.raises(lathe.Error, match="expected one of none, silu"):
        lathe.nn.activate(x, "swish")
    with pytest.raises(lathe.Error, match="LinearOptions has no field 'bais'; it has bias"):
        lathe.nn.Linear(lathe.Graph(), "l", 2, 2, bais=False)
    with pytest.raises(TypeError, match="where"):
        bool(x > 0)
    with pytest.raises(lathe.Error, match="the graph of this tensor no longer exists"):
        lathe.exp(lathe.Graph().input("x", "f32", [2]))


def test_what_is_no_path_is_named():
    g, x = lathe.Graph(), np.ones(2, "f4")
    g.output("y", g.input("x", "f32", [2]) * g.weight("w", "f32", [2]))
    program = lathe.compile(g)
    for mistake in (3, [g], object()):
        with pytest.raises(lathe.Error, match=f"expected a Graph or the path of a model to compile .* got {type(mistake).__name__}"):
            lathe.compile(mistake)
        with pytest.raises(lathe.Error, match=f"expected weights as a path or as arrays by name, got {type(mistake).__name__}"):
            lathe.Session(program, mistake)
    with pytest.raises(lathe.Error, match="expected the name of each weight, got 1"):
        lathe.Session(program, {1: x})
    for weights in (types.MappingProxyType({"w": 3 * x}), collections.ChainMap({"w": 3 * x})):
        np.testing.assert_array_equal(lathe.Session(program, weights)(x), [3, 3])


def test_a_file_is_compiled_with_the_options_of_a_graph(tmp_path):
    file = tmp_path / "mlp.mlir"
    file.write_text(lathe.ir_at(mlp(), "recorded"))
    for model in (file, mlp()):
        with pytest.raises(lathe.Error, match="float64 is not supported on backend 'cpu'"):
            lathe.compile(model, float64=True)
        lathe.compile(model, backend="reference", float64=True)


def test_a_pattern_is_a_function():
    def square_root(p):
        x = p.any()
        p.root(lathe.sqrt(x * x))
        p.replace_with(lathe.abs(x))

    g = lathe.Graph()
    x = g.input("x", "f32", [8])
    g.output("y", lathe.sqrt(x * x))
    fused = lathe.ir(g, "fused", patterns=[square_root])
    assert "lathe.abs" in fused and "lathe.sqrt" not in fused
    y = lathe.Session(lathe.compile(g, patterns=[square_root]))(np.array([-3] * 8, "f4"))
    np.testing.assert_array_equal(np.asarray(y), [3] * 8)


def test_a_pattern_may_have_no_name():
    def of(factor, p):
        x = p.any()
        p.root(lathe.sqrt(x * x))
        p.replace_with(lathe.abs(x) * factor)

    g = lathe.Graph()
    x = g.input("x", "f32", [8])
    g.output("y", lathe.sqrt(x * x))
    assert "lathe.abs" in lathe.ir(g, "fused", patterns=[functools.partial(of, 1.0)])


def test_what_a_pattern_raises_comes_through():
    def broken(p):
        raise ValueError("my mistake")

    g = lathe.Graph()
    g.output("y", g.input("x", "f32", [8]) * 2)
    with pytest.raises(lathe.Error, match="pattern 'broken'.*\n(.*\n)*ValueError: my mistake"):
        lathe.compile(g, patterns=[broken])


def test_a_pattern_ends_with_its_call():
    kept = []

    def pattern(p):
        x = p.any()
        kept.append((p, x))
        p.root(lathe.sqrt(x * x))
        p.replace_with(lathe.abs(x))

    def of_another(p):
        p.root(lathe.sqrt(p.any()))
        p.replace_with(kept[0][1])

    g = lathe.Graph()
    x = g.input("x", "f32", [8])
    g.output("y", lathe.sqrt(x * x))
    for _ in range(3):  # the next one may lie where the last one lay
        lathe.compile(g, patterns=[pattern])
    for p, any_value in kept:
        for call in (p.any, lambda: p.phase(3), lambda: p.rank(any_value, 1), lambda: p.root(any_value)):
            with pytest.raises(lathe.Error, match="the pattern is recorded already"):
                call()
        assert repr(any_value) == "lathe.Tensor(without a shape)"
    with pytest.raises(lathe.Error, match="pattern 'of_another': the tensor's pattern or graph no longer exists"):
        lathe.compile(g, patterns=[of_another])


def test_numbers_beyond_what_cpp_holds():
    g = lathe.Graph()
    x, n, b = g.input("x", "f32", [8]), g.input("n", "i64", [2]), g.dim("b", 1, 8)
    whole = "expected a whole number that i64 holds, got one of (64|65) bits"
    for call in (lambda: lathe.Dim(2**63), lambda: b + 2**63, lambda: 2**64 * b, lambda: g.input("z", "f32", [2**63]), lambda: x[2**63:],
                 lambda: x[::2**63], lambda: g.op("softmax", [x], axis=2**63), lambda: lathe.Dim(-2**63 - 1)):
        with pytest.raises(lathe.Error, match=whole):
            call()
    for call in (lambda: x + 10**400, lambda: g.constant(10**400, "f32"), lambda: n * -10**400):
        with pytest.raises(lathe.Error, match="expected a number that f64 holds, got one of 1329 bits"):
            call()
    assert b != 2**63 and b * 0 + 2 != 2**65 + 2 and 2**64 not in [b] and b != "b" and lathe.Dim(3) == 3
    for i, y in enumerate((n + (2**53 + 1), n * 0 - (2**62 + 3), (2**60 + 7) - n * 0, x + 2**70)):
        g.output(f"y{i}", y)
    results = lathe.Session(lathe.compile(g)).run(x=np.zeros(8, "f4"), n=np.array([1, 2]))
    got = [np.asarray(results[f"y{i}"]).tolist() for i in range(4)]
    assert got == [[2**53 + 2, 2**53 + 3], [-2**62 - 3] * 2, [2**60 + 7] * 2, [2.0**70] * 8]


def test_a_tensor_whose_graph_is_gone():
    x = lathe.Graph().input("x", "f32", [3])
    assert repr(x) == "lathe.Tensor(without a shape)"
    with pytest.raises(lathe.Error, match=r"test_graph.py:\d+: .*the graph of this tensor no longer exists"):
        x + 1


def test_states_live_across_runs():
    g = lathe.Graph()
    g.state("total", "f32", [2])
    total = g.read_state("total") + g.input("x", "f32", [2])
    g.write_state("total", total)
    g.output("y", total)
    session = lathe.Session(lathe.compile(g))
    for n in (1, 2, 3):
        assert np.asarray(session(np.ones(2, "f4"))).tolist() == [n, n]
    assert np.asarray(session.state("total")).tolist() == [3, 3]
    session.reset_states()
    assert np.asarray(session(np.ones(2, "f4"))).tolist() == [1, 1]


def test_a_symbol_of_states_alone_is_set():
    g = lathe.Graph()
    g.state("total", "f32", [g.dim("length", 1, 8)])
    total = g.read_state("total") + g.input("x", "f32", [1])
    g.write_state("total", total)
    g.output("y", total)
    session = lathe.Session(lathe.compile(g))
    for length in (3, 5):
        session.set_symbol("length", length)
        assert np.asarray(session(np.ones(1, "f4"))).tolist() == [1] * length


def test_a_program_is_saved_and_opened(tmp_path):
    program = lathe.compile(mlp())
    program.save(str(tmp_path / "mlp.lathe"))
    again = lathe.Program.open(str(tmp_path / "mlp.lathe"))
    assert again.inputs() == program.inputs() == {"x": ("f32", (lathe.Dim("batch"), 64))}
    x = np.ones((2, 64), "f4")
    results = []
    for p in (program, again):
        s = lathe.Session(p)
        s.bind_random_weights(1)
        results.append(np.asarray(s(x)))
    np.testing.assert_array_equal(*results)


def test_a_language_model_of_nn():
    g = lathe.Graph()
    batch, seq = g.dim("batch", 1, 4), g.dim("seq", 1, 32)
    lm = lathe.nn.TransformerLM(g, "", vocab_size=50, d_model=16, d_hidden=32, layers=2, heads=4, kv_heads=2,
                                max_positions=32, style=lathe.nn.ModelStyle.llama())
    g.output("logits", lm.forward(g.input("ids", "i64", [batch, seq])))
    fused = lathe.ir(g, "fused")
    assert fused.count("lathe.attention") == 2 and fused.count("lathe.glu") == 2
    ids = np.arange(10).reshape(2, 5)
    results = []
    for backend in ("cpu", "reference"):
        session = lathe.Session(lathe.compile(g, backend=backend))
        session.bind_random_weights(3)
        results.append(np.asarray(session.run(ids=ids)["logits"]))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-5)


def test_ranks_are_said_by_hand():
    g = lathe.Graph("mlp")
    x = g.input("x", "f32", [3, 64])
    y = lathe.nn.SwiGLU(g, "mlp", 64, 172)(x)
    g.output("y", lathe.shard(y, 1) * 2.0)
    g.mesh("tp", 2)
    here = line() + 1
    g.shard("mlp.*_proj.weight", 1)
    g.keep_whole("mlp.up_proj.weight")
    ir = lathe.ir(g, "sharded")
    assert '"mlp.gate_proj.weight" axis 1 parts 2' in ir and 'lathe.weight "mlp.up_proj.weight" :' in ir
    assert "lathe.shard" not in lathe.ir(g, "canonical", ranks=1)
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((3, 64)).astype("f4")
    whole = lathe.compile(g, ranks=1)
    weights = {n: rng.standard_normal(shape).astype("f4") * 0.1 for n, (_, shape) in whole.weights.items()}
    expected = 2 * glu(inputs.astype("f8"), weights)
    for ranks in (0, 1, 4):
        program = lathe.compile(g, ranks=ranks, simulate_ranks=True)
        y = np.asarray(lathe.Session(program, weights).run(x=inputs)["y"])
        np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-5)
    assert any("by hand" in row["reason"] for row in lathe.why_not(g))
    with pytest.raises(lathe.Error, match=rf"does not divide by 5 ranks.*test_graph.py:{here}"):
        lathe.compile(g, ranks=5)


def test_equal_sizes_are_one_key():
    b = lathe.Graph().dim("b", 1, 8)
    sizes = {lathe.Dim(3): "three", b + 1: "one more"}
    assert sizes[3] == sizes[lathe.Dim("3")] == sizes[b * 0 + 3] == "three" and sizes[lathe.Dim("1+b")] == "one more"
    assert lathe.Dim(-2) in {-2} and b not in sizes


def test_numbers_in_front_of_dims():
    n = lathe.Graph().dim("n", 1, 8)
    assert (5 - n) + n == 5 and (n - 5) - n == -5
    assert 2 * n - n == n


@pytest.mark.parametrize("key", [np.s_[..., None], np.s_[None, ...], np.s_[0, ..., None], np.s_[None, ..., 0], np.s_[..., None, 1, :], np.s_[:, None, ..., ::2]])
def test_new_axes_beside_an_ellipsis(key):
    values = np.arange(24, dtype="f4").reshape(2, 3, 4)
    g = lathe.Graph()
    g.output("y", g.input("x", "f32", values.shape)[key])
    np.testing.assert_array_equal(lathe.Session(lathe.compile(g, backend="reference")).run(x=values)["y"], values[key])


@pytest.mark.parametrize("name", ["float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"])
def test_dtypes_of_numpy_are_those_of_arrays(name):
    values = np.arange(3).astype(name)
    g = lathe.Graph()
    g.output("y", g.input("x", getattr(np, name + "_" * (name == "bool")), [3]))
    out = np.asarray(lathe.Session(lathe.compile(g, backend="reference")).run(x=values)["y"])
    assert out.dtype == values.dtype
    np.testing.assert_array_equal(out, values)
