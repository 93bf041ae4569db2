# SPDX-License-Identifier: Apache-2.0
"""Graphs that are no language models beside OpenVINO and ONNX Runtime: one ONNX file for all of them.

    peers/bin/python bench/peers/graphs.py [--graphs encoder-1,mlp] [--dtype f32] [-t 2] [--rounds 9] [-o NAME]

An encoder of BERT-base's size on 128 tokens (a batch of 1 and of 8), attention, softmax, layer norm and an MLP, with
random weights and inputs. Needs the wheels of scripts/build_wheel beside openvino, onnx and onnxruntime. Each engine has
a process of its own, since idle threads of one spin for a while, and they take turns in rounds; times are medians over
the rounds, ratios medians of the rounds' own. With `--dtype bf16` Lathe runs a file of bf16 and OpenVINO the f32 file
with its precision hint; ONNX Runtime's CPU kernels have no bf16. The last column is Lathe's products' operations a
second. `-o NAME` writes bench/results/NAME.json.
"""

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SECONDS = 0.1  # of calls in a row


class File:
    """A graph that becomes a file of f32 or bf16, with equal weights."""

    def __init__(self, dtype):
        self.type = TensorProto.BFLOAT16 if dtype == "bf16" else TensorProto.FLOAT
        self.nodes, self.weights, self.inputs, self.flops = [], [], [], 0
        self.random = np.random.default_rng(0)

    def input(self, *shape):
        self.inputs.append(helper.make_tensor_value_info(f"x{len(self.inputs)}", TensorProto.FLOAT, shape))
        return self.op("Cast", [self.inputs[-1].name], to=self.type)

    def op(self, kind, inputs, **attributes):
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, array):
        self.weights.append(numpy_helper.from_array(array, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape, scale=0.02, center=0.0):
        values = (self.random.standard_normal(shape) * scale + center).astype(np.float32)
        if self.type == TensorProto.FLOAT:
            return self.constant(values)
        bits = (values.view(np.uint32) >> 16).astype(np.uint16)
        self.weights.append(helper.make_tensor(f"w{len(self.weights)}", self.type, shape, bits.tobytes(), raw=True))
        return self.weights[-1].name

    def whole(self, *values):
        return self.constant(np.array(values, np.int64))

    def linear(self, x, rows, k, n):
        self.flops += 2 * rows * k * n
        return self.op("Add", [self.op("MatMul", [x, self.weight(k, n)]), self.weight(n)])

    def norm(self, x, width):
        gain, bias = self.weight(width, center=1.0), self.weight(width)
        return self.op("LayerNormalization", [x, gain, bias], axis=-1, epsilon=1e-12)

    def attention(self, q, k, v, batch, heads, tokens, size):
        self.flops += 4 * batch * heads * tokens * tokens * size
        scale = self.constant(np.float32(size**-0.5))
        scaled = self.op("Mul", [q, self.op("Cast", [scale], to=self.type)])
        scores = self.op("MatMul", [scaled, self.op("Transpose", [k], perm=[0, 1, 3, 2])])
        return self.op("MatMul", [self.op("Softmax", [scores], axis=-1), v])

    def save(self, y, path):
        y = self.op("Cast", [y], to=TensorProto.FLOAT)
        output = helper.make_tensor_value_info(y, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "graph", self.inputs, [output], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        onnx.save(onnx.shape_inference.infer_shapes(model), path)


def encoder(f, batch, tokens=128, width=768, heads=12, layers=12):
    size, rows, x = width // heads, batch * tokens, f.input(batch, tokens, width)
    parts, whole = f.whole(0, 0, heads, size), f.whole(0, 0, width)
    for _ in range(layers):
        q, k, v = (
            f.op("Transpose", [f.op("Reshape", [f.linear(x, rows, width, width), parts])], perm=[0, 2, 1, 3])
            for _ in range(3)
        )
        y = f.op("Transpose", [f.attention(q, k, v, batch, heads, tokens, size)], perm=[0, 2, 1, 3])
        x = f.norm(f.op("Add", [x, f.linear(f.op("Reshape", [y, whole]), rows, width, width)]), width)
        inner = f.op("Gelu", [f.linear(x, rows, width, 4 * width)])
        x = f.norm(f.op("Add", [x, f.linear(inner, rows, 4 * width, width)]), width)
    return x


def attention(f, heads=12, tokens=512, size=64):
    q, k, v = (f.input(1, heads, tokens, size) for _ in range(3))
    return f.attention(q, k, v, 1, heads, tokens, size)


def mlp(f, rows=512, width=1024):
    inner = f.op("Gelu", [f.linear(f.input(rows, width), rows, width, 4 * width)])
    return f.linear(inner, rows, 4 * width, width)


GRAPHS = {
    "encoder-1": lambda f: encoder(f, 1),
    "encoder-8": lambda f: encoder(f, 8),
    "attention": attention,
    "mlp": mlp,
    "softmax": lambda f: f.op("Softmax", [f.input(2048, 1024)], axis=-1),
    "layer-norm": lambda f: f.norm(f.input(2048, 1024), 1024),
}


def with_lathe(path, inputs, arguments):
    import lathe

    model = lathe.onnx.load(path)
    session = lathe.Session(lathe.compile(model.graph), model.weights)
    return lambda: np.asarray(next(iter(session.run(**inputs).values())))


def with_openvino(path, inputs, arguments):
    import openvino

    options = {"INFERENCE_NUM_THREADS": arguments.threads, "INFERENCE_PRECISION_HINT": arguments.dtype}
    request = openvino.Core().compile_model(path, "CPU", options).create_infer_request()
    return lambda: request.infer(inputs, share_inputs=True, share_outputs=True)[0]


def with_onnxruntime(path, inputs, arguments):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, inputs)[0]


ENGINES = {"lathe": with_lathe, "openvino": with_openvino, "onnxruntime": with_onnxruntime}


def serve(engine, path, inputs, arguments, pipe):
    """An engine's process: sends its result, then for each number the seconds of a call, of so many in a row."""
    call = ENGINES[engine](path, inputs, arguments)
    pipe.send(np.array(call()))
    while count := pipe.recv():
        begin = time.perf_counter()
        for _ in range(count):
            call()
        pipe.send((time.perf_counter() - begin) / count)


class Engine:
    def __init__(self, name, path, inputs, arguments):
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=serve, args=(name, path, inputs, arguments, theirs))
        self.process.start()
        theirs.close()
        self.result, self.times = self.pipe.recv(), []
        self.count = max(1, round(SECONDS / self.seconds(2)))

    def seconds(self, count):
        time.sleep(SECONDS / 2)  # until the threads of the engine before are asleep
        self.pipe.send(count)
        return self.pipe.recv()

    def end(self):
        self.pipe.send(0)
        self.process.join()


def measure(name, folder, arguments):
    files = {}
    for dtype in {"f32", arguments.dtype}:
        file = File(dtype)
        files[dtype] = str(folder / f"{name}-{dtype}.onnx")
        file.save(GRAPHS[name](file), files[dtype])
    inputs = {
        v.name: np.random.default_rng(1)
        .standard_normal([d.dim_value for d in v.type.tensor_type.shape.dim])
        .astype(np.float32)
        for v in file.inputs
    }
    names = [engine for engine in ENGINES if arguments.dtype == "f32" or engine != "onnxruntime"]
    engines = {
        engine: Engine(engine, files[arguments.dtype if engine == "lathe" else "f32"], inputs, arguments)
        for engine in names
    }
    own = engines["lathe"]
    for engine in engines.values():
        error = np.abs(engine.result - own.result).max() / np.abs(own.result).max()
        if not error < (0.1 if arguments.dtype == "bf16" else 1e-3):
            raise SystemExit(f"{name}: an engine's result differs from Lathe's by {error}")
    for _ in range(arguments.rounds):
        for engine in engines.values():
            engine.times.append(engine.seconds(engine.count))
    row = {"graph": name, "flops": file.flops, "milliseconds": {}, "ratios": {}}
    for engine, e in engines.items():
        row["milliseconds"][engine] = 1e3 * statistics.median(e.times)
        row["ratios"][engine] = statistics.median(a / b for a, b in zip(e.times, own.times))
        e.end()
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", default=",".join(GRAPHS), help="some of them")
    parser.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    parser.add_argument("-t", "--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("-o", "--output", help="name of the file in bench/results")
    arguments = parser.parse_args()
    multiprocessing.set_start_method("spawn")
    os.environ["LATHE_NUM_THREADS"] = str(arguments.threads)
    rows = []
    print("| graph | Lathe ms | OpenVINO ms | it / Lathe | ONNX Runtime ms | it / Lathe | GFLOP/s |")
    print("| --- | --: | --: | --: | --: | --: | --: |")
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.graphs.split(","):
            row = measure(name, Path(folder), arguments)
            rows.append(row)
            ms, ratios = row["milliseconds"], row["ratios"]
            cells = [name, f"{ms['lathe']:.3f}"]
            for engine in ("openvino", "onnxruntime"):
                cells += [f"{ms[engine]:.3f}", f"{ratios[engine]:.2f}"] if engine in ms else ["", ""]
            cells.append(f"{row['flops'] / ms['lathe'] / 1e6:.0f}" if row["flops"] else "")
            print("| " + " | ".join(cells) + " |", flush=True)
    if arguments.output:
        path = Path(__file__).resolve().parents[1] / "results" / f"{arguments.output}.json"
        facts = {"dtype": arguments.dtype, "threads": arguments.threads, "rounds": arguments.rounds}
        path.write_text(json.dumps({**facts, "graphs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
