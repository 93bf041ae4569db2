// SPDX-License-Identifier: Apache-2.0
// What a session promises: checks of inputs and symbols, states, memory, one thread at a time.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <thread>

#include "lathe/lathe.h"
#include "lathe/runtime/safetensors.h"
#include "runtime/memory_plan.h"
#include "tests/unit/test_files.h"

namespace lathe {
namespace {

using test::expectError;
constexpr auto kInvalid = ErrorCode::InvalidArgument;

Array floats(Shape shape, float first = 0) {
  Array a(DType::F32, std::move(shape));
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, first + float(i));
  return a;
}

// A cache of `capacity` rows, a symbol that only the state has.
Graph cachedRows() {
  Graph g;
  const Dim capacity = g.dim("capacity", 2, 16);
  g.state("rows", DType::F32, {1, capacity, 3});
  Tensor row = g.input("row", DType::F32, {1, 1, 3}), at = g.input("at", DType::I64, {1});
  Tensor next = update(g.readState("rows"), row, at, 1);
  g.writeState("rows", next);
  g.output("sum", reduceSum(next, {1}));
  return g;
}

// Each test runs on both devices: they share the session, not the memory.
class SessionTest : public ::testing::TestWithParam<const char*> {
 protected:
  Session open(const Graph& g) const {
    return Session(compile(g, {.backend = GetParam()}), {.threads = 2});
  }
  // y = a + b over [rows, cols], rows 1 to 8, cols 2 to 64 in steps of 2.
  static Graph sum() {
    Graph g;
    const Dim rows = g.dim("rows", 1, 8), cols = g.dim("cols", 2, 64, 2);
    Tensor a = g.input("a", DType::F32, {rows, cols}), b = g.input("b", DType::F32, {rows, cols});
    g.output("y", a + b);
    return g;
  }
  // total += x, and gives the new total.
  static Graph counter() {
    Graph g;
    g.state("total", DType::F32, {4});
    Tensor x = g.input("x", DType::F32, {4});
    Tensor next = g.readState("total") + x;
    g.writeState("total", next);
    g.output("y", next);
    return g;
  }
};

// The negation could overwrite its operand, but for a view of it that is read afterwards.
TEST_P(SessionTest, NothingIsOverwrittenWhileAViewOfItIsRead) {
  Graph g;
  Tensor a = g.input("a", DType::F32, {4, 2}), b = g.input("b", DType::F32, {2, 6});
  Tensor c = g.input("c", DType::F32, {4, 1});
  const Tensor product = matmul(a, b), view = reshape(product, {6, 4});
  g.output("negated", neg(product));
  g.output("read_later", matmul(view, c));
  const Arrays got = open(g).run(
      "forward", {{"a", floats({4, 2}, 1)}, {"b", floats({2, 6})}, {"c", floats({4, 1})}});
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 6; ++j)
      EXPECT_EQ(got.at("negated").at(i * 6 + j), -double((2 * i + 1) * j + (2 * i + 2) * (6 + j)));
  for (int64_t row = 0; row < 6; ++row) {
    double sum = 0;
    for (int64_t i = 0; i < 4; ++i) sum -= got.at("negated").at(row * 4 + i) * double(i);
    EXPECT_EQ(got.at("read_later").at(row), sum) << row;
  }
}

TEST_P(SessionTest, OneProgramServesEverySizeInRange) {
  Session s = open(sum());
  for (int64_t rows : {1, 3, 8})
    for (int64_t cols : {2, 34, 64}) {
      const Array y =
          s.run("forward", {{"a", floats({rows, cols})}, {"b", floats({rows, cols}, 1)}}).at("y");
      ASSERT_EQ(y.shape(), (Shape{rows, cols}));
      for (int64_t i = 0; i < y.size(); ++i) ASSERT_EQ(y.at(i), 2 * double(i) + 1);
    }
}

TEST_P(SessionTest, SizesOutsideTheRangeAreErrors) {
  Session s = open(sum());
  auto run = [&](int64_t rows, int64_t cols) {
    s.run("forward", {{"a", floats({rows, cols})}, {"b", floats({rows, cols})}});
  };
  expectError(kInvalid, "'rows' = 9 is outside its range 1 to 8", [&] { run(9, 2); });
  expectError(kInvalid, "'rows' = 0 is outside its range 1 to 8", [&] { run(0, 2); });
  expectError(kInvalid, "'cols' = 3 is outside its range 2 to 64, multiples of 2",
              [&] { run(1, 3); });
  run(8, 64);  // and the session is still good
}

TEST_P(SessionTest, InputsThatDoNotFitAreErrors) {
  Session s = open(sum());
  const Array good = floats({2, 4});
  auto run = [&](const Arrays& inputs) { return [&s, inputs] { s.run("forward", inputs); }; };
  expectError(kInvalid, "input 'b' is missing; it takes a, b", run({{"a", good}}));
  expectError(kInvalid, "has no input 'c'; it takes a, b",
              run({{"a", good}, {"b", good}, {"c", good}}));
  expectError(kInvalid,
              "expected f32[rows, cols], got f64[2, 4]; convert it first, in C++ with Array::to",
              run({{"a", good}, {"b", good.to(DType::F64)}}));
  expectError(kInvalid, "expected f32[rows, cols], got f32[8]; the ranks differ",
              run({{"a", good}, {"b", floats({8})}}));
  expectError(kInvalid, "'rows' is 2 in another input", run({{"a", good}, {"b", floats({3, 4})}}));
  expectError(kInvalid, "no entry point 'decode'; the program has forward",
              [&] { s.run("decode", {}); });
}

TEST_P(SessionTest, OutputsOutliveLaterRuns) {
  Session s = open(sum());
  const Array first = s.run("forward", {{"a", floats({1, 4})}, {"b", floats({1, 4})}}).at("y");
  const Array second = s.run("forward", {{"a", floats({1, 4}, 9)}, {"b", floats({1, 4})}}).at("y");
  EXPECT_NE(first.data(), second.data());
  EXPECT_EQ(first.at(3), 6);
  EXPECT_EQ(second.at(3), 15);
}

TEST_P(SessionTest, InputsAreTheCallersAgain) {
  Session s = open(sum());
  std::vector<Array> inputs{floats({1, 4}), floats({1, 4})}, outputs;
  s.run(0, inputs, outputs);
  for (const Array& input : inputs) EXPECT_FALSE(input.shared());
}

TEST_P(SessionTest, ReleasedOutputsAreUsedAgain) {
  Session s = open(sum());
  const Arrays inputs{{"a", floats({1, 4})}, {"b", floats({1, 4})}};
  const void* first = s.run("forward", inputs).at("y").data();
  const uint64_t before = Session::allocations();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(s.run("forward", inputs).at("y").data(), first);
  EXPECT_EQ(Session::allocations(), before);
}

TEST_P(SessionTest, StatesLiveAcrossCalls) {
  Session s = open(counter());
  for (int i = 1; i <= 3; ++i) {
    const Array y = s.run("forward", {{"x", floats({4}, 1)}}).at("y");
    for (int64_t e = 0; e < 4; ++e) EXPECT_EQ(y.at(e), i * double(e + 1));
  }
  EXPECT_EQ(s.state("total").at(3), 12);
  EXPECT_EQ(s.memory().states, 16);
  s.resetStates();
  EXPECT_EQ(s.run("forward", {{"x", floats({4}, 1)}}).at("y").at(3), 4);
  expectError(kInvalid, "the program has no state 'sum'", [&] { s.state("sum"); });
}

// Within one entry point, too.
TEST_P(SessionTest, StatesAreReadAsTheyWereWritten) {
  Graph g;
  g.state("total", DType::F32, {4});
  const Tensor x = g.input("x", DType::F32, {4}), before = g.readState("total");
  g.writeState("total", before + x);
  g.output("before", before);
  g.output("after", g.readState("total"));
  Session s = open(g);
  for (int i = 0; i < 2; ++i) {
    const Arrays got = s.run("forward", {{"x", floats({4}, 1)}});
    for (int64_t e = 0; e < 4; ++e) {
      EXPECT_EQ(got.at("before").at(e), i * double(e + 1));
      EXPECT_EQ(got.at("after").at(e), (i + 1) * double(e + 1));
    }
  }
}

// Inputs, outputs and states have names of their own: one may be that of the others.
TEST_P(SessionTest, AStateAnInputAndAnOutputMayShareAName) {
  Graph g;
  g.state("x", DType::F32, {4});
  const Tensor next = g.readState("x") + g.input("x", DType::F32, {4});
  g.writeState("x", next);
  g.output("x", next * 2.0);
  Session s = open(g);
  for (int i = 1; i <= 2; ++i) {
    EXPECT_EQ(s.run("forward", {{"x", floats({4}, 1)}}).at("x").at(3), 8.0 * i);
    EXPECT_EQ(s.state("x").at(3), 4.0 * i);
  }
  Graph twice;
  const Tensor x = twice.input("x", DType::F32, {4});
  twice.output("y", x);
  expectError(kInvalid, "output 'y' is declared twice", [&] { twice.output("y", x); });
  expectError(kInvalid, "input 'x' is declared twice", [&] { twice.input("x", DType::F32, {4}); });
}

TEST_P(SessionTest, SessionsOfOneProgramShareNothingThatChanges) {
  auto program = std::make_shared<const Program>(compile(counter(), {.backend = GetParam()}));
  Session a(program), b(program);
  a.run("forward", {{"x", floats({4}, 1)}});
  EXPECT_EQ(b.run("forward", {{"x", floats({4}, 1)}}).at("y").at(0), 1);
  EXPECT_EQ(a.run("forward", {{"x", floats({4}, 1)}}).at("y").at(0), 2);
}

TEST_P(SessionTest, SessionsOfOtherThreadCountsLeaveAnOpenOneAsItIs) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 256);
  Tensor x = g.input("x", DType::F32, {rows, 64});
  g.output("y", nn::SwiGLU(g, "mlp", 64, 96)(x));
  auto program = std::make_shared<const Program>(compile(g, {.backend = GetParam()}));
  Session s(program, {.threads = 2});
  s.bindRandomWeights(1);
  const Arrays inputs{{"x", floats({256, 64})}};
  const Array before = s.run("forward", inputs).at("y");
  for (int threads : {1, 5, 3}) {
    Session other(program, {.threads = threads});
    other.bindRandomWeights(1);
    other.run("forward", inputs);
    const Array after = s.run("forward", inputs).at("y");
    EXPECT_EQ(std::memcmp(before.data(), after.data(), before.bytes()), 0) << threads;
  }
}

TEST_P(SessionTest, StatesAreNotResetWhileTheSessionIsBusy) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4});
  g.output("y", x + g.weight("w", DType::F32, {4}));
  Session s = open(g);
  expectError(kInvalid, "the session is running in another thread", [&] {
    s.bindWeights([&](const std::string&) {
      s.resetStates();
      return floats({4});
    });
  });
}

// Another thread may write them meanwhile.
TEST_P(SessionTest, NothingIsReadWhileTheSessionIsBusy) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {4});
  g.state("s", DType::F32, {4});
  g.output("y", x + g.weight("w", DType::F32, {4}) + g.readState("s"));
  g.writeState("s", x);
  Session s = open(g);
  int asked = 0;
  s.bindWeights([&](const std::string&) {
    const std::function<void()> readers[] = {[&] { s.state("s"); }, [&] { s.memory(); },
                                             [&] { s.profile("forward"); }};
    for (const auto& read : readers) {
      ++asked;
      expectError(kInvalid, "the session is running in another thread", read);
    }
    return floats({4});
  });
  EXPECT_EQ(asked, 3);
  s.state("s");
}

TEST_P(SessionTest, ASymbolOfStatesAloneIsSet) {
  Session s = open(cachedRows());
  Array at(DType::I64, {1});
  auto put = [&](double position) {
    at.set(0, position);
    return s.run("forward", {{"row", floats({1, 1, 3}, 1)}, {"at", at}}).at("sum").at(0);
  };
  EXPECT_EQ(put(1), 1);
  EXPECT_EQ(s.state("rows").shape(), (Shape{1, 2, 3}));  // the lowest of the range
  s.setSymbol("capacity", 5);
  EXPECT_EQ(put(4), 1);  // clean again
  EXPECT_EQ(put(3), 2);
  EXPECT_EQ(s.state("rows").shape(), (Shape{1, 5, 3}));
  expectError(kInvalid, "'capacity' = 17 is outside its range 2 to 16",
              [&] { s.setSymbol("capacity", 17); });
  expectError(kInvalid, "the program has no symbol 'rows'", [&] { s.setSymbol("rows", 2); });
}

// It is the last one that reads the state, and would be written in place if it were stored.
TEST_P(SessionTest, AnUpdateThatIsOnlyReturnedLeavesTheState) {
  for (bool storesOther : {false, true}) {
    Graph g;
    g.state("rows", DType::F32, {1, 4, 3});
    Tensor row = g.input("row", DType::F32, {1, 1, 3}), at = g.input("at", DType::I64, {1});
    const Tensor rows = g.readState("rows");
    if (storesOther) g.writeState("rows", update(rows, 2 * row, at, 1));
    g.output("next", update(rows, row, at, 1));
    Session s = open(g);
    Array place(DType::I64, {1});
    std::vector<double> stored(12);
    for (int position : {2, 0, 3}) {
      place.set(0, position);
      const Array next =
          s.run("forward", {{"row", floats({1, 1, 3}, 1)}, {"at", place}}).at("next");
      for (int64_t i = 0; i < next.size(); ++i) {
        EXPECT_EQ(next.at(i), i / 3 == position ? double(i % 3 + 1) : stored[size_t(i)]) << i;
        if (storesOther && i / 3 == position) stored[size_t(i)] = 2 * double(i % 3 + 1);
        EXPECT_EQ(s.state("rows").at(i), stored[size_t(i)]) << i;
      }
    }
  }
}

TEST_P(SessionTest, ASymbolThatIsSetKeepsToItsMultiple) {
  Graph g;
  const Dim capacity = g.dim("capacity", 4, 16, 4);
  g.state("rows", DType::F32, {capacity});
  g.writeState("rows", g.readState("rows") + 1);
  Session s = open(g);
  expectError(kInvalid, "'capacity' = 6 is outside its range 4 to 16, multiples of 4",
              [&] { s.setSymbol("capacity", 6); });
  s.setSymbol("capacity", 8);
  s.run("forward", {});
  EXPECT_EQ(s.state("rows").shape(), Shape{8});
}

TEST_P(SessionTest, AnEntryWithoutInputsTakesTheSizeThatItsStatesHold) {
  Graph g;
  const Dim rows = g.dim("rows", 1, 4), places = g.dim("places", 3, 9);
  g.state("kept", DType::F32, {rows, places});
  g.entry("put");
  const Tensor x = g.input("x", DType::F32, {rows, 2}), at = g.input("at", DType::I64, {rows});
  g.writeState("kept", update(g.readState("kept"), x, at, 1));
  g.entry("peek");
  g.output("kept", g.readState("kept"));
  Session s = open(g);
  EXPECT_EQ(s.run("peek", {}).at("kept").shape(), (Shape{1, 3}));  // the lowest of the ranges
  s.resetStates();
  s.setSymbol("places", 5);
  Array places2(DType::I64, {2});
  places2.set(0, 1);
  places2.set(1, 3);
  s.run("put", {{"x", floats({2, 2}, 1)}, {"at", places2}});
  const Array kept = s.run("peek", {}).at("kept");
  ASSERT_EQ(kept.shape(), (Shape{2, 5}));
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t row = i / 5, place = i % 5 - int64_t(places2.at(row));
    EXPECT_EQ(kept.at(i), place == 0 || place == 1 ? floats({2, 2}, 1).at(2 * row + place) : 0)
        << i;
  }
  s.setState("kept", floats({3, 4}, 7));  // setSymbol says 5
  expectError(kInvalid, "state 'kept' holds f32[3, 4], this run needs f32[3, 5]",
              [&] { s.run("peek", {}); });
  s.setState("kept", floats({3, 5}, 7));
  EXPECT_EQ(s.run("peek", {}).at("kept").at(14), floats({3, 5}, 7).at(14));
  // A state is given in its dtype and rank.
  for (const auto& [value, got] : {std::pair(floats({3, 5}).to(DType::F64), "f64[3, 5]"),
                                   {floats({3, 5}).to(DType::BF16), "bf16[3, 5]"},
                                   {floats({15}), "f32[15]"},
                                   {Array(), "nothing"}})
    expectError(kInvalid, std::string("state 'kept': expected f32 of rank 2, got ") + got,
                [&] { s.setState("kept", value); });
}

TEST_P(SessionTest, SettingASymbolKeepsStatesOfOtherSizes) {
  Graph g;
  const Dim capacity = g.dim("capacity", 2, 16);
  g.state("rows", DType::F32, {capacity});
  g.state("source", DType::F32, {3});
  g.state("other", DType::F32, {g.dim("others", 2, 16)});
  Tensor x = g.input("x", DType::F32, {3});
  g.writeState("other", g.readState("other") + 1);
  g.writeState("rows", g.readState("rows") + 1);
  g.writeState("source", g.readState("source") + x);
  g.output("sum", reduceSum(x, {0}));
  Session s = open(g);
  s.run("forward", {{"x", floats({3})}});
  s.setSymbol("capacity", 5);
  EXPECT_FALSE(s.state("rows").defined());
  EXPECT_EQ(s.state("source").at(2), floats({3}).at(2));
  EXPECT_EQ(s.state("other").at(1), 1);
}

TEST_P(SessionTest, ASizeThatRunsSetIsGivenByTheSymbolsThatItIsOf) {
  Session s = open(Graph::parse(R"(lathe.dim @rows 1 to 9
lathe.dim_part @part of <rows> parts 2
func.func @forward(%x: tensor<?xf32, #lathe.dims<2*part>> {lathe.name = "x"})
    -> (tensor<?xf32, #lathe.dims<2*part>> {lathe.name = "y"}) {
  %y = lathe.neg %x : tensor<?xf32, #lathe.dims<2*part>>
  return %y : tensor<?xf32, #lathe.dims<2*part>>
})"));
  expectError(kInvalid,
              "'rows' has no value, because no dim of an input is 'rows' alone, and stands at 1: "
              "give it by Session::setSymbol, or --symbol rows=N of `lathe run`",
              [&] { s.run("forward", {{"x", floats({4})}}); });
  s.setSymbol("rows", 3);
  EXPECT_EQ(s.run("forward", {{"x", floats({4})}}).at("y").size(), 4);
}

TEST_P(SessionTest, ASymbolThatNoInputGivesAloneIsNamedAndCanBeSet) {
  Graph g;
  const Dim past = g.dim("past", 1, 8), seq = g.dim("seq", 1, 8);
  Tensor q = g.input("q", DType::F32, {seq}), mask = g.input("mask", DType::F32, {past + seq});
  g.output("y", reduceSum(mask, {0}) + reduceSum(q, {0}));
  g.output("places", iota(q, {past}, 0));
  Session s = open(g);
  const Arrays inputs{{"q", floats({2})}, {"mask", floats({5})}};
  expectError(kInvalid,
              "'past' has no value, because no dim of an input is 'past' alone, and stands at 1: "
              "give it by Session::setSymbol, or --symbol past=N of `lathe run`",
              [&] { s.run("forward", inputs); });
  s.setSymbol("past", 3);
  const Arrays results = s.run("forward", inputs);
  EXPECT_EQ(results.at("y").at(0), 11);
  EXPECT_EQ(results.at("places").shape(), Shape{3});
  // Now it has a value, which another shape does not fit.
  try {
    s.run("forward", {{"q", floats({2})}, {"mask", floats({6})}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("has no value"), std::string::npos) << e.what();
  }
}

TEST_P(SessionTest, PositionsPastTheCacheAreErrors) {
  Session s = open(cachedRows());
  s.setSymbol("capacity", 5);
  Array at(DType::I64, {1});
  for (double position : {-1., 5.}) {
    at.set(0, position);
    expectError(kInvalid, "axis",
                [&] { s.run("forward", {{"row", floats({1, 1, 3})}, {"at", at}}); });
  }
}

TEST_P(SessionTest, RowsThatReachPastTheCacheAreErrorsAndWriteNothing) {
  Graph g;
  g.state("rows", DType::F32, {2, 5, 3});
  Tensor next = update(g.readState("rows"), g.input("new", DType::F32, {2, 2, 3}),
                       g.input("at", DType::I64, {2}), 1);
  g.writeState("rows", next);
  g.output("sum", reduceSum(next, {0, 1, 2}));
  Session s = open(g);
  const Array rows = floats({2, 2, 3}, 1);
  auto put = [&](int64_t first, int64_t second) {
    const Array at = Array::fromInts(std::vector<int64_t>{first, second}, {2});
    return s.run("forward", {{"new", rows}, {"at", at}}).at("sum").at(0);
  };
  for (int64_t bad : {int64_t(4), int64_t(5), int64_t(-1), INT64_MAX, INT64_MIN}) {
    expectError(kInvalid, "axis", [&] { put(0, bad); });
    expectError(kInvalid, "axis", [&] { put(bad, 0); });
  }
  EXPECT_EQ(put(3, 3), 78);  // the last place there is; nothing was written before
}

Graph weighted() {
  Graph g;
  Tensor x = g.input("x", DType::F32, {2, 4});
  Tensor w = g.weight("layer.weight", DType::F32, {3, 4}),
         b = g.weight("layer.bias", DType::F32, {3});
  g.output("y", matmul(x, swapAxes(w, 0, 1)) + b);
  return g;
}

TEST_P(SessionTest, WeightMistakesAreToldAllAtOnce) {
  Session s = open(weighted());
  expectError(kInvalid, "call bindWeights before the first run",
              [&] { s.run("forward", {{"x", floats({2, 4})}}); });
  try {
    s.bindWeights(Arrays{{"layer.weight", floats({4, 3})}});
    FAIL();
  } catch (const Error& e) {
    const std::string text = e.what();
    EXPECT_NE(text.find("2 weights do not fit"), std::string::npos) << text;
    EXPECT_NE(text.find("wrong shape: layer.weight is f32[4, 3], expected f32[3, 4]"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("missing: layer.bias f32[3]"), std::string::npos) << text;
  }
  expectError(kInvalid, "the program has no weights named extra", [&] {
    s.bindWeights(Arrays{
        {"layer.weight", floats({3, 4})}, {"layer.bias", floats({3})}, {"extra", floats({1})}});
  });
  // A name that is spelled in another way is too much and missing at once.
  for (const char* told :
       {"the program has no weights named layer.bia; declare them in the graph, or leave them out",
        "2 weights do not fit the program", "missing: layer.bias f32[3]",
        "wrong shape: layer.weight is f32[4, 3], expected f32[3, 4]"})
    expectError(kInvalid, told, [&] {
      s.bindWeights(Arrays{{"layer.weight", floats({4, 3})}, {"layer.bia", floats({3})}});
    });
  expectError(kInvalid, "wrong dtype: layer.bias is f64[3], expected f32[3]", [&] {
    s.bindWeights(
        Arrays{{"layer.weight", floats({3, 4})}, {"layer.bias", floats({3}).to(DType::F64)}});
  });
}

TEST_P(SessionTest, WeightMistakesOfACheckpointAreToldAllAtOnce) {
  const test::TemporaryFolder folder;
  Session s = open(weighted());
  auto bind = [&](const Arrays& weights) {
    saveSafetensors(folder / "w.safetensors", {weights.begin(), weights.end()});
    s.bindWeights(Checkpoint::open(folder / "w.safetensors"));
  };
  for (const char* told : {"2 weights do not fit", "missing: layer.bias f32[3]",
                           "wrong shape: layer.weight is f32[4, 3], expected f32[3, 4]"})
    expectError(kInvalid, told, [&] { bind({{"layer.weight", floats({4, 3})}}); });
  expectError(kInvalid, "wrong dtype: layer.bias is f64[3], expected f32[3]", [&] {
    bind({{"layer.weight", floats({3, 4})}, {"layer.bias", floats({3}).to(DType::F64)}});
  });
}

TEST_P(SessionTest, TensorsOfACheckpointThatNobodyReadsAreTold) {
  const test::TemporaryFolder folder;
  saveSafetensors(folder / "model.safetensors", {{"layer.weight", floats({3, 4})},
                                                 {"layer.bias", floats({3})},
                                                 {"head.bias", floats({3})},
                                                 {"rotary.inv_freq", floats({2})}});
  const Checkpoint checkpoint = Checkpoint::open(folder.path());
  Session s = open(weighted());
  expectError(kInvalid, "holds tensors that the program does not read: head.bias, rotary.inv_freq",
              [&] { s.bindWeights(checkpoint); });
  expectError(kInvalid, "does not read: head.bias; declare them in the graph",
              [&] { s.bindWeights(checkpoint, {"inv_freq", "bias_of_nothing"}); });
  // What may stay is a whole name or its last parts, not the end of a word.
  expectError(kInvalid, "does not read: rotary.inv_freq; declare them in the graph",
              [&] { s.bindWeights(checkpoint, {"head.bias", "freq"}); });
  s.bindWeights(checkpoint, {"head.bias", "inv_freq"});
  EXPECT_EQ(s.run("forward", {{"x", floats({2, 4})}}).at("y").at(0), 14);
}

TEST_P(SessionTest, DeclaredWeightsMayBeGivenThoughNoOutputDependsOnThem) {
  const test::TemporaryFolder folder;
  for (const auto mode : {NumericsMode::Strict, NumericsMode::Relaxed, NumericsMode::Fast}) {
    Graph g = weighted();
    g.weight("un\"read", DType::F32, {5});
    const Program program = compile(g, {.backend = GetParam(), .pipeline = {.mode = mode}});
    const std::string file = folder / "unread.lathe";
    program.save(file);
    Session s(Program::open(file));
    Arrays given{
        {"layer.weight", floats({3, 4})}, {"layer.bias", floats({3})}, {"un\"read", floats({5})}};
    s.bindWeights(given);
    EXPECT_EQ(s.run("forward", {{"x", floats({2, 4})}}).at("y").at(0), 14);
    given["extra"] = floats({1});
    expectError(kInvalid, "the program has no weights named extra", [&] { s.bindWeights(given); });
  }
}

TEST_P(SessionTest, WeightsCanBeBoundAgain) {
  Session s = open(weighted());
  for (float first : {0.f, 1.f}) {
    s.bindWeights(Arrays{{"layer.weight", floats({3, 4}, first)}, {"layer.bias", floats({3})}});
    const Array y = s.run("forward", {{"x", floats({2, 4})}}).at("y");
    // Row 0: x = 0 1 2 3, weights first + 0 1 2 3.
    EXPECT_EQ(y.at(0), 14 + 6 * first);
  }
}

TEST_P(SessionTest, ASecondThreadIsToldNotRaced) {
  Session s = open(weighted());
  // While one thread binds, another calls.
  std::string error;
  s.bindWeights([&](const std::string& name) {
    std::thread other([&] {
      try {
        s.run("forward", {{"x", floats({2, 4})}});
      } catch (const Error& e) {
        error = e.what();
      }
    });
    other.join();
    return name == "layer.bias" ? floats({3}) : floats({3, 4});
  });
  EXPECT_EQ(error, "the session is running in another thread; use one session per thread");
  s.run("forward", {{"x", floats({2, 4})}});  // and is free afterwards
}

TEST_P(SessionTest, AFailedRunLeavesTheSessionUsable) {
  Session s = open(counter());
  s.run("forward", {{"x", floats({4}, 1)}});
  EXPECT_THROW(s.run("forward", {{"x", floats({5})}}), Error);
  EXPECT_EQ(s.run("forward", {{"x", floats({4}, 1)}}).at("y").at(0), 2);
}

// Sizes that only a kernel refuses leave nothing of themselves behind.
TEST_P(SessionTest, SizesThatAKernelRefusesLeaveThoseBeforeAsTheyWere) {
  Graph g;
  const Dim n = g.dim("n", 1, 16);
  auto [values, indices] = topK(g.input("x", DType::F32, {2, n}) + 1.0, 3);
  g.output("values", values);
  g.output("indices", indices);
  Session s = open(g);
  for (int64_t size : {8, 5}) {
    const Array x = floats({2, size});
    const Arrays before = s.run("forward", {{"x", x}});
    for (int times = 0; times < 2; ++times) {
      expectError(kInvalid, "at least k = 3 elements along axis 1, got size 2",
                  [&] { s.run("forward", {{"x", floats({2, 2})}}); });
      Arrays after;
      ASSERT_NO_THROW(after = s.run("forward", {{"x", x}})) << size;
      for (const auto& [name, array] : before) {
        ASSERT_EQ(after.at(name).shape(), array.shape()) << name;
        for (int64_t i = 0; i < array.size(); ++i)
          EXPECT_EQ(after.at(name).at(i), array.at(i)) << name << " " << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, SessionTest, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

// The slot of the cache after a step is the storage of the slot before it.
// A packed weight is not needed twice, a gain is read where it lies.
TEST(BoundWeights, WhatIsPackedIsLetGo) {
  Graph g;
  Tensor x = g.input("x", DType::F32, {3, 64});
  g.output("y", fused::linear(fused::rmsNorm(x, g.weight("gain", DType::F32, {64}), 1e-5),
                              g.weight("w", DType::F32, {32, 64})));
  Session s(compile(g), {.threads = 1});
  std::map<std::string, std::weak_ptr<void>> owners;
  s.bindWeights([&](const std::string& name) {
    auto memory = std::make_shared<std::vector<float>>(32 * 64, 0.5f);
    owners[name] = memory;
    return Array(DType::F32, name == "w" ? Shape{32, 64} : Shape{64}, memory->data(), memory);
  });
  EXPECT_TRUE(owners.at("w").expired());
  EXPECT_FALSE(owners.at("gain").expired());
  const Array y = s.run("forward", {{"x", floats({3, 64}, 1)}}).at("y");
  EXPECT_GT(y.at(0), 0);
}

TEST(SteadyState, TheCacheIsUpdatedInPlace) {
  const Program program = compile(cachedRows());
  const EntryPoint& entry = program.entry("forward");
  ASSERT_EQ(entry.statesIn.size(), 1u);
  EXPECT_EQ(ownerOf(entry, entry.statesOut.at(0).slot), entry.statesIn[0].slot);
}

TEST(SteadyState, DecodingAllocatesNothing) {
  LlamaConfig config;
  config.vocabSize = 61;
  config.hiddenSize = 32;
  config.intermediateSize = 48;
  config.layers = 2;
  config.heads = 4;
  config.kvHeads = 2;
  config.headDim = 8;
  config.maxPositions = 128;
  for (DType dtype : {DType::F32, DType::BF16}) {
    Session s(compile(buildLlama(config, {.dtype = dtype, .weightDType = dtype})), {.threads = 2});
    s.bindRandomWeights(1);
    s.setSymbol("cache", 64);
    const size_t prefill = s.entryIndex("prefill"), decode = s.entryIndex("decode");
    Array prompt(DType::I64, {1, 7}), id(DType::I64, {1, 1}), position(DType::I64, {1});
    std::vector<Array> outputs;
    s.run(prefill, std::vector<Array>{prompt, position}, outputs);
    const std::vector<Array> inputs{id, position};
    uint64_t steady = 0;
    for (int step = 0; step < 52; ++step) {
      id.set(0, step);
      position.set(0, 7 + step);
      s.run(decode, inputs, outputs);
      // The first steps may still make what later ones use.
      if (step == 1) steady = Session::allocations();
    }
    EXPECT_EQ(Session::allocations(), steady) << nameOf(dtype);
    for (int64_t i = 0; i < outputs[0].size(); ++i) ASSERT_TRUE(std::isfinite(outputs[0].at(i)));
  }
}

}  // namespace
}  // namespace lathe
