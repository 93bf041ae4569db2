# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode speed of OpenVINO on a Llama configuration with random weights.

The graph is written with OpenVINO's own ops in the form of its exported language models: a stateful
cache, one op for attention, weights that are decompressed in front of each product. `bf16` and
`f32` set the precision hint; int8 has a scale for each row, int4 one for 128 elements, and both
keep an int8 head, as its compression does. Everything else is the library's default.
"""

from collections import Counter

import numpy as np
import openvino as ov
from openvino import opset13 as ops
from openvino.op.util import Variable, VariableInfo

import peer


constant = ops.constant
# OpenVINO reads these arrays where they lie.
KEPT = []


def raw(array, shape, kind):
    KEPT.append(array)
    return ops.constant(ov.Tensor(array, ov.Shape(shape), kind))


def weight(n, k, form):
    """A [n, k] weight as f32, decompressed from what is stored."""
    if form == "f32":
        return constant(peer.random_f32(n, k))
    if form == "bf16":
        return ops.convert(raw(peer.random_bf16(n, k), [n, k], ov.Type.bf16), np.float32)
    group = k if form == "int8" or k % 128 else 128
    bits = peer.random_bits(n * k // (1 if form == "int8" else 2), np.uint8)
    shape = [n, k] if group == k else [n, k // group, group]
    stored = raw(bits, shape, ov.Type.i8 if form == "int8" else ov.Type.i4)
    scales = constant(np.full(shape[:-1] + [1], 1e-3, np.float16))
    scaled = ops.multiply(ops.convert(stored, np.float16), scales)
    if len(shape) == 3:
        scaled = ops.reshape(scaled, constant(np.array([n, k], np.int64)), False)
    return ops.convert(scaled, np.float32)


class Llama:
    def __init__(self, model, form):
        self.model, self.form = model, form
        self.layer, self.size = peer.sizes(model)
        self.assigns = []

    def linear(self, x, name):
        return ops.matmul(x, weight(*self.layer[name], self.form), False, True)

    def norm(self, x):
        squares = ops.reduce_mean(ops.power(x, constant(np.float32(2))), constant([-1]), True)
        root = ops.sqrt(ops.add(squares, constant(np.float32(self.model["rms_norm_eps"]))))
        normed = ops.multiply(x, ops.divide(constant(np.float32(1)), root))
        gain = constant(np.ones([1, 1, self.model["hidden_size"]], np.float32))
        return ops.multiply(gain, normed)

    def heads(self, x, count):
        split = ops.reshape(x, constant([0, 0, count, self.size]), True)
        return ops.transpose(split, constant([0, 2, 1, 3]))

    def rotated(self, x):
        half = constant([self.size // 2])
        first = ops.slice(x, constant([0]), half, constant([1]), constant([3]))
        second = ops.slice(x, half, constant([1 << 30]), constant([1]), constant([3]))
        minus = constant(np.full([1, 1, 1, 1], -1, np.float32))
        turned = ops.concat([ops.multiply(second, minus), first], 3)
        return ops.add(ops.multiply(x, self.cos), ops.multiply(turned, self.sin))

    def cached(self, x, name):
        heads = self.model["num_key_value_heads"]
        info = VariableInfo()
        info.data_shape = ov.PartialShape([-1, heads, -1, self.size])
        info.data_type, info.variable_id = ov.Type.f32, name
        variable = Variable(info)
        empty = ops.concat([self.batch, constant([heads, 0, self.size])], 0)
        past = ops.read_value(ops.broadcast(constant(np.float32(0)), empty), variable)
        whole = ops.concat([ops.gather(past, self.beams, constant(0)), x], 2)
        self.assigns.append(ops.assign(whole, variable))
        groups = self.model["num_attention_heads"] // heads
        shape = ops.shape_of(whole)
        sizes = [ops.gather(shape, constant([axis]), constant(0)) for axis in range(4)]
        target = ops.concat([*sizes[:2], constant([groups]), *sizes[2:]], 0)
        spread = ops.broadcast(ops.unsqueeze(whole, constant(2)), target, None, "BIDIRECTIONAL")
        return ops.reshape(spread, constant([0, heads * groups, -1, self.size]), True)

    def attention(self, x, index):
        heads, keys = self.model["num_attention_heads"], self.model["num_key_value_heads"]
        q = self.rotated(self.heads(self.linear(x, "q"), heads))
        k = self.cached(self.rotated(self.heads(self.linear(x, "k"), keys)), f"{index}.key")
        v = self.cached(self.heads(self.linear(x, "v"), keys), f"{index}.value")
        y = ops.scaled_dot_product_attention(q, k, v, self.mask, causal=False)
        y = ops.transpose(y, constant([0, 2, 1, 3]))
        return self.linear(ops.reshape(y, constant([0, 0, heads * self.size]), True), "o")

    def graph(self):
        model, form = self.model, self.form
        ids = ops.parameter([-1, -1], np.int64, "ids")
        positions = ops.parameter([-1, -1], np.int64, "positions")
        self.beams = ops.parameter([-1], np.int32, "beams")
        self.batch = ops.gather(ops.shape_of(ids), constant([0]), constant(0))
        last = ops.gather(positions, constant(-1), constant(1))
        self.total = ops.add(ops.gather(last, constant([0]), constant(0)), constant([1]))
        column = ops.unsqueeze(positions, constant(-1))
        places = ops.range(constant(0), ops.squeeze(self.total, constant(0)), constant(1), "i64")
        hidden = ops.greater(places, column)
        self.mask = ops.unsqueeze(
            ops.select(hidden, constant(np.float32(-3.4e38)), constant(np.float32(0))), constant(1)
        )
        powers = np.arange(0, self.size, 2, dtype=np.float32) / self.size
        frequencies = constant((model["rope_theta"] ** -powers).astype(np.float32))
        angles = ops.multiply(ops.convert(column, np.float32), frequencies)
        angles = ops.unsqueeze(ops.concat([angles, angles], 2), constant(1))
        self.cos, self.sin = ops.cos(angles), ops.sin(angles)
        head = "int8" if form == "int4" else form
        table = weight(model["vocab_size"], model["hidden_size"], head)
        x = ops.gather(table, ids, constant(0))
        for index in range(model["num_hidden_layers"]):
            x = ops.add(x, self.attention(self.norm(x), index))
            y = self.norm(x)
            gated = ops.multiply(ops.swish(self.linear(y, "gate")), self.linear(y, "up"))
            x = ops.add(x, self.linear(gated, "down"))
        x = ops.unsqueeze(ops.gather(self.norm(x), constant(-1), constant(1)), constant(1))
        tied = model.get("tie_word_embeddings")
        head = table if tied else weight(model["vocab_size"], model["hidden_size"], head)
        logits = ops.matmul(x, head, False, True)
        return ov.Model([ops.result(logits)], self.assigns, [ids, positions, self.beams])


def main():
    arguments = peer.parse_arguments(__doc__, peer.FORMATS)
    core = ov.Core()
    compiled = core.compile_model(
        Llama(arguments.model, arguments.format).graph(),
        "CPU",
        {
            "INFERENCE_NUM_THREADS": arguments.threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32" if arguments.format == "f32" else "bf16",
        },
    )
    request = compiled.create_infer_request()
    length = 0

    def run(ids):
        nonlocal length
        count = len(ids)
        positions = np.arange(length, length + count, dtype=np.int64)
        length += count
        request.infer([np.array([ids], np.int64), positions[None], np.zeros(1, np.int32)])
        return request.get_output_tensor(0).data.ravel()

    def start(ids):
        nonlocal length
        request.reset_state()
        length = 0
        return run(ids)

    facts = {"engine": "OpenVINO", "version": ov.__version__.split("-")[0]}
    nodes = compiled.get_runtime_model().get_ordered_ops()
    kinds = Counter(node.get_rt_info()["layerType"].astype(str) for node in nodes)
    if "ScaledDotProductAttention" not in kinds or "RMS" not in kinds:
        raise SystemExit(f"OpenVINO did not fuse attention and norms: {sorted(kinds)}")
    joined = 3 * (kinds["QKVProjection"] + kinds["LLMMLP"])
    products = 7 * arguments.model["num_hidden_layers"] + 1
    if kinds["FullyConnected"] + joined != products:
        raise SystemExit(f"OpenVINO multiplies otherwise than {products} times: {dict(kinds)}")
    peer.measure(arguments, start, lambda token: run([token]), facts)


if __name__ == "__main__":
    main()
