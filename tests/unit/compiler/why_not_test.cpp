// SPDX-License-Identifier: Apache-2.0
// Why an op was not fused, or not kept fused; and which ops still know their line.
#include <gmock/gmock.h>

#include "lathe/inspect/check_locations.h"
#include "lathe/inspect/why_not.h"
#include "lathe/lathe.h"
#include "lathe/passes/match.h"
#include "tests/unit/compiler/planted.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using ::testing::HasSubstr;

// x * sigmoid(x) * up whose sigmoid somebody else reads: no gate.
struct SharedSigmoid {
  Graph graph;
  int line = 0;
  SharedSigmoid() {
    Dim n = graph.dim("n", 1, 64);
    Tensor x = graph.input("x", DType::F32, {n, 8}), up = graph.input("up", DType::F32, {n, 8});
    Tensor s = sigmoid(x);
    Tensor y = x * s * up;
    line = __LINE__ - 1;
    graph.output("y", y);
    graph.output("s", s);
  }
};

TEST(WhyNot, NamesTheNearestPatternAndTheConstraint) {
  SharedSigmoid model;
  auto misses = whyNot(model.graph);
  ASSERT_FALSE(misses.empty());
  const CompileRecord::Miss& m = misses[0];
  EXPECT_EQ(m.by, "pattern");
  EXPECT_EQ(m.op, "lathe.mul");
  EXPECT_THAT(m.pattern, HasSubstr("glu"));
  EXPECT_EQ(m.constraint, "uses");
  EXPECT_GT(m.matched, 1);
  EXPECT_LE(m.matched, m.of);
  EXPECT_THAT(m.reason, HasSubstr("lathe.sigmoid has another user"));
  EXPECT_THAT(m.at, HasSubstr("why_not_test.cpp:" + std::to_string(model.line)));
}

TEST(WhyNot, SaysNothingOfWhatIsFused) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  g.output("y", nn::softmax(g.input("x", DType::F32, {n, 8}), 1));
  EXPECT_TRUE(whyNot(g).empty());
}

// What has the ops of half a fusion is none of its own: a gain and a bias, heads that are turned
// round and rotated without a norm, an activation that is no gate.
TEST(WhyNot, SaysNothingOfOtherOpsThanAreMeant) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  Tensor x = g.input("x", DType::F32, {n, 8});
  Tensor gain = g.input("gain", DType::F32, {8}), bias = g.input("bias", DType::F32, {8});
  g.output("affine", x * gain + bias);
  g.output("turned round", bias + x * gain);
  Tensor heads = transpose(reshape(x, {n, 2, 4}), {1, 0, 2});
  Tensor angles = g.input("angles", DType::F32, {n, 2});
  g.output("turned", fused::rope(heads, angles, angles, Pairing::half));
  g.output("gelu", x * 0.5 * (tanh((x + x * x * x * 0.044715) * 0.7978845608) + 1.0));
  for (const CompileRecord::Miss& m : whyNot(g)) ADD_FAILURE() << m.op << ": " << m.reason;
  // Of a pattern of the user's own it is worth telling.
  WhyNotOptions options;
  options.compile.pipeline.patterns =
      test::planted({[](PatternLibrary& library, mlir::MLIRContext* c) {
        addPattern(library, c, "mine", [](DagPattern& p) {
          Tensor y = p.any();
          p.root(mul(mul(mul(y, y), y), p.constant(0.04)));
          p.replaceWith(y);
          p.approximate();
        });
      }});
  const auto misses = whyNot(g, options);
  ASSERT_FALSE(misses.empty());
  for (const CompileRecord::Miss& m : misses) EXPECT_EQ(m.pattern, "mine") << m.reason;
  EXPECT_EQ(misses[0].constraint, "constant");
}

TEST(WhyNot, NamesTheBackendThatExpandedAFusion) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  g.output("y", fused::softmax(g.input("x", DType::F32, {n, 8, 4}), 1));
  auto misses = whyNot(g);
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].by, "backend");
  EXPECT_EQ(misses[0].constraint, "backend");
  EXPECT_EQ(misses[0].op, "lathe.softmax");
  EXPECT_EQ(misses[0].reason, "fused softmax runs over the last axis");
}

// What the cuda backend has no kernel for it computes by other ops, and says why.
TEST(WhyNot, TellsWhatEachOpLacksOnTheCudaBackend) {
  struct Declined {
    const char* op;
    const char* text;
    const char* reason;
  };
  const Declined all[] = {
      {"lathe.linear",
       "%x: tensor<2x8xf64> {lathe.name = \"x\"}, %w: tensor<6x8xf64> {lathe.name = \"w\"}) -> "
       "(tensor<2x6xf64> {lathe.name = \"y\"}) { %y = lathe.linear %x, %w : tensor<2x8xf64>, "
       "tensor<6x8xf64>\n return %y : tensor<2x6xf64>",
       "linear kernels take f32, bf16 and f16"},
      {"lathe.linear",
       "%x: tensor<2x8xf32> {lathe.name = \"x\"}, %w: tensor<8x6xf32> {lathe.name = \"w\"}) -> "
       "(tensor<2x6xf32> {lathe.name = \"y\"}) { %y = lathe.linear %x, %w layout in_out : "
       "tensor<2x8xf32>, tensor<8x6xf32>\n return %y : tensor<2x6xf32>",
       "the weight is computed at run time and lies as [in, out]"},
      {"lathe.softmax",
       "%x: tensor<4x8xf32> {lathe.name = \"x\"}) -> (tensor<4x8xf32> {lathe.name = \"y\"}) { "
       "%y = lathe.softmax %x axis 0 : tensor<4x8xf32>\n return %y : tensor<4x8xf32>",
       "fused softmax runs over the last axis"},
      {"lathe.quantize",
       "%x: tensor<4x8xf32> {lathe.name = \"x\"}, %s: tensor<4x2xf32> {lathe.name = \"s\"}) -> "
       "(tensor<4x8xi8> {lathe.name = \"y\"}) { %y = lathe.quantize %x, %s axis 1 block 4 to i8 : "
       "tensor<4x8xf32>, tensor<4x2xf32>\n return %y : tensor<4x8xi8>",
       "integers and floats meet in generated code"},
      {"lathe.attention",
       "%q: tensor<1x1x2x2048xf32> {lathe.name = \"q\"}, %k: tensor<1x1x3x2048xf32> {lathe.name = "
       "\"k\"}, %v: tensor<1x1x3x2048xf32> {lathe.name = \"v\"}) -> (tensor<1x1x2x2048xf32> "
       "{lathe.name = \"y\"}) { %y = lathe.attention %q, %k, %v scale 1.0 : "
       "tensor<1x1x2x2048xf32>, tensor<1x1x3x2048xf32>, tensor<1x1x3x2048xf32>\n return %y : "
       "tensor<1x1x2x2048xf32>",
       "attention takes head depths whose tiles fit 231424 bytes of shared memory, 2048 and 2048 "
       "take "},
  };
  for (const Declined& d : all) {
    CompileRecord record;
    record.wantMisses = true;
    compile(Graph::parse("func.func @forward(" + std::string(d.text) + " }", "model.mlir"),
            {.backend = "cuda", .record = &record});
    std::vector<std::string> reasons;
    for (const CompileRecord::Miss& m : record.misses)
      if (m.by == "backend" && m.op == d.op) reasons.push_back(m.reason);
    EXPECT_THAT(reasons, ::testing::Contains(::testing::StartsWith(d.reason))) << d.text;
  }
}

TEST(WhyNot, IsAskedAboutAnOp) {
  SharedSigmoid model;
  for (const char* op : {"mul", "lathe.mul", "m*"})
    EXPECT_FALSE(whyNot(model.graph, {.op = op}).empty()) << op;
  EXPECT_TRUE(whyNot(model.graph, {.op = "matmul"}).empty());
}

TEST(WhyNot, IsAskedAboutALine) {
  SharedSigmoid model;
  const std::string line = std::to_string(model.line);
  EXPECT_FALSE(whyNot(model.graph, {.at = "why_not_test.cpp:" + line}).empty());
  EXPECT_FALSE(whyNot(model.graph, {.at = "unit/why_not_test.cpp:" + line}).empty());
  // The graph has an op there, which no pattern came near.
  EXPECT_TRUE(whyNot(model.graph, {.op = "matmul", .at = "why_not_test.cpp:" + line}).empty());
}

TEST(WhyNot, RefusesToLookForWhatIsNowhere) {
  SharedSigmoid model;
  const std::string line = std::to_string(model.line);
  for (const char* file : {"why_not_test.cpp:1", "not_test.cpp:"})
    test::expectError(
        ErrorCode::InvalidArgument,
        "no op was recorded at '" + (file + line) + "'; the graph's are at why_not_test.cpp:", [&] {
          whyNot(model.graph, {.at = file + line});
        });
  // A line is a whole number, not the beginning of one.
  for (size_t digits = 1; digits < line.size(); ++digits)
    test::expectError(ErrorCode::InvalidArgument, "no op was recorded at", [&] {
      whyNot(model.graph, {.at = "why_not_test.cpp:" + line.substr(0, digits)});
    });
  test::expectError(ErrorCode::InvalidArgument, "no op and no pattern has a name like 'mull'",
                    [&] { whyNot(model.graph, {.op = "mull"}); });
  EXPECT_NO_THROW(whyNot(model.graph, {.op = "glu"}));
}

// Text that somebody made has any names; its module, which nobody wrote, is at no line.
TEST(WhyNot, LinesLieInFilesOfAnyName) {
  const Graph g = Graph::parse(R"(func.func @forward(
    %x: tensor<2x8xf32> {lathe.name = "x"}) -> (tensor<2x8xf32> {lathe.name = "y"},
                                                tensor<2x8xf32> {lathe.name = "z"}) {
  %0 = lathe.sigmoid %x : tensor<2x8xf32> loc("src/my model:1.cc":12:3)
  %1 = lathe.mul %x, %0 : tensor<2x8xf32>, tensor<2x8xf32>
      loc("a block::1"("src/my model:1.cc":13:3))
  return %1, %0 : tensor<2x8xf32>, tensor<2x8xf32>
})",
                               "gate.mlir");
  EXPECT_TRUE(whyNot(g, {.at = "my model:1.cc:12"}).empty());
  EXPECT_FALSE(whyNot(g, {.at = "src/my model:1.cc:13"}).empty());
  test::expectError(ErrorCode::InvalidArgument,
                    "the graph's are at gate.mlir:1 to 7, my model:1.cc:12 to 13",
                    [&] { whyNot(g, {.at = "my model:1.cc:1"}); });
}

TEST(WhyNot, TellsOfFarMissesWhenAsked) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  Tensor x = g.input("x", DType::F32, {n, 8});
  g.output("y", x * x);
  EXPECT_TRUE(whyNot(g).empty());
  EXPECT_FALSE(whyNot(g, {.op = "mul"}).empty());
}

TEST(WhyNot, KnowsPatternsOfTheUser) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  g.output("y", tanh(exp(exp(g.input("x", DType::F32, {n, 8})))));
  WhyNotOptions options;
  options.compile.pipeline.patterns =
      test::planted({[](PatternLibrary& library, mlir::MLIRContext* c) {
        addPattern(library, c, "mine", [](DagPattern& p) {
          Tensor x = p.any();
          p.root(tanh(exp(exp(cos(x)))));
          p.replaceWith(x);
          p.approximate();
        });
      }});
  auto misses = whyNot(g, options);
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].pattern, "mine");
  EXPECT_EQ(misses[0].matched, 3);
  EXPECT_EQ(misses[0].of, 4);
  EXPECT_EQ(misses[0].constraint, "op");
}

template <bool kAttribute>
void addNearTanh(PatternLibrary& library, mlir::MLIRContext* context, const char* name) {
  addPattern(library, context, name, [](DagPattern& p) {
    Tensor x = p.any();
    p.root(tanh(exp(kAttribute ? cumsum(x, 0) : cos(x))));
    p.replaceWith(x);
    p.approximate();
  });
}

// Of two patterns that are as near, the one is told that lacks an attribute: another op in its
// place says less. Neither order nor names have a say, be it of one fusion's patterns or of two.
TEST(WhyNot, PrefersOfEquallyNearPatternsWhatSaysMore) {
  Graph g;
  g.output("y", tanh(exp(cumsum(g.input("x", DType::F32, {4, 8}), 1))));
  for (const PatternsFor& patterns :
       {test::planted({[](PatternLibrary& library, mlir::MLIRContext* c) {
          addNearTanh<false>(library, c, "mine-1");
          addNearTanh<true>(library, c, "mine-2");
        }}),
        test::planted({[](PatternLibrary& library, mlir::MLIRContext* c) {
          addNearTanh<true>(library, c, "mine-2");
          addNearTanh<false>(library, c, "mine-1");
        }}),
        test::planted({[](PatternLibrary& library, mlir::MLIRContext* c) {
          addNearTanh<false>(library, c, "a");
          addNearTanh<true>(library, c, "b");
        }})}) {
    WhyNotOptions options;
    options.compile.pipeline.patterns = patterns;
    const auto misses = whyNot(g, options);
    ASSERT_FALSE(misses.empty());
    EXPECT_EQ(misses[0].constraint, "attribute") << misses[0].pattern << ": " << misses[0].reason;
    EXPECT_EQ(misses[0].matched, 2);
    EXPECT_EQ(misses[0].of, 3);
  }
}

// How near a pattern came is a share of it: two ops of three are nearer than three of eight, be it
// of one fusion's patterns or of two, whichever comes first.
TEST(WhyNot, PrefersTheLargerShareOfAPattern) {
  Graph g;
  g.output("y", tanh(exp(neg(abs(g.input("x", DType::F32, {4, 8}))))));
  auto add = [](PatternLibrary& library, mlir::MLIRContext* context, const char* name,
                bool isLong) {
    addPattern(library, context, name, [=](DagPattern& p) {
      Tensor x = p.any();
      p.root(isLong ? tanh(exp(neg(sqrt(exp(exp(exp(exp(x)))))))) : tanh(exp(cos(x))));
      p.replaceWith(x);
      p.approximate();
    });
  };
  for (bool longFirst : {false, true})
    for (bool oneFusion : {false, true}) {
      WhyNotOptions options;
      options.compile.pipeline.patterns = [=](mlir::MLIRContext* context) {
        PatternLibrary library;
        for (bool isLong : {longFirst, !longFirst})
          add(library, context,
              oneFusion ? (isLong ? "mine-2" : "mine-1") : (isLong ? "long" : "short"), isLong);
        return library;
      };
      const auto misses = whyNot(g, options);
      ASSERT_EQ(misses.size(), 1u) << longFirst << oneFusion;
      EXPECT_EQ(misses[0].pattern, oneFusion ? "mine-1" : "short");
      EXPECT_EQ(misses[0].matched, 2);
      EXPECT_EQ(misses[0].of, 3);
    }
}

// Half of the ops of a user's pattern are enough to be told, fewer are not.
TEST(WhyNot, TellsOfHalfAPattern) {
  Graph g;
  g.output("y", tanh(exp(abs(g.input("x", DType::F32, {4, 8})))));
  for (bool longer : {false, true}) {
    WhyNotOptions options;
    options.compile.pipeline.patterns = [=](mlir::MLIRContext* context) {
      PatternLibrary library;
      addPattern(library, context, "mine", [=](DagPattern& p) {
        Tensor x = p.any();
        p.root(tanh(exp(cos(sqrt(longer ? log(x) : x)))));
        p.replaceWith(x);
        p.approximate();
      });
      return library;
    };
    EXPECT_EQ(whyNot(g, options).size(), longer ? 0u : 1u);
  }
}

// A fusion that the mode forbids is told with the first mode that makes it, and only there; one of
// the user's with the contract that it breaks.
TEST(WhyNot, NamesTheModeThatWouldTakeIt) {
  Graph g;
  const Tensor p = fused::softmax(g.input("x", DType::F32, {4, 8}), 1);
  g.output("y", argmax(p, 1));
  WhyNotOptions options;
  auto ofModes = [&] {
    auto misses = whyNot(g, options);
    std::erase_if(misses, [](const CompileRecord::Miss& m) { return m.by != "mode"; });
    return misses;
  };
  EXPECT_TRUE(ofModes().empty());
  options.compile.pipeline.mode = NumericsMode::Strict;
  const auto misses = ofModes();
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_EQ(misses[0].constraint, "mode");
  EXPECT_EQ(misses[0].op, "");
  EXPECT_EQ(misses[0].pattern, "argmax-softmax");
  EXPECT_EQ(misses[0].reason,
            "argmax-softmax: taken from mode relaxed on, as it weakens incoming-nan, "
            "intermediate-rounding");

  Graph own;
  own.output("y", tanh(own.input("x", DType::F32, {4, 8})));
  options.compile.pipeline.patterns = test::planted({test::addWrongTanh});
  const auto refused = whyNot(own, options);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].by, "pattern");
  EXPECT_EQ(refused[0].constraint, "replacement");
  EXPECT_EQ(refused[0].op, "lathe.tanh");
  EXPECT_THAT(refused[0].reason,
              HasSubstr("wrong-tanh: 1 of 1 ops, then strict mode keeps the contract "
                        "'approximation': a value is the one that the graph defines, not one near "
                        "it by a pattern's own word at why_not_test.cpp:"));
}

// Of a line that records twice, the fusion that strict mode makes already is not missed.
TEST(WhyNot, NamesAModeAsOftenAsItTakesMore) {
  Graph g;
  for (DType dtype : {DType::F32, DType::BF16}) {
    const std::string name(nameOf(dtype));
    const Tensor x = g.input("x." + name, dtype, {4, 8}), up = g.input("up." + name, dtype, {4, 8});
    g.output("y." + name, x * sigmoid(x) * up);
  }
  WhyNotOptions options;
  options.compile.pipeline.mode = NumericsMode::Strict;
  auto misses = whyNot(g, options);
  std::erase_if(misses, [](const CompileRecord::Miss& m) { return m.by != "mode"; });
  ASSERT_EQ(misses.size(), 1u);
  EXPECT_THAT(misses[0].reason, HasSubstr("taken from mode relaxed on"));
}

// --- locations

TEST(CheckLocations, CountsEveryStageUpToTheCalls) {
  SharedSigmoid model;
  LocationTable table = checkLocations(model.graph);
  EXPECT_TRUE(table.complete);
  EXPECT_EQ(table.rows.front().step, "recorded");
  EXPECT_EQ(table.rows.back().stage, "program");
  for (const LocationRow& row : table.rows) {
    EXPECT_EQ(row.known, row.ops) << row.step;
    EXPECT_GT(row.ops, 0) << row.step;
  }
}

TEST(CheckLocations, NamesAnOpThatLostItsLine) {
  registerBackend(std::make_unique<test::OddBackend>(
      "forgetful",
      [](mlir::ModuleOp module) {
        module.walk([](MulOp op) { op->setLoc(mlir::UnknownLoc::get(op->getContext())); });
      },
      nullptr));
  SharedSigmoid model;
  LocationTable table = checkLocations(model.graph, {.backend = "forgetful"});
  EXPECT_FALSE(table.complete);
  EXPECT_THAT(table.error, HasSubstr("[L1]"));
  const LocationRow& row = table.rows.back();
  EXPECT_LT(row.known, row.ops);
  ASSERT_FALSE(row.lost.empty());
  EXPECT_THAT(row.lost[0], HasSubstr("lathe.mul"));
}

}  // namespace
}  // namespace lathe
