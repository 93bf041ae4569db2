// SPDX-License-Identifier: Apache-2.0
// Numbers that ONNX's own cases do not hold: at bounds, of other element types, by defaults of
// older opsets. The expected ones follow from the operator pages.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "lathe/runtime/error.h"
#include "tests/onnx/one_node.h"

namespace lathe {
namespace {

using namespace onnx_wire;
using test::inner;
using test::numbersOf;
using test::run;
using Numbers = std::vector<double>;

// Element types by ONNX's numbers.
constexpr int64_t kF32 = 1, kU8 = 2, kI8 = 3, kI16 = 5, kI32 = 6, kI64 = 7;

Array row(const std::vector<float>& values) {
  return Array::fromFloats(values, {int64_t(values.size())});
}
std::string real(const std::string& name, float value) {
  std::string raw(4, '\0');
  std::memcpy(raw.data(), &value, 4);
  return bytes(5, bytes(1, name) + varint(2 << 3 | 5) + raw + number(20, 1));
}
// x as another element type, a node on it, and its result as f32 again.
std::string cast(int64_t to, const std::string& node) {
  return inner("Cast", {"x"}, {"c"}, attribute("to", to)) + node +
         nodeOf("Cast", {"d"}, attribute("to", kF32));
}

TEST(OnnxNumbers, BoundsOfActivations) {
  struct Case {
    const char* op;
    std::string attributes;
    std::vector<float> x;
    Numbers want;
  };
  for (const Case& c : std::vector<Case>{
           {"ThresholdedRelu", "", {0.5f, 1, 1.5f, -1}, {0, 0, 1.5, 0}},
           {"ThresholdedRelu", real("alpha", 0), {0, 0.5f, -0.5f}, {0, 0.5, 0}},
           {"HardSigmoid", "", {-2.5f, 2.5f, 0, 3, -3}, {0, 1, 0.5, 1, 0}},
           {"HardSigmoid", real("alpha", 0.5f) + real("beta", 0.25f), {0, 1, -1}, {0.25, 0.75, 0}},
           {"HardSwish", "", {-3, 3, 0, 4, -4}, {0, 3, 0, 4, 0}},
           {"LeakyRelu", "", {-100, 0, 2}, {-1, 0, 2}},
           {"LeakyRelu", real("alpha", 0.5f), {-4, 4}, {-2, 4}},
           {"Shrink", "", {0.5f, -0.5f, 0.75f, -0.75f}, {0, 0, 0.75, -0.75}},
           {"Shrink", real("lambd", 1) + real("bias", 0.5f), {1, 1.5f, -1.5f}, {0, 1, -1}},
           {"Elu", real("alpha", 2), {0, 3, -1}, {0, 3, 2 * std::expm1(-1.0)}},
           {"Celu", real("alpha", 2), {0, 3, -2}, {0, 3, 2 * std::expm1(-1.0)}},
           {"Softsign", "", {-1, 0, 3}, {-0.5, 0, 0.75}},
           {"IsInf", "", {INFINITY, -INFINITY, NAN, 1}, {1, 1, 0, 0}},
           {"IsInf", attribute("detect_negative", 0), {INFINITY, -INFINITY, NAN}, {1, 0, 0}},
           {"IsInf", attribute("detect_positive", 0), {INFINITY, -INFINITY, NAN}, {0, 1, 0}},
           {"Round", "", {0.5f, 1.5f, 2.5f, -0.5f, -1.5f}, {0, 2, 2, 0, -2}},
           {"Sign", "", {-2, 0, 3}, {-1, 0, 1}}}) {
    const bool isBool = std::string(c.op) == "IsInf";
    const std::string node = isBool ? inner(c.op, {"x"}, {"b"}, c.attributes) +
                                          nodeOf("Cast", {"b"}, attribute("to", kF32))
                                    : nodeOf(c.op, {"x"}, c.attributes);
    const Numbers got = numbersOf(run(node, row(c.x), 22, {int64_t(c.x.size())}));
    ASSERT_EQ(got.size(), c.want.size());
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], c.want[i], 1e-6) << c.op << " of " << c.x[i];
  }
}

// Of opsets 18 to 20 a group has a gain, from 21 on a channel.
TEST(OnnxNumbers, GainsOfGroupNormsBeforeOpset21) {
  const Array x = Array::fromFloats({1, 2, 4, 3, -1, 5, 0, 2}, {1, 4, 2});
  auto normed = [&](int64_t opset, std::vector<float> gain, std::vector<float> bias) {
    return numbersOf(
        run(nodeOf("GroupNormalization", {"x", "gain", "bias"}, attribute("num_groups", 2)), x,
            opset, {1, 4, 2}, literal<float>("gain", 1, gain) + literal<float>("bias", 1, bias)));
  };
  const Numbers want = normed(21, {2, 2, 3, 3}, {0, 0, 1, 1});
  for (int64_t opset : {18, 19, 20}) EXPECT_EQ(normed(opset, {2, 3}, {0, 1}), want) << opset;
  EXPECT_NE(normed(21, {2, 3, 2, 3}, {0, 1, 0, 1}), want);
  // [1, 2, 4, 3] has the mean 2.5 and the variance 1.25.
  EXPECT_NEAR(want[0], 2 * (1 - 2.5) / std::sqrt(1.25 + 1e-5), 1e-5);
}

// Nothing in a padding is larger than an element, of any type.
TEST(OnnxNumbers, PaddingsOfMaxPoolAreTheLowest) {
  for (auto [type, x] : {std::pair(kF32, std::vector<float>{-5, -3, -7}),
                         {kI8, std::vector<float>{-5, -3, -7}},
                         {kU8, std::vector<float>{5, 3, 7}},
                         {kF32, std::vector<float>{-INFINITY, -INFINITY, -7}},
                         {kI8, std::vector<float>{-128, -128, -7}},
                         {kI32, std::vector<float>{-500, -300, -700}},
                         {kU8, std::vector<float>{0, 0, 7}}}) {
    const std::string pool =
        inner("MaxPool", {"c"}, {"d"},
              listAttribute("kernel_shape", {2}) + listAttribute("pads", {1, 1}));
    const Numbers got =
        numbersOf(run(cast(type, pool), Array::fromFloats(x, {1, 1, 3}), 22, {1, 1, 4}));
    EXPECT_EQ(got, (Numbers{x[0], std::max(x[0], x[1]), std::max(x[1], x[2]), x[2]})) << type;
  }
}

// Infinities of the signs that are asked for, and none where neither is.
TEST(OnnxNumbers, InfinitiesOfEitherSignOrOfNone) {
  for (int64_t up : {0, 1})
    for (int64_t down : {0, 1}) {
      const std::string node =
          inner("IsInf", {"x"}, {"d"},
                attribute("detect_positive", up) + attribute("detect_negative", down)) +
          nodeOf("Cast", {"d"}, attribute("to", kF32));
      EXPECT_EQ(numbersOf(run(node, row({-INFINITY, -1, 0, NAN, INFINITY}), 20, {5})),
                (Numbers{double(down), 0, 0, 0, double(up)}))
          << up << down;
    }
}

// A mask that ends before the keys hides those behind it, of either kind.
TEST(OnnxNumbers, ShortMasksHideTheKeysBehindThem) {
  const Array x = test::someNumbers({1, 1, 3, 2});
  const std::string node =
      inner("Unsqueeze", {"m", "first"}, {"mask"}) + nodeOf("Attention", {"x", "x", "x", "mask"});
  auto with = [&](const std::string& mask) {
    return numbersOf(run(node, x, 24, {1, 1, 3, 2}, mask + literal<int64_t>("first", 7, {0})));
  };
  constexpr int kBool = 9;
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const Numbers want = with(literal<float>("m", 1, {0, 0, kHidden}));
  EXPECT_NE(want, with(literal<float>("m", 1, {0, 0, 0})));
  EXPECT_EQ(want, with(literal<float>("m", 1, {0, 0})));
  EXPECT_EQ(want, with(literal<uint8_t>("m", kBool, {1, 1, 0})));
  EXPECT_EQ(want, with(literal<uint8_t>("m", kBool, {1, 1})));
}

// The scores behind the mask show a query itself and as many keys before it as the window says.
TEST(OnnxNumbers, ScoresOfAWindowEndWithIt) {
  const Array x = test::someNumbers({1, 1, 5, 2});
  for (int64_t left : {0, 1, 3}) {
    const std::string node = inner("Attention", {"x", "x", "x"}, {"attended", "", "", "scores"},
                                   attribute("is_causal", 1) + attribute("left_window_size", left) +
                                       attribute("qk_matmul_output_mode", 2)) +
                             nodeOf("Identity", {"scores"});
    const Numbers scores = numbersOf(run(node, x, 24, {1, 1, 5, 5}));
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t j = 0; j < 5; ++j)
        EXPECT_EQ(std::isfinite(scores[size_t(5 * i + j)]), j <= i && i - j <= left)
            << "key " << j << " of query " << i << ", window " << left;
  }
}

// A last window that would begin behind the image and its padding is none.
TEST(OnnxNumbers, CeilModeHasNoWindowInThePadding) {
  struct Case {
    int64_t kernel, stride, low, high;
    Numbers want;
  };
  const Array x = Array::fromFloats({1, 2, 3}, {1, 1, 3});
  for (const Case& c : std::vector<Case>{{2, 3, 0, 1, {2}},     // 3 is where the padding begins
                                         {2, 2, 0, 0, {2, 3}},  // the last one juts out
                                         {1, 2, 0, 0, {1, 3}},  // fits as it is
                                         {2, 3, 1, 1, {1, 3}},  // 3 - 1 is inside
                                         {3, 2, 0, 0, {3}},     // one is enough
                                         {2, 4, 1, 1, {1}}}) {
    auto pool = [&](const char* op, std::string more) {
      return numbersOf(run(
          nodeOf(op, {"x"},
                 listAttribute("kernel_shape", {c.kernel}) + listAttribute("strides", {c.stride}) +
                     listAttribute("pads", {c.low, c.high}) + attribute("ceil_mode", 1) + more),
          x, 22, {1, 1, int64_t(c.want.size())}));
    };
    EXPECT_EQ(pool("MaxPool", ""), c.want) << c.kernel << " " << c.stride;
    EXPECT_EQ(pool("AveragePool", "").size(), c.want.size());
  }
}

// Rounded to even, then moved by the zero point: an odd one does not change which way a tie goes.
TEST(OnnxNumbers, TiesAreRoundedBeforeTheZeroPointIsAdded) {
  const std::string literals =
      literal<float>("scale", 1, {1}) + literal<int8_t>("zero", int(kI8), {1});
  const std::string node = inner("QuantizeLinear", {"x", "scale", "zero"}, {"q"}) +
                           nodeOf("Cast", {"q"}, attribute("to", kF32));
  const Array x = row({0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 200, -200});
  EXPECT_EQ(numbersOf(run(node, x, 21, {7}, literals)), (Numbers{1, 3, 3, 1, -1, 127, -128}));
}

// Integers in 4 bits have their sign or none, and scales of one number or of blocks.
TEST(OnnxNumbers, IntegersInFourBitsAreWidened) {
  for (auto [type, least] : {std::pair(int64_t(22), -8.f), {int64_t(21), 0.f}}) {
    const Array x = row({least, least + 1, least + 14, least + 15});
    auto widened = [&](const std::vector<float>& scale, const std::string& attributes) {
      return numbersOf(run(inner("Cast", {"x"}, {"c"}, attribute("to", type)) +
                               nodeOf("DequantizeLinear", {"c", "scale"}, attributes),
                           x, 21, {4}, literal<float>("scale", 1, scale)));
    };
    const std::string blocks = attribute("axis", 0) + attribute("block_size", 2);
    EXPECT_EQ(widened({2}, ""),
              (Numbers{2 * least, 2 * least + 2, 2 * least + 28, 2 * least + 30}));
    EXPECT_EQ(widened({1, 2}, blocks), (Numbers{least, least + 1, 2 * least + 28, 2 * least + 30}));
  }
}

// Sums of integers are whole: beyond 2^24, too.
TEST(OnnxNumbers, ReductionsOfLargeIntegers) {
  const int64_t far = int64_t(1) << 40;
  const std::string literals = literal<int64_t>("far", int(kI64), {far}) +
                               literal<int64_t>("axes", int(kI64), {0}) +
                               literal<int64_t>("both", int(kI64), {2 * far});
  auto reduced = [&](const char* op, const char* less) {
    const std::string nodes = inner("Cast", {"x"}, {"i"}, attribute("to", kI64)) +
                              inner("Add", {"i", "far"}, {"c"}) + inner(op, {"c", "axes"}, {"r"}) +
                              inner("Sub", {"r", less}, {"d"});
    return run(nodes + nodeOf("Cast", {"d"}, attribute("to", kF32)), row({1, 3}), 20, {1}, literals)
        .at(0);
  };
  EXPECT_EQ(reduced("ReduceMean", "far"), 2);
  EXPECT_EQ(reduced("ReduceSum", "both"), 4);
  EXPECT_EQ(reduced("ReduceMax", "far"), 3);
  EXPECT_EQ(reduced("ReduceMin", "far"), 1);
}

// Up to opset 10 places are scaled from the first element on and rounded down; from 11 on pixels
// are meant by their middles.
TEST(OnnxNumbers, ResizesOfOlderOpsets) {
  const Array x = Array::fromFloats({0, 10, 20, 30}, {4});
  auto resized = [&](int64_t opset, const std::string& mode, float scale, int64_t size) {
    const bool isOld = opset < 11;
    const std::string node = nodeOf(opset < 10 ? "Upsample" : "Resize",
                                    isOld ? std::vector<std::string>{"x", "scales"}
                                          : std::vector<std::string>{"x", "", "scales"},
                                    attribute("mode", mode));
    return numbersOf(run(node, x, opset, {size}, literal<float>("scales", 1, {scale})));
  };
  for (int64_t opset : {9, 10})
    EXPECT_EQ(resized(opset, "linear", 2, 8), (Numbers{0, 5, 10, 15, 20, 25, 30, 30})) << opset;
  EXPECT_EQ(resized(10, "nearest", 0.75f, 3), (Numbers{0, 10, 20}));
  for (int64_t opset : {11, 12, 13, 18, 19}) {
    EXPECT_EQ(resized(opset, "linear", 2, 8), (Numbers{0, 2.5, 7.5, 12.5, 17.5, 22.5, 27.5, 30}))
        << opset;
    // 1/6, 3/2 and 17/6: of two neighbours as near the lower one.
    EXPECT_EQ(resized(opset, "nearest", 0.75f, 3), (Numbers{0, 10, 30})) << opset;
  }
}

// A scale that leaves the size as it is moves the places all the same: -1/12, 3/4, 19/12 and 29/12.
TEST(OnnxNumbers, ResizeMovesThePlacesOfAnAxisThatKeepsItsSize) {
  const std::string node =
      nodeOf("Resize", {"x", "", "scales"}, attribute("mode", std::string("linear")));
  const Numbers got =
      numbersOf(run(node, row({0, 12, 24, 36}), 19, {4}, literal<float>("scales", 1, {1.2f})));
  const Numbers want{0, 9, 19, 29};
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
}

// The second half of an axis: its places are 1, 1.5 and 2.
TEST(OnnxNumbers, ResizeCropsWhereNothingIsScaled) {
  const std::string node =
      nodeOf("Resize", {"x", "roi", "scales"},
             attribute("mode", std::string("linear")) +
                 attribute("coordinate_transformation_mode", std::string("tf_crop_and_resize")));
  const std::string operands =
      literal<float>("roi", 1, {0.5f, 1}) + literal<float>("scales", 1, {1});
  EXPECT_EQ(numbersOf(run(node, row({0, 10, 20}), 19, {3}, operands)), (Numbers{10, 15, 20}));
}

// Ends and starts as exporters write them, along an axis whose size is a symbol.
TEST(OnnxNumbers, SlicesAlongASymbolicAxis) {
  const Array x = row({0, 1, 2, 3, 4});
  const std::string input =
      bytes(1, "x") + bytes(2, bytes(1, number(1, kF32) + bytes(2, bytes(1, bytes(2, "n")))));
  constexpr int64_t kInt32 = std::numeric_limits<int32_t>::max(),
                    kInt64 = std::numeric_limits<int64_t>::max();
  struct Case {
    int64_t start, end;
    Numbers want;
  };
  for (const Case& c : std::vector<Case>{{0, kInt32, {0, 1, 2, 3, 4}},
                                         {0, kInt64, {0, 1, 2, 3, 4}},
                                         {-1, kInt32, {4}},
                                         {-1, kInt64, {4}},
                                         {0, -1, {0, 1, 2, 3}},
                                         {-kInt64, kInt64, {0, 1, 2, 3, 4}},
                                         {std::numeric_limits<int32_t>::min(), -1, {0, 1, 2, 3}}}) {
    const Numbers got = numbersOf(
        run(nodeOf("Slice", {"x", "starts", "ends", "axes"}), x, 13, {int64_t(c.want.size())},
            literal<int64_t>("starts", 7, {c.start}) + literal<int64_t>("ends", 7, {c.end}) +
                literal<int64_t>("axes", 7, {0}),
            input));
    EXPECT_EQ(got, c.want) << c.start << ":" << c.end;
  }
}

TEST(OnnxNumbers, AnAxisOfSymbolicSizeIsTurnedRound) {
  const std::string input =
      bytes(1, "x") + bytes(2, bytes(1, number(1, kF32) + bytes(2, bytes(1, bytes(2, "n")))));
  for (int64_t end :
       {int64_t(std::numeric_limits<int32_t>::min()), std::numeric_limits<int64_t>::min()})
    EXPECT_EQ(
        numbersOf(run(nodeOf("Slice", {"x", "starts", "ends", "axes", "steps"}), row({0, 1, 2, 3}),
                      13, {4},
                      literal<int64_t>("starts", 7, {-1}) + literal<int64_t>("ends", 7, {end}) +
                          literal<int64_t>("axes", 7, {0}) + literal<int64_t>("steps", 7, {-1}),
                      input)),
        (Numbers{3, 2, 1, 0}));
}

// The last piece of an axis is the rest.
TEST(OnnxNumbers, PiecesOfAnAxisAreEqualButTheLast) {
  auto pieceOf = [](int64_t pieces, int64_t at, int64_t size) {
    std::vector<std::string> names;
    for (int64_t i = 0; i < pieces; ++i) names.push_back(i == at ? "y" : "p" + std::to_string(i));
    return numbersOf(run(inner("Split", {"x"}, names, attribute("num_outputs", pieces)),
                         row({0, 1, 2, 3, 4}), 18, {size}));
  };
  EXPECT_EQ(pieceOf(1, 0, 5), (Numbers{0, 1, 2, 3, 4}));
  EXPECT_EQ(pieceOf(2, 0, 3), (Numbers{0, 1, 2}));
  EXPECT_EQ(pieceOf(2, 1, 2), (Numbers{3, 4}));
  EXPECT_EQ(pieceOf(5, 4, 1), (Numbers{4}));
}

// Long pieces of an axis are a sequence of few.
TEST(OnnxNumbers, SequencesHoldPiecesOfAnyLength) {
  const Array x = test::someNumbers({100});
  auto scalar = [](const std::string& name, int64_t value) {
    std::string raw(8, '\0');
    std::memcpy(raw.data(), &value, 8);
    return bytes(5, number(2, kI64) + bytes(8, name) + bytes(9, raw));
  };
  const std::string nodes =
      inner("SplitToSequence", {"x", "length"}, {"s"}) + nodeOf("SequenceAt", {"s", "at"});
  const Numbers all = numbersOf(x);
  for (int64_t at : {0, 1})
    EXPECT_EQ(numbersOf(run(nodes, x, 17, {50}, scalar("length", 50) + scalar("at", at))),
              Numbers(all.begin() + at * 50, all.begin() + (at + 1) * 50));
}

// A maximum that fills the place it came from, and zeros beside it.
TEST(OnnxNumbers, MaximaGoBackToTheirPlaces) {
  const Array x = Array::fromFloats({7, 9}, {1, 1, 2});
  const std::string node =
      nodeOf("MaxUnpool", {"x", "places"},
             listAttribute("kernel_shape", {2}) + listAttribute("strides", {2}));
  const std::string places = inner("Reshape", {"flat", "shape"}, {"places"});
  const std::string literals =
      literal<int64_t>("flat", 7, {1, 2}) + literal<int64_t>("shape", 7, {1, 1, 2});
  EXPECT_EQ(numbersOf(run(places + node, x, 22, {1, 1, 4}, literals)), (Numbers{0, 7, 9, 0}));
}

// Reals beyond a narrow integer keep the low bits of the whole number.
TEST(OnnxNumbers, CastsOfRealsBeyondNarrowIntegers) {
  for (auto [type, x, want] : {std::tuple(kI8, 300.f, 44.),
                               {kI8, -129.f, 127.},
                               {kU8, 300.f, 44.},
                               {kU8, -1.f, 255.},
                               {kI16, 40000.f, -25536.},
                               {kI16, -40000.f, 25536.},
                               {kI16, 70000.f, 4464.},
                               {kI32, -2.75f, -2.},
                               {kI16, 2.75f, 2.}}) {
    const std::string nodes = inner("Cast", {"x"}, {"c"}, attribute("to", type)) +
                              nodeOf("Cast", {"c"}, attribute("to", kF32));
    EXPECT_EQ(run(nodes, row({x}), 19, {1}).at(0), want) << type << " of " << x;
  }
}

TEST(OnnxNumbers, TilesRepeatWholeAxes) {
  const Array x = Array::fromFloats({1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(numbersOf(run(nodeOf("Tile", {"x", "repeats"}), x, 13, {2, 4},
                          literal<int64_t>("repeats", int(kI64), {1, 2}))),
            (Numbers{1, 2, 1, 2, 3, 4, 3, 4}));
}

// The uneven half of a padding is in front unless auto_pad is SAME_UPPER.
TEST(OnnxNumbers, UnevenPaddingsOfTransposedConvolutions) {
  const Array x = Array::fromFloats({1, 10}, {1, 1, 2});
  const std::string kernel = inner("Reshape", {"taps", "shape"}, {"w"}),
                    literals = literal<float>("taps", 1, {1, 2, 4}) +
                               literal<int64_t>("shape", 7, {1, 1, 3});
  auto convolved = [&](const std::string& attributes) {
    return numbersOf(run(
        kernel + nodeOf("ConvTranspose", {"x", "w"}, listAttribute("strides", {2}) + attributes), x,
        11, {1, 1, 4}, literals));
  };
  // All of it is 1, 2, 14, 20, 40.
  EXPECT_EQ(convolved(attribute("auto_pad", std::string("SAME_UPPER"))), (Numbers{1, 2, 14, 20}));
  EXPECT_EQ(convolved(attribute("auto_pad", std::string("SAME_LOWER"))), (Numbers{2, 14, 20, 40}));
  EXPECT_EQ(convolved(listAttribute("output_shape", {4})), (Numbers{2, 14, 20, 40}));
  EXPECT_EQ(convolved(listAttribute("pads", {0, 1})), (Numbers{1, 2, 14, 20}));
  EXPECT_EQ(convolved(listAttribute("pads", {1, 0})), (Numbers{2, 14, 20, 40}));
}

// Inputs and outputs of a scan each have a direction.
TEST(OnnxNumbers, ScansGoEachTheirWay) {
  const std::string port = bytes(2, bytes(1, number(1, kF32) + bytes(2, "")));
  const std::string body =
      bytes(1, bytes(1, "a") + bytes(1, "b") + bytes(2, "c") + bytes(4, "Sub")) +
      bytes(11, bytes(1, "a") + port) + bytes(11, bytes(1, "b") + port) +
      bytes(12, bytes(1, "c") + port);
  const Array x = row({1, 20, 300});
  auto scanned = [&](std::vector<int64_t> in, int64_t out) {
    const std::string attributes = bytes(5, bytes(1, "body") + bytes(6, body) + number(20, 5)) +
                                   attribute("num_scan_inputs", 2) +
                                   listAttribute("scan_input_directions", in) +
                                   listAttribute("scan_output_directions", {out});
    return numbersOf(run(nodeOf("Scan", {"x", "x"}, attributes), x, 11, {3}));
  };
  EXPECT_EQ(scanned({0, 0}, 0), (Numbers{0, 0, 0}));
  EXPECT_EQ(scanned({0, 1}, 0), (Numbers{1 - 300, 0, 300 - 1}));
  EXPECT_EQ(scanned({1, 0}, 0), (Numbers{300 - 1, 0, 1 - 300}));
  EXPECT_EQ(scanned({0, 1}, 1), (Numbers{300 - 1, 0, 1 - 300}));
}

// Shapes that are computed: each chain ends in the shape of zeros.
TEST(OnnxNumbers, ArithmeticOfShapes) {
  const Array x = test::someNumbers({2, 3, 5});
  struct Case {
    std::string nodes;
    std::vector<int64_t> want;
  };
  auto binary = [](const char* op, const char* b, const std::string& attributes = {}) {
    return inner(op, {"sizes", b}, {"to"}, attributes);
  };
  const std::string minus = inner("Neg", {"sizes"}, {"less"});
  for (const Case& c : std::vector<Case>{
           {binary("Add", "one"), {3, 4, 6}},
           {binary("Mul", "two"), {4, 6, 10}},
           {binary("Div", "two"), {1, 1, 2}},
           {binary("Mod", "two"), {0, 1, 1}},
           {binary("Min", "three"), {2, 3, 3}},
           {binary("Max", "three"), {3, 3, 5}},
           // The sign of the divisor, as Python's.
           {minus + inner("Mod", {"less", "three"}, {"to"}), {1, 0, 1}},
           {inner("Slice", {"sizes", "last", "lowest", "zero", "last"}, {"to"}), {5, 3, 2}},
           {inner("Slice", {"sizes", "last", "zero", "zero", "last"}, {"to"}), {5, 3}},
           {inner("Slice", {"sizes", "lowest", "two", "zero", "one"}, {"to"}), {2, 3}},
           {inner("Gather", {"sizes", "last"}, {"to"}), {5}},
           {inner("ReduceSum", {"sizes"}, {"to"}), {10}},
           {inner("ReduceProd", {"sizes"}, {"to"}), {30}},
           {inner("ReduceMax", {"sizes"}, {"to"}), {5}},
           {inner("ReduceMin", {"sizes"}, {"to"}), {2}},
           {inner("Range", {"zero0", "three0", "one0"}, {"to"}), {0, 1, 2}},
           {inner("Range", {"three0", "zero0", "last0"}, {"to"}), {3, 2, 1}},
           {inner("Less", {"sizes", "three"}, {"is"}) +
                inner("Where", {"is", "one", "sizes"}, {"to"}),
            {1, 3, 5}},
           {inner("LessOrEqual", {"sizes", "three"}, {"is"}) +
                inner("Where", {"is", "one", "sizes"}, {"to"}),
            {1, 1, 5}},
           {inner("Greater", {"sizes", "three"}, {"is"}) +
                inner("Where", {"is", "one", "sizes"}, {"to"}),
            {2, 3, 1}},
           {inner("GreaterOrEqual", {"sizes", "three"}, {"is"}) +
                inner("Where", {"is", "one", "sizes"}, {"to"}),
            {2, 1, 1}},
           {inner("Equal", {"sizes", "three"}, {"is"}) + inner("Not", {"is"}, {"isNot"}) +
                inner("Where", {"isNot", "one", "sizes"}, {"to"}),
            {1, 3, 1}}}) {
    auto scalar = [](const std::string& name, int64_t value) {
      std::string raw(8, '\0');
      std::memcpy(raw.data(), &value, 8);
      return bytes(5, number(2, kI64) + bytes(8, name) + bytes(9, raw));
    };
    std::string literals =
        scalar("zero0", 0) + scalar("one0", 1) + scalar("three0", 3) + scalar("last0", -1);
    for (auto [name, value] : {std::pair("zero", int64_t(0)),
                               {"one", 1},
                               {"two", 2},
                               {"three", 3},
                               {"last", -1},
                               {"lowest", std::numeric_limits<int64_t>::min() + 1}})
      literals += literal<int64_t>(name, 7, {value});
    const Array y =
        run(inner("Shape", {"x"}, {"sizes"}) + c.nodes + nodeOf("ConstantOfShape", {"to"}), x, 18,
            c.want, literals);
    EXPECT_EQ(std::vector<int64_t>(y.shape().begin(), y.shape().end()), c.want);
  }
}

// Ids below 0 count from the back, those outside light nothing.
TEST(OnnxNumbers, OneHotRows) {
  const std::string nodes = inner("Cast", {"x"}, {"ids"}, attribute("to", kI64)) +
                            nodeOf("OneHot", {"ids", "depth", "values"});
  const std::string literals =
      literal<int64_t>("depth", 7, {3}) + literal<float>("values", 1, {-1, 5});
  EXPECT_EQ(numbersOf(run(nodes, row({0, -1, 3, -4}), 13, {4, 3}, literals)),
            (Numbers{5, -1, -1, -1, -1, 5, -1, -1, -1, -1, -1, -1}));
}

}  // namespace
}  // namespace lathe
