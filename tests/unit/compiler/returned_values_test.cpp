// SPDX-License-Identifier: Apache-2.0
// What an entry point returns besides what its last ops compute: one value under two names, views
// of it, and its own inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>

#include "lathe/lathe.h"
#include "lathe/runtime/cost.h"

namespace lathe {
namespace {

TEST(ReturnedValues, MayHaveSeveralNames) {
  for (const std::string backend : {"cpu", "cuda", "reference"}) {
    Graph g;
    const Tensor x = g.input("x", DType::F32, {2, 3}), y = exp(x);
    for (const char* name : {"first", "second", "third"}) g.output(name, y);
    g.output("view", reshape(y, {3, 2}));
    g.output("x", x);
    g.output("x again", x);
    Session session(std::make_shared<Program>(compile(g, {.backend = backend})),
                    {.device = backend == "cuda" ? "host" : ""});
    const Array in = Array::fromFloats({0, 1, -1, 2, -2, 0.5}, {2, 3});
    const Arrays out = session.run("forward", {{"x", in}});
    ASSERT_EQ(out.size(), 6u);
    for (const auto& [name, value] : out)
      for (int64_t i = 0; i < 6; ++i)
        EXPECT_NEAR(value.at(i), name[0] == 'x' ? in.at(i) : std::exp(in.at(i)), 1e-5)
            << backend << ", " << name;
    EXPECT_EQ(out.at("view").shape(), (Shape{3, 2}));
  }
}

// The next value of a state is not written over what its own kernel still reads.
TEST(ReturnedValues, OfAStateDoNotOverwriteWhatTheyAreMadeOf) {
  for (const std::string backend : {"cpu", "cuda", "reference"}) {
    Graph g;
    g.state("s", DType::F32, {3, 5});
    g.state("t", DType::F32, {4, 4});
    g.entry("forward");
    g.writeState("s", reverse(g.readState("s"), {0, 1}));
    g.writeState("t", transpose(g.readState("t"), {1, 0}) + g.input("x", DType::F32, {4}));
    Session session(std::make_shared<Program>(compile(g, {.backend = backend})),
                    {.device = backend == "cuda" ? "host" : ""});
    Array s(DType::F32, {3, 5}), t(DType::F32, {4, 4}), x(DType::F32, {4});
    for (int64_t i = 0; i < s.size(); ++i) s.set(i, double(i));
    for (int64_t i = 0; i < t.size(); ++i) t.set(i, double(i));
    session.setState("s", s);
    session.setState("t", t);
    session.run("forward", {{"x", x}});
    for (int64_t i = 0; i < s.size(); ++i)
      EXPECT_EQ(session.state("s").at(i), double(14 - i)) << backend;
    for (int64_t i = 0; i < t.size(); ++i)
      EXPECT_EQ(session.state("t").at(i), t.at(i % 4 * 4 + i / 4)) << backend;
  }
}

// An input that is returned is copied, and so is a value that is returned before: that is read and
// written.
TEST(ReturnedValues, CostWhatTheyAreCopiedFor) {
  Graph g;
  const Tensor x = g.input("x", DType::F16, {2, 3});
  g.output("x", x);
  const Program program = compile(g, {.backend = "cpu"});
  const std::vector<Call>& calls = program.entry("forward").calls;
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0].kind, "copy");
  const Cost cost = costsOf(program).at("forward").at(0).value();
  EXPECT_EQ(cost.read, DimExpr(12));
  EXPECT_EQ(cost.written, DimExpr(12));
  EXPECT_EQ(cost.flops, DimExpr(0));
}

}  // namespace
}  // namespace lathe
