// SPDX-License-Identifier: Apache-2.0
// A step that chooses its token and goes on: its kernels, what it keeps in place, that many steps
// without the host write what the host would write, what of them is recorded, and which keys
// attention reads early.
#include <cmath>

#include <gtest/gtest.h>

#include "lathe/frontend/compile.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/text_generation.h"
#include "runtime/memory_plan.h"
#include "tests/depth.h"
#include "tests/unit/cuda/planted_faults.h"

namespace lathe::cuda {
namespace {

std::shared_ptr<const Program> program(const std::string& backend = "cuda") {
  static std::map<std::string, std::shared_ptr<const Program>> programs;
  auto& p = programs[backend];
  if (!p) p = std::make_shared<const Program>(compile(smallModel(), {.backend = backend}));
  return p;
}

// The same with as many heads of keys as of queries: attention is computed by the blocks of the
// product behind it.
std::shared_ptr<const Program> attendedProgram() {
  static auto p = std::make_shared<const Program>(compile(smallModel(2), {.backend = "cuda"}));
  return p;
}

bool hasOldKeys(const Program& p, const std::string& entry) {
  const auto& calls = p.entry(entry).calls;
  const auto attention = std::ranges::find(calls, "attention", &Call::kind);
  return attention != calls.end() && attention->config.find("old_keys") != std::string::npos;
}

TEST(GreedyProgram, IsTheLayersAndFiveKernels) {
  std::vector<std::string> kinds;
  for (const Call& call : program()->entry("greedy").calls) kinds.push_back(call.kind);
  const std::vector<std::string> expected = {
      "region", "region",                                   // tokens; cosines and sines
      "region", "attention", "linear", "region", "linear",  // the layer
      "region",                                             // logits
      "region", "region",    "region"};  // the largest, what the host reads, the position
  EXPECT_EQ(kinds, expected);
}

TEST(GreedyProgram, IsFourKernelsALayerWhereAClusterComputesTheHeads) {
  std::vector<std::string> kinds;
  for (const Call& call : attendedProgram()->entry("greedy").calls) kinds.push_back(call.kind);
  const std::vector<std::string> expected = {"region", "region",  //
                                             "region", "attended_linear", "region", "linear",
                                             "region", "region",          "region", "region"};
  EXPECT_EQ(kinds, expected);
  const Call& call = attendedProgram()->entry("greedy").calls[3];
  EXPECT_NE(call.config.find("old_keys"), std::string::npos) << call.config;
}

TEST(GreedyProgram, KeepsItsStatesInPlace) {
  for (const std::string backend : {"cuda", "cpu"})
    for (const EntryPoint& entry : program(backend)->entries)
      for (const Port& out : entry.statesOut) {
        const auto in = std::ranges::find(entry.statesIn, out.name, &Port::name);
        ASSERT_NE(in, entry.statesIn.end());
        EXPECT_EQ(ownerOf(entry, out.slot), in->slot)
            << backend << ", " << entry.name << ": " << out.name << " is copied";
      }
}

std::vector<int> textOf(const std::shared_ptr<const Program>& program, const std::string& options,
                        bool onDevice) {
  HostProgram host(program, options);
  host.session().bindRandomWeights(1);
  Generator generator(host.session(), {64, 32});
  // Asking for probabilities leaves the choice to the host.
  TextGenerationOptions asked{.newTokens = 28};
  if (!onDevice) asked.logProbabilities = 0;
  return generateText(generator, std::nullopt, std::vector<int>{3, 1, 4}, asked).ids();
}

TEST(GreedyProgram, WritesTheTokensThatTheHostWouldChooseInEveryMode) {
  for (const auto& p : {program(), attendedProgram()}) {
    const std::vector<int> expected = textOf(p, "fast", false);
    ASSERT_EQ(expected.size(), 28u);
    std::vector<const char*> modes{"fast", "check,eager", "check,random,seed=1"};
    if (test::inDepth())
      modes.insert(modes.end(), {"fast,reverse", "check", "check,reverse", "check,random,seed=2"});
    for (const char* options : modes) EXPECT_EQ(textOf(p, options, true), expected) << options;
  }
}

TEST(GreedyProgram, WritesTheSameOnTheCpuAndTheReference) {
  for (const std::string backend : {"cpu", "reference"})
    EXPECT_EQ(textOf(program(backend), "fast", true), textOf(program(backend), "fast", false))
        << backend;
}

// 20 runs are one launch and 19 of what was recorded; what one of them meets is told once.
TEST(GreedyProgram, AnErrorOfAnyOfTheRunsIsTold) {
  HostProgram host(program(), "fast");
  host.session().bindRandomWeights(1);
  host.session().setSymbol("cache", 8);
  std::vector<Array> outputs;
  const size_t greedy = host.session().entryIndex("greedy");
  try {
    host.session().run(greedy, {}, outputs, 20);
    FAIL() << "12 of 20 positions are outside the cache";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("outside an axis of 8"), std::string::npos) << e.what();
  }
  host.session().resetStates();
  EXPECT_NO_THROW(host.session().run(greedy, {}, outputs, 8));
}

// What was recorded holds the sizes and addresses of its runs.
TEST(Recordings, AreMadeAnewForOtherSizes) {
  Graph g;
  g.entry("f");
  const Dim n = g.dim("n", 1, 64);
  g.output("y", g.input("x", DType::F32, {n}) * 2.0 + 1.0);
  HostProgram host(std::make_shared<const Program>(compile(g, {.backend = "cuda"})), "fast");
  float first = 0;
  for (int64_t size : {3, 3, 3, 7, 7, 7, 3, 3}) {
    first += 10;
    Array x(DType::F32, {size});
    for (int64_t i = 0; i < size; ++i) x.set(i, first + double(i));
    const Array y = host.session().run("f", {{"x", x}}).at("y");
    ASSERT_EQ(y.size(), size);
    for (int64_t i = 0; i < size; ++i) EXPECT_EQ(y.at(i), 2 * x.at(i) + 1) << first << ", " << i;
  }
}

// The positions of one token are left out of a sum; those of two, or along a longer axis, are not.
TEST(Ramps, OfMoreThanOnePositionAreAdded) {
  for (int64_t tokens : {1, 2, 3}) {
    Graph g;
    const Tensor x = g.input("x", DType::I64, {3, tokens});
    g.output("y", x + iota(x, {3, tokens}, 1));
    g.output("z", iota(x, {3, tokens}, 0) + x);
    HostProgram host(std::make_shared<const Program>(compile(g, {.backend = "cuda"})), "fast");
    Array values(DType::I64, {3, tokens});
    for (int64_t i = 0; i < values.size(); ++i) values.set(i, double(7 * i));
    const Arrays got = host.session().run("forward", {{"x", values}});
    for (int64_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(got.at("y").at(i), 7 * i + i % tokens) << tokens << ", " << i;
      EXPECT_EQ(got.at("z").at(i), 7 * i + i / tokens) << tokens << ", " << i;
    }
  }
}

// A negative zero and the ramp's zero add up to a positive one.
TEST(Ramps, OfOneFloatAreAdded) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {3, 1});
  g.output("y", x + iota(x, {3, 1}, 1, DType::F32));
  HostProgram host(std::make_shared<const Program>(compile(g, {.backend = "cuda"})), "fast");
  Array values(DType::F32, {3, 1});
  for (int64_t i = 0; i < 3; ++i) values.set(i, -0.0);
  const Array y = host.session().run("forward", {{"x", values}}).at("y");
  for (int64_t i = 0; i < 3; ++i) EXPECT_FALSE(std::signbit(y.at(i))) << i;
}

TEST(OldKeys, OfAStateThatTheRunAppendsToAreReadEarly) {
  for (const char* entry : {"prefill", "decode", "greedy"})
    EXPECT_TRUE(hasOldKeys(*program(), entry)) << entry;
  EXPECT_FALSE(hasOldKeys(*program(), "forward"));
}

// Attention over a cache, with one thing that makes its rows another's to write.
enum class Miss {
  None,
  OtherPositions,
  NoState,
  ReadTwice,
  NotReturned,
  WrittenTwice,
  ComputedPositions
};
bool isEarly(Miss miss) {
  Graph g;
  for (const char* name : {"k", "v"}) g.state(name, DType::BF16, {1, 2, 64, 64});
  Tensor q = g.input("q", DType::BF16, {1, 2, 1, 64}), at = g.input("at", DType::I64, {1});
  const Tensor other = g.input("other", DType::I64, {1});
  const Tensor row = g.input("row", DType::BF16, {1, 2, 1, 64});
  if (miss == Miss::ComputedPositions) at = at + other;
  auto cache = [&](const char* name) {
    const Tensor before = miss == Miss::NoState
                              ? g.input(name + std::string("_in"), DType::BF16, {1, 2, 64, 64})
                              : g.readState(name);
    const Tensor after = update(before, row, miss == Miss::OtherPositions ? other : at, 2);
    if (miss == Miss::WrittenTwice)
      g.writeState(name, update(after, row, other, 2));
    else if (miss != Miss::NoState && miss != Miss::NotReturned)
      g.writeState(name, after);
    if (miss == Miss::NotReturned) g.writeState(name, g.readState(name));
    if (miss == Miss::ReadTwice) g.output(name + std::string("_old"), before + before);
    return after;
  };
  const Tensor k = cache("k"), v = cache("v");
  g.output("y", fused::attention(q, k, v,
                                 {.positions = at, .scale = 0.125, .causal = Causal::positions}));
  return hasOldKeys(compile(g, {.backend = "cuda"}), "forward");
}
TEST(OldKeys, OfWhatAnotherKernelMayWriteAreNot) {
  EXPECT_TRUE(isEarly(Miss::None));
  EXPECT_FALSE(isEarly(Miss::OtherPositions));
  EXPECT_FALSE(isEarly(Miss::NoState));
  EXPECT_FALSE(isEarly(Miss::ReadTwice));
  EXPECT_FALSE(isEarly(Miss::NotReturned));
  EXPECT_FALSE(isEarly(Miss::WrittenTwice));
  EXPECT_FALSE(isEarly(Miss::ComputedPositions));
}

}  // namespace
}  // namespace lathe::cuda
