// SPDX-License-Identifier: Apache-2.0
// The same kernel text under every mode, order of threads and time of asynchronous copies.
#include <gtest/gtest.h>

#include "lathe/runtime/error.h"
#include "tests/unit/cuda/host_cases.h"

namespace lathe::cuda {
namespace {

struct Schedule {
  const char* name;
  const char* options;
};

class HostKernels : public testing::TestWithParam<Schedule> {};

TEST_P(HostKernels, agreeWithFloat64Loops) {
  const host::Options options = host::parseOptions(GetParam().options);
  auto driver = openHost(options);
  std::vector<KernelCode> codes;
  for (const auto& [name, make] : hostCases()) codes.push_back({name, kernelText(name), "", ""});
  const auto functions = driver->load(codes);
  for (size_t i = 0; i < codes.size(); ++i)
    EXPECT_LE(runCase(*driver, functions[i], codes[i].name), 1) << codes[i].name;
}

INSTANTIATE_TEST_SUITE_P(
    Modes, HostKernels,
    testing::Values(Schedule{"fast", "fast"}, Schedule{"fastOneThread", "fast,threads=1"},
                    Schedule{"eagerReverse", "fast,eager,reverse"},
                    Schedule{"random", "fast,random,seed=2"}, Schedule{"check", "check"},
                    Schedule{"checkEagerReverse", "check,eager,reverse"},
                    Schedule{"checkRandom1", "check,random,seed=1"},
                    Schedule{"checkRandom2", "check,random,seed=2"}, Schedule{"debug", "debug"}),
    [](const auto& info) { return std::string(info.param.name); });

// Order, asynchrony, mode and number of threads change nothing in the results.
TEST(HostKernels, bitsDoNotDependOnTheSchedule) {
  std::vector<std::vector<float>> results;
  for (const char* options : {"fast", "fast,random,seed=5", "check,reverse", "debug"}) {
    auto driver = openHost(host::parseOptions(options));
    auto f = driver->load({{"softmax_mask", kernelText("softmax_mask"), "", ""}})[0];
    Case c(*driver);
    softmaxCase(c);
    std::vector<float>& bits = results.emplace_back();
    c.error = [&, inner = c.error] {
      bits.push_back(float(inner()));
      return 0.0;
    };
    c.run(f);
  }
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

}  // namespace
}  // namespace lathe::cuda
