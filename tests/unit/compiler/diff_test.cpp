// SPDX-License-Identifier: Apache-2.0
// Whether two graphs are one, and where they part.
#include <gmock/gmock.h>

#include <functional>

#include "lathe/inspect/graph_diff.h"
#include "lathe/lathe.h"

namespace lathe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Spelling {
  std::string symbol = "n", input = "x", weight = "w", output = "y";
  Shape weightShape{4, 8};
  int64_t high = 64;
};
Graph graphOf(const Spelling& s,
              const std::function<Tensor(const Tensor& x, const Tensor& w)>& body) {
  Graph g;
  Tensor x = g.input(s.input, DType::F32, {g.dim(s.symbol, 1, s.high), 8});
  Tensor w = s.weight.empty() ? Tensor() : g.weight(s.weight, DType::F32, s.weightShape);
  g.output(s.output, body(x, w));
  return g;
}
Tensor linear(const Tensor& x, const Tensor& w) { return exp(matmul(x, swapAxes(w, 0, 1))); }

TEST(Diff, FindsAGraphEqualToItself) {
  GraphDiff d = diff(graphOf({}, linear), graphOf({}, linear));
  EXPECT_TRUE(d.equal);
  EXPECT_TRUE(d.layouts.empty());
  EXPECT_TRUE(d.notes.empty());
  EXPECT_EQ(d.entries.at(0).counts.at("matmul"), std::pair(1, 1));
}

TEST(Diff, DoesNotMindNamesOfSymbols) {
  EXPECT_TRUE(diff(graphOf({}, linear), graphOf({.symbol = "tokens"}, linear)).equal);
}

TEST(Diff, DoesNotMindTheOrderOfCommutativeOperandsAndOfOps) {
  auto a = [](const Tensor& x, const Tensor&) {
    Tensor u = exp(x), v = tanh(x);
    return u * v;
  };
  auto b = [](const Tensor& x, const Tensor&) {
    Tensor v = tanh(x), u = exp(x);
    return v * u;
  };
  EXPECT_TRUE(diff(graphOf({}, a), graphOf({}, b)).equal);
}

TEST(Diff, DoesNotMindTheOrderOfInputs) {
  auto graph = [](bool turned, const std::string& ofSecond = "keys") {
    Graph g;
    g.dim("rows", 1, 64), g.dim("keys", 1, 64);
    auto input = [&](const std::string& name, const std::string& rows) {
      return g.input(name, DType::F32, {g.dim(rows, 1, 64), 8});
    };
    Tensor q, k;
    if (turned) k = input("k", ofSecond), q = input("q", "rows");
    if (!turned) q = input("q", "rows"), k = input("k", ofSecond);
    g.output("y", matmul(q, swapAxes(k, 0, 1)));
    return g;
  };
  EXPECT_TRUE(diff(graph(false), graph(true)).equal);
  EXPECT_FALSE(diff(graph(false), graph(true, "rows")).equal);
}

// An attribute that only one of them has is told from either side.
TEST(Diff, NamesAnAttributeThatOneSideAloneHas) {
  auto attends = [](int64_t window) {
    return graphOf({}, [=](const Tensor& x, const Tensor&) {
      Tensor q = reshape(x, {1, 1, x.dim(0), 8});
      return nn::attention(q, q, q, {.causal = true, .window = window, .useFused = true});
    });
  };
  const Graph plain = attends(0), windowed = attends(4);
  for (const auto& [a, b] : {std::pair(&plain, &windowed), std::pair(&windowed, &plain)}) {
    const GraphDiff d = diff(*a, *b);
    EXPECT_FALSE(d.equal);
    EXPECT_THAT(d.entries.at(0).why, HasSubstr("attribute 'window' is "));
  }
}

// Whether pieces end in padding, an op of one rank's program may leave unsaid.
TEST(Diff, NamesAnAttributeThatOneSideLeavesOut) {
  auto gathered = [](const std::string& whole) {
    return Graph::parse(R"(func.func @f(%x: tensor<4xf32>) -> tensor<8xf32> {
  %y = lathe.all_gather %x axis 0 parts 2 )" +
                        whole + R"( over "tp" of 2 : tensor<4xf32>
  return %y : tensor<8xf32>
})");
  };
  const Graph plain = gathered(""), whole = gathered("whole <8>");
  struct Row {
    const Graph &a, &b;
    const char* why;
  };
  for (const Row& row : {Row{plain, whole, "none in A and #lathe.dims<8> in B"},
                         Row{whole, plain, "#lathe.dims<8> in A and none in B"}}) {
    const GraphDiff d = diff(row.a, row.b, {.stage = "recorded"});
    EXPECT_FALSE(d.equal);
    EXPECT_EQ(d.entries.at(0).why, std::string("attribute 'whole' is ") + row.why);
  }
}

TEST(Diff, NamesTheFirstOpsThatDifferBothLinesAndTheWay) {
  int lineA = 0, lineB = 0;
  Graph a = graphOf({}, [&](const Tensor& x, const Tensor&) {
    Tensor u = exp(x);
    lineA = __LINE__ - 1;
    return tanh(x) + u * x;
  });
  Graph b = graphOf({}, [&](const Tensor& x, const Tensor&) {
    Tensor u = sigmoid(x);
    lineB = __LINE__ - 1;
    return tanh(x) + u * x;
  });
  GraphDiff d = diff(a, b, {.stage = "recorded"});
  EXPECT_FALSE(d.equal);
  const GraphDiff::Entry& e = d.entries.at(0);
  EXPECT_EQ(e.why, "the ops differ");
  EXPECT_EQ(e.a.op, "lathe.exp");
  EXPECT_EQ(e.b.op, "lathe.sigmoid");
  EXPECT_THAT(e.a.at, HasSubstr("diff_test.cpp:" + std::to_string(lineA)));
  EXPECT_THAT(e.b.at, HasSubstr("diff_test.cpp:" + std::to_string(lineB)));
  EXPECT_THAT(e.path, ElementsAre("output 'y'", "lathe.add operand 1", "lathe.mul operand 0"));
  EXPECT_EQ(e.counts.at("exp"), std::pair(1, 0));
}

// Whichever side has its operands the other way round, and whichever of them is another one: the
// way leads to that one.
TEST(Diff, FollowsOperandsOfSumsAndProductsInAnyOrder) {
  for (bool product : {false, true})
    for (bool swapA : {false, true})
      for (bool swapB : {false, true})
        for (bool firstDiffers : {false, true}) {
          auto side = [&](bool swaps, bool isB) {
            return graphOf({}, [=](const Tensor& x, const Tensor&) {
              // cos is the same in both graphs, exp and sigmoid are not.
              const Tensor same = cos(x), other = isB ? sigmoid(x) : exp(x);
              const Tensor left = firstDiffers ? other : same, right = firstDiffers ? same : other;
              const Tensor a = swaps ? right : left, b = swaps ? left : right;
              return tanh(product ? a * b : a + b);
            });
          };
          const GraphDiff d = diff(side(swapA, false), side(swapB, true), {.stage = "recorded"});
          ASSERT_FALSE(d.equal);
          EXPECT_EQ(d.entries.at(0).why, "the ops differ");
          EXPECT_EQ(d.entries.at(0).a.op, "lathe.exp") << swapA << swapB << firstDiffers;
          EXPECT_EQ(d.entries.at(0).b.op, "lathe.sigmoid") << swapA << swapB << firstDiffers;
        }
}

TEST(Diff, NamesAnAttribute) {
  Graph a = graphOf({}, [](const Tensor& x, const Tensor&) { return reduceSum(x, {1}, true); });
  Graph b = graphOf({}, [](const Tensor& x, const Tensor&) { return reduceSum(x, {1}, false); });
  EXPECT_THAT(diff(a, b).entries.at(0).why, HasSubstr("attribute 'keep"));
}

TEST(Diff, NamesAConstant) {
  Graph a = graphOf({}, [](const Tensor& x, const Tensor&) { return x * 0.5; });
  Graph b = graphOf({}, [](const Tensor& x, const Tensor&) { return x * 0.25; });
  GraphDiff d = diff(a, b);
  EXPECT_EQ(d.entries.at(0).a.op, "lathe.constant");
  EXPECT_THAT(d.entries.at(0).why, HasSubstr("attribute 'value'"));
}

// What differs, in words, where two ops are of one kind.
TEST(Diff, SaysWhatDiffers) {
  using Body = std::function<Tensor(const Tensor&, const Tensor&)>;
  const Body sum = [](const Tensor& x, const Tensor&) { return reduceSum(x, {1}, true); },
             flat = [](const Tensor& x, const Tensor&) { return reduceSum(x, {1}, false); },
             rows = [](const Tensor& x, const Tensor&) { return reduceSum(x, {0}, true); },
             less = [](const Tensor& x, const Tensor&) { return exp(x) - cos(x); },
             more = [](const Tensor& x, const Tensor&) { return cos(x) - exp(x); },
             two = [](const Tensor& x, const Tensor&) { return concat({x, x}, 0); },
             three = [](const Tensor& x, const Tensor&) { return concat({x, x, x}, 0); },
             input = [](const Tensor& x, const Tensor&) { return x; },
             op = [](const Tensor& x, const Tensor&) { return cos(x); };
  struct Row {
    const Body &a, &b;
    const char* why;
  };
  for (const Row& row :
       {Row{sum, flat, "attribute 'keep_dims' is true in A and false in B"},
        {sum, rows, "attribute 'axes' is array<i64: 1> in A and array<i64: 0> in B"},
        {less, more, "the ops differ"},
        {two, three, "the operands differ in number"},
        {input, op, "an op and an input"},
        {op, input, "an op and an input"}}) {
    const GraphDiff d = diff(graphOf({}, row.a), graphOf({}, row.b), {.stage = "recorded"});
    EXPECT_FALSE(d.equal);
    EXPECT_EQ(d.entries.at(0).why, row.why);
  }
  Graph even, any;
  for (auto [g, multiple] : {std::pair(&even, 2), {&any, 1}})
    g->output("y", exp(g->input("x", DType::F32, {g->dim("n", 2, 64, multiple)})));
  EXPECT_THAT(diff(even, any).notes,
              ElementsAre("size 'n' is 2 to 64 in multiples of 2 in A, 2 to 64 in B"));
  EXPECT_THAT(diff(any, even).notes,
              ElementsAre("size 'n' is 2 to 64 in A, 2 to 64 in multiples of 2 in B"));
  Graph fewer = graphOf({}, op), second = graphOf({}, op);
  second.output("z", exp(second.input("u", DType::F32, {3})));
  const GraphDiff d = diff(fewer, second);
  EXPECT_EQ(d.entries.at(0).why, "output 'z' is in B only");
  EXPECT_EQ(d.entries.at(0).a.op, "nothing");
  EXPECT_EQ(d.entries.at(0).b.op, "lathe.exp");
  EXPECT_THAT(d.entries.at(0).path, ElementsAre("output 'z'"));
}

TEST(Diff, ReportsATransposedWeightAsALayout) {
  Graph a = graphOf({}, linear);
  Graph b = graphOf({.weightShape = {8, 4}},
                    [](const Tensor& x, const Tensor& w) { return exp(matmul(x, w)); });
  for (const char* stage : {"canonical", "fused"}) {
    GraphDiff d = diff(a, b, {.stage = stage});
    EXPECT_TRUE(d.equal) << stage << ": " << d.entries.at(0).why;
    EXPECT_THAT(d.layouts, ElementsAre("'w' is [4, 8] in A, [8, 4] in B"));
  }
}

// Of other sizes it is another weight, and that is where the graphs part.
TEST(Diff, TakesNoWeightOfAnotherSizeForALayout) {
  GraphDiff d = diff(graphOf({}, linear), graphOf({.weightShape = {6, 8}}, linear));
  EXPECT_FALSE(d.equal);
  EXPECT_TRUE(d.layouts.empty());
  EXPECT_EQ(d.entries.at(0).a.op, "lathe.weight");
}

TEST(Diff, TakesASquareWeightThatOneReadsTransposedForADifference) {
  Graph a = graphOf({.weightShape = {8, 8}}, linear);
  Graph b = graphOf({.weightShape = {8, 8}},
                    [](const Tensor& x, const Tensor& w) { return exp(matmul(x, w)); });
  GraphDiff d = diff(a, b);
  EXPECT_FALSE(d.equal);
  EXPECT_TRUE(d.layouts.empty());
}

TEST(Diff, ComparesWeightsByNameOrByShape) {
  Graph a = graphOf({}, linear), b = graphOf({.weight = "q_proj"}, linear);
  GraphDiff d = diff(a, b);
  EXPECT_FALSE(d.equal);
  EXPECT_EQ(d.entries.at(0).why, "the weights are 'w' in A and 'q_proj' in B");
  EXPECT_TRUE(diff(a, b, {.weightsByName = false}).equal);
}

TEST(Diff, NotesInputsAndSizesOfOtherNames) {
  GraphDiff d = diff(graphOf({}, linear), graphOf({.input = "ids", .high = 32}, linear));
  EXPECT_TRUE(d.equal);
  EXPECT_THAT(d.notes, ElementsAre("size 'n' is 1 to 64 in A, 1 to 32 in B",
                                   "input 'x' of 'forward' in A is 'ids' in B"));
}

TEST(Diff, ReportsAnOutputThatOnlyOneHas) {
  GraphDiff d = diff(graphOf({}, linear), graphOf({.output = "z"}, linear));
  EXPECT_FALSE(d.equal);
  EXPECT_EQ(d.entries.at(0).why, "output 'y' is in A only");
  EXPECT_EQ(d.entries.at(0).b.op, "nothing");
}

TEST(Diff, ReportsAnEntryPointThatOnlyOneHas) {
  Graph a = graphOf({}, linear), b = graphOf({}, linear);
  b.entry("decode");
  b.output("y", exp(b.input("x", DType::F32, {3})));
  GraphDiff d = diff(a, b);
  EXPECT_FALSE(d.equal);
  EXPECT_THAT(d.notes, ElementsAre("entry point 'decode' is in B only"));
  d = diff(b, a);
  EXPECT_FALSE(d.equal);
  EXPECT_THAT(d.notes, ElementsAre("entry point 'decode' is in A only"));
}

// Whichever entry point differs, and however many behind it are equal.
TEST(Diff, OneEntryPointThatDiffersIsEnough) {
  auto three = [](size_t other) {
    Graph g;
    for (size_t i = 0; i < 3; ++i) {
      if (i) g.entry("step" + std::to_string(i));
      Tensor x = g.input("x", DType::F32, {3});
      g.output("y", i == other ? tanh(x) : exp(x));
    }
    return g;
  };
  EXPECT_TRUE(diff(three(9), three(9)).equal);
  for (size_t other : {0, 1, 2}) {
    GraphDiff d = diff(three(9), three(other));
    EXPECT_FALSE(d.equal) << other;
    ASSERT_EQ(d.entries.size(), 3u);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(d.entries[i].equal, i != other) << other << ", " << i;
  }
}

TEST(Diff, RefusesStagesOfABackend) {
  try {
    diff(graphOf({}, linear), graphOf({}, linear), {.stage = "lowered"});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr("expected the stage recorded, canonical or fused"));
  }
}

}  // namespace
}  // namespace lathe
