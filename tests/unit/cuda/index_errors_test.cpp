// SPDX-License-Identifier: Apache-2.0
// Positions outside a cache and ids outside a table are told as the other backends tell them: the
// line of the op, the index, the axis, and how many elements were to be written.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "backends/cuda/device/kernel_table.h"
#include "backends/cuda/device/program_code.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"
#include "lathe/ir/ops.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/session.h"

namespace lathe {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kCapacity = 32, kHead = 8, kWidth = 4 * kHead;

Array ids(std::vector<int64_t> values, Shape shape) {
  return Array::fromInts(values, std::move(shape));
}

// Two layers whose projections share their kernels; each has a cache and positions of its own.
Graph caches(bool normed, int64_t valueCapacity = kCapacity) {
  Graph g("caches");
  const Dim seq = g.dim("seq", 1, 24);
  g.entry("step");
  Tensor x =
      gather(g.weight("table", DType::F32, {11, kWidth}), g.input("ids", DType::I64, {1, seq}), 0);
  const Tensor angles = g.input("angles", DType::F32, {seq, kHead / 2});
  for (const char* layer : {"first", "second"}) {
    const std::string name = layer;
    // Without a line: each op has its own.
    Scope scope(x.recorder(), name, std::source_location());
    const Tensor in =
        normed ? fused::rmsNorm(x, g.weight(name + ".gain", DType::F32, {kWidth}), 1e-5) : x;
    const Tensor all = fused::linear(in, g.weight(name + ".w", DType::F32, {3 * kHead, kWidth}));
    auto head = [&](int64_t i) {
      return transpose(reshape(sliceAxis(all, -1, i * kHead, kHead), {1, seq, 1, kHead}),
                       {0, 2, 1, 3});
    };
    const Tensor at = g.input(name + "_at", DType::I64, {1});
    auto cache = [&](const char* kind, int64_t capacity) {
      g.state(name + kind, DType::F32, {1, 1, capacity, kHead});
      return g.readState(name + kind);
    };
    // Below the layer: a pass fuses the rotation and the write, and the error is still the write's.
    auto turned = [&](int64_t i) {
      Scope below(x.recorder(), name + ".rope", std::source_location::current());
      return fused::rope(head(i), angles, angles, Pairing::half);
    };
    // Where both have no room, the first is told.
    const Tensor keys = cache(".keys", kCapacity), values = cache(".values", valueCapacity);
    g.writeState(name + ".keys", update(keys, turned(1), at, 2));
    g.writeState(name + ".values", update(values, head(2), at, 2));
    g.output(name, turned(0));
  }
  return g;
}

Arrays inputsOf(int64_t tokens, int64_t id, int64_t first, int64_t second) {
  Array all(DType::I64, {1, tokens});
  all.set(tokens - 1, double(id));
  return {{"ids", all},
          {"angles", Array(DType::F32, {tokens, kHead / 2})},
          {"first_at", ids({first}, {1})},
          {"second_at", ids({second}, {1})}};
}

std::string messageOf(const Graph& g, const std::string& backend, const std::string& entry,
                      const Arrays& inputs) {
  SessionOptions options;
  if (backend == "cuda") options.device = "host";
  Session session(compile(g, {.backend = backend}), options);
  session.bindRandomWeights(1);
  try {
    session.run(entry, inputs);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidArgument) << e.what();
    return e.what();
  }
  ADD_FAILURE() << backend << ": no error";
  return "";
}

// `path` is the module that the op lies in; `words` stand in the message of every backend.
void expectAlike(const Graph& g, const std::string& entry, const Arrays& inputs,
                 const std::string& path, const std::vector<std::string>& words) {
  const std::string reference = messageOf(g, "reference", entry, inputs);
  std::smatch line;
  ASSERT_TRUE(std::regex_search(reference, line, std::regex("([^/]*:[0-9]+): '"))) << reference;
  for (const char* backend : {"reference", "cpu", "cuda"}) {
    const std::string said = messageOf(g, backend, entry, inputs);
    SCOPED_TRACE(backend);
    // The reference tells no module.
    const bool module = std::string(backend) != "reference";
    EXPECT_THAT(said, HasSubstr((module ? path : "") + line[1].str() + ": "));
    for (const std::string& w : words) EXPECT_THAT(said, HasSubstr(w));
  }
}

class CacheErrors : public ::testing::TestWithParam<bool> {};

TEST_P(CacheErrors, OfOneTokenNameTheAppend) {
  expectAlike(caches(GetParam()), "step", inputsOf(1, 0, kCapacity, 0), "first ",
              {"position 32", "1 ", "axis", "32"});
  expectAlike(caches(GetParam()), "step", inputsOf(1, 0, -1, 0), "first ", {"position -1"});
}

TEST_P(CacheErrors, OfALaterLayerNameThatLayer) {
  expectAlike(caches(GetParam()), "step", inputsOf(1, 0, 0, 40), "second ", {"position 40", "32"});
  expectAlike(caches(GetParam()), "step", inputsOf(20, 0, 0, 15), "second ",
              {"position 15", "20 "});
}

TEST_P(CacheErrors, OfAPromptNameTheAppend) {
  expectAlike(caches(GetParam()), "step", inputsOf(20, 0, 13, 0), "first ",
              {"position 13", "20 ", "axis", "32"});
}

// The first of them has room: kernels for few rows look at all that they append.
TEST_P(CacheErrors, OfAFewTokensNameTheAppend) {
  for (int64_t tokens : {2, 3, 5, 8})
    expectAlike(caches(GetParam()), "step", inputsOf(tokens, 0, kCapacity - tokens + 1, 0),
                "first ",
                {"position " + std::to_string(kCapacity - tokens + 1), std::to_string(tokens) + " ",
                 "axis", "32"});
}

TEST_P(CacheErrors, OfATableNameTheGather) {
  expectAlike(caches(GetParam()), "step", inputsOf(1, 11, 0, 0), "", {"11"});
  expectAlike(caches(GetParam()), "step", inputsOf(20, -3, 0, 0), "", {"-3"});
}

INSTANTIATE_TEST_SUITE_P(Norms, CacheErrors, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "normed" : "plain"; });

TEST(IndexErrors, SayTheCapacityAndTheCount) {
  EXPECT_THAT(messageOf(caches(true), "cuda", "step", inputsOf(1, 0, 32, 0)),
              HasSubstr(": position 32 with 1 new elements is outside an axis of 32"));
  EXPECT_THAT(messageOf(caches(true), "cuda", "step", inputsOf(20, 0, 0, 13)),
              HasSubstr(": position 13 with 20 new elements is outside an axis of 32"));
  EXPECT_THAT(messageOf(caches(true), "cuda", "step", inputsOf(3, 11, 0, 0)),
              HasSubstr(": index 11 is outside the axis of 11 that it selects from"));
}

// One kernel writes both; where the one has room and the other has not, that one is told.
TEST(IndexErrors, SayWhichOfTwoCapacitiesIsTooSmall) {
  for (bool normed : {false, true}) {
    EXPECT_THAT(messageOf(caches(normed, 24), "cuda", "step", inputsOf(1, 0, 24, 0)),
                HasSubstr(": position 24 with 1 new elements is outside an axis of 24"));
    EXPECT_THAT(messageOf(caches(normed, 40), "cuda", "step", inputsOf(1, 0, 35, 0)),
                HasSubstr(": position 35 with 1 new elements is outside an axis of 32"));
  }
}

// Blocks of a cache: how many places the table leads to, and how many blocks there are.
TEST(IndexErrors, SayThePlacesAndTheBlocksOfATable) {
  for (bool isStatic : {true, false}) {
    Graph g("paged");
    const Dim tokens = g.dim("tokens", 1, 8), entries = isStatic ? Dim(3) : g.dim("entries", 1, 6);
    g.state("cache", DType::F32, {5, 2, 4, 8});
    const Tensor x = g.input("x", DType::F32, {2, 2, tokens, 8}),
                 table = g.input("table", DType::I64, {2, entries}),
                 at = g.input("at", DType::I64, {2});
    g.writeState("cache", pagedUpdate(g.readState("cache"), x, table, at, 2));
    g.output("y", x * 2.0);
    auto said = [&](int64_t count, std::vector<int64_t> blocks, std::vector<int64_t> places) {
      const Arrays inputs{{"x", Array(DType::F32, {2, 2, count, 8})},
                          {"table", ids(std::move(blocks), {2, 3})},
                          {"at", ids(std::move(places), {2})}};
      const std::string cuda = messageOf(g, "cuda", "forward", inputs);
      for (const char* backend : {"reference", "cpu"}) {
        const std::string other = messageOf(g, backend, "forward", inputs);
        EXPECT_THAT(other, HasSubstr("index_errors_test.cpp:"));
        EXPECT_EQ(
            std::regex_replace(other, std::regex("^.*(index_errors_test.cpp:[0-9]+).*$"), "$1"),
            std::regex_replace(cuda, std::regex("^.*(index_errors_test.cpp:[0-9]+).*$"), "$1"))
            << backend;
      }
      return cuda;
    };
    EXPECT_THAT(said(2, {0, 1, 2, 3, 4, 0}, {11, 0}),
                HasSubstr("position 11 with 2 new elements is outside of the 3 blocks of 4 that a "
                          "sequence's table has; expected a position of 0 to 10, or a table with "
                          "more entries"));
    EXPECT_THAT(said(1, {0, 1, 2, 3, 4, 0}, {0, 12}),
                HasSubstr("position 12 with 1 new elements is outside of the 3 blocks of 4 "));
    EXPECT_THAT(said(6, {0, 1, 2, 3, 4, 0}, {-1, 0}),
                HasSubstr("position -1 with 6 new elements is outside of the 3 blocks of 4 that a "
                          "sequence's table has; expected a position of 0 to 6, "));
    if (!isStatic)  // more elements than there are places
      EXPECT_THAT(said(8, {0, 0, 0, 0, 0, 0}, {5, 0}),
                  HasSubstr("position 5 with 8 new elements is outside of the 3 blocks of 4 "));
    EXPECT_THAT(said(2, {0, 1, 2, 3, 5, 0}, {0, 3}),
                HasSubstr("index 5 is outside the axis of 5 that it selects from"));
    EXPECT_THAT(said(1, {0, -7, 2, 3, 4, 0}, {4, 0}),
                HasSubstr("index -7 is outside the axis of 5 that it selects from"));
  }
}

// The CPU looks at one sequence after the other, and tells which is at fault.
TEST(IndexErrors, OnTheCpuNameTheSequenceAndItsEntry) {
  Graph g("paged");
  const Dim tokens = g.dim("tokens", 1, 8);
  g.state("cache", DType::F32, {5, 2, 4, 8});
  g.writeState(
      "cache",
      pagedUpdate(g.readState("cache"), g.input("x", DType::F32, {2, 2, tokens, 8}),
                  g.input("table", DType::I64, {2, 3}), g.input("at", DType::I64, {2}), 2));
  auto said = [&](int64_t count, std::vector<int64_t> blocks, std::vector<int64_t> places) {
    return messageOf(g, "cpu", "forward",
                     {{"x", Array(DType::F32, {2, 2, count, 8})},
                      {"table", ids(std::move(blocks), {2, 3})},
                      {"at", ids(std::move(places), {2})}});
  };
  for (int64_t place : {-1, 11})
    EXPECT_THAT(said(2, {0, 1, 2, 3, 4, 0}, {10, place}),
                HasSubstr(": position " + std::to_string(place) +
                          " of sequence 1 with 2 new elements is outside of 3 blocks of 4"));
  for (int64_t block : {-1, 5})
    EXPECT_THAT(said(2, {0, 1, 2, 3, block, 0}, {0, 3}),
                HasSubstr(": block " + std::to_string(block) +
                          " at entry 1 of sequence 1 is outside of 5 blocks"));
}

// A sequence's table leads attention to a block that the cache does not have.
TEST(IndexErrors, SayTheBlocksThatAttentionReads) {
  Graph g("paged");
  const Tensor cache = g.input("cache", DType::F32, {5, 2, 4, 8});
  g.output("y", fused::pagedAttention(g.input("q", DType::F32, {2, 2, 1, 8}), cache, cache,
                                      g.input("table", DType::I64, {2, 3}),
                                      g.input("at", DType::I64, {2}), {.scale = 0.25}));
  const Arrays inputs{{"cache", Array(DType::F32, {5, 2, 4, 8})},
                      {"q", Array(DType::F32, {2, 2, 1, 8})},
                      {"table", ids({0, 1, 2, 3, 5, 0}, {2, 3})},
                      {"at", ids({11, 7}, {2})}};
  expectAlike(g, "forward", inputs, "", {"5"});
  EXPECT_THAT(messageOf(g, "cuda", "forward", inputs),
              HasSubstr("index 5 is outside the axis of 5 that it selects from"));
  EXPECT_THAT(messageOf(g, "cpu", "forward", inputs),
              HasSubstr(": block 5 at entry 1 of sequence 1 is outside of 5 blocks"));
}

// Weights that rows choose: the first number behind them is one too many, wherever it stands.
TEST(IndexErrors, OfAChoiceOfWeightsNameTheChoice) {
  for (DType dtype : {DType::F32, DType::BF16})
    for (int64_t rows : {1, 40, 300}) {
      Graph g("choices");
      const Tensor x = g.input("x", dtype, {rows, 16}),
                   chosen = g.input("chosen", DType::I64, {rows});
      g.output("y", fused::groupedLinear(x, g.weight("w", dtype, {4, 16, 16}), chosen));
      for (int64_t place : {int64_t(0), rows / 2, rows - 1})
        for (int64_t bad : {4, 5, -1}) {
          std::vector<int64_t> values(static_cast<size_t>(rows), 3);
          values[size_t(place)] = bad;
          const Arrays inputs{{"x", Array(dtype, {rows, 16})}, {"chosen", ids(values, {rows})}};
          for (const char* backend : {"reference", "cpu", "cuda"})
            EXPECT_THAT(messageOf(g, backend, "forward", inputs), HasSubstr(std::to_string(bad)))
                << backend << " " << rows << " at " << place;
        }
    }
}

// A position that is right again is no error of an earlier run.
TEST(IndexErrors, AreThoseOfTheirRun) {
  Session session(compile(caches(true), {.backend = "cuda"}), {.device = "host"});
  session.bindRandomWeights(1);
  EXPECT_THROW(session.run("step", inputsOf(1, 0, 32, 0)), Error);
  EXPECT_NO_THROW(session.run("step", inputsOf(1, 0, 31, 0)));
  EXPECT_THROW(session.run("step", inputsOf(20, 0, 31, 0)), Error);
  EXPECT_NO_THROW(session.run("step", inputsOf(1, 0, 31, 0)));
}

// Of two tables that one kernel reads, chosen by the same indices or by others.
TEST(IndexErrors, NameTheTable) {
  for (bool same : {true, false}) {
    Graph g("tables");
    const Tensor a = g.input("a", DType::I64, {3}), b = g.input("b", DType::I64, {3});
    g.output("y", add(gather(g.weight("one", DType::F32, {11, 8}), a, 0),
                      gather(g.weight("other", DType::F32, {same ? 11 : 7, 8}), same ? a : b, 0)));
    const Arrays inputs = {{"a", ids({0, 1, 11}, {3})}, {"b", ids({0, 1, 2}, {3})}};
    EXPECT_THAT(messageOf(g, "cuda", "forward", inputs),
                HasSubstr("index 11 is outside the axis of 11 that"));
    if (same) continue;
    EXPECT_THAT(
        messageOf(g, "cuda", "forward", {{"a", ids({0, 1, 10}, {3})}, {"b", ids({0, 7, 2}, {3})}}),
        HasSubstr("index 7 is outside the axis of 7 that"));
  }
}

TEST(IndexErrors, SayTheLengthOfTheAxisThatIsSelectedFrom) {
  Graph g("columns");
  g.output("y", gather(g.weight("table", DType::F32, {5, 7, 9}), g.input("i", DType::I64, {3}), 1));
  EXPECT_THAT(messageOf(g, "cuda", "forward", {{"i", ids({0, 6, 7}, {3})}}),
              HasSubstr("index 7 is outside the axis of 7 that"));

  // Of weights that rows choose it is their number, however many rows there are.
  Graph choices("choices");
  choices.output("y", fused::groupedLinear(choices.input("x", DType::F32, {3, 16}),
                                           choices.weight("w", DType::F32, {5, 16, 16}),
                                           choices.input("chosen", DType::I64, {3})));
  EXPECT_THAT(messageOf(choices, "cuda", "forward",
                        {{"x", Array(DType::F32, {3, 16})}, {"chosen", ids({0, 4, 5}, {3})}}),
              HasSubstr("index 5 is outside the axis of 5 that"));
}

TEST(IndexChecks, ComeBackFromTheTable) {
  using namespace cuda;
  Launch launch;
  launch.kernel = "append";
  launch.arguments = {{Argument::Kind::Status, 1, 0}};
  launch.checks = {{}, {3, DimExpr::symbol("cache"), DimExpr::symbol("seq") * 2}};
  Variant variant;
  variant.launches = {launch};
  const KernelTable table = parseKernelTable(toJson({{"region_0", {variant}}}));
  const Launch& back = table.at("region_0").at(0).launches.at(0);
  EXPECT_EQ(back.arguments.at(0).index, 1);
  ASSERT_EQ(back.checks.size(), 2u);
  EXPECT_EQ(back.checks[0].op, -1);
  EXPECT_EQ(back.checks[0].length, DimExpr(0));
  EXPECT_EQ(back.checks[1].op, 3);
  EXPECT_EQ(back.checks[1].length.text(), "cache");
  EXPECT_EQ(back.checks[1].count, DimExpr::symbol("seq") * 2);
}

// A table whose kernel reports to a check that its launch does not have is refused.
TEST(IndexChecks, ExistWhereAKernelReports) {
  Program program = compile(caches(false), {.backend = "cuda"});
  cuda::KernelTable table = cuda::kernelTableOf(program);
  for (auto& [callee, variants] : table)
    for (cuda::Variant& v : variants)
      for (cuda::Launch& l : v.launches) l.checks.clear();
  cuda::storeKernels(program, table, cuda::kernelCodeOf(program));
  try {
    Session session(std::make_shared<Program>(std::move(program)), {.device = "host"});
    session.bindRandomWeights(1);
    session.run("step", inputsOf(1, 0, 0, 0));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::InvalidFile);
    EXPECT_THAT(e.what(), HasSubstr("takes check 0 of 0"));
  }
}

}  // namespace
}  // namespace lathe
