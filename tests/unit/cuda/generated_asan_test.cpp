// SPDX-License-Identifier: Apache-2.0
// The kernels that the compiler prints for conformance samples and for a whole model: once under
// AddressSanitizer, once with all checks while threads, blocks and copies come by chance.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/hostexec/process.h"
#include "frontend/compile.h"
#include "frontend/families/llama.h"
#include "runtime/checkpoint.h"
#include "runtime/error.h"
#include "tests/conformance/cases.h"
#include "tests/golden/seed_models.h"
#include "tests/unit/cuda/host_program.h"

namespace lathe::cuda {
namespace {

struct Run {
  std::string entry;
  Arrays inputs;
  SymbolValues sizes = {};  ///< of the symbols, as the inputs say
};

struct Subject {
  std::string name;
  std::shared_ptr<Program> program;
  std::vector<Run> runs;
  WeightSource weights = {};  ///< none: random
  SymbolValues symbols = {};  ///< that no input shows
};

// Kernels of many programs are compiled as one text, in which each needs a name of its own.
void rename(Program& program, const std::string& prefix) {
  std::vector<KernelCode> kernels = kernelCodeOf(program);
  for (KernelCode& k : kernels) {
    const std::string head = "\n" + k.name + "(";
    const size_t at = k.source.find(head);
    if (at == std::string::npos) throw std::runtime_error("no head of " + k.name);
    k.source.insert(at + 1, prefix);
    k.name = prefix + k.name;
  }
  KernelTable table = kernelTableOf(program);
  for (auto& [callee, variants] : table)
    for (Variant& v : variants)
      for (Launch& l : v.launches) l.kernel = prefix + l.kernel;
  std::erase_if(program.blobs, [](const auto& blob) { return blob.first.starts_with("cuda."); });
  storeKernels(program, table, kernels);
}

Subject samplesOf(const conformance::OpRow& row, DType dtype) {
  const auto samples = row.samples(dtype);
  Subject s;
  s.name = row.op.substr(6) + "_" + std::string(nameOf(dtype));
  s.program =
      std::make_shared<Program>(compile(conformance::recordSamples(samples), {.backend = "cuda"}));
  const Arrays weights = conformance::makeData(samples, {3, 33}, row.op).weights;
  s.weights = [weights](const std::string& name) { return weights.at(name); };
  for (conformance::Sizes sizes :
       {conformance::Sizes{3, 33}, conformance::Sizes{1, 257}, conformance::Sizes{6, 31}})
    s.runs.push_back({"forward",
                      conformance::makeData(samples, sizes, row.op).inputs,
                      {{"rows", sizes.rows}, {"cols", sizes.cols}}});
  return s;
}

Subject seedOf(const seeds::SeedModel& model, DType dtype) {
  Subject s;
  s.name = model.name + "_" + std::string(nameOf(dtype));
  s.program = std::make_shared<Program>(compile(model.build(dtype), {.backend = "cuda"}));
  for (const seeds::SeedCall& call : model.calls(dtype))
    s.runs.push_back({call.entry, call.inputs});
  s.symbols.insert(model.symbols.begin(), model.symbols.end());
  return s;
}

Run step(const std::string& entry, int64_t batch, int64_t tokens, int64_t position) {
  Array ids(DType::I64, {batch, tokens}), at(DType::I64, {batch});
  for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, double(10 + (position + i) * 7 % 700));
  for (int64_t b = 0; b < batch; ++b) at.set(b, double(position));
  Run run{entry, {{"input_ids", ids}}, {{"batch", batch}, {"seq", tokens}, {"cache", 64}}};
  if (entry != "forward") run.inputs["positions"] = at;
  return run;
}

Subject stories(DType dtype) {
  const std::string folder = LATHE_SOURCE_DIR "/examples/models/stories";
  auto checkpoint = std::make_shared<Checkpoint>(Checkpoint::open(folder));
  Subject s;
  s.name = "stories_" + std::string(nameOf(dtype));
  // Room for what is run: kernels for more rows are not made.
  const LlamaGraphOptions room{
      .dtype = dtype, .weightDType = DType::BF16, .maxBatch = 1, .maxSeq = 5, .cacheCapacity = 64};
  s.program = std::make_shared<Program>(
      compile(buildLlama(loadLlamaConfig(folder), room), {.backend = "cuda"}));
  s.weights = [checkpoint](const std::string& name) {
    auto found = checkpoint->find(name);
    return found ? *found : Array();
  };
  s.symbols = {{"cache", 64}};
  s.runs = {step("prefill", 1, 5, 0), step("decode", 1, 1, 5), step("decode", 1, 1, 6),
            step("decode", 1, 1, 7)};
  for (int64_t tokens : {1, 2, 5})
    for (const char* entry : {"forward", "prefill"}) s.runs.push_back(step(entry, 1, tokens, 0));
  return s;
}

// A model so small that it runs once for each range of rows that has kernels of its own.
Subject small(DType dtype) {
  LlamaConfig config;
  config.vocabSize = 768;
  config.hiddenSize = 64;
  config.intermediateSize = 96;
  config.layers = 1;
  config.heads = 2;
  config.kvHeads = 1;
  config.headDim = 32;
  config.maxPositions = 64;
  Subject s;
  s.name = "small_" + std::string(nameOf(dtype));
  s.program = std::make_shared<Program>(
      compile(buildLlama(config, {.dtype = dtype, .weightDType = DType::BF16, .maxBatch = 20}),
              {.backend = "cuda"}));
  s.symbols = {{"cache", 64}};
  for (int64_t tokens : {1, 3, 7, 12, 40})
    for (const char* entry : {"forward", "prefill"}) s.runs.push_back(step(entry, 1, tokens, 0));
  for (int64_t batch : {1, 3, 7, 12, 20})
    for (const char* entry : {"prefill", "decode"}) s.runs.push_back(step(entry, batch, 1, 7));
  return s;
}

/// Kernels of the variants that the runs' sizes take, but for copies that updates in place spare.
std::set<std::string> takenBy(const Subject& s) {
  const KernelTable table = kernelTableOf(*s.program);
  std::set<std::string> taken;
  auto add = [&](const EntryPoint& entry, const SymbolValues& sizes) {
    for (const Call& call : entry.calls) {
      const auto variants = table.find(call.callee);
      if (variants == table.end()) continue;
      const auto v = std::ranges::find_if(variants->second, [&](const Variant& variant) {
        return std::ranges::all_of(variant.when, [&](const Condition& c) {
          const auto value = c.value.evaluate(sizes);
          return value && c.low <= *value && *value <= c.high;
        });
      });
      if (v == variants->second.end()) continue;
      for (const Launch& l : v->launches)
        if (l.unlessSame[0] < 0 &&
            std::ranges::all_of(
                l.grid,
                [&](const GridAxis& axis) { return axis.count.evaluate(sizes).value_or(0) > 0; }))
          taken.insert(l.kernel);
    }
  };
  for (const Run& r : s.runs) add(s.program->entry(r.entry), r.sizes);
  if (s.program->load) add(*s.program->load, {});
  return taken;
}

/// Runs the kernels of all subjects. What is not launched belongs to variants for other sizes.
void runAll(std::vector<Subject>& subjects, const std::string& options) {
  std::vector<host::KernelText> texts;
  for (Subject& s : subjects) {
    rename(*s.program, s.name + "_");
    for (const KernelCode& k : kernelCodeOf(*s.program)) texts.push_back({k.name, k.source});
  }
  host::HostCompiler(host::parseOptions(options).mode).compile(texts);
  size_t unlaunched = 0;
  for (Subject& s : subjects) {
    SCOPED_TRACE(s.name);
    std::set<std::string> launched;
    try {
      HostProgram host(s.program, options + ",count");
      if (s.weights)
        host.session().bindWeights(s.weights);
      else
        host.session().bindRandomWeights(1);
      for (const auto& [symbol, value] : s.symbols) host.session().setSymbol(symbol, value);
      int64_t batch = 0;
      for (const Run& r : s.runs) {
        // Caches have the size of the batch.
        const auto now = r.sizes.find("batch");
        if (now != r.sizes.end() && std::exchange(batch, now->second) != now->second)
          host.session().resetStates();
        host.session().run(r.entry, r.inputs);
      }
      for (const LaunchRecord& l : host.driver().takeLaunches()) launched.insert(l.kernel);
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    for (const std::string& kernel : takenBy(s))
      EXPECT_TRUE(launched.count(kernel)) << kernel << " was not launched";
    for (const KernelCode& k : kernelCodeOf(*s.program)) {
      if (launched.count(k.name)) continue;
      std::printf("for other sizes: %s\n", k.source.substr(0, k.source.find('\n')).c_str());
      ++unlaunched;
    }
  }
  std::printf("%zu kernels, %zu of them for other sizes\n", texts.size(), unlaunched);
  EXPECT_LE(20 * unlaunched, texts.size());
}

std::vector<Subject> subjects(size_t oneOf) {
  std::vector<Subject> all;
  size_t number = 0;
  for (const conformance::OpRow& row : conformance::opTable()) {
    if (number++ % oneOf) continue;
    const bool narrow = number % 2 && std::ranges::count(row.dtypes, DType::BF16);
    const DType dtype = narrow                                       ? DType::BF16
                        : std::ranges::count(row.dtypes, DType::F32) ? DType::F32
                                                                     : row.dtypes.front();
    try {
      all.push_back(samplesOf(row, dtype));
    } catch (const Error& e) {
      if (e.code() != ErrorCode::Unsupported) throw;
    }
  }
  for (const seeds::SeedModel& model : seeds::seedModels())
    if (model.name == "dit") all.push_back(seedOf(model, DType::F32));
  all.push_back(stories(DType::F32));
  all.push_back(stories(DType::BF16));
  all.push_back(small(DType::F32));
  all.push_back(small(DType::BF16));
  return all;
}

TEST(GeneratedKernels, PassAllChecksInRandomOrder) {
  auto all = subjects(1);
  runAll(all, "check,random,seed=5");
}

// What the process with AddressSanitizer runs.
TEST(GeneratedKernels, DISABLED_asan) {
  auto all = subjects(3);
  runAll(all, "asan");
}

#if defined(__SANITIZE_ADDRESS__) || (defined(__has_feature) && __has_feature(address_sanitizer))
constexpr bool kThisHasAsan = true;
#else
constexpr bool kThisHasAsan = false;
#endif

TEST(GeneratedKernels, PassAddressSanitizer) {
  const std::string compiler = host::findProgram("g++");
  if (compiler.empty()) GTEST_SKIP() << "no g++";
  std::string library = host::runProcess({compiler, "-print-file-name=libasan.so"}).output;
  library.erase(library.find_last_not_of('\n') + 1);
  if (library.find('/') == std::string::npos) GTEST_SKIP() << "g++ has no libasan";
  const host::ProcessResult r = host::runProcess(
      {"/usr/bin/env", "LATHE_HOST_CXX=" + compiler, "ASAN_OPTIONS=detect_leaks=0",
       "LD_PRELOAD=" + (kThisHasAsan ? "" : std::filesystem::canonical(library).string()),
       std::filesystem::read_symlink("/proc/self/exe").string(), "--gtest_also_run_disabled_tests",
       "--gtest_filter=GeneratedKernels.DISABLED_asan"});
  EXPECT_EQ(r.status, 0) << r.output;
  EXPECT_THAT(r.output, testing::HasSubstr("[  PASSED  ] 1 test"));
}

}  // namespace
}  // namespace lathe::cuda
