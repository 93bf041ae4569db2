// SPDX-License-Identifier: Apache-2.0
// The kernels that the compiler prints for samples of every op, for seed models and for whole
// models: once under AddressSanitizer, once with all checks while threads, blocks and copies come
// by chance. Each op in one dtype; in depth in all of them, and all seed models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <set>
#include <utility>

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/hostexec/process.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/llama.h"
#include "lathe/runtime/checkpoint.h"
#include "lathe/runtime/error.h"
#include "tests/conformance/cases.h"
#include "tests/depth.h"
#include "tests/golden/seed_models.h"
#include "tests/unit/test_files.h"
#include "tests/unit/cuda/address_sanitizer.h"
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
  std::shared_ptr<const Program> program;
  std::vector<Run> runs;
  WeightSource weights = {};  ///< none: random
  SymbolValues symbols = {};  ///< that no input shows
  bool launchesAll = true;    ///< the runs have sizes for all kernels
};

// Kernels of many programs are compiled as one text, in which each needs a name of its own. Copies
// that an update in place spares are launched too, from a buffer to itself.
void prepare(Program& program, const std::string& prefix) {
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
      for (Launch& l : v.launches) {
        l.kernel = prefix + l.kernel;
        l.unlessSame = {-1, -1};
      }
  std::erase_if(program.blobs, [](const auto& blob) { return blob.first.starts_with("cuda."); });
  storeKernels(program, table, kernels);
}

/// The prepared program of a subject: read from the folder that LATHE_TEST_PROGRAMS names where it
/// is there, else compiled and written there. A compiler under AddressSanitizer would take most of
/// the time of that process.
std::shared_ptr<const Program> preparedProgram(const std::string& name,
                                               const std::function<Program()>& compiled) {
  const char* folder = std::getenv("LATHE_TEST_PROGRAMS");
  const std::string path = folder ? std::string(folder) + "/" + name : "";
  if (std::filesystem::exists(path)) return Program::open(path);
  auto program = std::make_shared<Program>(compiled());
  prepare(*program, name + "_");
  if (folder) program->save(path);
  return program;
}

Subject samplesOf(const conformance::OpRow& row, DType dtype) {
  const auto samples = row.samples(dtype);
  Subject s;
  s.name = row.op.substr(6) + "_" + std::string(nameOf(dtype));
  s.program = preparedProgram(
      s.name, [&] { return compile(conformance::recordSamples(samples), {.backend = "cuda"}); });
  const Arrays weights = conformance::makeData(samples, {3, 33}, row.op).weights;
  s.weights = [weights](const std::string& name) { return weights.at(name); };
  for (conformance::Sizes sizes :
       {conformance::Sizes{3, 33}, conformance::Sizes{1, 257}, conformance::Sizes{8, 9}})
    s.runs.push_back({"forward",
                      conformance::makeData(samples, sizes, row.op).inputs,
                      {{"rows", sizes.rows}, {"cols", sizes.cols}}});
  return s;
}

Array firstHalf(const Array& whole) {
  Shape shape = whole.shape();
  shape[0] /= 2;
  Array half(whole.dtype(), shape);
  for (int64_t i = 0; i < half.size(); ++i) half.set(i, whole.at(i));
  return half;
}

Subject seedOf(const seeds::SeedModel& model, DType dtype) {
  Subject s;
  s.name = model.name + "_" + std::string(nameOf(dtype));
  s.program =
      preparedProgram(s.name, [&] { return compile(model.build(dtype), {.backend = "cuda"}); });
  for (const seeds::SeedCall& call : model.calls(dtype))
    s.runs.push_back({call.entry, call.inputs});
  s.launchesAll = model.name == "dit";
  if (s.launchesAll) {
    Run alone = s.runs[0];
    for (auto& [name, input] : alone.inputs) input = firstHalf(input);
    s.runs.push_back(alone);
  }
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
  const FamilyOptions room{
      .dtype = dtype, .weightDType = DType::BF16, .maxBatch = 1, .maxSeq = 5, .cacheCapacity = 64};
  s.program = preparedProgram(s.name, [&] {
    return compile(buildLlama(loadLlamaConfig(folder), room), {.backend = "cuda"});
  });
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
  s.program = preparedProgram(s.name, [&] {
    return compile(buildLlama(config, {.dtype = dtype, .weightDType = DType::BF16, .maxBatch = 20}),
                   {.backend = "cuda"});
  });
  s.symbols = {{"cache", 64}};
  for (const char* entry : {"forward", "prefill"}) {
    for (int64_t tokens : {1, 3, 7, 12, 24, 40}) s.runs.push_back(step(entry, 1, tokens, 0));
    s.runs.push_back(step(entry, 2, 40, 0));
    s.runs.push_back(step(entry, 18, 29, 0));
  }
  for (int64_t batch : {1, 3, 7, 12, 20})
    for (const char* entry : {"prefill", "decode"}) s.runs.push_back(step(entry, batch, 1, 7));
  return s;
}

/// Kernels that some sizes launch: others are of empty tensors, or for sizes without an element.
std::set<std::string> launchable(const KernelTable& table) {
  std::set<std::string> kernels;
  for (const auto& [callee, variants] : table)
    for (const Variant& v : variants)
      for (const Launch& l : v.launches)
        if (std::ranges::none_of(v.when,
                                 [](const Condition& c) {
                                   return (c.value - 1 - DimExpr(c.high)).provablyNonNegative();
                                 }) &&
            std::ranges::none_of(l.grid,
                                 [](const GridAxis& axis) { return axis.count.asConstant() == 0; }))
          kernels.insert(l.kernel);
  return kernels;
}

/// Runs the kernels of all subjects: nearly every one that can be launched is.
void runAll(const std::vector<Subject>& subjects, const std::string& options) {
  std::vector<host::KernelText> texts;
  for (const Subject& s : subjects)
    for (const KernelCode& k : kernelCodeOf(*s.program)) texts.push_back({k.name, k.source});
  host::HostCompiler(host::parseOptions(options).mode).compile(texts);
  size_t count = 0, launches = 0;
  for (const Subject& s : subjects) {
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
      for (const LaunchRecord& l : host.driver().takeLaunches()) {
        launched.insert(l.kernel);
        ++launches;
      }
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
    count += launched.size();
    if (!s.launchesAll) continue;
    for (const std::string& kernel : launchable(kernelTableOf(*s.program)))
      EXPECT_TRUE(launched.count(kernel)) << kernel << " was not launched";
  }
  std::printf("%s: %zu kernels compiled, %zu launched, %zu launches\n", options.c_str(),
              texts.size(), count, launches);
  EXPECT_GE(10 * count, 8 * texts.size());
}

std::vector<DType> dtypesOf(const conformance::OpRow& row, bool narrow) {
  if (test::inDepth()) return row.dtypes;
  for (DType wanted : {narrow ? DType::BF16 : DType::F32, DType::F32})
    if (std::ranges::count(row.dtypes, wanted)) return {wanted};
  return {row.dtypes.front()};
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  bool narrow = true;
  for (const conformance::OpRow& row : conformance::opTable()) {
    for (DType dtype : dtypesOf(row, narrow)) try {
        all.push_back(samplesOf(row, dtype));
      } catch (const Error& e) {
        if (e.code() != ErrorCode::Unsupported) throw;
      }
    narrow = !narrow;
  }
  for (const seeds::SeedModel& model : seeds::seedModels()) {
    const bool every = test::inDepth();
    if (model.name != "dit" && !every) continue;
    for (DType dtype : every ? model.dtypes : std::vector{DType::F32})
      all.push_back(seedOf(model, dtype));
  }
  all.push_back(stories(DType::BF16));
  all.push_back(small(DType::F32));
  if (test::inDepth()) {
    all.push_back(stories(DType::F32));
    all.push_back(small(DType::BF16));
  }
  return all;
}

// What the two processes run.
TEST(GeneratedKernels, DISABLED_check) { runAll(subjects(), "check,random,seed=5"); }
TEST(GeneratedKernels, DISABLED_asan) { runAll(subjects(), "asan"); }

host::ProcessResult runSelf(const std::string& filter, std::vector<std::string> environment) {
  environment.insert(environment.begin(), "/usr/bin/env");
  environment.insert(environment.end(),
                     {std::filesystem::read_symlink("/proc/self/exe").string(),
                      "--gtest_also_run_disabled_tests", "--gtest_filter=" + filter});
  return host::runProcess(environment);
}

TEST(GeneratedKernels, PassAllChecksInRandomOrderAndAddressSanitizer) {
  const test::TemporaryFolder programs;
  setenv("LATHE_TEST_PROGRAMS", programs.path().c_str(), 1);
  const size_t count = subjects().size();
  EXPECT_GE(std::distance(std::filesystem::directory_iterator(programs.path()), {}), count);
  auto checking =
      std::async(std::launch::async, [] { return runSelf("GeneratedKernels.DISABLED_check", {}); });
  const AddressSanitizer sanitizer = findAddressSanitizer();
  host::ProcessResult asan;
  if (sanitizer.missing.empty())
    // Traces of allocations are for leaks, and cost more than the allocations.
    asan = runSelf("GeneratedKernels.DISABLED_asan",
                   {"LATHE_HOST_CXX=" + sanitizer.compiler,
                    "ASAN_OPTIONS=detect_leaks=0:malloc_context_size=0:allow_user_poisoning=0",
                    sanitizer.preload});
  const host::ProcessResult checked = checking.get();
  EXPECT_EQ(checked.status, 0) << checked.output;
  EXPECT_THAT(checked.output, testing::HasSubstr("[  PASSED  ] 1 test"));
  if (!sanitizer.missing.empty()) GTEST_SKIP() << sanitizer.missing;
  EXPECT_EQ(asan.status, 0) << asan.output;
  EXPECT_THAT(asan.output, testing::HasSubstr("[  PASSED  ] 1 test"));
  for (const std::string& output : {checked.output, asan.output})
    if (const size_t at = output.find(" kernels compiled"); at != std::string::npos) {
      const size_t begin = output.rfind('\n', at) + 1;
      std::printf("%s\n", output.substr(begin, output.find('\n', at) - begin).c_str());
    }
}

}  // namespace
}  // namespace lathe::cuda
