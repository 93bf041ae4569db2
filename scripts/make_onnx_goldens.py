#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/onnx/cases: small ONNX models with inputs and the outputs that ONNX's reference evaluator gives.

usage: make_onnx_goldens.py [OUT]      needs onnx 1.23 and numpy

Each folder has model.onnx, input_N.pb and output_N.pb, as ONNX's own test data.
"""
import pathlib
import shutil
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

OUT = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "tests/onnx/cases")
rng = np.random.default_rng(7)


def tensor(name, array):
    return numpy_helper.from_array(np.asarray(array), name)


def info(name, array, shape=None):
    array = np.asarray(array)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape or list(array.shape))


def case(name, nodes, inputs, outputs, initializers=(), shapes=None, opset=23, functions=(), opsets=(), results=None):
    """`inputs`: arrays by name; `shapes`: sizes with names for some of them; `outputs`: names.
    `results`: what the evaluator does not compute."""
    shapes = shapes or {}
    graph = helper.make_graph(nodes, name, [info(n, a, shapes.get(n)) for n, a in inputs.items()],
                              [helper.make_tensor_value_info(o, t, None) for o, t in outputs.items()],
                              [tensor(n, a) for n, a in initializers])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *opsets], functions=list(functions),
                              ir_version=10)
    if results is None:
        results = ReferenceEvaluator(model).run(None, inputs)
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    onnx.save(model, str(folder / "model.onnx"))
    for kind, arrays in (("input", inputs.values()), ("output", results)):
        for i, array in enumerate(arrays):
            (folder / f"{kind}_{i}.pb").write_bytes(tensor(f"{kind}_{i}", array).SerializeToString())


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def node(op, inputs, outputs, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=f"/layer/{op}", **attributes)


F, I = TensorProto.FLOAT, TensorProto.INT64

case("mlp", [node("Gemm", "x w1 b1", "h", transB=1), node("Gelu", "h", "g"), node("MatMul", "g w2", "y")],
     {"x": f32(3, 8)}, {"y": F}, [("w1", f32(16, 8)), ("b1", f32(16)), ("w2", f32(16, 4))], {"x": ["rows", 8]})

# Heads are split and joined by shapes that the graph computes from its input's.
case("computed_shapes",
     [node("Shape", "x", "s"), node("Gather", "s zero", "b"), node("Gather", "s one", "t"),
      node("Unsqueeze", "b zero1", "b1"), node("Unsqueeze", "t zero1", "t1"),
      helper.make_node("Concat", ["b1", "t1", "heads", "minus"], ["split"], axis=0),
      node("Reshape", "x split", "h"), node("Transpose", "h", "y", perm=[0, 2, 1, 3])],
     {"x": f32(2, 5, 12)}, {"y": F},
     [("zero", np.int64(0)), ("one", np.int64(1)), ("zero1", np.array([0])), ("heads", np.array([3])),
      ("minus", np.array([-1]))], {"x": ["batch", "seq", 12]})

case("attention_block",
     [node("LayerNormalization", "x g b", "n"), node("MatMul", "n wq", "q"), node("MatMul", "n wk", "k"),
      node("MatMul", "n wv", "v"), node("Attention", "q k v", "a", q_num_heads=4, kv_num_heads=2, is_causal=1),
      node("MatMul", "a wo", "o"), node("Add", "x o", "y")],
     {"x": f32(2, 6, 16)}, {"y": F},
     [("g", f32(16)), ("b", f32(16)), ("wq", f32(16, 16)), ("wk", f32(16, 8)), ("wv", f32(16, 8)), ("wo", f32(16, 16))],
     {"x": ["batch", "seq", 16]})

case("grouped_convolution",
     [node("Conv", "x w b", "c", group=2, dilations=[2, 1], pads=[2, 1, 2, 1], strides=[1, 2]), node("Relu", "c", "r"),
      node("MaxPool", "r", "y", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)],
     {"x": f32(1, 4, 7, 9)}, {"y": F}, [("w", f32(6, 2, 3, 3)), ("b", f32(6))])

case("resized_table", [node("Resize", "x none none size", "y", mode="cubic", coordinate_transformation_mode="half_pixel")],
     {"x": f32(1, 2, 4, 4)}, {"y": F}, [("none", np.zeros(0, np.float32)), ("size", np.array([1, 2, 6, 7]))])

case("dequantized_blocks",
     [node("DequantizeLinear", "w s z", "d", axis=0, block_size=4), node("MatMul", "x d", "y")],
     {"x": f32(3, 8)}, {"y": F},
     [("w", rng.integers(-128, 128, (8, 16)).astype(np.int8)), ("s", np.abs(f32(2, 16))),
      ("z", rng.integers(-4, 4, (2, 16)).astype(np.int8))])

case("integers",
     [node("Mod", "a b", "m"), node("Mod", "a b", "f", fmod=1), node("Div", "a b", "q"), node("Pow", "a three", "p"),
      helper.make_node("Concat", ["m", "f", "q", "p"], ["y"], axis=0)],
     {"a": np.array([-7, 7, -8, 9, 0]), "b": np.array([3, -3, 4, 5, 2])}, {"y": I}, [("three", np.array([3]))])

case("known_branch",
     [helper.make_node("If", ["yes"], ["y"],
                       then_branch=helper.make_graph([node("Neg", "x", "n")], "then", [],
                                                     [helper.make_tensor_value_info("n", F, None)]),
                       else_branch=helper.make_graph([node("Abs", "x", "a")], "else", [],
                                                     [helper.make_tensor_value_info("a", F, None)]))],
     {"x": f32(4)}, {"y": F}, [("yes", np.array(True))])

scaled = [helper.make_node("Constant", [], ["k"]), node("Mul", "a b", "t"), node("Mul", "t k", "c")]
reference = scaled[0].attribute.add()
reference.name, reference.ref_attr_name, reference.type = "value_float", "by", onnx.AttributeProto.FLOAT
case("function", [helper.make_node("Scaled", ["x", "g"], ["y"], domain="own", name="/scaled", by=2.0)],
     {"x": f32(3, 4), "g": f32(4)}, {"y": F},
     functions=[helper.make_function("own", "Scaled", ["a", "b"], ["c"], scaled, [helper.make_opsetid("", 23)], ["by"])],
     opsets=[helper.make_opsetid("own", 1)])

case("special_values",
     [node("Max", "a b", "h"), node("Min", "a b", "l"), node("Round", "a", "r"), node("Clip", "a lo hi", "c"),
      helper.make_node("Concat", ["h", "l", "r", "c"], ["y"], axis=0)],
     {"a": np.array([np.nan, 0.5, 1.5, -2.5, np.inf], np.float32), "b": np.array([1, np.nan, 2, -3, -np.inf], np.float32)},
     {"y": F}, [("lo", np.float32(-1)), ("hi", np.float32(1))])

# Squares, halves and sums of these overflow where the functions themselves do not.
far = np.array([-1e30, -1000, -250, -180, -24, -2.5, -1, -0.5, -1e-6, 0, 3, 1e30, np.inf, -np.inf, np.nan], np.float32)
case("far_from_zero",
     [node("Elu", "x", "e", alpha=0.5), node("Selu", "x", "s"), node("Celu", "x", "c", alpha=2.0),
      node("Cast", "x", "half", to=TensorProto.FLOAT16), node("Elu", "half", "h"), node("Cast", "h", "eh", to=F),
      node("Abs", "x", "a"), node("Add", "a one", "a1"), node("Acosh", "a1", "ac"), node("Asinh", "x", "as"),
      helper.make_node("Concat", ["e", "s", "c", "eh", "ac", "as"], ["y"], axis=0)],
     {"x": far}, {"y": F}, [("one", np.float32(1))])

# Places that no index names keep values that lie anywhere in their type.
for name, dtype in (("u8", np.uint8), ("i16", np.int16), ("i64", np.int64)):
    own = np.array([np.iinfo(dtype).min, 5, np.iinfo(dtype).max, 200 if dtype == np.uint8 else -3000 % 30000, 1], dtype)
    case(f"scattered_extremes_{name}",
         [node("ScatterElements", "x i u", "l", reduction="min"), node("ScatterElements", "x i u", "h", reduction="max"),
          helper.make_node("Concat", ["l", "h"], ["y"], axis=0)],
         {"x": own, "i": np.array([1, 4, 1]), "u": np.array([7, 0, 3], dtype)},
         {"y": helper.np_dtype_to_tensor_dtype(np.dtype(dtype))})

# An order of axes that changes nothing, and a running sum of no elements.
case("nothing_to_do",
     [node("Transpose", "x", "t", perm=[0, 1]), node("CumSum", "empty zero", "c", exclusive=1),
      helper.make_node("Concat", ["t", "c"], ["y"], axis=0)],
     {"x": f32(2, 3), "empty": f32(0, 3)}, {"y": F}, [("zero", np.array(0))])

# Numbers of a shape that no size is: remainders have the sign of the divisor.
case("shape_arithmetic",
     [node("Shape", "x", "s"), node("Neg", "s", "n"), node("Mod", "n four", "m"), node("Mod", "n four", "f", fmod=1),
      node("Div", "n two", "d"), helper.make_node("Concat", ["m", "f", "d"], ["y"], axis=0)],
     {"x": f32(3, 5)}, {"y": I}, [("four", np.array([4])), ("two", np.array([2]))])

# The last window reaches beyond the padding: what is there is no part of the mean.
case("average_beyond_padding",
     [node("AveragePool", "x", "y", kernel_shape=[3], strides=[3], pads=[1, 1], ceil_mode=1, count_include_pad=1)],
     {"x": f32(1, 2, 6)}, {"y": F})

# A scan that begins at either end, and stacks what it makes from either end.
turned = f32(3, 4)
sums = np.cumsum(turned[::-1], axis=0, dtype=np.float32)
step = helper.make_graph([node("Add", "state row", "next"), node("Identity", "next", "out")], "step",
                         [helper.make_tensor_value_info(n, F, [4]) for n in ("state", "row")],
                         [helper.make_tensor_value_info(n, F, [4]) for n in ("next", "out")])
for name, ends in (("scan_from_the_end", [0]), ("scan_to_the_front", [1])):
    case(name,
         [helper.make_node("Scan", ["zero", "x"], ["last", "y"], body=step, num_scan_inputs=1, scan_input_directions=[1],
                           scan_output_directions=ends)],
         {"zero": np.zeros(4, np.float32), "x": turned}, {"last": F, "y": F},
         results=[sums[-1], sums[::-1] if ends[0] else sums])

# Each token sees itself alone: a window of none to the left.
case("attention_of_one_key",
     [node("Attention", "q k v", "y", is_causal=1, left_window_size=0)],
     {"q": f32(1, 2, 4, 8), "k": f32(1, 2, 4, 8), "v": f32(1, 2, 4, 8)}, {"y": F}, opset=28)

case("depthwise_convolutions",
     [node("Conv", "x w b", "c", group=4, dilations=[1, 2], pads=[1, 2, 1, 2], strides=[2, 1]),
      node("Conv", "c v", "y", group=8, kernel_shape=[12, 11], pads=[6, 5, 5, 5])],
     {"x": f32(1, 4, 9, 8)}, {"y": F}, [("w", f32(8, 1, 3, 3)), ("b", f32(8)), ("v", f32(8, 1, 12, 11))])

case("long_grouped_convolution", [node("Conv", "x w", "y", group=4, pads=[18, 18])],
     {"x": f32(2, 8, 50)}, {"y": F}, [("w", f32(12, 2, 37))])

# What a size asks of a transposed convolution: of an odd cut the larger half is in front unless SAME_UPPER says
# otherwise, and what the windows do not reach is added at the end.
image, window = f32(1, 2, 4), f32(2, 3, 3)
whole = np.zeros((1, 3, 9), np.float32)
for at in range(4):
    whole[:, :, 2 * at:2 * at + 3] += np.einsum("ni,iok->nok", image[:, :, at], window)
case("transposed_to_a_size",
     [node("ConvTranspose", "x w", "a", strides=[2], output_shape=[8]),
      node("ConvTranspose", "x w", "b", strides=[2], output_shape=[8], auto_pad="SAME_UPPER"),
      node("ConvTranspose", "x w", "c", strides=[2], output_shape=[8], auto_pad="SAME_LOWER"),
      node("ConvTranspose", "x w", "d", strides=[2], output_shape=[10], auto_pad="SAME_LOWER"),
      node("ConvTranspose", "x w", "e", strides=[2], output_shape=[10])],
     {"x": image}, {"a": F, "b": F, "c": F, "d": F, "e": F}, [("w", window)],
     results=[whole[:, :, 1:], whole[:, :, :8], whole[:, :, 1:], *[np.pad(whole, ((0, 0), (0, 0), (0, 1)))] * 2])
