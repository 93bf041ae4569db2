// SPDX-License-Identifier: Apache-2.0
// Calls of a program file that give a kernel another number of operands or results than it takes
// are refused when the program is opened, on every backend and for every kind of call.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "lathe/backends/backend.h"
#include "lathe/frontend/compile.h"
#include "lathe/runtime/error.h"
#include "tests/conformance/cases.h"
#include "tests/conformance/support.h"

namespace lathe::conformance {
namespace {

constexpr Sizes kSizes{3, 33};

// The first sample of every op.
std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const OpRow& row : opTable()) {
    const bool f32 = std::ranges::find(row.dtypes, DType::F32) != row.dtypes.end();
    all.push_back(row.samples(f32 ? DType::F32 : row.dtypes.front()).front());
  }
  return all;
}

class CallArity : public ::testing::TestWithParam<std::string> {};

TEST_P(CallArity, AnotherNumberOfOperandsOrResultsIsAnError) {
  const std::vector<Sample> all = samples();
  const auto program =
      std::make_shared<Program>(compile(recordSamples(all, 0), {.backend = GetParam()}));
  const Data data = makeData(all, kSizes, "arity");
  auto open = [&] {
    Session session(program, {.threads = 1, .device = "host"});
    session.bindWeights([&](const std::string& name) { return data.weights.at(name); });
  };
  ASSERT_NO_THROW(open());

  std::set<std::string> kinds;
  auto refused = [&](const EntryPoint& e, size_t number, const char* what) {
    const Call& call = e.calls[number];
    const std::string begin = "call " + std::to_string(number) + " of entry point '" + e.name +
                              "', '" + call.kind + "': ";
    try {
      open();
      ADD_FAILURE() << begin << what << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::InvalidFile) << what << ": " << error.what();
      EXPECT_EQ(std::string(error.what()).substr(0, begin.size()), begin) << what;
    }
  };
  auto each = [&](EntryPoint& e) {
    for (size_t i = 0; i < e.calls.size(); ++i) {
      Call& call = e.calls[i];
      const bool isNew = kinds.insert(call.kind).second;
      if (!isNew && call.kind == "region" && i % 8) continue;  // there are many, and all are alike
      for (std::vector<int>* slots : {&call.operands, &call.results}) {
        const std::vector<int> were = *slots;
        const std::string what = slots == &call.operands ? "operand" : "result";
        slots->push_back(call.results.at(0));
        refused(e, i, ("one " + what + " more").c_str());
        *slots = were;
        if (were.empty()) continue;
        slots->pop_back();
        refused(e, i, ("one " + what + " less").c_str());
        *slots = were;
      }
    }
  };
  for (EntryPoint& e : program->entries) each(e);
  if (program->load) each(*program->load);
  EXPECT_NO_THROW(open()) << "nothing stays changed";
  if (GetParam() == "cpu")
    for (const char* kind : {"region", "linear", "attention", "matmul", "update", "convolution",
                             "top_k", "cumsum", "random_bits"})
      EXPECT_TRUE(kinds.contains(kind)) << kind;
}

INSTANTIATE_TEST_SUITE_P(Backends, CallArity, ::testing::ValuesIn(backendNames()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lathe::conformance
