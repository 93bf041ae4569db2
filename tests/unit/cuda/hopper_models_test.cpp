// SPDX-License-Identifier: Apache-2.0
// Every seed model and the benchmark's models compile for Hopper: no kernel spills registers, and a
// decoder layer that generates one token is five kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <set>
#include <sstream>
#include <thread>

#include "backends/cuda/device/headers.h"
#include "backends/cuda/device/program_code.h"
#include "backends/cuda/device/tuning_measure.h"
#include "backends/cuda/lowering/nvrtc/cubin_report.h"
#include "backends/cuda/lowering/nvrtc/kernel_cache.h"
#include "backends/cuda/lowering/nvrtc/nvrtc.h"
#include "backends/cuda/lowering/tuning/tuning_database.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/llama.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/model_config.h"
#include "tests/depth.h"
#include "tests/golden/seed_models.h"

namespace lathe::cuda {
namespace {

bool hasNvrtc() {
  try {
    Nvrtc::library();
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool isWordPart(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Comments and the kernel's name left out: texts that are equal but for these have equal code. By
// hand: std::regex takes as long for it as NVRTC does for the kernel.
std::string nameless(const KernelCode& kernel) {
  std::istringstream lines(kernel.source);
  std::string text;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("//")) continue;
    for (size_t at = 0; (at = line.find(kernel.name, at)) != line.npos;) {
      const size_t end = at + kernel.name.size();
      const bool isWhole =
          (at == 0 || !isWordPart(line[at - 1])) && (end == line.size() || !isWordPart(line[end]));
      if (isWhole) line.replace(at, kernel.name.size(), "kernel");
      at += isWhole ? std::string_view("kernel").size() : 1;
    }
    text += line + "\n";
  }
  return text;
}

// Every number that begins a word, as one and the same.
std::string numberless(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool isDigit = std::isdigit(static_cast<unsigned char>(text[i]));
    if (!isDigit || (i > 0 && isWordPart(text[i - 1]))) {
      result += text[i];
      continue;
    }
    while (i + 1 < text.size() && std::isdigit(static_cast<unsigned char>(text[i + 1]))) ++i;
    result += '#';
  }
  return result;
}

// Models share kernels; each is compiled for the first that has it. Texts that differ in their
// numbers alone are the same template or fusion for other sizes: one for a change, in depth all.
std::vector<KernelCode> newKernelsOf(const Program& program, std::set<std::string>& seen) {
  std::vector<KernelCode> kernels = kernelCodeOf(program);
  std::erase_if(kernels, [&](const KernelCode& k) {
    const std::string text = nameless(k);
    return !seen.insert(test::inDepth() ? text : numberless(text)).second;
  });
  return kernels;
}

// A line for every kernel that keeps registers in memory. Local memory alone is no spill: the
// reduction of large angles keeps a table there.
std::string spillsOf(const Program& program, std::set<std::string>& seen) {
  const std::vector<KernelCode> kernels = newKernelsOf(program, seen);
  std::vector<std::string> said(kernels.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < kernels.size(); i = next++) try {
        const KernelCode& k = kernels[i];
        const NvrtcOutput out = Nvrtc::library().compile(
            k.name, k.source, includedHeaders(k.source, deviceHeaders()), "sm_90a");
        for (const auto& [name, r] : readCubin(out.cubin, out.log))
          if (r.spillStores || r.spillLoads)
            said[i] += name + ": " + std::to_string(r.registers) + " registers, spills " +
                       std::to_string(r.spillStores) + " bytes\n";
      } catch (const Error& e) {
        said[i] = e.what();
      }
  };
  std::thread second(work);
  work();
  second.join();
  std::string all;
  for (const std::string& line : said) all += line;
  return all;
}

Program compiledFor(const Graph& graph) { return compile(graph, {.backend = "cuda"}); }

class SeedsOnHopper : public ::testing::TestWithParam<seeds::SeedModel> {};

TEST_P(SeedsOnHopper, CompileWithoutSpills) {
  if (!hasNvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  static std::set<std::string> seen;
  EXPECT_EQ(spillsOf(compiledFor(GetParam().build(DType::BF16)), seen), "");
}
INSTANTIATE_TEST_SUITE_P(Models, SeedsOnHopper, ::testing::ValuesIn(seeds::seedModels()),
                         [](const auto& info) { return info.param.name; });

class LlamaOnHopper : public ::testing::TestWithParam<const char*> {
 protected:
  Program program() {
    LlamaConfig config = loadLlamaConfig(std::string(LATHE_SOURCE_DIR "/bench/configs/llama-") +
                                         GetParam() + ".json");
    layers_ = config.layers;
    headDim_ = config.headDim;
    return compiledFor(buildLlama(config, {.dtype = DType::BF16, .weightDType = DType::BF16}));
  }
  int64_t layers_ = 0, headDim_ = 0;
};

TEST_P(LlamaOnHopper, CompilesWithoutSpills) {
  if (!hasNvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  static std::set<std::string> seen;
  EXPECT_EQ(spillsOf(program(), seen), "");
}

// The PTX for later GPUs is made from that for sm_90a: it must be what a compilation would say.
class LlamaOnLaterGpus : public LlamaOnHopper {};
TEST_P(LlamaOnLaterGpus, HasThePtxOfACompilationForThem) {
  if (!hasNvrtc()) GTEST_SKIP() << "NVRTC is not installed";
  const std::vector<KernelCode> kernels = kernelCodeOf(program());
  size_t compared = 0;
  for (size_t i = 0; i < kernels.size(); i += 6, ++compared) {
    const KernelCode& k = kernels[i];
    const std::string ptx =
        Nvrtc::library()
            .compile(k.name, k.source, includedHeaders(k.source, deviceHeaders()), "compute_90")
            .ptx;
    EXPECT_TRUE(compileKernels({{k.name, k.source}})[0].ptx == ptx) << k.name;
  }
  EXPECT_GE(compared, 12u);
}
INSTANTIATE_TEST_SUITE_P(Config, LlamaOnLaterGpus, ::testing::Values("1b"));

// What a run of these sizes launches; a copy that an update in place leaves out is none.
std::vector<Launch> launchesOf(const Program& p, const std::string& entry,
                               const SymbolValues& sizes) {
  const KernelTable table = kernelTableOf(p);
  std::vector<Launch> launches;
  for (const Call& call : p.entry(entry).calls)
    for (const Variant& v : table.at(call.callee)) {
      const bool fits = std::ranges::all_of(v.when, [&](const Condition& c) {
        const int64_t value = c.value.evaluate(sizes).value();
        return c.low <= value && value <= c.high;
      });
      if (!fits) continue;
      for (const Launch& l : v.launches)
        if (l.unlessSame[0] < 0) launches.push_back(l);
      break;
    }
  return launches;
}

// Sequences that generate a token each, and the last tokens of one prompt.
TEST_P(LlamaOnHopper, RunsUpTo64RowsWithFiveKernelsPerLayerThatOverlap) {
  const Program p = program();
  for (int64_t rows : {1, 8, 16, 17, 32, 64})
    for (bool isBatch : {true, false}) {
      const SymbolValues sizes{
          {"batch", isBatch ? rows : 1}, {"seq", isBatch ? 1 : rows}, {"cache", 64}};
      const std::vector<Launch> launches = launchesOf(p, isBatch ? "decode" : "prefill", sizes);
      const std::string what = std::to_string(rows) + (isBatch ? " sequences" : " tokens");
      // Heads of 64: the product behind the attention of one sequence computes that, too.
      const int64_t each = isBatch && rows == 1 && headDim_ == 64 ? 4 : 5;
      // Before the layers: positions, the embedding, two rows of angles; after them: the last
      // tokens' rows, the head and the likeliest token.
      EXPECT_LE(int64_t(launches.size()), each * layers_ + 8) << what;
      EXPECT_GE(int64_t(launches.size()), each * layers_) << what;
      for (const Launch& l : launches) EXPECT_TRUE(l.waits) << what << ": " << l.kernel;
    }
}
// What was measured of a step of one sequence decides it: a problem that is called otherwise than
// when it was measured has lost its record.
TEST_P(LlamaOnHopper, IsDecidedByWhatWasMeasured) {
  const LlamaConfig config =
      loadLlamaConfig(std::string(LATHE_SOURCE_DIR "/bench/configs/llama-") + GetParam() + ".json");
  const Program candidates =
      compile(buildLlama(config, {.dtype = DType::BF16, .weightDType = DType::BF16}),
              {.backend = "cuda", .backendOptions = {.target = "candidates:product bf16 m=1 "}});
  const std::vector<TuningProblem> problems = tuningProblemsOf(candidates);
  EXPECT_GE(problems.size(), 5u);
  for (const TuningProblem& p : problems)
    EXPECT_NE(tuningDatabase()->find(p.problem), nullptr) << p.problem;
}
// The largest first: of texts that are alike but for sizes it is the one that is compiled.
INSTANTIATE_TEST_SUITE_P(Configs, LlamaOnHopper, ::testing::Values("8b", "1b", "0.5b"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return "llama_" + name;
                         });

}  // namespace
}  // namespace lathe::cuda
