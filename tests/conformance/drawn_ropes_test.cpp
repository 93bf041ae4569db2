// SPDX-License-Identifier: Apache-2.0
// Rotations of drawn sizes, widths and pairings on every backend, against the reference in float64.
#include <gtest/gtest.h>

#include <random>

#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "tests/conformance/cases.h"
#include "tests/conformance/tolerance.h"

namespace lathe::conformance {
namespace {

constexpr unsigned kSeed = 20;

std::vector<Sample> drawnRopes() {
  std::mt19937 random(kSeed);
  auto draw = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(random);
  };
  std::vector<Sample> samples;
  for (int i = 0; i < 100; ++i) {
    const DType dtype = std::vector{DType::F32, DType::BF16, DType::F16}[size_t(i % 3)];
    const int64_t tokens = i % 4 ? draw(1, 9) : draw(15, 17), pairs = draw(1, i % 2 ? 4 : 9),
                  width = 2 * (pairs + (draw(0, 1) ? draw(0, 4) : 0));
    const bool half = draw(0, 1), perBatch = draw(0, 1);
    const Dims x{2, draw(1, 7), tokens, width},
        table = perBatch ? Dims{2, 1, tokens, pairs} : Dims{tokens, pairs};
    samples.push_back({(half ? "half " : "interleaved ") + std::to_string(2 * pairs) + " of " +
                           std::to_string(width) + ", " + std::to_string(tokens) + " tokens",
                       {{dtype, x}, {DType::F32, table}, {DType::F32, table}},
                       [half](Graph&, const std::vector<Tensor>& t) {
                         return std::vector<Tensor>{fused::rope(
                             t[0], t[1], t[2], half ? Pairing::half : Pairing::interleaved)};
                       }});
  }
  return samples;
}

class DrawnRopes : public ::testing::TestWithParam<std::string> {};

TEST_P(DrawnRopes, AgreeWithTheReference) {
  const std::vector<Sample> samples = drawnRopes();
  const Graph graph = recordSamples(samples);
  const Data data = makeData(samples, {1, 1}, "drawn");
  auto run = [&](const CompileOptions& options) {
    return Session(compile(graph, options), {.threads = 2, .device = "host"})
        .run("forward", data.inputs);
  };
  const Arrays got = run({.backend = GetParam()}),
               want = run({.backend = "reference", .backendOptions = {.float64 = true}});
  for (const auto& [name, value] : got)
    EXPECT_EQ(firstDifference(value, want.at(name), toleranceOf("rope", value.dtype(), false)), "")
        << samples[std::stoul(name)].name;
}

INSTANTIATE_TEST_SUITE_P(Backends, DrawnRopes, ::testing::ValuesIn(backendNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe::conformance
