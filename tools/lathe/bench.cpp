// SPDX-License-Identifier: Apache-2.0
// lathe bench: prefill and decode, beside what the machine could do.
#include <time.h>

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "backends/cpu/device/read_memory.h"
#include "lathe/runtime/batch_generator.h"
#include "lathe/runtime/error.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/sampler.h"
#include "lathe/runtime/thread_pool.h"
#include "tools/lathe/bench_profile.h"
#include "tools/lathe/bench_report.h"
#include "tools/lathe/bench_work.h"
#include "tools/lathe/console.h"
#include "tools/lathe/host_roofs.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/rank_launcher.h"
#include "tools/lathe/ranks.h"
#include "tools/lathe/report.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

constexpr int64_t kWarmUpSteps = 4;
// How often the machine is measured anew while a share is above 1.
constexpr int kMoreRoofs = 3;

struct BenchFlags {
  std::string path, format = "md";
  int64_t prompt = 512, tokens = 128, batch = 1;
  int repetitions = 5;
  bool json = false;
  uint64_t seed = 0;
};

std::vector<int> randomIds(RandomGenerator& random, int64_t count, int64_t vocab) {
  std::vector<int> ids(static_cast<size_t>(count));
  for (int& id : ids) id = int(random.uniform() * double(vocab));
  return ids;
}

int likeliest(std::span<const float> logits) {
  return int(std::max<int64_t>(indexOfLargest(logits), 0));
}

// Processor time of all threads of this process.
double cpuSeconds() {
  timespec used;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return double(used.tv_sec) + double(used.tv_nsec) * 1e-9;
}

// The peak and the bandwidth of the same threads, in this process.
struct Roofs {
  double peak = 0;
  cpu::ReadRoofs read;

  // The machine's speed drifts, above all a virtual one's: what is judged is held to the better of
  // several measurements around it.
  void measure(cpu::PeakKind kind) {
    ThreadPool& pool = ThreadPool::global();
    peak = std::max(peak, cpu::measurePeak(kind, pool));
    cpu::ReadRoofs again = cpu::measureReadRoofs(pool);
    if (again.best() > read.best()) read = std::move(again);
  }
};

class Bench {
 public:
  // With a profile every step is one of `decode`, whose calls are what is told.
  // `ownRanks`: how many of the program's ranks are threads of this process.
  Bench(Session& session, const ModelConfig& config, const BenchFlags& flags, bool isProfiled,
        int64_t ownRanks)
      : flags_(flags),
        config_(config),
        program_(session.program()),
        generator_(session, {config.vocabSize, maxPositionsOf(config)}),
        random_(flags.seed),
        ownRanks_(ownRanks),
        prefillRuns_(prefillRuns(program_, startOfDecode(), flags.batch)),
        decodeRuns_(decodeRuns(program_, startOfDecode(), flags.tokens, flags.batch)) {
    generator_.reserve(flags.batch, startOfDecode() + flags.tokens);
    if (flags.batch > 1 || isProfiled) return;
    chooser_.emplace(session, GeneratorLimits{config.vocabSize, maxPositionsOf(config)});
    if (chooser_->canChoose())
      chooser_->reserve(startOfDecode() + flags.tokens);
    else
      chooser_.reset();
  }

  void warmUp() { repetition(nullptr, nullptr, std::min(kWarmUpSteps, flags_.tokens)); }

  std::vector<BenchTest> measure() {
    BenchTest prefill{.name = "prefill", .tokens = flags_.prompt, .batch = flags_.batch},
        decode{.name = "decode", .tokens = flags_.tokens, .batch = flags_.batch};
    if (auto work = workOf(program_, "prefill", prefillRuns_)) prefill.flops = work->flops;
    if (auto work = workOf(program_, "decode", decodeRuns_)) {
      decode.flops = work->flops;
      decode.bytes = work->held;
      // Weights that stay in the cache between steps are not read from memory.
      if (work->held / double(std::max<int64_t>(1, flags_.tokens)) <=
          double(cpu::lastCacheBytes())) {
        decode.bytes = 0;
        console().note(
            "the weights fit into the processor's cache: no share of the read bandwidth");
      }
    }
    Progress progress("measuring");
    for (int r = 0; r < flags_.repetitions; ++r) {
      progress.at(size_t(r), size_t(flags_.repetitions));
      repetition(&prefill, &decode, flags_.tokens);
    }
    prefill.collectives = collectivesOf(program_, "prefill", prefillRuns_);
    decode.collectives = collectivesOf(program_, "decode", decodeRuns_);
    std::vector<BenchTest> tests;
    if (flags_.prompt) tests.push_back(prefill);
    if (flags_.tokens) tests.push_back(decode);
    return tests;
  }

  /// Seconds by entry point and call that the roofs predict for all repetitions; zeros where none
  /// were measured.
  PredictedTimes predicted(const MachineRoofs& machine) const {
    PredictedTimes times{{"prefill", predictedSeconds(program_, "prefill", prefillRuns_, machine)},
                         {"decode", predictedSeconds(program_, "decode", decodeRuns_, machine)}};
    for (auto& [entry, seconds] : times)
      for (double& s : seconds) s = machine.bytesPerSecond > 0 ? s * flags_.repetitions : 0;
    return times;
  }

 private:
  // Decode alone starts from one token of prompt.
  int64_t startOfDecode() const { return std::max<int64_t>(1, flags_.prompt); }

  void repetition(BenchTest* prefill, BenchTest* decode, int64_t steps) {
    std::vector<std::vector<int>> prompts(static_cast<size_t>(flags_.batch));
    for (std::vector<int>& ids : prompts)
      ids = randomIds(random_, startOfDecode(), config_.vocabSize);
    if (chooser_)
      chooser_->restart();
    else
      generator_.reserve(flags_.batch, startOfDecode() + flags_.tokens);
    std::vector<int> next(prompts.size());
    auto choose = [&](std::span<const float> logits) {
      const size_t vocab = logits.size() / next.size();
      for (size_t row = 0; row < next.size(); ++row)
        next[row] = likeliest(logits.subspan(row * vocab, vocab));
    };
    const double start = steadySeconds(), startCpu = cpuSeconds();
    if (chooser_)
      next[0] = likeliest(chooser_->prefill(prompts[0]));
    else
      choose(generator_.prefill(prompts));
    const double prefilled = steadySeconds(), prefilledCpu = cpuSeconds();
    for (int64_t i = 0; i < steps;) {
      const auto chosen = chooser_ ? chooser_->choose(next[0], steps - i) : std::span<const int>();
      if (!chosen.empty())
        next[0] = chosen.back();
      else if (chooser_)
        next[0] = likeliest(chooser_->next(next[0]));
      else
        choose(generator_.next(next));
      i += std::max<int64_t>(int64_t(chosen.size()), 1);
    }
    auto add = [&](BenchTest* test, double seconds, double cpu) {
      if (!test) return;
      test->seconds.push_back(seconds);
      test->cpuSeconds.push_back(cpu / double(ownRanks_));
    };
    add(prefill, prefilled - start, prefilledCpu - startCpu);
    add(decode, steadySeconds() - prefilled, cpuSeconds() - prefilledCpu);
  }

  const BenchFlags& flags_;
  const ModelConfig& config_;
  const Program& program_;
  BatchGenerator generator_;
  std::optional<Generator> chooser_;  // of one text, where a step chooses its token itself
  RandomGenerator random_;
  const int64_t ownRanks_;
  const std::vector<SymbolValues> prefillRuns_, decodeRuns_;  // of one repetition
};

// What was added between two readings, at the sizes of each entry point's last run.
std::vector<ReportRun> reportRuns(const Program& program, const BenchFlags& flags,
                                  const Profiles& before, const Profiles& after) {
  const int64_t start = std::max<int64_t>(1, flags.prompt);
  std::map<std::string, std::vector<SymbolValues>> sizes{
      {"prefill", prefillRuns(program, start, flags.batch)},
      {"decode", decodeRuns(program, start, flags.tokens, flags.batch)}};
  std::vector<ReportRun> runs;
  for (auto& [entry, end] : after) {
    ReportRun run{entry, sizes[entry].empty() ? SymbolValues{} : sizes[entry].back(), end};
    int64_t ran = 0;
    for (size_t i = 0; i < end.size(); ++i) {
      run.calls[i].seconds -= before.at(entry)[i].seconds;
      ran += run.calls[i].runs -= before.at(entry)[i].runs;
    }
    if (ran) runs.push_back(std::move(run));
  }
  return runs;
}

// Whether the device is the cuda backend's kernels on the CPU, as the device itself says: the
// environment may have chosen it.
bool isHostExecution(Session& session) {
  return std::ranges::any_of(session.device().report(), [](const std::string& line) {
    return line.starts_with("device: host execution");
  });
}

// A weight that several stages of a pipeline read counts once.
int64_t parametersOf(const Program& program) {
  int64_t total = 0;
  std::set<std::string> seen;
  auto add = [&](const Program& stage) {
    for (const TensorInfo& info : stage.weights) {
      if (!seen.insert(info.name).second) continue;
      int64_t count = 1;
      for (const DimExpr& d : info.shape) count *= d.asConstant().value_or(0);
      total += count;
    }
  };
  add(program);
  for (const auto& later : program.laterStages) add(*later);
  return total;
}

void addFlags(CLI::App& parser, BenchFlags& flags) {
  parser.add_option("MODEL", flags.path, "Hugging Face folder, .lathe program or bare config.json")
      ->required();
  parser.add_option("-p,--prompt-tokens", flags.prompt, "tokens of the prompt (default: 512)")
      ->check(WholeNumber{0});
  parser.add_option("-n,--new-tokens", flags.tokens, "tokens to decode (default: 128)")
      ->check(WholeNumber{0});
  parser.add_option("--batch", flags.batch, "texts at once, of equal length (default: 1)")
      ->check(WholeNumber{1, 4096});
  parser
      .add_option("-r,--repetitions", flags.repetitions, "runs to take the median of (default: 5)")
      ->check(WholeNumber{1, 1000});
  parser.add_option("-o,--output-format", flags.format, "md (default), csv or json")
      ->check(CLI::IsMember({"md", "csv", "json"}));
  parser.add_flag("--json", flags.json, "the same as -o json");
  parser.add_option("--seed", flags.seed, "of the random prompts (default: 0)")->check(Seed{});
}

}  // namespace

int benchVerb(const ArgumentList& arguments) {
  auto parser = makeParser(
      "bench", "Measures prefill and decode, and their shares of what the machine could do.",
      "lathe bench config.json --random-weights --dtype bf16 -p 512 -n 128 -t 2 --profile");
  BenchFlags flags;
  CompileFlags compileFlags;
  SessionFlags sessionFlags;
  ReportFlags reportFlags;
  addFlags(*parser, flags);
  addReport(*parser, reportFlags, /*withSizes=*/false);
  addDType(*parser, compileFlags.dtype);
  addPipelineFlags(*parser, compileFlags);
  addRanks(*parser, compileFlags.compile.pipeline.mesh);
  addRankThreads(*parser, sessionFlags.rankThreads);
  addThreads(*parser, sessionFlags.threads);
  addDevice(*parser, sessionFlags.device);
  addBackend(*parser, compileFlags.compile.backend);
  parser->add_option("--weights", sessionFlags.weights,
                     ".safetensors or .gguf file or folder of weights");
  parser->add_flag("--random-weights", sessionFlags.randomWeights,
                   "random weights: the folder or config.json needs none");
  parser->add_flag("--profile", sessionFlags.profile, "time by kernel and place");
  if (!parseArguments(*parser, arguments)) return kOk;
  becomeLauncher(compileFlags.compile.pipeline.mesh.ranks, sessionFlags.rankThreads);
  if (flags.json) flags.format = "json";
  if (flags.prompt + flags.tokens == 0)
    throw Error(ErrorCode::InvalidArgument, "expected -p or -n above 0, got 0 for both");

  Model model = openModel(flags.path, compileFlags.loras);
  if (model.kind == ModelKind::Mlir || model.kind == ModelKind::Onnx)
    throw Error(
        ErrorCode::InvalidArgument,
        flags.path + ": bench needs a model's config.json; time other graphs with lathe run");
  compileFlags.randomWeights = sessionFlags.randomWeights;
  compileFlags.family.greedy =
      backendOf(compileFlags) == "cuda" && compileFlags.compile.pipeline.mesh.ranks <= 1;
  if (!model.program) requestFor(model, compileFlags);  // tells its mistakes before any other
  const ModelConfig config = configOf(model);
  if (flags.prompt + flags.tokens > maxPositionsOf(config))
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("-p {} and -n {} make {} positions, the model takes at most {}", flags.prompt,
                    flags.tokens, flags.prompt + flags.tokens, maxPositionsOf(config)));
  ReportedProgram compiled = reportedProgramOf(model, compileFlags, reportFlags);
  std::shared_ptr<const Program> program = compiled.program;
  const bool showProfile = sessionFlags.profile;
  sessionFlags.profile |= compiled.report != nullptr;
  Session session = openSession(model, program, sessionFlags);

  const bool onHost = isHostExecution(session);
  if (onHost) console().note("host execution checks kernels; its times say nothing about a GPU");

  BenchReport report;
  const DType dtype = arithmeticOf(*program).value_or(compileFlags.dtype.value_or(DType::F32));
  const cpu::KernelIsa isa = cpu::KernelIsa::current();
  report.model = flags.path;
  report.dtype = nameOf(dtype);
  report.backend = program->backend;
  if (report.backend == "cpu") report.isa = cpu::nameOf(isa.tier);
  report.parameters = parametersOf(*program);
  report.batch = flags.batch;
  report.ranks = program->allRanks();
  report.threads = ThreadPool::global().threads();

  Roofs roofs;
  auto measureRoofs = [&] {
    // What runs elsewhere, or only stands for what would, is not held to this machine.
    if (session.device().memory() || onHost) return;
    Progress progress("measuring the machine");
    const bool bf16 = dtype == DType::BF16;
    roofs.measure(multipliesBytes(*program) ? cpu::bytePeakKind(bf16, isa)
                                            : cpu::bestPeakKind(bf16, isa));
  };
  measureRoofs();
  Bench bench(session, config, flags, sessionFlags.profile,
              sessionFlags.rankThreads ? program->allRanks() : 1);
  bench.warmUp();
  // The second run of an entry point is recorded.
  if (session.device().memory()) bench.warmUp();
  const Profiles before = profilesOf(session);
  report.tests = bench.measure();
  const Profiles after = profilesOf(session);
  for (BenchTest& test : report.tests)
    if (!session.device().memory() || sessionFlags.profile)
      test.collectives.seconds = collectiveSeconds(*program, test.name, before, after);
  // Whoever was busy beside both measurements of the machine, and idle beside the model's, makes a
  // share above 1: a moment later the machine may be measured alone.
  std::string wrong;
  int more = kMoreRoofs;
  do {
    measureRoofs();
    report.peakFlops = roofs.peak;
    report.roofs = roofs.read;
    wrong = report.contradiction();
  } while (!wrong.empty() && more-- > 0);
  if (showProfile)
    report.profile = profileRows(
        before, after, bench.predicted({"host", roofs.peak, roofs.peak, roofs.read.best()}));
  report.memory = session.memory();
  report.device = session.device().report();
  printReport(report, flags.format);
  writeReport(reportFlags, compiled, model, reportRuns(*program, flags, before, after));
  if (!wrong.empty())
    throw Error(ErrorCode::Numeric,
                "the measurement failed: " + wrong +
                    "; a share above 1 means that the machine's speed changed, run it again alone");
  return kOk;
}

}  // namespace lathe::cli
