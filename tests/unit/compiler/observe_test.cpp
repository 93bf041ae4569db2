// SPDX-License-Identifier: Apache-2.0
// Observed values: fusions stay, values are those of the recorded graph, the cost is told.
#include <cmath>

#include <gmock/gmock.h>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/nn/nn.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/session.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Options {
  bool probabilities = false, projected = false, sum = false;
};

// Single-head attention from elementary ops behind a projection.
Graph attentionGraph(const Options& observe) {
  Graph g;
  Dim batch = g.dim("batch", 1, 8), seq = g.dim("seq", 1, 512);
  Tensor x = g.input("x", DType::F32, {batch, seq, 64});
  auto projected = [&](const char* name) {
    return nn::Linear(g, name, 64, 64, {.bias = false})(x);
  };
  Tensor q = projected("q"), k = projected("k"), v = projected("v");
  Tensor p = nn::softmax(matmul(q, swapAxes(k, 1, 2)) * 0.125);
  Tensor y = matmul(p, v);
  if (observe.probabilities) g.observe("probs", p);
  if (observe.projected) g.observe("q", q);
  if (observe.sum) g.observe("sum", reduceSum(p, {2}));
  g.output("y", y);
  return g;
}

Arrays runOn(const Graph& g, const std::string& backend) {
  Session session(
      compile(g, {.backend = backend, .backendOptions = {.float64 = backend == "reference"}}),
      {.threads = 2});
  session.bindRandomWeights(1);
  Array x(DType::F32, {2, 5, 64});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i) * 0.37));
  return session.run("forward", {{"x", x}});
}

CompileRecord recordOf(const Graph& g, const std::string& backend) {
  CompileRecord record;
  irAt(g, "lowered", {.backend = backend, .record = &record});
  return record;
}

size_t countOf(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != text.npos; ++at) ++n;
  return n;
}

class Observe : public ::testing::TestWithParam<std::string> {};

TEST_P(Observe, FusedAttentionStaysWithItsProbabilitiesObserved) {
  const std::string text =
      irAt(attentionGraph({.probabilities = true}), "fused", {.backend = GetParam()});
  EXPECT_EQ(countOf(text, "lathe.attention "), 1u);
  EXPECT_EQ(countOf(text, "lathe.softmax "), 1u);
  EXPECT_EQ(countOf(text, "lathe.linear "), 3u) << "what both share is computed once";
  EXPECT_THAT(text, Not(HasSubstr("lathe.region")));
  EXPECT_THAT(text, HasSubstr("lathe.observed = \"recompute\""));
}

TEST_P(Observe, EveryEntryPointIsFusedAroundWhatItObserves) {
  Graph g;
  for (const char* entry : {"forward", "again", "third"}) {
    g.entry(entry);
    Tensor x = g.input("x", DType::F32, {2, 5, 64});
    Tensor p = nn::softmax(matmul(x, swapAxes(x, 1, 2)) * 0.125);
    g.observe("probs", p);
    g.output("y", matmul(p, x));
  }
  const std::string text = irAt(g, "fused", {.backend = GetParam()});
  EXPECT_EQ(countOf(text, "lathe.attention "), 3u);
  EXPECT_EQ(countOf(text, "lathe.softmax "), 3u);
  EXPECT_THAT(text, Not(HasSubstr("lathe.region")));
}

TEST_P(Observe, ValuesAreThoseOfTheGraphThatWasRecorded) {
  const Arrays got = runOn(attentionGraph({true, true, true}), GetParam());
  // The same values as outputs of a graph that nobody fuses.
  Graph plain = attentionGraph({true, true, true});
  Session session(std::make_shared<Program>(compile(plain, {.backend = "reference",
                                                            .backendOptions = {.float64 = true},
                                                            .stopAfterRewrite = 0})),
                  {.threads = 1});
  session.bindRandomWeights(1);
  Array x(DType::F32, {2, 5, 64});
  for (int64_t i = 0; i < x.size(); ++i) x.set(i, std::sin(double(i) * 0.37));
  const Arrays want = session.run("forward", {{"x", x}});
  ASSERT_EQ(got.size(), 4u);
  for (const char* name : {"y", "observed.probs", "observed.q", "observed.sum"}) {
    ASSERT_TRUE(got.contains(name)) << name;
    ASSERT_EQ(got.at(name).shape(), want.at(name).shape());
    for (int64_t i = 0; i < want.at(name).size(); ++i)
      ASSERT_NEAR(got.at(name).at(i), want.at(name).at(i), 2e-5) << name << " " << i;
  }
}

TEST_P(Observe, TheRecordTellsHowAndAtWhatCost) {
  const CompileRecord record = recordOf(attentionGraph({true, true, false}), GetParam());
  ASSERT_EQ(record.observed.size(), 2u);
  const CompileRecord::Observed &probs = record.observed[0], &q = record.observed[1];
  EXPECT_EQ(probs.entry, "forward");
  EXPECT_EQ(probs.name, "observed.probs");
  EXPECT_EQ(probs.how, "recompute");
  // Scores again, softmax, and both written: [batch, seq, seq] f32 more than once.
  const SymbolValues sizes{{"batch", 1}, {"seq", 100}};
  EXPECT_GE(evaluate(probs.cost.written, sizes), 2 * 4 * 100 * 100);
  EXPECT_GE(evaluate(probs.cost.flops, sizes), 2 * 64 * 100 * 100);
  // No fusion removes the projection, so a second user costs nothing but the output.
  EXPECT_EQ(q.how, "output");
  EXPECT_EQ(evaluate(q.cost.flops, sizes), 0);
}

TEST_P(Observe, WithoutObserveNothingChanges) {
  Graph g = attentionGraph({});
  EXPECT_TRUE(recordOf(g, GetParam()).observed.empty());
  EXPECT_THAT(irAt(g, "canonical", {.backend = GetParam()}), Not(HasSubstr("observed")));
}

INSTANTIATE_TEST_SUITE_P(Backends, Observe, ::testing::Values("cpu", "reference"));

TEST(ObserveGraph, IsolationIsVisibleAtTheCanonicalStage) {
  const std::string text = irAt(attentionGraph({.probabilities = true}), "canonical");
  EXPECT_THAT(text, HasSubstr("lathe.region(%arg0) {lathe.observed}"));
  EXPECT_NO_THROW(Graph::parse(text));
}

TEST(ObserveGraph, TheTextOfTheGraphKeepsTheMark) {
  const Graph g = attentionGraph({.probabilities = true});
  Graph again = Graph::parse(g.text());
  EXPECT_EQ(recordOf(again, "cpu").observed.size(), 1u);
}

TEST(ObserveGraph, ArgumentsAndWeightsMayBeObserved) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4});
  g.output("y", x + g.weight("w", DType::F32, {4}));
  g.observe("x", x);
  g.observe("w", g.weight("w", DType::F32, {4}));
  Session session(compile(g));
  const std::vector<float> w{1, 2, 3, 4}, values{5, 6, 7, 8};
  session.bindWeights({{"w", Array::fromFloats(w, {4})}});
  Arrays out = session.run("forward", {{"x", Array::fromFloats(values, {4})}});
  EXPECT_EQ(out.at("observed.x").at(1), 6);
  EXPECT_EQ(out.at("observed.w").at(1), 2);
  EXPECT_EQ(out.at("y").at(1), 8);
}

TEST(ObserveGraph, ANameIsNeeded) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4});
  test::expectError(ErrorCode::InvalidArgument, "observe: expected a name for the value",
                    [&] { g.observe("", exp(x)); });
}

TEST(ObserveGraph, ANameMayBeUsedOnce) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4});
  g.observe("x", exp(x));
  try {
    g.observe("x", x);
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("output 'observed.x' is declared twice"));
  }
}

}  // namespace
}  // namespace lathe
