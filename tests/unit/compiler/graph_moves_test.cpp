// SPDX-License-Identifier: Apache-2.0
// Graphs, and what holds them with modules and tensors, can be moved: everything follows.
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <lathe/lathe.h>

#include "tests/unit/test_files.h"

namespace lathe {
namespace {

// The way in which PyTorch and MLX users keep a model.
struct Model {
  Graph g;
  nn::Linear fc{g, "fc", 4, 3, {.bias = false}};
  Tensor x = g.input("x", DType::F32, {2, 4});
  explicit Model(const char* name = "model") : g(name) {}
};

// fc of ones with weights of `value`: every output is 4 * value.
float output(Model& m, float value) {
  m.g.output("y", m.fc(m.x));
  Session session(compile(m.g, {.backend = "reference"}));
  session.bindWeights(
      Arrays{{"fc.weight", Array::fromFloats(std::vector<float>(12, value), {3, 4})}});
  const Array ones = Array::fromFloats(std::vector<float>(8, 1), {2, 4});
  return float(session.run("forward", Arrays{{"x", ones}}).at("y").at(0));
}

TEST(GraphMoves, ModulesAndTensorsFollowAStruct) {
  Model first;
  Model second = std::move(first);
  EXPECT_EQ(&second.fc.graph(), &second.g);
  EXPECT_EQ(output(second, 2), 8);
}

TEST(GraphMoves, AModuleThatWasMovedFromSaysSo) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {2, 4});
  nn::RMSNorm norm(g, "norm", 4);
  const nn::RMSNorm moved = std::move(norm);
  for (const auto& use :
       std::vector<std::function<void()>>{[&] { norm(x); }, [&] { norm.graph(); }}) {
    try {
      use();
      ADD_FAILURE() << "no error";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("the module was moved from; use the one"),
                std::string::npos)
          << e.what();
    }
  }
  EXPECT_EQ(&moved.graph(), &g);
}

Model made(bool moved) {
  Model local("local");
  if (moved) return local;  // moved: there is another return
  return Model("other");
}

TEST(GraphMoves, AModelIsReturnedFromAFunction) {
  for (bool moved : {false, true}) {
    Model m = made(moved);
    EXPECT_EQ(&m.fc.graph(), &m.g);
    EXPECT_EQ(output(m, 3), 12);
  }
}

TEST(GraphMoves, ModulesFollowThroughAGrowingVector) {
  std::vector<Model> models;
  for (int i = 0; i < 5; ++i) models.emplace_back();
  for (size_t i = 0; i < models.size(); ++i) {
    EXPECT_EQ(&models[i].fc.graph(), &models[i].g);
    EXPECT_EQ(output(models[i], float(i)), 4 * float(i));
  }
}

TEST(GraphMoves, ModulesFollowASwap) {
  Model a("a"), b("b");
  std::swap(a.g, b.g);
  EXPECT_EQ(&a.fc.graph(), &b.g);
  EXPECT_EQ(&b.fc.graph(), &a.g);
  b.g.output("y", a.fc(a.x));
  EXPECT_NE(b.g.text().find("module @a"), std::string::npos);
}

// Looking at a graph or compiling it does not end it.
TEST(GraphGoesOn, AfterItsTextAProgramAndAStage) {
  Graph g;
  g.state("kept", DType::F32, {4});
  Tensor x = g.input("x", DType::F32, {4});
  g.readState("kept");
  EXPECT_THROW(g.text(), Error);  // no output yet, and that can be mended
  g.output("y", exp(x));
  const std::string first = g.text();
  irAt(g, "fused");
  Program program = compile(g, {.backend = "reference"});
  EXPECT_EQ(g.text(), first);
  Tensor more = g.input("more", DType::F32, {4});
  g.output("z", x + more + g.weight("w", DType::F32, {4}));
  EXPECT_EQ(program.entries[0].outputs.size(), 1u);
  Session session(compile(g, {.backend = "reference"}));
  session.bindWeights(Arrays{{"w", Array::fromFloats({1, 2, 3, 4}, {4})}});
  const Array values = Array::fromFloats({0, 0, 1, 1}, {4});
  const Arrays out = session.run("forward", {{"x", values}, {"more", values}});
  EXPECT_EQ(out.at("z").at(3), 6);
  EXPECT_EQ(out.at("y").at(0), 1);
}

// Another entry point of a graph that was read knows its states and weights.
TEST(GraphGoesOn, BehindTheTextThatWasRead) {
  Graph written;
  written.state("kept", DType::F32, {4});
  Tensor x = written.input("x", DType::F32, {4});
  written.readState("kept");
  written.output("y", x * written.weight("w", DType::F32, {4}));
  written.writeState("kept", x);
  Graph g = Graph::parse(written.text());
  g.entry("more");
  EXPECT_THROW(g.weight("w", DType::F32, {5}), Error);
  EXPECT_THROW(g.state("kept", DType::F32, {5}), Error);
  g.state("kept", DType::F32, {4});
  const Tensor kept = g.readState("kept");
  g.output("z", kept + g.weight("w", DType::F32, {4}));
  g.writeState("kept", kept * 2);
  Session session(compile(g, {.backend = "reference"}));
  session.bindWeights(Arrays{{"w", Array::fromFloats({1, 2, 3, 4}, {4})}});
  session.run("forward", {{"x", Array::fromFloats({5, 6, 7, 8}, {4})}});
  EXPECT_EQ(session.run("more", {}).at("z").at(3), 12);
  EXPECT_EQ(session.run("more", {}).at("z").at(0), 11);
}

TEST(GraphMoves, AGraphThatIsMovedIntoItselfStays) {
  Model m;
  Graph& same = m.g;
  m.g = std::move(same);
  EXPECT_EQ(output(m, 1), 4);
}

TEST(GraphMoves, AScopeThatOutlivesItsGraphClosesNothing) {
  std::optional<Graph> g(std::in_place);
  Scope scope(g->recorder(), "blocks.0", std::source_location::current());
  g.reset();
}

TEST(GraphMoves, ASessionIsMovedAndAssigned) {
  Model a, b;
  auto sessionOf = [](Model& m) {
    m.g.output("y", exp(m.x));
    return Session(compile(m.g, {.backend = "reference"}));
  };
  Session first = sessionOf(a), second = sessionOf(b);
  first = std::move(second);
  const Array zeros(DType::F32, {2, 4});
  EXPECT_EQ(first.run("forward", Arrays{{"x", zeros}}).at("y").at(7), 1);
}

// A graph that was read knows its symbols as they were declared, ranges and multiples.
TEST(GraphTexts, SymbolsKeepTheirRanges) {
  Graph written;
  const Dim n = written.dim("n", 8, 64, 8);
  written.output("y", exp(written.input("x", DType::F32, {n, 2})));
  Graph read = Graph::parse(written.text());
  EXPECT_EQ(read.dim("n", 8, 64, 8), n);
  for (auto [lo, hi, multiple] : {std::array{8, 64, 1}, {8, 64, 4}, {16, 64, 8}, {8, 72, 8}}) {
    try {
      read.dim("n", lo, hi, multiple);
      ADD_FAILURE() << lo << " " << hi << " " << multiple;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("8 to 64, multiples of 8, now"), std::string::npos)
          << e.what();
    }
  }
}

// However often a model names a weight, an entry point reads it once.
TEST(GraphTexts, AWeightStandsOnceInAnEntryPoint) {
  Graph g;
  for (const char* entry : {"one", "other"}) {
    g.entry(entry);
    g.output("y", g.weight("w", DType::F32, {4}) + g.weight("w", DType::F32, {4}));
  }
  const std::string text = g.text();
  size_t count = 0;
  for (size_t at = 0; (at = text.find("lathe.weight \"w\"", at)) != text.npos; ++at) ++count;
  EXPECT_EQ(count, 2u) << text;
}

// The largest tensors and symbols that there may be.
TEST(GraphLimits, AreReached) {
  constexpr int64_t most = int64_t(1) << 48;
  Graph g;
  const Dim n = g.dim("n", 1, most);
  g.output("y", exp(g.input("x", DType::F32, {n})));
  g.output("z", exp(g.input("w", DType::F32, {most / 2, 2})));
  test::expectError(ErrorCode::InvalidArgument, "would have 281474976710657 elements, at most",
                    [&] { g.input("v", DType::F32, {most + 1}); });
}

// What was refused leaves nothing in the graph, whose text reads as before.
TEST(GraphRefusals, LeaveTheGraphAsItWas) {
  Graph g("model");
  Tensor x = g.input("x", DType::F32, {1, 4});
  g.output("y", exp(x));
  const std::string before = g.text();
  EXPECT_THROW(broadcast(x, {int64_t(1) << 47, 4}), Error);
  EXPECT_THROW(reshape(x, {3}), Error);
  EXPECT_EQ(g.text(), before);
}

}  // namespace
}  // namespace lathe
