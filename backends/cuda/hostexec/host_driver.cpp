// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <utility>

#include "backends/cuda/device/nccl_ranks.h"
#include "backends/cuda/hostexec/host_compiler.h"
#include "backends/cuda/hostexec/host_driver.h"
#include "backends/cuda/hostexec/host_ranks.h"
#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

struct Loaded {
  host::Kernel kernel;
  std::vector<std::string> parameters;  // their names
};

// Of `kernel(const float* __restrict__ x, long long rows) {`: "x", "rows".
std::vector<std::string> parametersOf(const KernelCode& code) {
  std::vector<std::string> names;
  size_t at = code.source.find("\n" + code.name + "(");
  if (at == std::string::npos) return names;
  for (const size_t end = code.source.find(')', at); at < end;) {
    const size_t next = std::min(code.source.find_first_of(",)", at + 1), end);
    const size_t last = code.source.find_last_of(" *&(,", next - 1);
    names.push_back(code.source.substr(last + 1, next - last - 1));
    at = next == end ? end : next;
  }
  return names;
}

// A launch, a copy or a collective, with copies of the arguments' values: parameters are pointers
// and 64-bit sizes, 8 bytes each.
struct Step {
  const Loaded* function = nullptr;
  LaunchConfig config;
  std::vector<uint64_t> arguments;
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  std::function<void()> collective = {};  // which writes `bytes` at `to`
};

struct RecordedSteps : Driver::Recorded {
  std::vector<Step> steps;
};

// Everything runs at once, in the calling thread or the pool. The first error of a kernel is told
// by synchronize, as on a GPU; until then later work is left out.
class Host final : public HostDriver {
 public:
  Host(const host::Options& options, const std::string& cache)
      : options_(options),
        compiler_(options.mode, cache),
        memory_(options.mode == host::Mode::Check) {}

  DeviceFacts facts() const override {
    DeviceFacts facts;
    facts.name = "host execution (" + compiler_.version() + ", " +
                 std::string(host::nameOf(options_.mode)) + ")";
    facts.major = 9;
    facts.multiprocessors = 1;
    facts.memoryBytes = int64_t(1) << 40;  // what the system gives, told by allocate
    facts.driver = "host";
    return facts;
  }

  void* allocate(size_t bytes, std::string_view name) override {
    return memory_.allocate(bytes, name);
  }
  void release(void* memory) override { memory_.release(memory); }

  void upload(void* to, const void* from, size_t bytes) override {
    expectNotRecording("upload");
    memory_.expectInside(to, bytes, "upload");
    write(to, from, bytes);
  }
  void download(void* to, const void* from, size_t bytes) override {
    expectNotRecording("download");
    memory_.expectInside(from, bytes, "download");
    synchronize();
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void copy(void* to, const void* from, size_t bytes) override {
    memory_.expectInside(to, bytes, "copy");
    memory_.expectInside(from, bytes, "copy");
    Step step;
    step.to = to;
    step.from = from;
    step.bytes = bytes;
    take(std::move(step));
  }
  void zero(void* to, size_t bytes) override {
    memory_.expectInside(to, bytes, "zero");
    Step step;
    step.to = to;
    step.bytes = bytes;
    take(std::move(step));
  }

  std::vector<Function> load(const std::vector<KernelCode>& kernels) override {
    std::vector<host::KernelText> texts;
    for (const KernelCode& code : kernels) texts.push_back({code.name, code.source});
    std::vector<Function> result;
    for (host::Kernel& kernel : compiler_.compile(texts))
      result.push_back(&functions_.emplace_back(
          Loaded{std::move(kernel), parametersOf(kernels[result.size()])}));
    return result;
  }

  void launch(Function function, const LaunchConfig& config, void** arguments) override {
    Step step;
    step.function = static_cast<const Loaded*>(function);
    step.config = config;
    if (recording_) {
      // Values of less than 8 bytes are padded: reading 8 could leave the caller's memory.
      for (int i = 0; i < step.function->kernel.parameters; ++i) {
        const size_t bytes = size_t(step.function->kernel.parameterBytes[i]);
        uint64_t value = 0;
        if (bytes > sizeof value)
          throw Error(ErrorCode::Unsupported, "record: kernel " + step.function->kernel.name +
                                                  " takes a parameter of " + std::to_string(bytes) +
                                                  " bytes, at most 8 fit");
        std::memcpy(&value, arguments[i], bytes);
        step.arguments.push_back(value);
      }
      recording_->steps.push_back(std::move(step));
      return;
    }
    run(step, arguments);
  }

  Communicator* join(std::shared_ptr<Communicator> ranks) override {
    // Memory of the host needs nobody else; NCCL is asked where a test has one that works on it.
    const char* nccl = std::getenv("LATHE_NCCL");
    if (nccl && *nccl) {
      std::unique_ptr<NcclRanks> opened = NcclRanks::open(std::move(ranks), {});
      ranksName_ = opened->name();
      ranks = std::move(opened);
    }
    ranks_ = std::make_unique<HostRanks>(std::move(ranks), [this](HostCollective collective) {
      memory_.expectInside(collective.from, collective.fromBytes, "collective");
      memory_.expectInside(collective.to, collective.toBytes, "collective");
      Step step;
      step.to = collective.to;
      step.bytes = collective.toBytes;
      step.collective = std::move(collective.run);
      take(std::move(step));
    });
    return ranks_.get();
  }
  std::string ranksReport() const override {
    return ranks_ ? "collectives: " + (ranksName_.empty() ? "on the host" : ranksName_)
                  : std::string();
  }

  void synchronize() override {
    history_.settle();
    if (error_.empty())
      if (std::string name = memory_.overrun(); !name.empty())
        error_ = "a kernel wrote past the end of " + name +
                 "; run with LATHE_CUDA_HOST=check to see where";
    if (!error_.empty())
      throw Error(ErrorCode::Numeric, "host execution: " + std::exchange(error_, ""));
  }

  std::unique_ptr<Recorded> record(const std::function<void()>& body) override {
    expectNotRecording("record");
    auto recorded = std::make_unique<RecordedSteps>();
    recording_ = recorded.get();
    try {
      body();
    } catch (...) {
      recording_ = nullptr;
      throw;
    }
    recording_ = nullptr;
    return recorded;
  }
  void replay(Recorded& recorded) override {
    expectNotRecording("replay");
    history_.settle();  // the first launch of a graph begins when all before it has ended
    for (const Step& step : static_cast<RecordedSteps&>(recorded).steps) {
      std::vector<void*> arguments;
      for (const uint64_t& value : step.arguments)
        arguments.push_back(const_cast<uint64_t*>(&value));
      run(step, arguments.data());
    }
  }

  std::vector<double> replayTimes(Recorded& recorded, int count) override {
    std::vector<double> seconds;
    for (int i = 0; i < count; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      replay(recorded);
      synchronize();
      const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
      seconds.push_back(time.count());
    }
    return seconds;
  }

  std::vector<LaunchRecord> takeLaunches() override { return std::exchange(launches_, {}); }
  void setOptions(const host::Options& options) override {
    const host::Mode mode = options_.mode;
    options_ = options;
    options_.mode = mode;
  }
  const host::Options& options() const override { return options_; }

 private:
  void expectNotRecording(const char* what) const {
    if (recording_)
      throw Error(
          ErrorCode::InvalidArgument,
          std::string(what) + " inside record: expected launches and copies on the device alone");
  }

  void take(Step step) {
    if (recording_)
      recording_->steps.push_back(std::move(step));
    else
      run(step, nullptr);
  }

  void write(void* to, const void* from, size_t bytes) {
    if (from && bytes > 0) std::memmove(to, from, bytes);
    if (!from && bytes > 0) std::memset(to, 0, bytes);
    noteWritten(to, bytes);
  }
  void noteWritten(void* to, size_t bytes) {
    memory_.forget(to, bytes);
    history_.settle();
  }

  void run(const Step& step, void** arguments) {
    if (!error_.empty()) return;
    if (step.collective) {
      step.collective();
      return noteWritten(step.to, step.bytes);
    }
    if (!step.function) return write(step.to, step.from, step.bytes);
    const host::Kernel& kernel = step.function->kernel;
    host::LaunchRequest request;
    request.grid = {step.config.grid[0], step.config.grid[1], step.config.grid[2]};
    request.threads = step.config.threads;
    request.cluster = step.config.cluster;
    request.sharedBytes = step.config.sharedBytes;
    request.overlaps = step.config.overlaps;
    request.arguments = arguments;
    request.options = options_;
    if (const int i = step.config.counters; i >= 0) {
      std::memcpy(&request.counters.from, arguments[i], sizeof request.counters.from);
      request.counters.bytes = size_t(step.config.extents.at(size_t(i)));
      const std::vector<std::string>& names = step.function->parameters;
      if (size_t(i) < names.size()) request.counters.name = names[size_t(i)];
    }
    Views views;
    if (options_.mode == host::Mode::Check) bound(step, request, views);
    const host::Result result = host::launch(kernel, request, memory_, history_);
    if (result.errors)
      error_ = "kernel " + kernel.name + " of " + std::to_string(step.config.grid[0]) + "x" +
               std::to_string(step.config.grid[1]) + "x" + std::to_string(step.config.grid[2]) +
               " blocks of " + std::to_string(step.config.threads) +
               " threads: " + std::to_string(result.errors) + " error(s)\n" + result.report;
    if (options_.count)
      launches_.push_back({kernel.name, result.traffic, result.barriers, result.warpOps,
                           result.switches, result.bankConflicts});
  }

  struct Views {
    std::vector<char*> pointers;
    std::vector<void*> arguments;
  };
  // Gives each pointer with an extent a view of its own.
  void bound(const Step& step, host::LaunchRequest& request, Views& views) {
    const std::vector<int64_t>& extents = step.config.extents;
    const std::vector<std::string>& names = step.function->parameters;
    views.arguments.assign(request.arguments, request.arguments + step.function->kernel.parameters);
    views.pointers.resize(views.arguments.size());
    request.extents.resize(views.arguments.size());
    for (size_t i = 0; i < std::min(extents.size(), views.arguments.size()); ++i) {
      if (extents[i] < 0) continue;
      char* memory;
      std::memcpy(&memory, views.arguments[i], sizeof memory);
      views.pointers[i] = memory_.view(memory, int(i) + 1);
      if (views.pointers[i] == memory) continue;
      views.arguments[i] = &views.pointers[i];
      request.extents[i] = {memory_.locate(memory).offset, extents[i]};
      if (i < names.size()) request.extents[i].name = names[i];
    }
    request.arguments = views.arguments.data();
  }

  host::Options options_;
  host::HostCompiler compiler_;
  host::MemoryMap memory_;
  std::deque<Loaded> functions_;  // addresses stay
  std::vector<LaunchRecord> launches_;
  RecordedSteps* recording_ = nullptr;
  std::unique_ptr<HostRanks> ranks_;  // null where there are none
  std::string ranksName_;             // of a library
  host::LaunchHistory history_;
  std::string error_;
};

}  // namespace

std::unique_ptr<HostDriver> openHost(const host::Options& options, const std::string& cache) {
  return std::make_unique<Host>(options, cache);
}

std::unique_ptr<Driver> openHost() {
  const char* text = std::getenv("LATHE_CUDA_HOST");
  return openHost(host::parseOptions(text ? text : ""));
}

}  // namespace lathe::cuda
