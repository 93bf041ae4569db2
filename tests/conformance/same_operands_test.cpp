// SPDX-License-Identifier: Apache-2.0
// An op that is given one value for two operands means what it means of two values that are equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "tests/closeness.h"
#include "tests/conformance/cases.h"

namespace lathe::conformance {
namespace {

constexpr Sizes kSizes{2, 31};

// Pairs of inputs that one value may stand for.
std::vector<std::pair<size_t, size_t>> likePairs(const Sample& sample) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < sample.inputs.size(); ++i)
    for (size_t j = i + 1; j < sample.inputs.size(); ++j) {
      const Input &a = sample.inputs[i], &b = sample.inputs[j];
      if (a.dtype == b.dtype && a.shape == b.shape && a.fill == b.fill && a.limit == b.limit &&
          a.weight == b.weight)
        pairs.emplace_back(i, j);
    }
  return pairs;
}

class SameOperands : public ::testing::TestWithParam<std::string> {};

TEST_P(SameOperands, AreEqualOperands) {
  const FixedSizes fixed(kSizes);
  size_t compared = 0;
  for (const OpRow& row : opTable()) {
    if (std::find(row.dtypes.begin(), row.dtypes.end(), DType::F32) == row.dtypes.end()) continue;
    // Samples 2 n and 2 n + 1: one value twice, and two values, the second a copy of the first.
    std::vector<Sample> samples;
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const Sample& s : row.samples(DType::F32))
      for (auto [i, j] : likePairs(s)) {
        Sample once = s;
        once.record = [record = s.record, i = i, j = j](Graph& g, const std::vector<Tensor>& t) {
          std::vector<Tensor> given = t;
          given[j] = given[i];
          return record(g, given);
        };
        samples.push_back(once);
        samples.push_back(s);
        pairs.emplace_back(i, j);
      }
    if (samples.empty()) continue;
    Data data = makeData(samples, kSizes, row.op);
    for (size_t n = 0; n < pairs.size(); ++n) {
      auto& values = samples[2 * n].inputs[pairs[n].first].weight ? data.weights : data.inputs;
      auto name = [&](size_t sample, size_t input) {
        return std::to_string(sample) + ".in" + std::to_string(input);
      };
      for (size_t i = 0; i < samples[2 * n].inputs.size(); ++i) {
        auto& all = samples[2 * n].inputs[i].weight ? data.weights : data.inputs;
        all[name(2 * n + 1, i)] = all.at(name(2 * n, i));
      }
      values[name(2 * n + 1, pairs[n].second)] = values.at(name(2 * n, pairs[n].first));
    }
    Session session(compile(recordSamples(samples), {.backend = GetParam()}), {.threads = 1});
    session.bindWeights(data.weights);
    const Arrays got = session.run("forward", data.inputs);
    for (const auto& [output, value] : got) {
      const size_t dot = output.find('.'), sample = std::stoul(output);
      if (sample % 2) continue;
      const Array& want = got.at(std::to_string(sample + 1) + output.substr(dot));
      ASSERT_EQ(value.shape(), want.shape());
      const double scale = std::max(largestValue(want), 1.0);
      EXPECT_LE(largestError(value, want), 1e-5 * scale)
          << row.op << " " << samples[sample].name << " operand " << pairs[sample / 2].second
          << " as " << pairs[sample / 2].first;
      ++compared;
    }
  }
  EXPECT_GT(compared, 100u);
}
INSTANTIATE_TEST_SUITE_P(Backends, SameOperands, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe::conformance
