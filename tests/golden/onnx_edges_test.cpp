// SPDX-License-Identifier: Apache-2.0
// What ONNX's operator pages say of defaults, of attributes beside others, of one element and of
// the last that is taken: nodes that no case of its own suite has.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "lathe/runtime/error.h"
#include "tests/onnx/one_node.h"

namespace lathe {
namespace {

using namespace onnx_wire;
using test::inner;
using test::numbersOf;
using test::run;
using testing::HasSubstr;
using Numbers = std::vector<double>;
using Sizes = std::vector<int64_t>;

// Element types by ONNX's numbers.
constexpr int64_t kF32 = 1, kU8 = 2, kI8 = 3, kI16 = 5, kI32 = 6, kI64 = 7, kF16 = 10, kF64 = 11;

Array row(const std::vector<float>& values) {
  return Array::fromFloats(values, {int64_t(values.size())});
}
template <class Element>
std::string tensor(const std::string& name, int64_t type, const Sizes& sizes,
                   const std::vector<Element>& values) {
  std::string raw(values.size() * sizeof(Element), '\0'), dims;
  if (!raw.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  for (int64_t d : sizes) dims += number(1, d);
  return bytes(5, dims + number(2, type) + bytes(8, name) + bytes(9, raw));
}
std::string ints(const std::string& name, const Sizes& values) {
  return tensor<int64_t>(name, kI64, {int64_t(values.size())}, values);
}
std::string one(const std::string& name, int64_t value) {
  return tensor<int64_t>(name, kI64, {}, {value});
}
std::string text(const std::string& name, const std::string& value) {
  return attribute(name, value);
}
// x of the symbolic length n.
std::string symbolic(const Sizes& before = {}) {
  std::string shape;
  for (int64_t d : before) shape += bytes(1, number(1, d));
  shape += bytes(1, bytes(2, "n"));
  return bytes(1, "x") + bytes(2, bytes(1, number(1, kF32) + bytes(2, shape)));
}
// x as another element type, a node "c" -> "d" on it, and its result as f32 again.
std::string cast(int64_t to, const std::string& node) {
  return inner("Cast", {"x"}, {"c"}, attribute("to", to)) + node +
         nodeOf("Cast", {"d"}, attribute("to", kF32));
}
Sizes shapeOf(const Array& a) { return {a.shape().begin(), a.shape().end()}; }

// Queries stand behind the past keys, also where there are not as many new keys as queries.
TEST(OnnxEdges, QueriesStandBehindThePast) {
  const std::string node =
      nodeOf("Attention", {"x", "k", "v", "", "pastK", "pastV"}, attribute("is_causal", 1));
  const std::string literals = tensor<float>("k", kF32, {1, 1, 1, 1}, {0}) +
                               tensor<float>("v", kF32, {1, 1, 1, 1}, {6}) +
                               tensor<float>("pastK", kF32, {1, 1, 2, 1}, {0, 0}) +
                               tensor<float>("pastV", kF32, {1, 1, 2, 1}, {0, 3});
  // Queries 2 and 3 see keys 0 to 2, whose values have the mean 3.
  EXPECT_EQ(
      numbersOf(run(node, Array::fromFloats({0, 0}, {1, 1, 2, 1}), 23, {1, 1, 2, 1}, literals)),
      (Numbers{3, 3}));
}

// A row that its mask and the causal one hide together is empty.
TEST(OnnxEdges, ScoresOfARowThatTwoMasksHide) {
  const std::string node = inner("Attention", {"x", "x", "x", "mask"}, {"a", "", "", "y"},
                                 attribute("is_causal", 1) + attribute("qk_matmul_output_mode", 3));
  EXPECT_EQ(numbersOf(run(node, Array::fromFloats({0, 0}, {1, 1, 2, 1}), 23, {1, 1, 2, 2},
                          tensor<float>("mask", kF32, {2, 2}, {-INFINITY, 0, 0, 0}))),
            (Numbers{0, 0, 0.5, 0.5}));
}

TEST(OnnxEdges, RangesThatEndBetweenTwoSteps) {
  auto ranged = [](float limit, float delta, int64_t count) {
    return numbersOf(run(inner("Range", {"from", "to", "by"}, {"r"}) + nodeOf("Add", {"x", "r"}),
                         Array::fromFloats(std::vector<float>(size_t(count)), {count}), 11, {count},
                         tensor<float>("from", kF32, {}, {0}) +
                             tensor<float>("to", kF32, {}, {limit}) +
                             tensor<float>("by", kF32, {}, {delta})));
  };
  EXPECT_EQ(ranged(1, 0.375f, 3), (Numbers{0, 0.375, 0.75}));
  EXPECT_EQ(ranged(1.125f, 0.375f, 3), (Numbers{0, 0.375, 0.75}));
  EXPECT_EQ(ranged(-1, -0.75f, 2), (Numbers{0, -0.75}));
}

// Of whole numbers, more than a shape has.
TEST(OnnxEdges, LongRangesOfWholeNumbers) {
  auto ranged = [](int64_t start, int64_t limit, int64_t delta, int64_t count) {
    const std::string nodes = inner("Range", {"from", "to", "by"}, {"r"}) +
                              inner("Cast", {"r"}, {"f"}, attribute("to", kF32)) +
                              nodeOf("Add", {"x", "f"});
    return numbersOf(run(nodes, Array::fromFloats(std::vector<float>(size_t(count)), {count}), 11,
                         {count}, one("from", start) + one("to", limit) + one("by", delta)));
  };
  for (auto [start, limit, delta, count] :
       {std::tuple<int64_t, int64_t, int64_t, int64_t>{0, 3000, 2, 1500},
        {0, 2999, 2, 1500},
        {5, -2995, -1, 3000},
        {1, 6001, 3, 2000}}) {
    const Numbers got = ranged(start, limit, delta, count);
    ASSERT_EQ(int64_t(got.size()), count);
    for (int64_t i = 0; i < count; ++i) ASSERT_EQ(got[size_t(i)], double(start + i * delta));
  }
}

TEST(OnnxEdges, ASymmetricWindowOfOnePlace) {
  const std::string nodes =
      inner("HannWindow", {"size"}, {"w"}, attribute("periodic", 0)) + nodeOf("Add", {"x", "w"});
  EXPECT_EQ(numbersOf(run(nodes, row({2}), 17, {1}, one("size", 1))), (Numbers{2}));
}

// As many steps as are taken; one more is refused (bad_onnx_nodes_test).
TEST(OnnxEdges, TheLongestLoops) {
  const std::string port = bytes(2, bytes(1, number(1, kF32) + bytes(2, "")));
  auto nodeIn = [](const std::string& op, const std::vector<std::string>& in,
                   const std::string& out) { return inner(op, in, {out}); };
  const std::string loop = nodeIn("Identity", {"c"}, "c2") + nodeIn("Add", {"v", "x"}, "v2") +
                           bytes(11, bytes(1, "i")) + bytes(11, bytes(1, "c")) +
                           bytes(11, bytes(1, "v") + port) + bytes(12, bytes(1, "c2")) +
                           bytes(12, bytes(1, "v2") + port);
  EXPECT_EQ(numbersOf(run(nodeOf("Loop", {"steps", "", "x"},
                                 bytes(5, bytes(1, "body") + bytes(6, loop) + number(20, 5))),
                          row({1, -2}), 13, {2}, one("steps", 256))),
            (Numbers{257, -514}));
  const std::string scan =
      nodeIn("Neg", {"a"}, "b") + bytes(11, bytes(1, "a") + port) + bytes(12, bytes(1, "b") + port);
  Array x(DType::F32, {256});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i));
  const Numbers got =
      numbersOf(run(nodeOf("Scan", {"x"},
                           bytes(5, bytes(1, "body") + bytes(6, scan) + number(20, 5)) +
                               attribute("num_scan_inputs", 1)),
                    x, 11, {256}));
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], -double(i));
  // The state of linear attention to ones is how many keys there were.
  const Numbers sums =
      numbersOf(run(nodeOf("LinearAttention", {"x", "x", "x"},
                           text("update_rule", "linear") + attribute("q_num_heads", 1) +
                               attribute("kv_num_heads", 1)),
                    Array::fromFloats(std::vector<float>(256, 1), {1, 256, 1}), 26, {1, 256, 1}));
  for (size_t i = 0; i < sums.size(); ++i) ASSERT_EQ(sums[i], double(i + 1));
}

TEST(OnnxEdges, AZeroPointThatIsAListOfOne) {
  const std::string nodes = cast(kU8, inner("ConvInteger", {"c", "w", "zero"}, {"d"}));
  EXPECT_EQ(numbersOf(run(nodes, Array::fromFloats({5, 7, 9}, {1, 1, 3}), 10, {1, 1, 3},
                          tensor<uint8_t>("w", kU8, {1, 1, 1}, {2}) +
                              tensor<uint8_t>("zero", kU8, {1}, {5}))),
            (Numbers{0, 4, 8}));
}

TEST(OnnxEdges, TheLargestWindow) {
  Array x(DType::F32, {1, 1, 1025});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i));
  EXPECT_EQ(numbersOf(run(nodeOf("MaxPool", {"x"}, listAttribute("kernel_shape", {1024})), x, 12,
                          {1, 1, 2})),
            (Numbers{1023, 1024}));
}

TEST(OnnxEdges, PaddingsThatAreNamed) {
  const std::string two = listAttribute("kernel_shape", {2});
  EXPECT_EQ(numbersOf(run(nodeOf("AveragePool", {"x"},
                                 two + listAttribute("pads", {1, 1}) + text("auto_pad", "VALID")),
                          Array::fromFloats({1, 2, 4}, {1, 1, 3}), 11, {1, 1, 2})),
            (Numbers{1.5, 3}));
  // Along an axis of symbolic size, with windows of two and of three places.
  for (const auto& [name, kernel, want] : {std::tuple("SAME_UPPER", int64_t(2), Numbers{3, 6, 4}),
                                           std::tuple("SAME_LOWER", int64_t(2), Numbers{1, 3, 6}),
                                           std::tuple("SAME_UPPER", int64_t(3), Numbers{3, 7, 6})})
    EXPECT_EQ(numbersOf(run(nodeOf("LpPool", {"x"},
                                   listAttribute("kernel_shape", {kernel}) + attribute("p", 1) +
                                       text("auto_pad", name)),
                            Array::fromFloats({1, 2, 4}, {1, 1, 3}), 18, {1, 1, 3}, {},
                            symbolic({1, 1}))),
              want)
        << name << kernel;
}

// fmod's remainder has the sign of the dividend, also of the lowest number and without signs.
TEST(OnnxEdges, RemaindersOfWholeNumbersAsInC) {
  auto rest = [](int64_t type, const std::string& by, float x) {
    return run(cast(type, inner("Mod", {"c", "by"}, {"d"}, attribute("fmod", 1))), row({x}), 13,
               {1}, by)
        .at(0);
  };
  const std::string three = tensor<int8_t>("by", kI8, {1}, {3});
  EXPECT_EQ(rest(kI8, three, -128), -2);
  EXPECT_EQ(rest(kI8, three, -7), -1);
  EXPECT_EQ(rest(kI8, three, 127), 1);
  EXPECT_EQ(rest(kU8, tensor<uint8_t>("by", kU8, {1}, {7}), 200), 4);
}

TEST(OnnxEdges, PowersOfWholeNumbers) {
  const std::vector<int64_t> exponents{40, 64, 65, 1000001, -5, -3, -4, -1, 0, 62};
  EXPECT_EQ(
      numbersOf(run(cast(kI64, inner("Pow", {"c", "by"}, {"d"})),
                    row({2, -1, -1, -1, 1, -1, -1, 2, 0, 1}), 15, {10}, ints("by", exponents))),
      (Numbers{0x1p40, 1, -1, -1, 1, -1, 1, 0, 1, 1}));
  // An exponent that f32 cannot hold counts as it is.
  EXPECT_EQ(numbersOf(run(nodeOf("Pow", {"x", "by"}), row({-1}), 15, {1},
                          tensor<double>("by", kF64, {1}, {16777217}))),
            (Numbers{-1}));
}

TEST(OnnxEdges, PlacesInTwoBatchAxes) {
  Array x(DType::F32, {2, 2, 3});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i));
  EXPECT_EQ(numbersOf(run(nodeOf("GatherND", {"x", "at"}, attribute("batch_dims", 2)), x, 13,
                          {2, 2}, tensor<int64_t>("at", kI64, {2, 2, 1}, {0, 1, 2, 0}))),
            (Numbers{0, 4, 8, 9}));
}

TEST(OnnxEdges, NoPlaceOfAnAxis) {
  EXPECT_EQ(shapeOf(run(nodeOf("Compress", {"x", "none"}, attribute("axis", 1)),
                        test::someNumbers({2, 3}), 11, {2, 0},
                        tensor<uint8_t>("none", 9, {3}, {0, 0, 0}))),
            (Sizes{2, 0}));
}

TEST(OnnxEdges, FeaturesOfAVectorAreARow) {
  const Array y = run(nodeOf("ArrayFeatureExtractor", {"x", "at"}, bytes(7, "ai.onnx.ml")),
                      row({5, 6, 7}), 23, {1, 2}, ints("at", {2, 0}));
  EXPECT_EQ(shapeOf(y), (Sizes{1, 2}));
  EXPECT_EQ(numbersOf(y), (Numbers{7, 5}));
}

// Indices that are shorter than the operand along two axes.
TEST(OnnxEdges, ScatteredIntoACorner) {
  Array x(DType::F32, {2, 3, 3});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i));
  Numbers want = numbersOf(x);
  want[2] = 100;  // [0, 0, 2]
  want[3] = 200;  // [0, 1, 0]
  EXPECT_EQ(numbersOf(run(nodeOf("ScatterElements", {"x", "at", "by"}, attribute("axis", 2)), x, 18,
                          {2, 3, 3},
                          tensor<int64_t>("at", kI64, {1, 2, 1}, {2, 0}) +
                              tensor<float>("by", kF32, {1, 2, 1}, {100, 200}))),
            want);
}

// A class without weight costs nothing, however unlikely it is.
TEST(OnnxEdges, AnImpossibleClassWithoutWeight) {
  EXPECT_EQ(numbersOf(run(nodeOf("NegativeLogLikelihoodLoss", {"x", "labels", "weights"},
                                 text("reduction", "none")),
                          Array::fromFloats({-INFINITY, -1, -3, -2}, {2, 2}), 13, {2},
                          ints("labels", {0, 1}) + tensor<float>("weights", kF32, {2}, {0, 2}))),
            (Numbers{0, 4}));
}

TEST(OnnxEdges, ZeroPointsAndScalesOfRows) {
  const Array x = Array::fromFloats({1, 2, 3, 4}, {2, 2});
  const std::string b = tensor<uint8_t>("b", kU8, {2, 1}, {1, 1});
  EXPECT_EQ(numbersOf(run(cast(kU8, inner("MatMulInteger", {"c", "b", "zeros"}, {"d"})), x, 10,
                          {2, 1}, b + tensor<uint8_t>("zeros", kU8, {2}, {1, 2}))),
            (Numbers{1, 3}));
  const std::string product =
      inner("QLinearMatMul", {"c", "scales", "zeros", "b", "unit", "none", "unit", "none"}, {"d"});
  EXPECT_EQ(numbersOf(run(cast(kU8, product), x, 21, {2, 1},
                          b + tensor<float>("scales", kF32, {2}, {1, 4}) +
                              tensor<uint8_t>("zeros", kU8, {2}, {1, 2}) +
                              tensor<float>("unit", kF32, {}, {1}) +
                              tensor<uint8_t>("none", kU8, {}, {0}))),
            (Numbers{1, 12}));
}

TEST(OnnxEdges, NormsMayKeepTheirStatisticsInF64) {
  const Array x = test::someNumbers({2, 3});
  for (const char* op : {"LayerNormalization", "RMSNormalization"}) {
    auto normed = [&](int64_t stash) {
      return numbersOf(run(nodeOf(op, {"x", "gain"}, attribute("stash_type", stash)), x, 23, {2, 3},
                           tensor<float>("gain", kF32, {3}, {1, 2, 3})));
    };
    EXPECT_EQ(normed(kF64), normed(kF32)) << op;
  }
}

// The dtypes of results are those of the operator pages, whatever x is.
TEST(OnnxEdges, ResultsHaveTheTypesOfTheirVersion) {
  const Array x = Array::fromFloats({1, 2, 4}, {1, 3});
  const std::string gain = tensor<float>("gain", kF32, {3}, {1, 2, 3}),
                    asF16 = inner("Cast", {"x"}, {"c"}, attribute("to", kF16));
  auto normed = [&](const std::string& node) { return numbersOf(run(node, x, 23, {1, 3}, gain)); };
  EXPECT_EQ(normed(asF16 + nodeOf("RMSNormalization", {"c", "gain"})),
            normed(nodeOf("RMSNormalization", {"x", "gain"})))
      << "an RMS norm is of its gain's";
  // Mean and deviation are of stash_type's.
  const std::string zero = tensor<double>("zero", kF64, {}, {0});
  EXPECT_THAT(
      numbersOf(run(
          inner("LayerNormalization", {"x", "gain"}, {"l", "mean"}, attribute("stash_type", kF64)) +
              inner("Sub", {"mean", "zero"}, {"d"}) + nodeOf("Cast", {"d"}, attribute("to", kF32)),
          x, 23, {1, 1}, gain + zero)),
      testing::ElementsAre(testing::DoubleNear(7.0 / 3, 1e-6)));
  // A mask of Dropout is of x's until opset 10.
  EXPECT_EQ(numbersOf(run(inner("Dropout", {"x"}, {"d", "y"}), x, 9, {1, 3})), (Numbers{1, 1, 1}));
}

TEST(OnnxEdges, LengthsOfWholeChannels) {
  EXPECT_EQ(numbersOf(run(nodeOf("GlobalLpPool", {"x"}), Array::fromFloats({3, -4}, {1, 1, 2}), 22,
                          {1, 1, 1})),
            (Numbers{5}));
  EXPECT_EQ(numbersOf(run(nodeOf("GlobalLpPool", {"x"}, attribute("p", 1)),
                          Array::fromFloats({3, -4}, {1, 1, 2}), 22, {1, 1, 1})),
            (Numbers{7}));
}

// A padding behind the image alone.
TEST(OnnxEdges, MaximaGoBackIntoAPaddedImage) {
  const std::string node =
      nodeOf("MaxUnpool", {"x", "places"},
             listAttribute("kernel_shape", {3}) + listAttribute("strides", {2}) +
                 listAttribute("pads", {0, 1}));
  EXPECT_EQ(numbersOf(run(node, Array::fromFloats({7, 9}, {1, 1, 2}), 22, {1, 1, 4},
                          tensor<int64_t>("places", kI64, {1, 1, 2}, {1, 3}))),
            (Numbers{0, 7, 0, 9}));
}

TEST(OnnxEdges, QuantizedInBlocksAndInAPrecision) {
  // The last block is shorter.
  const std::string blocks = inner("QuantizeLinear", {"x", "scales"}, {"q"},
                                   attribute("axis", 1) + attribute("block_size", 2)) +
                             nodeOf("Cast", {"q"}, attribute("to", kF32));
  EXPECT_EQ(numbersOf(run(blocks, Array::fromFloats({4, 6, 8}, {1, 3}), 21, {1, 3},
                          tensor<float>("scales", kF32, {1, 2}, {1, 2}))),
            (Numbers{4, 6, 4}));
  // 2049 is 2048 in f16.
  auto quantized = [](const std::string& precision) {
    return run(inner("QuantizeLinear", {"x", "scale", "zero"}, {"q"}, precision) +
                   nodeOf("Cast", {"q"}, attribute("to", kF32)),
               row({2049}), 23, {1},
               tensor<float>("scale", kF32, {}, {1}) + tensor<int16_t>("zero", kI16, {}, {0}))
        .at(0);
  };
  EXPECT_EQ(quantized(""), 2049);
  EXPECT_EQ(quantized(attribute("precision", kF16)), 2048);
}

// 100 times the f16 next to 0.1 is 9.99756, in f16 10.
TEST(OnnxEdges, DequantizedNumbersHaveTheScalesType) {
  const std::string scale = tensor<uint16_t>("scale", kF16, {}, {0x2e66});
  EXPECT_EQ(
      run(cast(kI8, inner("DequantizeLinear", {"c", "scale"}, {"d"})), row({100}), 23, {1}, scale)
          .at(0),
      10);
  EXPECT_NEAR(run(cast(kI8, inner("DequantizeLinear", {"c", "scale"}, {"d"},
                                  attribute("output_dtype", kF32))),
                  row({100}), 23, {1}, scale)
                  .at(0),
              9.99755859375, 1e-6);
}

TEST(OnnxEdges, OneElementIsItsOwnReflection) {
  EXPECT_EQ(numbersOf(run(nodeOf("Pad", {"x", "pads"}, text("mode", "reflect")), row({5}), 18, {5},
                          ints("pads", {2, 2}))),
            (Numbers{5, 5, 5, 5, 5}));
}

TEST(OnnxEdges, SequencesLieAlongTheFirstAxis) {
  EXPECT_EQ(numbersOf(run(nodeOf("ReverseSequence", {"x", "lengths"}),
                          Array::fromFloats({0, 1, 2, 3, 4, 5}, {3, 2}), 10, {3, 2},
                          ints("lengths", {2, 3}))),
            (Numbers{2, 5, 0, 3, 4, 1}));
}

// Sums are of a type that holds them: f32 for 16-bit floats, f64 for whole numbers under a root.
TEST(OnnxEdges, ReductionsInAWiderType) {
  const std::string keeps = attribute("keepdims", 1);
  EXPECT_EQ(run(cast(kF16, inner("ReduceL2", {"c"}, {"d"}, keeps)), row({300, 400}), 18, {1}).at(0),
            500);
  EXPECT_EQ(
      run(cast(kF16, inner("ReduceLogSum", {"c"}, {"d"}, keeps)), row({60000, 60000}), 18, {1})
          .at(0),
      11.6953125);  // ln 120,000 in f16
  // 2^24 + 1 is no f32: what it is more than 2^24 is left.
  const std::string root = inner("Add", {"c", "one"}, {"more"}) +
                           inner("ReduceL2", {"more"}, {"l"}, keeps) +
                           inner("Sub", {"l", "large"}, {"d"});
  EXPECT_EQ(
      run(cast(kI32, root), row({16777216}), 18, {1},
          tensor<int32_t>("one", kI32, {1}, {1}) + tensor<int32_t>("large", kI32, {1}, {16777216}))
          .at(0),
      1);
  EXPECT_EQ(
      run(cast(kI32, inner("ReduceLogSumExp", {"c"}, {"d"}, keeps)), row({0, 10}), 18, {1}).at(0),
      10);
  EXPECT_EQ(run(cast(kU8, inner("ReduceL1", {"c"}, {"d"}, keeps)), row({3, 200}), 18, {1}).at(0),
            203);
}

// One place out of four: the first between corners, the middle of a crop.
TEST(OnnxEdges, ResizedToOnePlace) {
  const Array x = row({1, 2, 4, 8});
  auto resized = [&](const char* coordinates) {
    return run(nodeOf("Resize", {"x", "roi", "", "sizes"},
                      text("mode", "linear") + text("coordinate_transformation_mode", coordinates)),
               x, 18, {1}, ints("sizes", {1}) + tensor<float>("roi", kF32, {2}, {0, 1}))
        .at(0);
  };
  EXPECT_EQ(resized("align_corners"), 1);
  EXPECT_EQ(resized("tf_crop_and_resize"), 3);
  EXPECT_EQ(resized("half_pixel"), 3);
}

TEST(OnnxEdges, GridsOfOneRowAndOfTheMostPlaces) {
  const Array identity = Array::fromFloats({1, 0, 0, 0, 1, 0}, {1, 2, 3});
  auto grid = [&](const Sizes& sizes) {
    return run(nodeOf("AffineGrid", {"x", "sizes"}, attribute("align_corners", 1)), identity, 20,
               {1, sizes[2], sizes[3], 2}, ints("sizes", sizes));
  };
  EXPECT_EQ(numbersOf(grid({1, 1, 1, 2})), (Numbers{-1, -1, 1, -1}));
  const Array most = grid({1, 1, 512, 512});
  EXPECT_EQ(most.at(0), -1);
  EXPECT_EQ(most.at(most.size() - 1), 1);
}

// Bounds of Shape beyond the rank are its ends.
TEST(OnnxEdges, PartsOfAShape) {
  const Array x = test::someNumbers({2, 3});
  for (const auto& [start, end, want] : {std::tuple(int64_t(-10), int64_t(-1), Sizes{2}),
                                         std::tuple(int64_t(1), int64_t(9), Sizes{3}),
                                         std::tuple(int64_t(-10), int64_t(10), Sizes{2, 3})})
    EXPECT_EQ(shapeOf(run(
                  inner("Shape", {"x"}, {"s"}, attribute("start", start) + attribute("end", end)) +
                      nodeOf("ConstantOfShape", {"s"}),
                  x, 15, want)),
              want);
}

TEST(OnnxEdges, AnOpenSizeOfNothing) {
  const Array y = run(nodeOf("Reshape", {"x", "shape"}, attribute("allowzero", 1)),
                      Array(DType::F32, {0, 3}), 14, {0, 0}, ints("shape", {-1, 0}));
  EXPECT_EQ(shapeOf(y), (Sizes{0, 0}));
}

TEST(OnnxEdges, PiecesOfASequence) {
  // keepdims is of pieces of one place that no split names, neither a list nor a number.
  for (const std::string& split : {ints("split", {1, 1}), one("split", 1)})
    EXPECT_EQ(
        shapeOf(run(inner("SplitToSequence", {"x", "split"}, {"s"}, attribute("keepdims", 0)) +
                        nodeOf("SequenceAt", {"s", "at"}),
                    test::someNumbers({2, 3}), 17, {1, 3}, split + one("at", 0))),
        (Sizes{1, 3}));
  // The last piece is the rest.
  EXPECT_EQ(numbersOf(run(
                inner("SplitToSequence", {"x", "two"}, {"s"}) + nodeOf("SequenceAt", {"s", "two"}),
                row({0, 1, 2, 3, 4}), 17, {1}, one("two", 2))),
            (Numbers{4}));
  auto inserted = [](int64_t at) {
    return numbersOf(run(inner("SequenceConstruct", {"x"}, {"s"}) + inner("Neg", {"x"}, {"minus"}) +
                             inner("SequenceInsert", {"s", "minus", "at"}, {"t"}) +
                             nodeOf("ConcatFromSequence", {"t"}, attribute("axis", 0)),
                         row({1, 2}), 17, {4}, one("at", at)));
  };
  EXPECT_EQ(inserted(1), (Numbers{1, 2, -1, -2}));
  EXPECT_EQ(inserted(-1), (Numbers{-1, -2, 1, 2}));
  for (int64_t at : {2, -2}) try {
      inserted(at);
      ADD_FAILURE() << "expected an error";
    } catch (const Error& e) {
      EXPECT_THAT(e.what(), HasSubstr("a place outside of the sequence"));
    }
}

// Ends that are computed from the symbolic length.
TEST(OnnxEdges, SlicesToComputedEnds) {
  const Array x = row({1, 2, 3});
  const std::string length = inner("Shape", {"x"}, {"n"}), zero = ints("zero", {0});
  // Beyond the axis.
  EXPECT_EQ(numbersOf(run(length + inner("Add", {"n", "one"}, {"end"}) +
                              nodeOf("Slice", {"x", "zero", "end"}),
                          x, 13, {3}, zero + ints("one", {1}), symbolic())),
            (Numbers{1, 2, 3}));
  // In a table of a known length, from its second place on.
  EXPECT_EQ(
      numbersOf(run(length + nodeOf("Slice", {"table", "one", "n"}), x, 13, {2},
                    ints("one", {1}) + tensor<float>("table", kF32, {6}, {10, 20, 30, 40, 50, 60}),
                    symbolic())),
      (Numbers{20, 30}));
}

}  // namespace
}  // namespace lathe
