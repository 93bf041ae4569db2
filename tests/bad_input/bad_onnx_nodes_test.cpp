// SPDX-License-Identifier: Apache-2.0
// Nodes of ONNX that no graph can have or that no lowering takes: each is told by the node, with
// what was expected. Right ones are in ONNX's own suite (tests/onnx/node_suite.py).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "lathe/frontend/onnx.h"
#include "lathe/runtime/error.h"
#include "tests/onnx/onnx_wire.h"

namespace lathe {
namespace {

using namespace onnx_wire;
using ::testing::HasSubstr;
constexpr ErrorCode kBad = ErrorCode::InvalidFile, kNot = ErrorCode::Unsupported;

// An operand: an input of the graph, or a literal. A size of -1 is the symbol n.
struct Operand {
  int type = 1;
  std::vector<int64_t> sizes;
  std::string literal;
  bool isLeftOut = false;
};
Operand f32(std::vector<int64_t> sizes) { return {1, std::move(sizes), {}}; }
Operand i64(std::vector<int64_t> sizes) { return {7, std::move(sizes), {}}; }
Operand none() { return {.isLeftOut = true}; }
template <class Element>
Operand known(int type, const std::vector<Element>& values) {
  std::string raw(values.size() * sizeof(Element), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  return {type, {int64_t(values.size())}, raw};
}
Operand ints(std::vector<int64_t> values) { return known<int64_t>(7, values); }
Operand reals(std::vector<float> values) { return known<float>(1, values); }

std::string real(const std::string& name, float value) {
  std::string raw(4, '\0');
  std::memcpy(raw.data(), &value, 4);
  return bytes(5, bytes(1, name) + varint(2 << 3 | 5) + raw + number(20, 1));
}
std::string body(const std::string& name, const std::string& graph) {
  return bytes(5, bytes(1, name) + bytes(6, graph) + number(20, 5));
}

struct Case {
  std::string op;
  std::vector<Operand> operands;
  std::string attributes;
  ErrorCode code;
  std::string words;
  int64_t opset = 23;
};

std::string portOf(const std::string& name, const Operand& o) {
  std::string shape;
  for (int64_t d : o.sizes) shape += bytes(1, d < 0 ? bytes(2, "n") : number(1, d));
  return bytes(11, bytes(1, name) + bytes(2, bytes(1, number(1, o.type) + bytes(2, shape))));
}
std::string modelOf(const Case& c) {
  std::string graph;
  std::vector<std::string> names;
  for (size_t i = 0; i < c.operands.size(); ++i) {
    const Operand& o = c.operands[i];
    names.push_back(o.isLeftOut ? "" : "x" + std::to_string(i));
    if (o.isLeftOut) continue;
    if (o.literal.empty())
      graph += portOf(names[i], o);
    else
      graph += bytes(
          5, number(1, o.sizes[0]) + number(2, o.type) + bytes(8, names[i]) + bytes(9, o.literal));
  }
  return model(nodeOf(c.op, names, c.attributes) + graph + bytes(12, valueInfo("y", 1, {1})),
               c.opset);
}

void expectAll(const std::vector<Case>& cases) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / "bad_node.onnx").string();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.op + ": " + c.words);
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << modelOf(c);
    try {
      loadOnnx(path);
      ADD_FAILURE() << "expected an error";
    } catch (const Error& e) {
      EXPECT_EQ(int(e.code()), int(c.code)) << e.what();
      EXPECT_THAT(e.what(), HasSubstr("(" + c.op + ")"));
      EXPECT_THAT(e.what(), HasSubstr(c.words));
    }
  }
  std::filesystem::remove(path);
}

TEST(BadOnnxNodes, Attentions) {
  const Operand q = f32({2, 3, 8}), k = f32({2, 5, 8});
  const std::string heads = attribute("q_num_heads", 2) + attribute("kv_num_heads", 2);
  const std::string two = attribute("num_heads", 2);
  expectAll({
      {"Attention", {q, k, k}, "", kBad, "expected the number of heads"},
      {"Attention",
       {q, k, k},
       attribute("q_num_heads", 3) + attribute("kv_num_heads", 2),
       kBad,
       "3 heads do not divide 8"},
      {"Attention",
       {q, k, k},
       heads + attribute("left_window_size", -2),
       kBad,
       "a window below -1"},
      {"Attention",
       {q, k, k},
       heads + attribute("right_window_size", -2),
       kBad,
       "a window below -1"},
      {"Attention",
       {q, k, k},
       attribute("q_num_heads", 4) + attribute("kv_num_heads", 8),
       kBad,
       "the key heads do not divide the query heads"},
      {"Attention", {f32({3, 8}), k, k}, heads, kBad, "expected operands of rank 3 or 4"},
      {"Attention",
       {f32({1, 2, 3, -1}), f32({1, 2, 3, -1}), f32({1, 2, 3, 4})},
       "",
       kNot,
       "heads of symbolic size"},
      {"Attention", {q, k, k, f32({3, 7})}, heads, kNot, "a mask whose length differs"},
      {"RotaryEmbedding",
       {f32({2, 3}), f32({2, 3, 2}), f32({2, 3, 2})},
       "",
       kBad,
       "expected an operand of rank 3 or 4"},
      {"RotaryEmbedding",
       {q, f32({2, 3, 2}), f32({3, 2})},
       two,
       kBad,
       "expected tables [batch, sequence, angles]"},
      {"RotaryEmbedding",
       {q, f32({2, 3, 2}), f32({2, 3, 2})},
       two + attribute("rotary_embedding_dim", 2),
       kBad,
       "the tables do not have half of rotary_embedding_dim angles"},
  });
}

TEST(BadOnnxNodes, Constants) {
  const std::string one = attribute("value_int", 1);
  expectAll({
      {"Constant", {}, "", kBad, "expected one attribute with the value"},
      {"Constant", {}, one + listAttribute("value_ints", {1}), kBad, "expected one attribute"},
      {"ConstantOfShape", {ints({2, -3})}, "", kBad, "a negative size -3"},
      {"Range", {ints({0}), ints({5}), ints({0})}, "", kBad, "expected numbers and a step"},
      {"Range", {ints({0, 1}), ints({5}), ints({1})}, "", kBad, "expected numbers and a step"},
      {"Range", {reals({0}), reals({2e6f}), reals({1})}, "", kNot, "more than 2^20 values"},
      {"Range", {reals({0}), reals({1}), reals({0})}, "", kNot, "more than 2^20 values"},
      {"EyeLike", {f32({2, 3, 4})}, "", kBad, "expected a matrix"},
      {"OneHot", {i64({3}), ints({0}), reals({0, 1})}, "", kBad, "expected a depth of at least 1"},
      {"HannWindow", {ints({-1})}, "", kNot, "a window of more than 2^20 places"},
      {"HannWindow", {ints({1 << 21})}, "", kNot, "a window of more than 2^20 places"},
      {"MelWeightMatrix",
       {ints({0}), ints({8}), ints({16000}), reals({0}), reals({8000})},
       "",
       kBad,
       "expected positive numbers of bins, samples and rate"},
  });
}

TEST(BadOnnxNodes, Control) {
  const std::string copies =  // of one state and one row
      nodeOf("Identity", {"s"}) + bytes(11, valueInfo("s", 1, {2})) +
      bytes(11, valueInfo("r", 1, {2})) + bytes(12, valueInfo("y", 1, {2}));
  const std::string empty = bytes(12, valueInfo("y", 1, {2}));
  const auto scan = [&](int64_t inputs) {
    return body("body", copies) + attribute("num_scan_inputs", inputs);
  };
  expectAll({
      {"Loop",
       {none(), none(), f32({2})},
       body("body", copies),
       kNot,
       "a loop without a largest number of steps"},
      {"Loop",
       {ints({257}), none(), f32({2})},
       body("body", copies),
       kNot,
       "a loop of 257 steps, expected at most 256"},
      {"Loop",
       {ints({2}), none(), f32({2})},
       body("body", empty),
       kBad,
       "the body has too few outputs"},
      {"Loop", {ints({2}), none(), f32({2})}, "", kBad, "attribute 'body': expected a graph"},
      {"Scan", {f32({2}), f32({3, 2})}, scan(1), kNot, "the form of opset 8", 8},
      {"Scan", {f32({2}), f32({3, 2})}, scan(0), kBad, "'num_scan_inputs' is out of range"},
      {"Scan", {f32({2}), f32({3, 2})}, scan(3), kBad, "'num_scan_inputs' is out of range"},
      {"Scan", {f32({2}), f32({-1, 2})}, scan(1), kNot, "a scan over an axis of symbolic size"},
      {"Scan", {f32({3, 2}), f32({4, 2})}, scan(2), kBad, "different numbers of steps"},
      {"Scan", {f32({2}), f32({257, 2})}, scan(1), kNot, "a scan of 257 steps"},
      {"Scan", {f32({2}), f32({0, 2})}, scan(1), kNot, "a scan without steps"},
      {"Scan",
       {f32({2}), f32({3, 2})},
       body("body", bytes(11, valueInfo("s", 1, {2}))) + attribute("num_scan_inputs", 1),
       kBad,
       "the body has too few outputs"},
      {"Dropout",
       {f32({4}), reals({0.5}), known<uint8_t>(9, {1})},
       "",
       kNot,
       "training_mode with a ratio other than 0"},
      {"Dropout",  // a half by default
       {f32({4}), none(), known<uint8_t>(9, {1})},
       "",
       kNot,
       "training_mode with a ratio other than 0"},
  });
}

TEST(BadOnnxNodes, Windows) {
  const Operand x = f32({1, 4, 9, 8}), w = f32({6, 4, 3, 2});
  const std::string kernel = listAttribute("kernel_shape", {3, 2});
  expectAll({
      {"Conv", {x, f32({6, 4, 3, -1})}, "", kNot, "a kernel of symbolic size"},
      {"Conv",
       {x, w},
       listAttribute("kernel_shape", {2, 3}),
       kBad,
       "'kernel_shape' is not the weight's"},
      {"Conv", {x, w}, attribute("group", 0), kBad, "a group of less than 1"},
      {"Conv", {x, w}, attribute("group", 3), kBad, "channels and groups do not fit the weight"},
      {"Conv", {x, f32({6, 3, 3, 2})}, "", kBad, "channels and groups do not fit the weight"},
      {"Conv", {x, w}, attribute("group", 2), kBad, "channels and groups do not fit the weight"},
      {"Conv", {f32({1, 4, 9}), w}, "", kBad, "expected [n, c] and 2 axes, got rank 3"},
      {"Conv",
       {x, w},
       listAttribute("strides", {1}),
       kBad,
       "attribute 'strides': expected 2 numbers"},
      {"Conv",
       {x, w},
       listAttribute("strides", {1, 0}),
       kBad,
       "attribute 'strides': 0 is out of range"},
      {"Conv",
       {x, w},
       listAttribute("dilations", {0, 1}),
       kBad,
       "attribute 'dilations': 0 is out of range"},
      {"Conv",
       {x, w},
       listAttribute("pads", {0, 0, -1, 0}),
       kBad,
       "attribute 'pads': -1 is out of range"},
      {"Conv",
       {x, w},
       listAttribute("pads", {0, 0, (1 << 20) + 1, 0}),
       kBad,
       "attribute 'pads': 1048577 is out of range"},
      {"Conv",
       {x, w},
       listAttribute("pads", {0, 0, 0}),
       kBad,
       "attribute 'pads': expected 4 numbers"},
      {"Conv",
       {x, w},
       attribute("auto_pad", std::string("SAME")),
       kNot,
       "attribute 'auto_pad': got SAME"},
      {"Conv", {f32({1, 4, 2, 8}), w}, "", kBad, "the kernel is larger than axis 2"},
      {"Conv",
       {x, w},
       listAttribute("dilations", {1, 8}),
       kBad,
       "the kernel is larger than axis 3"},
      {"Conv",
       {f32({1, 4, -1, 8}), w},
       listAttribute("strides", {2, 1}),
       kNot,
       "a stride of 2 along an axis of symbolic size"},
      {"ConvTranspose", {f32({1, 4, 9}), w}, "", kBad, "operands of different rank"},
      {"ConvTranspose",
       {x, w},
       listAttribute("strides", {0, 1}),
       kBad,
       "'strides': 0 is out of range"},
      {"ConvTranspose", {x, f32({5, 4, 3, 2})}, "", kBad, "channels and groups do not fit"},
      {"ConvTranspose",
       {f32({1, 4, -1, 8}), w},
       listAttribute("output_shape", {9, 9}),
       kNot,
       "a padding of symbolic size"},
      {"Col2Im",
       {f32({1, 5, 4}), ints({3, 3}), ints({2, 2})},
       "",
       kBad,
       "expected [n, channels * block, places]"},
      {"MaxPool", {x}, listAttribute("kernel_shape", {0, 2}), kBad, "a kernel without elements"},
      {"MaxPool", {f32({1, 4})}, listAttribute("kernel_shape", {}), kBad, "expected [n, c] and"},
      {"LpPool", {x}, kernel + attribute("p", 0), kBad, "attribute 'p': expected at least 1"},
      {"GlobalLpPool", {x}, attribute("p", 0), kBad, "attribute 'p': expected at least 1"},
      {"GlobalMaxPool", {f32({2, 3})}, "", kBad, "expected [n, c, d1, ...]"},
      {"MaxUnpool",
       {x, i64({1, 4, 9, 8}), ints({1, 4, 30})},
       kernel,
       kBad,
       "an output shape of another rank"},
      {"MaxUnpool",
       {x, i64({1, 4, 9, 8}), ints({1, 4, 8, 8})},
       kernel,
       kNot,
       "an output shape smaller than what the kernel makes"},
  });
}

TEST(BadOnnxNodes, Indices) {
  const Operand x = f32({3, 4, 5});
  expectAll({
      {"GatherND", {x, i64({2, 4})}, "", kBad, "expected tuples of 1 to as many indices"},
      {"GatherND", {x, i64({2, 0})}, "", kBad, "expected tuples of 1 to as many indices"},
      {"GatherND",
       {x, i64({3, 2})},
       attribute("batch_dims", 2),
       kBad,
       "batch_dims is out of range"},
      {"GatherND",
       {x, i64({3, 2})},
       attribute("batch_dims", -1),
       kBad,
       "batch_dims is out of range"},
      {"GatherND",
       {f32({4}), i64({4, 1, 1})},
       attribute("batch_dims", 1),
       kBad,
       "batch_dims is out of range"},
      {"GatherElements", {x, i64({3, 4})}, "", kBad, "indices of another rank"},
      {"Gather", {x, i64({2})}, attribute("axis", 3), kBad, "axis 3 is outside of rank 3"},
      {"Gather", {x, i64({2})}, attribute("axis", -4), kBad, "axis -4 is outside of rank 3"},
      {"ScatterElements",
       {x, i64({3, 4, 5}), x},
       attribute("reduction", std::string("sum")),
       kNot,
       "attribute 'reduction': expected none, add, mul, max or min, got sum"},
      {"TensorScatter",
       {x, f32({3, 1, 5}), i64({3})},
       attribute("axis", 0),
       kBad,
       "axis 0 is the batch",
       24},
      {"TensorScatter",
       {x, f32({3, 1, 5}), i64({3})},
       attribute("mode", std::string("ring")),
       kNot,
       "attribute 'mode': got ring",
       24},
  });
}

TEST(BadOnnxNodes, NormsAndQuantization) {
  const Operand x = f32({2, 6, 4}), gain = f32({4}), channels = f32({6});
  expectAll({
      {"LayerNormalization", {x, gain}, real("epsilon", -1), kBad, "a negative epsilon"},
      {"LayerNormalization",
       {x, gain},
       attribute("stash_type", 10),
       kNot,
       "attribute 'stash_type': expected 1 or 11, got 10"},
      {"InstanceNormalization",
       {f32({2, 6}), channels, channels},
       "",
       kBad,
       "expected [n, c, d1, ...]"},
      {"GroupNormalization", {x, channels, channels}, "", kBad, "and a number of groups"},
      {"GroupNormalization",
       {x, channels, channels},
       attribute("num_groups", 4),
       kBad,
       "the groups do not divide the channels"},
      {"LRN", {x}, attribute("size", 0), kNot, "expected a size of 1 to 1024"},
      {"LpNormalization", {x}, attribute("p", 3), kNot, "attribute 'p': expected 1 or 2, got 3"},
      {"Gemm", {x, f32({4, 3})}, "", kBad, "expected two matrices"},
      {"QuantizeLinear", {x, f32({2, 6})}, "", kBad, "a scale, or one for each place of an axis"},
      {"QuantizeLinear", {x, f32({1, 1})}, "", kBad, "a scale, or one for each place of an axis"},
      {"QuantizeLinear",
       {f32({2, -1}), f32({2, 3})},
       attribute("block_size", 2),
       kNot,
       "blocks along an axis of symbolic size"},
      {"QuantizeLinear",
       {f32({2, 6}), f32({2, 3})},
       attribute("block_size", -2),
       kNot,
       "blocks along an axis of symbolic size"},
      {"QuantizeLinear",
       {f32({2, 6}), f32({2, 2})},
       attribute("block_size", 2),
       kBad,
       "fewer blocks than the axis has"},
      {"QuantizeLinear",
       {x, f32({1})},
       attribute("output_dtype", 1),
       kNot,
       "quantization to floats"},
      {"DequantizeLinear", {i64({3}), i64({1})}, "", kBad, "expected a scale of floats"},
      {"DequantizeLinear", {i64({3}), f32({1})}, "", kNot, "operands of element type i64"},
  });
}

TEST(BadOnnxNodes, Rearrangements) {
  const Operand x = f32({2, 8, 4, 6}), flat = f32({3, 5});
  const std::string block = attribute("blocksize", 2);
  const auto mode = [](const char* text) { return attribute("mode", std::string(text)); };
  expectAll({
      {"Pad",
       {flat, ints({0, 1, 0, 1})},
       mode("mirror"),
       kNot,
       "attribute 'mode': expected constant, edge, reflect or wrap, got mirror"},
      {"Pad", {flat, ints({0, 1, 0})}, "", kBad, "expected 4 paddings, got 3"},
      {"Pad", {flat, ints({0, 1LL << 31, 0, 0})}, "", kBad, "a padding of more than 2^30"},
      {"Pad", {flat, ints({0, -(1LL << 31), 0, 0})}, "", kBad, "a padding of more than 2^30"},
      {"Pad",
       {f32({0, 5}), ints({1, 0, 0, 0})},
       mode("edge"),
       kBad,
       "mode edge along an empty axis"},
      {"Pad", {flat, ints({0, 1 << 20, 0, 0})}, mode("wrap"), kNot, "more than 2^20 places"},
      {"Pad",
       {f32({-1, 5}), ints({1, 0, 0, 0})},
       mode("edge"),
       kNot,
       "axis 0 has the symbolic size n"},
      {"CenterCropPad", {flat, ints({2})}, "", kBad, "expected a size for each axis"},
      {"CenterCropPad", {flat, ints({2, -1})}, "", kBad, "a negative size"},
      {"Tile", {flat, ints({2})}, "", kBad, "expected a number of repeats for each axis"},
      {"Trilu", {f32({4})}, "", kBad, "expected two axes at least"},
      {"Trilu", {flat, ints({1LL << 41})}, "", kBad, "a diagonal beyond 2^40"},
      {"DepthToSpace", {x}, "", kBad, "expected rank 4 and a block size of at least 1"},
      {"DepthToSpace", {f32({2, 6, 4, 6})}, block, kBad, "are not divided by the block's area"},
      {"DepthToSpace", {x}, block + mode("RCD"), kNot, "attribute 'mode': got RCD"},
      {"SpaceToDepth", {flat}, block, kBad, "expected rank 4 and a block size of at least 1"},
      {"SpaceToDepth",
       {x},
       attribute("blocksize", 4),
       kBad,
       "the block size does not divide height and width"},
      {"SpaceToDepth", {x}, block + mode("RCD"), kNot, "attribute 'mode': got RCD"},
      {"ReverseSequence",
       {x, i64({8})},
       attribute("batch_axis", 1) + attribute("time_axis", 1),
       kBad,
       "expected two axes and a list of lengths"},
      {"CumProd", {f32({-1}), ints({0})}, "", kNot, "an axis of symbolic size", 26},
      {"TopK",
       {f32({2, -1}), ints({2})},
       attribute("largest", 0),
       kNot,
       "the smallest of an axis of symbolic size"},
      {"ReduceSum", {x, ints({1, -3})}, "", kBad, "an axis is listed twice"},
      {"ReduceSum", {x, reals({1})}, "", kBad, "operand 1 has no integers"},
  });
}

TEST(BadOnnxNodes, Resizes) {
  const Operand x = f32({1, 2, 4, 6}), scales = reals({1, 1, 2, 2});
  const auto text = [](const char* name, const char* value) {
    return attribute(name, std::string(value));
  };
  expectAll({
      {"Resize", {x, none(), scales}, text("mode", "area"), kNot, "attribute 'mode': got area"},
      {"Resize", {x, none(), scales}, text("nearest_mode", "up"), kNot, "'nearest_mode': got up"},
      {"Resize",
       {x, none(), scales},
       text("coordinate_transformation_mode", "pixel"),
       kNot,
       "attribute 'coordinate_transformation_mode': got pixel"},
      {"Resize", {x, none(), reals({1, 2})}, "", kBad, "expected a scale or a size for each axis"},
      {"Resize", {x, none(), reals({1, 1, -2, 2})}, "", kBad, "a scale or size out of range"},
      {"Resize", {x, none(), reals({1, 1, 0.1f, 2})}, "", kBad, "a scale or size out of range"},
      {"Resize", {f32({1, 2, -1, 6}), none(), scales}, "", kNot, "axis 2 has the symbolic size n"},
      {"Resize",
       {i64({1, 2, 4, 6}), none(), scales},
       text("mode", "linear"),
       kNot,
       "interpolation of integers"},
      {"Resize",
       {x, none(), none(), ints({1, 2, 8, 8})},
       text("keep_aspect_ratio_policy", "both"),
       kNot,
       "attribute 'keep_aspect_ratio_policy': got both"},
      {"Resize",
       {x, reals({0, 1}), scales},
       text("coordinate_transformation_mode", "tf_crop_and_resize"),
       kBad,
       "operand roi: expected a start and an end for each axis"},
      {"AffineGrid", {f32({1, 2, 3}), ints({1, 2, 4})}, "", kBad, "expected 4 or 5 sizes"},
      {"AffineGrid", {f32({1, 2, 3}), ints({1, 2, 1024, 1024})}, "", kNot, "more than 2^18 places"},
  });
}

TEST(BadOnnxNodes, Shapes) {
  const Operand x = f32({4, 6});
  expectAll({
      {"Reshape", {x, ints({-1, -1})}, "", kBad, "the shape leaves two sizes open"},
      {"Reshape", {x, ints({4, 6, 0})}, "", kBad, "size 2 of the shape is 0"},
      {"Reshape", {x, ints({5, -1})}, "", kNot, "24 elements are not divided evenly by 5"},
      {"Flatten", {x}, attribute("axis", 3), kBad, "axis 3 is outside of rank 2"},
      {"Flatten", {x}, attribute("axis", -3), kBad, "axis -3 is outside of rank 2"},
      {"Squeeze", {x, ints({1})}, "", kBad, "axis 1 has the size 6, expected 1"},
      {"Unsqueeze", {x}, "", kBad, "expected axes"},
      {"Expand", {x, ints({4, 5})}, "", kBad, "the sizes 6 and 5 do not stretch to each other"},
      {"Split", {x, ints({2, 3})}, attribute("axis", 1), kBad, "together, the axis is 6"},
      {"Split", {x}, attribute("num_outputs", 0), kBad, "expected 1 to 4096 pieces, got 0"},
      {"Split",
       {f32({-1})},
       attribute("num_outputs", 2),
       kNot,
       "symbolic size that its pieces do not"},
      {"Slice", {x, ints({0}), ints({2}), ints({0}), ints({0})}, "", kBad, "a step of 0"},
      {"Slice", {x, ints({0, 1}), ints({2})}, "", kBad, "expected as many ends as starts"},
      {"Slice", {x, ints({0}), ints({2}), ints({0, 1})}, "", kBad, "expected an axis and a step"},
      {"Slice",
       {f32({-1}), ints({0}), ints({9}), ints({0}), ints({2})},
       "",
       kNot,
       "a slice with a step along an axis of symbolic size"},
      {"SplitToSequence", {f32({-1})}, "", kNot, "pieces of a symbolic or huge axis"},
      {"SplitToSequence", {f32({4097})}, "", kNot, "pieces of a symbolic or huge axis"},
      {"SequenceAt", {x, ints({0})}, "", kBad, "expected a sequence"},
      {"Transpose", {x}, listAttribute("perm", {0, 0}), kBad, "not a permutation of the 2 axes"},
      {"Concat", {x, x}, attribute("axis", 2), kBad, "axis 2 is outside of rank 2"},
  });
}

}  // namespace
}  // namespace lathe
