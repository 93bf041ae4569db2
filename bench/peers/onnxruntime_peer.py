# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode speed of ONNX Runtime on a Llama configuration with random weights.

The graph holds the contributed ops that its model builder writes: GroupQueryAttention with its
rotation and a cache in place, SimplifiedLayerNormalization, MatMulNBits for int8 and int4 (blocks
of 32, its fastest arithmetic: accuracy level 4, that of 8-bit activations). Its CPU kernels have no
bf16.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import peer

BLOCK = 32


class Llama:
    def __init__(self, model, form):
        self.model, self.form = model, form
        self.layer, self.size = peer.sizes(model)
        self.nodes, self.initializers, self.count = [], [], 0

    def op(self, kind, inputs, outputs=1, domain="", **attributes):
        self.count += 1
        names = [f"v{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def product(self, x, n, k):
        if self.form == "f32":
            return self.op("MatMul", [x, self.constant(peer.random_f32(k, n))])
        bits, blocks = (8, k // BLOCK) if self.form == "int8" else (4, k // BLOCK)
        stored = peer.random_bits(n * blocks * BLOCK * bits // 8, np.uint8)
        weight = self.constant(stored.reshape(n, blocks, BLOCK * bits // 8))
        scales = self.constant(np.full([n * blocks], 1e-3, np.float32))
        form = dict(K=k, N=n, bits=bits, block_size=BLOCK, accuracy_level=4)
        return self.op("MatMulNBits", [x, weight, scales], domain="com.microsoft", **form)

    def norm(self, x):
        gain = self.constant(np.ones(self.model["hidden_size"], np.float32))
        return self.op(
            "SimplifiedLayerNormalization", [x, gain], epsilon=self.model["rms_norm_eps"], axis=-1
        )

    def attention(self, x, index):
        q, k, v = (self.product(x, *self.layer[name]) for name in "qkv")
        past = [f"past_{kind}_{index}" for kind in ("key", "value")]
        y, *present = [f"attention_{index}"] + [f"present_{name[5:]}" for name in past]
        self.nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                [q, k, v, *past, "last", "total", "cos", "sin"],
                [y, *present],
                domain="com.microsoft",
                num_heads=self.model["num_attention_heads"],
                kv_num_heads=self.model["num_key_value_heads"],
                do_rotary=1,
            )
        )
        return self.product(y, *self.layer["o"])

    def build(self, capacity):
        model = self.model
        vocabulary, hidden = model["vocab_size"], model["hidden_size"]
        powers = np.arange(0, self.size, 2, dtype=np.float32) / self.size
        angles = np.outer(np.arange(capacity), model["rope_theta"] ** -powers).astype(np.float32)
        for name, table in (("cos", np.cos(angles)), ("sin", np.sin(angles))):
            self.initializers.append(numpy_helper.from_array(table, name))
        x = self.op("Gather", [self.constant(peer.random_f32(vocabulary, hidden)), "ids"])
        for index in range(model["num_hidden_layers"]):
            x = self.op("Add", [x, self.attention(self.norm(x), index)])
            y = self.norm(x)
            gate = self.product(y, *self.layer["gate"])
            gate = self.op("Mul", [gate, self.op("Sigmoid", [gate])])
            gated = self.op("Mul", [gate, self.product(y, *self.layer["up"])])
            x = self.op("Add", [x, self.product(gated, *self.layer["down"])])
        x = self.op("Gather", [self.norm(x), self.constant(np.array([-1], np.int64))], axis=1)
        logits = self.product(x, vocabulary, hidden)
        shape = [1, model["num_key_value_heads"], capacity, self.size]
        caches = [
            [f"{side}_{kind}_{index}" for index in range(model["num_hidden_layers"])
             for kind in ("key", "value")]
            for side in ("past", "present")
        ]  # fmt: skip
        tensor = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes,
            "llama",
            [
                tensor("ids", TensorProto.INT64, [1, "sequence"]),
                tensor("last", TensorProto.INT32, [1]),
                tensor("total", TensorProto.INT32, []),
                *(tensor(name, TensorProto.FLOAT, shape) for name in caches[0]),
            ],
            [
                tensor(logits, TensorProto.FLOAT, [1, 1, vocabulary]),
                *(tensor(name, TensorProto.FLOAT, shape) for name in caches[1]),
            ],
            self.initializers,
        )
        versions = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, opset_imports=versions, ir_version=9), logits, caches, shape


def main():
    arguments = peer.parse_arguments(__doc__, ["f32", "int8", "int4"])
    capacity = arguments.prompt + arguments.new + 8
    built, logits, caches, shape = Llama(arguments.model, arguments.format).build(capacity)
    options = ort.SessionOptions()
    options.intra_op_num_threads = arguments.threads
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save_model(built, path, save_as_external_data=True, location="weights")
        session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    values = [ort.OrtValue.ortvalue_from_numpy(np.zeros(shape, np.float32)) for _ in caches[0]]
    length = 0

    def run(ids):
        nonlocal length
        length += len(ids)
        binding = session.io_binding()
        binding.bind_cpu_input("ids", np.array([ids], np.int64))
        binding.bind_cpu_input("last", np.array([length - 1], np.int32))
        binding.bind_cpu_input("total", np.array(length, np.int32))
        for past, present, value in zip(*caches, values):
            binding.bind_ortvalue_input(past, value)
            binding.bind_ortvalue_output(present, value)
        binding.bind_output(logits)
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()[-1].ravel()

    def start(ids):
        nonlocal length
        length = 0
        return run(ids)

    facts = {"engine": "ONNX Runtime", "version": ort.__version__}
    peer.measure(arguments, start, lambda token: run([token]), facts)


if __name__ == "__main__":
    main()
