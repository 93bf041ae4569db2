// SPDX-License-Identifier: Apache-2.0
// A step of decoding with texts at once over caches of rows and of blocks, in turn:
// `paged_cache_bench CONFIG TEXTS PROMPT STEPS BLOCK...`, tokens of a block, 0 for rows. Random
// weights in bf16. Prints the median of each and its ratio to the first.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/family.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "lathe/runtime/kv_slots.h"
#include "lathe/runtime/model_config.h"

namespace {

using namespace lathe;

constexpr int kRounds = 7;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Run {
  Run(const std::string& path, int64_t block, int64_t texts, int64_t prompt, int64_t steps)
      : name(block ? "blocks of " + std::to_string(block) : "rows"),
        session(compile(buildFromConfig(
            loadConfig(path),
            {.dtype = DType::BF16, .weightDType = DType::BF16, .cacheBlock = block}))) {
    session.bindRandomWeights(0);
    const ModelConfig config = readModelConfig(loadConfig(path));
    const GeneratorLimits limits{config.vocabSize, config.maxPositions};
    const int64_t positions = prompt + (kRounds + 1) * steps;
    slots = hasPagedCache(session.program()) ? pagedSlots(session, limits, texts, positions)
                                             : contiguousSlots(session, limits, texts, positions);
    for (int64_t slot = 0; slot < texts; ++slot) {
      all.push_back(slot);
      slots->begin(slot, slot, 0, positions);
      std::vector<int> ids(static_cast<size_t>(prompt));
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = int((i * 131 + size_t(slot) * 17) % 1000);
      for (size_t done = 0; done < ids.size(); done += size_t(slots->maxChunk()))
        slots->prefill(slot, std::span(ids).subspan(
                                 done, std::min(ids.size() - done, size_t(slots->maxChunk()))));
    }
    step(steps);  // warm
  }
  // Seconds of a step.
  double step(int64_t steps) {
    const std::vector<int> ids(all.size(), 5);
    std::vector<double> seconds;
    for (int64_t i = 0; i < steps; ++i) {
      const double begin = now();
      slots->next(all, ids);
      seconds.push_back(now() - begin);
    }
    return median(seconds);
  }

  std::string name;
  Session session;
  std::unique_ptr<KvSlots> slots;
  std::vector<int64_t> all;
};

int64_t number(const char* text) {
  int64_t value = 0;
  std::from_chars(text, text + std::strlen(text), value);
  if (value < 0) throw Error(ErrorCode::InvalidArgument, "expected a number");
  return value;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 6)
    throw Error(ErrorCode::InvalidArgument, "expected CONFIG TEXTS PROMPT STEPS BLOCK...");
  const int64_t texts = number(argv[2]), prompt = number(argv[3]), steps = number(argv[4]);
  std::vector<std::unique_ptr<Run>> runs;
  for (int i = 5; i < argc; ++i)
    runs.push_back(std::make_unique<Run>(argv[1], number(argv[i]), texts, prompt, steps));
  std::vector<std::vector<double>> seconds(runs.size());
  for (int round = 0; round < kRounds; ++round)
    for (size_t i = 0; i < runs.size(); ++i) seconds[i].push_back(runs[i]->step(steps));
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<double> ratios;
    for (int round = 0; round < kRounds; ++round)
      ratios.push_back(seconds[i][size_t(round)] / seconds[0][size_t(round)]);
    const auto [low, high] = std::ranges::minmax(ratios);
    std::printf("%-16s %8.3f ms a step, %.3f of the first (%.3f to %.3f in one round)\n",
                runs[i]->name.c_str(), median(seconds[i]) * 1e3, median(ratios), low, high);
  }
  return 0;
} catch (const lathe::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
