// SPDX-License-Identifier: Apache-2.0
// Forms of nodes that ONNX's own cases leave out: older opsets, ties, sizes of 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "lathe/runtime/error.h"
#include "tests/onnx/one_node.h"

namespace lathe {
namespace {

using namespace onnx_wire;
using test::inner;
using test::run;
using test::someNumbers;
using Shape = std::vector<int64_t>;

// Up to opset 12 the axes from one on are one, by default from the second; later one axis is meant,
// by default the last.
TEST(OnnxForms, SoftmaxOfOlderOpsetsRunsOverAllAxesFromOneOn) {
  const Shape shape{2, 3, 4};
  const Array x = someNumbers(shape);
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"})
    for (int64_t opset : {7, 10, 11, 12, 13, 23, 28})
      for (int64_t axis : {-3, -1, 0, 1, 2, 99}) {
        SCOPED_TRACE(std::string(op) + " of opset " + std::to_string(opset) + " along " +
                     std::to_string(axis));
        const std::string attributes = axis == 99 ? "" : attribute("axis", axis);
        const Array y = run(nodeOf(op, {"x"}, attributes), x, opset, shape);
        const bool isOld = opset < 13;
        const int64_t from = axis == 99 ? (isOld ? 1 : 2) : (axis + 3) % 3;
        // Elements that share a row have the same number here.
        auto rowOf = [&](int64_t i) {
          const int64_t places[] = {i / 12, i / 4 % 3, i % 4};
          int64_t row = 0;
          for (int64_t a = 0; a < 3; ++a)
            if (isOld ? a < from : a != from) row = row * 5 + places[a] + 1;
          return row;
        };
        std::map<int64_t, double> sums, largest;
        std::map<int64_t, int64_t> first;
        for (int64_t i = 0; i < x.size(); ++i) {
          sums[rowOf(i)] += std::exp(x.at(i));
          if (!first.contains(rowOf(i)) || x.at(i) > largest[rowOf(i)])
            first[rowOf(i)] = i, largest[rowOf(i)] = x.at(i);
        }
        for (int64_t i = 0; i < x.size(); ++i) {
          const double share = std::exp(x.at(i)) / sums[rowOf(i)];
          const double want = *op == 'S'   ? share
                              : *op == 'L' ? std::log(share)
                                           : double(first[rowOf(i)] == i);
          EXPECT_NEAR(y.at(i), want, 1e-6) << i;
        }
      }
}

// The largest is taken off before the exponential.
TEST(OnnxForms, SoftmaxOfLargeNumbers) {
  const Array x = Array::fromFloats({1000, 990, 88, -1000, -1000, -1000, 89, 200, 200.5f}, {3, 3});
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    const Array y = run(nodeOf(op, {"x"}), x, 13, {3, 3});
    for (int64_t row = 0; row < 3; ++row) {
      double largest = -INFINITY, sum = 0;
      for (int64_t i = 0; i < 3; ++i) largest = std::max(largest, x.at(row * 3 + i));
      for (int64_t i = 0; i < 3; ++i) sum += std::exp(x.at(row * 3 + i) - largest);
      for (int64_t i = 0; i < 3; ++i) {
        const double shifted = x.at(row * 3 + i) - largest;
        const double want = *op == 'S' ? std::exp(shifted) / sum : shifted - std::log(sum);
        EXPECT_NEAR(y.at(row * 3 + i), want, 1e-6 * std::max(1.0, std::abs(want))) << op << row;
      }
    }
  }
}

// Starts and ends beyond the axis are moved to it, to the place before the first element as well.
TEST(OnnxForms, SlicesInBothDirections) {
  const Array x = Array::fromFloats({0, 1, 2, 3, 4}, {5});
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max();
  struct Case {
    int64_t start, end, step;
    std::vector<double> want;
  };
  for (const Case& c : std::vector<Case>{{-1, -kFar, -1, {4, 3, 2, 1, 0}},
                                         {kFar, -kFar, -1, {4, 3, 2, 1, 0}},
                                         {4, -6, -2, {4, 2, 0}},
                                         {3, 0, -1, {3, 2, 1}},
                                         {-2, -5, -2, {3, 1}},
                                         {1, -kFar, -3, {1}},
                                         {0, kFar, 1, {0, 1, 2, 3, 4}},
                                         {-kFar, kFar, 2, {0, 2, 4}},
                                         {1, -1, 1, {1, 2, 3}},
                                         {-3, 9, 2, {2, 4}},
                                         {0, 5, 4, {0, 4}}}) {
    const Array y = run(
        nodeOf("Slice", {"x", "starts", "ends", "axes", "steps"}), x, 13, {int64_t(c.want.size())},
        literal<int64_t>("starts", 7, {c.start}) + literal<int64_t>("ends", 7, {c.end}) +
            literal<int64_t>("axes", 7, {0}) + literal<int64_t>("steps", 7, {c.step}));
    ASSERT_EQ(y.size(), int64_t(c.want.size())) << c.start << ":" << c.end << ":" << c.step;
    for (int64_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(y.at(i), c.want[size_t(i)]) << c.start << ":" << c.end << ":" << c.step;
  }
}

// Places in the middle between two elements, and on them.
TEST(OnnxForms, NearestNeighboursAtTies) {
  const Array x = Array::fromFloats({10, 20, 30}, {3});
  const std::map<std::string, std::vector<double>> wanted{
      {"round_prefer_floor", {10, 10, 20, 20, 30, 30}},
      {"round_prefer_ceil", {10, 20, 20, 30, 30, 30}},
      {"floor", {10, 10, 20, 20, 30, 30}},
      {"ceil", {10, 20, 20, 30, 30, 30}},
  };
  for (auto& [mode, values] : wanted) {
    const std::string node =
        nodeOf("Resize", {"x", "", "scales"},
               attribute("nearest_mode", mode) +
                   attribute("coordinate_transformation_mode", std::string("asymmetric")));
    const Array y = run(node, x, 19, {6}, literal<float>("scales", 1, {2}));
    for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(y.at(i), values[size_t(i)]) << mode << " at " << i;
  }
}

// [0, 4] of [2, 3] is the place of [1, 1] if both axes are counted as one.
TEST(OnnxForms, TuplesOfIndicesStayInsideOfEachAxis) {
  const Array x = someNumbers({2, 3});
  auto at = [&](int64_t row, int64_t column) {
    return run(nodeOf("GatherND", {"x", "at"}), x, 13, {}, literal<int64_t>("at", 7, {row, column}))
        .at(0);
  };
  EXPECT_EQ(at(1, 1), x.at(4));
  EXPECT_EQ(at(-1, -2), x.at(4));
  for (auto [row, column] : {std::pair<int64_t, int64_t>{0, 4}, {1, -4}, {2, 0}, {-3, 0}, {0, 3}})
    EXPECT_THROW(at(row, column), Error) << row << ", " << column;
}

// An even size has one channel more behind than before.
TEST(OnnxForms, ResponsesOfAnEvenNumberOfChannels) {
  const Array x = Array::fromFloats({100, 200, 300, 400, 500}, {1, 5, 1});
  const Array y = run(nodeOf("LRN", {"x"}, attribute("size", 4)), x, 13, {1, 5, 1});
  for (int64_t c = 0; c < 5; ++c) {
    double sum = 0;
    for (int64_t i = std::max<int64_t>(0, c - 1); i < std::min<int64_t>(5, c + 3); ++i)
      sum += x.at(i) * x.at(i);
    EXPECT_NEAR(y.at(c), x.at(c) / std::pow(1 + 1e-4 / 4 * sum, 0.75), 1e-4) << c;
  }
}

// Products of a channel of its own are summed in f32: in f16, 2048 + 1 + 1 would stay 2048.
TEST(OnnxForms, DepthwiseSumsOfNarrowFloats) {
  const Array x = Array::fromFloats({2048, 1, 1, -2048, -1, -1}, {1, 2, 3});
  const std::string nodes = inner("Cast", {"x"}, {"narrow"}, attribute("to", 10)) +
                            inner("Reshape", {"ones", "kernel"}, {"w"}) +
                            inner("Conv", {"narrow", "w"}, {"sums"}, attribute("group", 2)) +
                            nodeOf("Cast", {"sums"}, attribute("to", 1));
  const Array y = run(nodes, x, 19, {1, 2, 1},
                      literal<uint16_t>("ones", 10, std::vector<uint16_t>(6, 0x3c00)) +
                          literal<int64_t>("kernel", 7, {2, 1, 3}));
  EXPECT_EQ(y.at(0), 2050);
  EXPECT_EQ(y.at(1), -2050);
}

// Where the lowest number of all lies, in a window that begins in a padding: its own place, as the
// padding has none.
TEST(OnnxForms, PlacesOfTheLowestNumbersBesideAPadding) {
  for (bool columnMajor : {false, true})
    for (double value : {-double(INFINITY), 0.0, -3.5}) {
      Array x(DType::F32, {1, 2, 3, 4});
      for (int64_t i = 0; i < x.size(); ++i) x.set(i, value);
      const std::string attributes = attribute("storage_order", int64_t(columnMajor)) +
                                     listAttribute("kernel_shape", {2, 3}) +
                                     listAttribute("pads", {1, 2, 1, 2});
      const std::string node = inner("MaxPool", {"x"}, {"values", "places"}, attributes);
      const Array y =
          run(node + nodeOf("Cast", {"places"}, attribute("to", 1)), x, 12, {1, 2, 4, 6});
      for (int64_t c = 0; c < 2; ++c)
        for (int64_t row = 0; row < 4; ++row)
          for (int64_t column = 0; column < 6; ++column) {
            // The first element of the image that the window covers.
            const int64_t i = std::max<int64_t>(row - 1, 0), j = std::max<int64_t>(column - 2, 0);
            EXPECT_EQ(y.at((c * 4 + row) * 6 + column),
                      double(c * 12 + (columnMajor ? j * 3 + i : i * 4 + j)))
                << value << " at " << c << ", " << row << ", " << column;
          }
    }
}

// Extremes of nothing are infinite, wherever among the axes the empty one is.
TEST(OnnxForms, ExtremesOverAxesOfWhichOneIsEmpty) {
  for (const char* op : {"ReduceMax", "ReduceMin"})
    for (const Shape& shape : {Shape{0, 3, 2}, Shape{3, 0, 2}, Shape{0, 0, 2}, Shape{3, 1, 2}})
      for (const std::vector<int64_t>& axes :
           {std::vector<int64_t>{0, 1}, {1, 0}, {-3, -2}, {0}, {1}}) {
        Shape result = shape;
        bool isEmpty = false;
        for (int64_t a : axes) {
          const auto axis = size_t(a < 0 ? a + 3 : a);
          isEmpty |= shape[axis] == 0;
          result[axis] = 1;
        }
        if (std::ranges::find(result, 0) != result.end()) continue;
        Array x(DType::F32, {shape.begin(), shape.end()});
        for (int64_t i = 0; i < x.size(); ++i) x.set(i, double(i) - 2);
        const Array y =
            run(nodeOf(op, {"x", "axes"}), x, 20, result, literal<int64_t>("axes", 7, axes));
        ASSERT_EQ(y.size(), result[0] * result[1] * result[2]);
        for (int64_t i = 0; i < y.size(); ++i) {
          if (isEmpty)
            EXPECT_EQ(y.at(i), std::string(op) == "ReduceMax" ? -INFINITY : INFINITY)
                << op << " " << i;
          else
            EXPECT_TRUE(std::isfinite(y.at(i))) << op << " " << i;
        }
      }
}

// An output_shape names the axes behind the channels, or all of them.
TEST(OnnxForms, SizesOfATransposedConvolutionMayNameEveryAxis) {
  const Array x = someNumbers({1, 2, 3, 3});
  const std::string kernel = inner("Reshape", {"ones", "kernel"}, {"w"}),
                    literals = literal<float>("ones", 1, std::vector<float>(2 * 1 * 2 * 2, 1)) +
                               literal<int64_t>("kernel", 7, {2, 1, 2, 2});
  auto sized = [&](const std::vector<int64_t>& shape) {
    return run(
        kernel + nodeOf("ConvTranspose", {"x", "w"},
                        listAttribute("strides", {2, 2}) + listAttribute("output_shape", shape)),
        x, 11, {1, 1, 7, 6}, literals);
  };
  const Array want = sized({7, 6}), got = sized({1, 1, 7, 6});
  ASSERT_EQ(want.shape(), (lathe::Shape{1, 1, 7, 6}));
  ASSERT_EQ(got.shape(), want.shape());
  for (int64_t i = 0; i < want.size(); ++i) EXPECT_EQ(got.at(i), want.at(i)) << i;
}

// The first parts of a shape have what does not divide.
TEST(OnnxForms, PartsOfAShape) {
  const std::string sizes = inner("Shape", {"x"}, {"sizes"}),
                    parts =
                        inner("Split", {"sizes"}, {"first", "last"}, attribute("num_outputs", 2));
  const Array x = someNumbers({2, 3, 1, 4, 5});
  for (auto& [part, wanted] :
       {std::pair("first", Shape{2, 3, 1}), std::pair("last", Shape{4, 5})}) {
    const Array y = run(sizes + parts + nodeOf("ConstantOfShape", {part}), x, 18, wanted);
    EXPECT_EQ(Shape(y.shape().begin(), y.shape().end()), wanted);
  }
}

// A size of 0 is the operand's, or, with allowzero, nothing.
TEST(OnnxForms, ReshapesToNothing) {
  const Array x(DType::F32, {0, 6});
  auto shapeOf = [&](const std::vector<int64_t>& to, bool allowZero, const Shape& result) {
    const Array y = run(nodeOf("Reshape", {"x", "to"}, allowZero ? attribute("allowzero", 1) : ""),
                        x, 19, result, literal<int64_t>("to", 7, to));
    return Shape(y.shape().begin(), y.shape().end());
  };
  EXPECT_EQ(shapeOf({3, 0}, true, {3, 0}), (Shape{3, 0}));
  EXPECT_EQ(shapeOf({0, 2}, true, {0, 2}), (Shape{0, 2}));
  EXPECT_EQ(shapeOf({0, 0}, false, {0, 6}), (Shape{0, 6}));
  EXPECT_EQ(shapeOf({0, 3, 2}, false, {0, 3, 2}), (Shape{0, 3, 2}));
  EXPECT_THROW(shapeOf({3, 0}, false, {3, 6}), Error);
  const Array some = someNumbers({2, 6});
  const Array y = run(nodeOf("Reshape", {"x", "to"}), some, 19, {2, 3, 2},
                      literal<int64_t>("to", 7, {0, -1, 2}));
  EXPECT_EQ(Shape(y.shape().begin(), y.shape().end()), (Shape{2, 3, 2}));
}

}  // namespace
}  // namespace lathe
