// SPDX-License-Identifier: Apache-2.0
// Who is named for a wrong result: a rewrite, a step, a backend, nobody.
#include <gmock/gmock.h>

#include <filesystem>
#include <functional>

#include "frontend/graph_impl.h"
#include "inspect/questions/reproducer.h"
#include "lathe/inspect/bisect.h"
#include "lathe/lathe.h"
#include "passes/rewrite/rewrite_log.h"
#include "tests/unit/compiler/planted.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using Culprit = BisectResult::Culprit;
using test::addWrongExp;
using test::addWrongTanh;
using test::planted;
using ::testing::EndsWith;
using ::testing::HasSubstr;

// Something for every step: a fusion, weights to pack, symbols, a state, two entry points.
struct Model {
  Graph graph;
  int tanhLine = 0;
  Model() {
    Dim batch = graph.dim("batch", 1, 8), seq = graph.dim("seq", 1, 64);
    graph.state("kept", DType::F32, {batch, 8});
    for (const char* entry : {"forward", "twice"}) {
      graph.entry(entry);
      Tensor ids = graph.input("ids", DType::I64, {batch, seq});
      Tensor x = gather(graph.weight("table", DType::F32, {10, 8}), ids, 0);
      Tensor w = graph.weight("w", DType::F32, {8, 8});
      Tensor y = nn::softmax(matmul(x, swapAxes(w, 0, 1)), 2);
      y = silu(y + x);
      y = tanh(y), tanhLine = __LINE__;
      Tensor kept = graph.readState("kept") + reduceSum(y, {1});
      graph.writeState("kept", kept);
      graph.output("y", exp(y));
    }
  }
  static Tensor silu(const Tensor& x) { return x * sigmoid(x); }
};

const bool registered = [] {
  auto add = [](const char* name, test::OddBackend::Change step,
                test::OddBackend::Change compiler) {
    registerBackend(std::make_unique<test::OddBackend>(name, step, compiler));
  };
  add("wrong-step", test::replaceAll<TanhOp, ErfOp>, nullptr);
  add("wrong-compiler", nullptr, test::replaceAll<TanhOp, ErfOp>);
  add("healing-step", test::replaceAll<ErfOp, TanhOp>, nullptr);
  return true;
}();

BisectResult bisectWith(PatternsFor patterns, const std::string& backend = "cpu",
                        const std::string& folder = "") {
  BisectOptions options;
  options.trial.compile.backend = backend;
  options.trial.compile.pipeline.patterns = std::move(patterns);
  options.folder = folder;
  return bisect(Model().graph, options);
}

TEST(Bisect, NamesNobodyWhereNothingIsWrong) {
  BisectResult r = bisectWith({});
  EXPECT_EQ(r.culprit, Culprit::Nobody);
  EXPECT_GT(r.rewrites, 4u);
  EXPECT_FALSE(r.files.has_value());
}

TEST(Bisect, NamesTheWrongRewriteItsStepAndItsLine) {
  Model model;
  BisectOptions options;
  options.trial.compile.pipeline.patterns = planted({addWrongTanh});
  BisectResult r = bisect(model.graph, options);
  EXPECT_EQ(r.culprit, Culprit::Rewrite);
  EXPECT_EQ(r.rewrite.what, "wrong-tanh");
  EXPECT_EQ(r.step, "user-fusions");
  EXPECT_EQ(r.stage, "canonical");
  EXPECT_THAT(r.rewrite.at, HasSubstr("bisect_test.cpp:" + std::to_string(model.tanhLine)));
  EXPECT_FALSE(r.deviation.within);
  EXPECT_GT(r.deviation.absolute, 1e-3);
}

TEST(Bisect, StopsAfterTheNamedNumber) {
  BisectResult r = bisectWith(planted({addWrongTanh}));
  auto textAt = [&](uint64_t stopAfter) {
    CompileOptions o{.backend = "reference", .pipeline = {.patterns = planted({addWrongTanh})}};
    o.stopAfterRewrite = stopAfter;
    return irAt(Model().graph, "fused", o);
  };
  EXPECT_THAT(textAt(r.rewrite.number), HasSubstr("lathe.erf"));
  EXPECT_THAT(textAt(r.rewrite.number - 1), ::testing::Not(HasSubstr("lathe.erf")));
}

TEST(Bisect, NamesTheFirstOfSeveral) {
  BisectResult r = bisectWith(planted({addWrongTanh, addWrongExp}));
  CompileRecord record;
  CompileOptions o{.pipeline = {.patterns = planted({addWrongTanh, addWrongExp})}};
  o.record = &record;
  irAt(Model().graph, "fused", o);
  auto first = std::find_if(record.rewrites.begin(), record.rewrites.end(),
                            [](auto& w) { return w.what.starts_with("wrong-"); });
  ASSERT_NE(first, record.rewrites.end());
  EXPECT_EQ(r.rewrite.number, first->number);
  EXPECT_EQ(r.rewrite.what, first->what);
}

TEST(Bisect, NamesARewriteWhoseMistakeALaterStepUndoes) {
  BisectResult r = bisectWith(planted({addWrongTanh}), "healing-step");
  EXPECT_EQ(r.culprit, Culprit::Rewrite);
  EXPECT_EQ(r.rewrite.what, "wrong-tanh");
}

TEST(Bisect, NamesAStepThatHasNoNumbers) {
  BisectResult r = bisectWith({}, "wrong-step");
  EXPECT_EQ(r.culprit, Culprit::Step);
  EXPECT_EQ(r.step, "odd-step");
  EXPECT_EQ(r.stage, "laid-out");
}

TEST(Bisect, NamesTheBackendAndTheOp) {
  BisectResult r = bisectWith({}, "wrong-compiler");
  EXPECT_EQ(r.culprit, Culprit::Backend);
  EXPECT_EQ(r.op, "lathe.tanh");
  EXPECT_THAT(r.at, HasSubstr("bisect_test.cpp:"));
}

TEST(Bisect, OwnPrecisionFindsTheSameRewrite) {
  Model model;
  BisectOptions options;
  options.trial.compile.pipeline.patterns = planted({addWrongTanh});
  options.trial.precision = Precision::OwnDtype;
  EXPECT_EQ(bisect(model.graph, options).rewrite.what, "wrong-tanh");
}

// --- what one trial does not show, and what is no mistake

// min(x, 10) -> x, which is right below 10.
void addLostClamp(PatternLibrary& library, mlir::MLIRContext* context) {
  addPattern(library, context, "lost-clamp", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(min(x, p.constant(10)));
    p.replaceWith(x);
    p.approximate();
  });
}

TEST(Bisect, FindsInTheSecondTrialWhatSmallSizesHide) {
  Graph g;
  Dim n = g.dim("n", 1, 64);
  Tensor x = g.input("x", DType::F32, {n, 4});
  Tensor rows = iota(x, {n, 4}, 0, DType::F32);
  g.output("y", min(rows, scalarLike(rows, 10)) + x);
  BisectOptions options;
  options.trial.compile.pipeline.patterns = planted({addLostClamp});
  BisectResult r = bisect(g, options);
  EXPECT_EQ(r.culprit, Culprit::Rewrite);
  EXPECT_EQ(r.rewrite.what, "lost-clamp");
  EXPECT_EQ(r.sizes.at("n"), 17);
  // Nothing else is chosen where the caller has chosen.
  options.trial.sizes = {{"n", 9}};
  EXPECT_EQ(bisect(g, options).culprit, Culprit::Nobody);
}

// The same number but for a cast, which float64 does not see.
void addRoundedTanh(PatternLibrary& library, mlir::MLIRContext* context) {
  addPattern(library, context, "rounded-tanh", [](DagPattern& p) {
    Tensor x = p.any();
    p.root(tanh(x));
    p.replaceWith(cast(cast(2.0 * sigmoid(2.0 * x) - 1.0, DType::BF16), DType::F32));
    p.approximate();
  });
}

TEST(Bisect, NamesARewriteThatRoundsAndNotTheBackend) {
  BisectResult r = bisectWith(planted({addRoundedTanh}));
  EXPECT_EQ(r.culprit, Culprit::Rewrite);
  EXPECT_EQ(r.rewrite.what, "rounded-tanh");
}

// Activations as people spell them in 16 bits, whose constants are not those of the patterns.
std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> activations() {
  return {
      {"gelu by a quotient",
       [](const Tensor& x) { return (0.5 * x) * (1.0 + erf(x / 1.4142135623730951)); }},
      {"gelu by a product",
       [](const Tensor& x) { return x * 0.5 * (erf(x * 0.7071067811865476) + 1.0); }},
      {"tanh gelu",
       [](const Tensor& x) {
         return 0.5 * x * (1.0 + tanh(0.7978845608028654 * (x + 0.044715 * (x * x * x))));
       }},
      {"quick gelu", [](const Tensor& x) { return x * sigmoid(1.702 * x); }},
      {"silu", [](const Tensor& x) { return x * sigmoid(x); }},
      {"relu", [](const Tensor& x) { return max(x, scalarLike(x, 0)); }},
      {"softcap", [](const Tensor& x) { return tanh(x / 30.0) * 30.0; }},
  };
}

TEST(Bisect, AccusesNoCorrectRewriteOf16BitModels) {
  for (DType dtype : {DType::BF16, DType::F16})
    for (bool gated : {false, true})
      for (auto& [name, activation] : activations()) {
        SCOPED_TRACE(std::string(nameOf(dtype)) + " " + name + (gated ? ", gated" : ""));
        Graph g;
        Tensor x = g.input("x", dtype, {g.dim("n", 1, 64), 48});
        Tensor up = matmul(x, g.weight("up", dtype, {48, 64}));
        Tensor y = activation(up);
        if (gated) y = y * matmul(x, g.weight("gate", dtype, {48, 64}));
        g.output("y", matmul(y, g.weight("down", dtype, {64, 48})) + x);
        BisectResult r = bisect(g);
        EXPECT_EQ(r.culprit, Culprit::Nobody)
            << r.step << " " << r.rewrite.what << " " << r.op << ": " << r.deviation.where;
        EXPECT_GT(r.rewrites, 0u);
      }
}

// What a test of planted miscompilations does: it changes what a rewrite made.
struct Mutation final : RewriteObserver {
  uint64_t number = 0;
  void didApply(const Applied& applied) override {
    if (applied.entry.what != "softmax") return;
    if (!number) number = applied.entry.number;
    if (applied.entry.number != number) return;
    for (mlir::Operation* op : applied.made)
      if (auto softmax = mlir::dyn_cast<SoftmaxOp>(op)) softmax.setAxis(1);
  }
};

TEST(Bisect, NamesARewriteThatAnObserverSpoilt) {
  Model model;
  Mutation mutation;
  BisectOptions options;
  options.trial.compile.observer = &mutation;
  BisectResult r = bisect(model.graph, options);
  EXPECT_EQ(r.culprit, Culprit::Rewrite);
  EXPECT_EQ(r.rewrite.number, mutation.number);
  EXPECT_EQ(r.rewrite.what, "softmax");
}

// --- the reproducer

TEST(Bisect, WritesAOneOpReproducerThatShowsTheMistake) {
  test::TemporaryFolder folder;
  BisectResult r = bisectWith(planted({addWrongTanh}), "cpu", folder / "out");
  ASSERT_TRUE(r.files.has_value());
  EXPECT_EQ(r.files->ops, 1u);
  EXPECT_TRUE(r.files->shows);
  EXPECT_THAT(r.files->graph, EndsWith("reproducer.mlir"));
  EXPECT_THAT(test::readFile(r.files->graph), HasSubstr("lathe.tanh"));
  ASSERT_EQ(r.files->data.size(), 1u);
  EXPECT_TRUE(std::filesystem::exists(r.files->data[0]));
  EXPECT_THAT(r.files->commands.at(0), HasSubstr("lathe run "));
}

TEST(Bisect, ReproducesAStepAndABackend) {
  for (const char* backend : {"wrong-step", "wrong-compiler"}) {
    test::TemporaryFolder folder;
    BisectResult r = bisectWith({}, backend, folder / "out");
    ASSERT_TRUE(r.files.has_value()) << backend;
    EXPECT_TRUE(r.files->shows);
    EXPECT_EQ(r.files->ops, 1u) << backend;
    EXPECT_THAT(test::readFile(r.files->graph), HasSubstr("lathe.tanh"));
  }
}

TEST(CutOut, TakesTheConstantsOfAnyNumberOfOps) {
  for (size_t n = 1; n <= 64; ++n) {
    Graph graph;
    graph.entry("forward");
    Tensor x = graph.input("x", DType::F32, {3});
    for (size_t i = 0; i < n; ++i) x = x * (1 + 1.0 / double(i + 2));
    graph.output("y", x);
    const Trial trial(graph.impl().finished(), {});
    llvm::SmallVector<mlir::Operation*> ops;
    graph.impl().finished().walk([&](MulOp op) { ops.push_back(op); });
    ASSERT_EQ(ops.size(), n);
    const std::optional<CutGraph> cut = cutOut(ops, trial);
    ASSERT_TRUE(cut.has_value());
    EXPECT_EQ(cut->ops, n);
    size_t constants = 0;
    cut->graph.impl().finished().walk([&](ConstantOp) { ++constants; });
    EXPECT_EQ(constants, n);
  }
}

// --- bad input

TEST(Bisect, RefusesASizeThatTheGraphLacks) {
  Model model;
  BisectOptions options;
  options.trial.sizes["sequence"] = 3;
  try {
    bisect(model.graph, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument);
    EXPECT_THAT(e.what(), HasSubstr("the graph has no size 'sequence'; it has batch, seq"));
  }
}

TEST(Bisect, RefusesASizeOutsideItsRange) {
  Model model;
  BisectOptions options;
  options.trial.sizes["seq"] = 65;
  try {
    bisect(model.graph, options);
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("size 'seq': expected 1 to 64, got 65"));
  }
}

// Weights in few bits are asked for, and no mistake; one behind them is found all the same.
TEST(Bisect, WeightsThatWereAskedForAreNotAccused) {
  for (const char* formats : {"int8", "int4"}) {
    BisectOptions options;
    options.trial.compile.backendOptions.weights = parseWeightFormats(formats);
    EXPECT_EQ(bisect(Model().graph, options).culprit, Culprit::Nobody) << formats;
    options.trial.compile.backend = "wrong-step";
    const BisectResult wrong = bisect(Model().graph, options);
    EXPECT_EQ(wrong.culprit, Culprit::Step) << formats;
    EXPECT_EQ(wrong.step, "odd-step") << formats;
  }
}

}  // namespace
}  // namespace lathe
