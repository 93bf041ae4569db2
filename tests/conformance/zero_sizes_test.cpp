// SPDX-License-Identifier: Apache-2.0
// Axes without elements, of every op on every backend: sizes that are 0 in the graph, and sizes
// that turn out to be 0 in a call. Results are empty, or what reductions begin with.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "lathe/runtime/error.h"
#include "tests/conformance/cases.h"
#include "tests/conformance/support.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

/// A sample with its op, which its tolerance goes by.
struct Named {
  std::string op;
  Sample sample;
};

// Of one dtype per op, without those for which such sizes are a mistake when recorded.
std::vector<Named> samples() {
  std::vector<Named> all;
  for (const OpRow& row : opTable()) {
    // There is no best of nothing.
    if (row.op == "lathe.argmax" || row.op == "lathe.argmin" || row.op == "lathe.top_k") continue;
    const bool f32 = std::ranges::find(row.dtypes, DType::F32) != row.dtypes.end();
    for (Sample& s : row.samples(f32 ? DType::F32 : row.dtypes.front())) {
      try {
        recordSamples({s}, 0);
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("'" + row.op + "'"), std::string::npos) << e.what();
        continue;
      }
      all.push_back({row.op, std::move(s)});
    }
  }
  return all;
}

struct Sessions {
  explicit Sessions(const std::vector<Named>& named, const std::string& backend) : named(named) {
    for (const Named& n : named) all.push_back(n.sample);
    const Graph graph = recordSamples(all, 0);
    auto open = [&](CompileOptions options) {
      return Session(compile(graph, options), {.threads = 2, .device = "host"});
    };
    tested.emplace(open({.backend = backend}));
    oracle.emplace(
        open({.backend = "reference", .backendOptions = {.float64 = true}, .stopAfterRewrite = 0}));
    narrow.emplace(open({.backend = "reference", .stopAfterRewrite = 0}));
  }

  std::string differences(Sizes sizes) {
    const Data data = makeData(all, sizes, "zero");
    Arrays got, want, wantRounded;
    for (auto [session, to] :
         {std::pair{&*tested, &got}, {&*oracle, &want}, {&*narrow, &wantRounded}}) {
      session->bindWeights([&](const std::string& name) { return data.weights.at(name); });
      *to = session->run("forward", data.inputs);
    }
    std::string text;
    for (const auto& [name, value] : got) {
      const Named& n = named[std::stoul(name)];
      const Tolerance t = toleranceOf(n.op.substr(6), value.dtype(), n.sample.exact);
      const Array& right = (n.sample.ownDtype ? wantRounded : want).at(name);
      if (std::string d = firstDifference(value, right, t); !d.empty())
        text += n.op + " " + n.sample.name + ": " + d + "\n";
    }
    return text;
  }

  std::vector<Named> named;
  std::vector<Sample> all;
  std::optional<Session> tested, oracle, narrow;
};

constexpr Sizes kZeros[] = {{0, 33}, {3, 0}};

class ZeroSizes : public ::testing::TestWithParam<std::string> {};

TEST_P(ZeroSizes, InTheGraph) {
  for (Sizes sizes : kZeros) {
    SCOPED_TRACE(std::to_string(sizes.rows) + " rows, " + std::to_string(sizes.cols) + " columns");
    const FixedSizes fixed(sizes);
    const std::vector<Named> named = samples();
    EXPECT_GT(named.size(), 200u);
    EXPECT_EQ(Sessions(named, GetParam()).differences(sizes), "");
  }
}

TEST_P(ZeroSizes, InACall) {
  Sessions run(samples(), GetParam());
  for (Sizes sizes : kZeros) {
    SCOPED_TRACE(std::to_string(sizes.rows) + " rows, " + std::to_string(sizes.cols) + " columns");
    EXPECT_EQ(run.differences(sizes), "");
  }
}

// There is no best of nothing: its index is 0, as good as any.
TEST_P(ZeroSizes, TheIndexOfTheBestOfNothingIsZero) {
  Graph g;
  const Dim n = g.dim("n", 0, 64);
  for (DType dtype : {DType::F32, DType::BF16, DType::I32}) {
    const Tensor x = g.input(std::string(nameOf(dtype)), dtype, {3, n});
    int axis = 0;
    for (const Tensor& t : {x, swapAxes(x, 0, 1)}) {
      axis = 1 - axis;
      const std::string name = std::string(nameOf(dtype)) + " axis " + std::to_string(axis);
      g.output("max " + name, argmax(t, axis));
      g.output("min " + name, argmin(t, axis));
    }
  }
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  for (int64_t size : {0, 1}) {
    Arrays inputs;
    for (DType dtype : {DType::F32, DType::BF16, DType::I32})
      inputs[std::string(nameOf(dtype))] = Array(dtype, {3, size});
    const Arrays got = session.run("forward", inputs);
    EXPECT_EQ(std::distance(got.begin(), got.end()), 12);
    for (const auto& [name, index] : got) {
      ASSERT_EQ(index.shape(), Shape{3}) << name;
      for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(index.as<int64_t>()[i], 0) << name;
    }
  }
}

TEST_P(ZeroSizes, ARowShorterThanTheLargestOfItIsAnError) {
  Graph g;
  const Tensor x = g.input("x", DType::F32, {2, g.dim("n", 0, 64)});
  auto [values, indices] = topK(x, 3);
  g.output("values", values);
  g.output("indices", indices);
  Session session(compile(g, {.backend = GetParam()}), {.threads = 2, .device = "host"});
  for (int64_t size : {0, 2}) try {
      session.run("forward", {{"x", Array(DType::F32, {2, size})}});
      ADD_FAILURE() << "3 of " << size << " are found";
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("zero_sizes_test.cpp:"), std::string::npos) << text;
      EXPECT_NE(text.find("at least"), std::string::npos) << text;
      EXPECT_NE(text.find("3"), std::string::npos) << text;
      EXPECT_NE(text.find(GetParam() == "cuda" ? "n is " : "got size "), std::string::npos) << text;
    }
  EXPECT_NO_THROW(session.run("forward", {{"x", Array(DType::F32, {2, 3})}}));
}

INSTANTIATE_TEST_SUITE_P(Backends, ZeroSizes, ::testing::ValuesIn(backendNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe::conformance
