// SPDX-License-Identifier: Apache-2.0
// Bytes that a decode step moves, against the least that it can: every weight once, the keys and
// values of the cache, the logits. Counted from the accesses of host execution on a small model,
// and from the plan on large ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "backends/cuda/device/program_code.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/llama.h"
#include "lathe/runtime/cost.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

// Of one token at batch 1, 16-bit weights and caches.
double leastBytes(const LlamaConfig& c, int64_t cache) {
  const double q = double(c.heads * c.headDim), kv = double(c.kvHeads * c.headDim);
  const double h = double(c.hiddenSize);
  const double layer = h * (q + 2 * kv) + q * h + 3 * h * double(c.intermediateSize) + 2 * h;
  const double weights = double(c.layers) * layer + h + h * double(c.vocabSize);
  const double read = double(c.layers) * 2 * kv * double(cache);
  const double written = double(c.layers) * 2 * kv;
  return 2 * (weights + read + written) + 4 * double(c.vocabSize);
}

std::shared_ptr<const Program> compiled(const LlamaConfig& config, FamilyOptions room = {}) {
  room.dtype = room.weightDType = DType::BF16;
  return std::make_shared<Program>(compile(buildLlama(config, room), {.backend = "cuda"}));
}

// What the plan says of the calls of a decode step, by callee.
std::map<std::string, double> plannedBytes(const Program& program, int64_t cache) {
  const EntryPoint& decode = program.entry("decode");
  const CallCosts costs = costsOf(program).at("decode");
  std::map<std::string, double> planned;
  for (size_t i = 0; i < decode.calls.size(); ++i) {
    if (decode.calls[i].kind == "copy") continue;
    EXPECT_TRUE(costs[i].has_value()) << decode.calls[i].callee;
    if (!costs[i]) continue;
    planned[decode.calls[i].callee] +=
        evaluate(*costs[i], {{"batch", 1}, {"seq", 1}, {"cache", cache}}).bytes();
  }
  return planned;
}

double sumOf(const std::map<std::string, double>& bytes) {
  double sum = 0;
  for (const auto& [name, value] : bytes) sum += value;
  return sum;
}

// Of each launch every byte counts once: what blocks share stays in the chip's L2.
TEST(Traffic, ADecodeStepMovesLittleMoreThanItMust) {
  LlamaConfig config;
  config.vocabSize = 1024;
  config.hiddenSize = 256;
  config.intermediateSize = 512;
  config.layers = 2;
  config.heads = 8;
  config.kvHeads = 2;
  config.headDim = 32;
  config.maxPositions = 64;
  config.tieWordEmbeddings = true;
  // Room for what is run: kernels for more rows are not made.
  const auto program = compiled(config, {.maxBatch = 1, .maxSeq = 1});
  HostProgram host(program, "check,count");
  host.session().bindRandomWeights(1);
  host.session().setSymbol("cache", 64);
  Array id(DType::I64, {1, 1}), position(DType::I64, {1});
  id.set(0, 5);
  position.set(0, 63);
  host.driver().takeLaunches();
  host.session().run("decode", {{"input_ids", id}, {"positions", position}});

  const std::map<std::string, double> planned = plannedBytes(*program, 64);
  // Calls of other entry points may have the same kernels.
  std::map<std::string, std::string> calleeOf;
  for (const auto& [callee, variants] : kernelTableOf(*program))
    for (const Variant& v : variants)
      for (const Launch& l : v.launches)
        if (planned.contains(callee)) calleeOf[l.kernel] = callee;
  std::map<std::string, double> moved;
  for (const LaunchRecord& l : host.driver().takeLaunches())
    moved[calleeOf.at(l.kernel)] +=
        double(l.traffic.distinctRead) + double(l.traffic.distinctWritten);

  std::vector<std::pair<double, std::string>> worst;
  for (const auto& [callee, bytes] : moved) worst.push_back({bytes - planned.at(callee), callee});
  std::sort(worst.rbegin(), worst.rend());
  std::string told;
  for (const auto& [excess, callee] : worst)
    told += callee + ": " + std::to_string(int64_t(moved[callee])) + " bytes moved, " +
            std::to_string(int64_t(planned.at(callee))) + " planned\n";
  const double total = sumOf(moved), least = leastBytes(config, 64);
  std::printf("decode: %.0f bytes moved, %.0f planned, %.0f at least: %.3f\n", total,
              sumOf(planned), least, total / least);
  EXPECT_EQ(moved.size(), planned.size()) << "calls without a launch";
  EXPECT_LE(total, 1.1 * sumOf(planned)) << told;
  EXPECT_LE(total, 1.1 * least) << told;
  // A count of less would mean that something was not counted.
  EXPECT_GE(total, least) << told;
}

class LargeModels : public testing::TestWithParam<const char*> {};

TEST_P(LargeModels, ThePlanMovesLittleMoreThanItMust) {
  const LlamaConfig config =
      loadLlamaConfig(std::string(LATHE_SOURCE_DIR "/bench/configs/llama-") + GetParam() + ".json");
  const auto program = compiled(config);
  for (int64_t cache : {1024, 8192}) {
    if (cache > config.maxPositions) continue;
    const double planned = sumOf(plannedBytes(*program, cache)), least = leastBytes(config, cache);
    std::printf("%s, cache of %lld: %.4g bytes planned, %.4g at least: %.4f\n", GetParam(),
                static_cast<long long>(cache), planned, least, planned / least);
    EXPECT_LE(planned, 1.1 * least);
    EXPECT_GE(planned, 0.99 * least);
  }
}

INSTANTIATE_TEST_SUITE_P(Llama, LargeModels, testing::Values("0.5b", "1b", "8b"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

}  // namespace
}  // namespace lathe::cuda
