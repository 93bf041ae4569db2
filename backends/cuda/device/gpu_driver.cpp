// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/gpu_driver.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lathe/runtime/error.h"

namespace lathe::cuda {
namespace {

constexpr size_t kNamedLaunches = 8;            // how many launches the report of a failure names
constexpr int kSharedWithoutAsking = 48 << 10;  // bytes per block, static and dynamic

api::DevicePointer address(const void* p) { return reinterpret_cast<api::DevicePointer>(p); }

// After these the context is of no use to anybody in the process.
bool isSticky(api::Result result) {
  return result == api::kEccUncorrectable || result == api::kContained ||
         result == api::kIllegalAddress || result == api::kLaunchTimeout ||
         result == api::kContextIsDestroyed || result == api::kAssert ||
         (result >= api::kHardwareStackError && result <= api::kLaunchFailed);
}

}  // namespace

struct GpuDriver::Kernel {
  std::string name;
  api::Library library = nullptr;
  api::Function function = nullptr;
  int staticShared = 0;
  int dynamicShared = 0;  // how much launches may ask for without another cuFuncSetAttribute
};

class GpuDriver::RecordedGraph final : public Driver::Recorded {
 public:
  explicit RecordedGraph(GpuDriver& driver) : driver_(driver) {}
  ~RecordedGraph() override {
    driver_.api_.ctxSetCurrent(driver_.context_);
    if (exec) driver_.api_.graphExecDestroy(exec);
    if (graph) driver_.api_.graphDestroy(graph);
  }
  api::Graph graph = nullptr;
  api::GraphExec exec = nullptr;
  std::vector<const Kernel*> kernels;

 private:
  GpuDriver& driver_;
};

GpuDriver::GpuDriver(int place) : api_(api::DriverApi::open()) {
  try {
    int devices = 0;
    check(api_.deviceGetCount(&devices), "cuDeviceGetCount");
    const int number = place % devices;
    const std::string which = "device " + std::to_string(number);
    check(api_.deviceGet(&device_, number), "cuDeviceGet", which);
    char name[256] = {};
    check(api_.deviceGetName(name, sizeof(name), device_), "cuDeviceGetName", which);
    facts_.name = name;
    size_t memory = 0;
    check(api_.deviceTotalMem(&memory, device_), "cuDeviceTotalMem", which);
    facts_.memoryBytes = int64_t(memory);
    auto attribute = [&](int* value, api::DeviceAttribute which) {
      check(api_.deviceGetAttribute(value, which, device_), "cuDeviceGetAttribute",
            "attribute " + std::to_string(which) + " of " + facts_.name);
    };
    attribute(&facts_.major, api::kComputeCapabilityMajor);
    attribute(&facts_.minor, api::kComputeCapabilityMinor);
    attribute(&facts_.multiprocessors, api::kMultiprocessorCount);
    attribute(&sharedLimit_, api::kMaxSharedPerBlockOptin);
    int version = 0;
    check(api_.driverGetVersion(&version), "cuDriverGetVersion");
    facts_.driver =
        "CUDA " + std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
    if (facts_.major < 9)
      throw Error(ErrorCode::Unsupported,
                  facts_.name + " has compute capability " + std::to_string(facts_.major) + "." +
                      std::to_string(facts_.minor) + "; expected 9.0 (Hopper) or later");
    check(api_.primaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain", facts_.name);
    check(api_.ctxSetCurrent(context_), "cuCtxSetCurrent");
    check(api_.streamCreate(&stream_, api::kStreamNonBlocking), "cuStreamCreate");
    staging_ = std::make_unique<StagingBuffer>(
        api_, stream_,
        [this](api::Result result, std::string_view call, std::string_view details) {
          check(result, call, details);
        },
        [this](api::Event event) { awaitRanks([=, this] { return api_.eventQuery(event); }); });
  } catch (...) {
    closeAll();
    throw;
  }
}

GpuDriver::~GpuDriver() { closeAll(); }

void GpuDriver::closeAll() {
  if (!context_) return;
  api_.ctxSetCurrent(context_);
  drain();
  if (stream_) api_.streamSynchronize(stream_);
  ranks_.reset();
  staging_.reset();
  library_.reset();
  attention_.reset();
  for (void* workspace : {workspace_, attentionWorkspace_})
    if (workspace) release(workspace);
  for (auto& kernel : kernels_) api_.libraryUnload(kernel->library);
  if (stream_) api_.streamDestroy(stream_);
  api_.primaryCtxRelease(device_);
}

void GpuDriver::enter(const char* call, bool recordable) {
  if (!lost_.empty())
    throw Error(ErrorCode::Io, std::string(call) +
                                   ": the GPU cannot be used by this process any more, since: " +
                                   lost_ + "\nstart the process again");
  if (recording_ && !recordable)
    throw Error(ErrorCode::InvalidArgument,
                std::string(call) +
                    " cannot be recorded; only launches, copies on the device and "
                    "zero can");
  check(api_.ctxSetCurrent(context_), "cuCtxSetCurrent");
}

void GpuDriver::check(api::Result result, std::string_view call, std::string_view details) {
  if (result == api::kSuccess) return;
  std::string message(call);
  if (!details.empty()) message += " (" + std::string(details) + ")";
  message += " failed on " + facts_.name + ": " + api_.describe(result);
  if (isSticky(result)) {
    if (!sinceSynchronize_.empty()) {
      message += "\nlast launched:";
      for (const Kernel* kernel : sinceSynchronize_) message += " " + kernel->name;
      message += "\nCUDA_LAUNCH_BLOCKING=1 in the environment stops at the one that failed";
    }
    lost_ = message;
  }
  throw Error(result == api::kOutOfMemory ? ErrorCode::OutOfMemory : ErrorCode::Io, message);
}

void* GpuDriver::allocate(size_t bytes, std::string_view name) {
  enter("allocate");
  api::DevicePointer memory = 0;
  api::Result result = api_.memAlloc(&memory, std::max<size_t>(bytes, 1));
  if (result != api::kSuccess) {
    size_t free = 0, total = 0;
    std::string details = inBytes(bytes) + " for " + std::string(name);
    if (api_.memGetInfo(&free, &total) == api::kSuccess)
      details += "; " + inBytes(free) + " of " + inBytes(total) + " are free";
    check(result, "cuMemAlloc", details);
  }
  return reinterpret_cast<void*>(memory);
}

void GpuDriver::release(void* memory) {
  if (!memory) return;
  api_.ctxSetCurrent(context_);
  drain();
  api_.memFree(address(memory));
}

void GpuDriver::upload(void* to, const void* from, size_t bytes) {
  enter("upload");
  staging_->upload(to, from, bytes);
}

void GpuDriver::download(void* to, const void* from, size_t bytes) {
  enter("download");
  staging_->download(to, from, bytes);
}

void GpuDriver::copy(void* to, const void* from, size_t bytes) {
  enter("copy", true);
  if (bytes)
    check(api_.memcpyDtoDAsync(address(to), address(from), bytes, stream_), "cuMemcpyDtoDAsync",
          inBytes(bytes));
}

void GpuDriver::zero(void* to, size_t bytes) {
  enter("zero", true);
  if (bytes)
    check(api_.memsetD8Async(address(to), 0, bytes, stream_), "cuMemsetD8Async", inBytes(bytes));
}

void GpuDriver::loadOne(const KernelCode& code, Kernel& kernel) {
  kernel.name = code.name;
  // sm_90a code runs on compute capability 9.0 and nowhere else; PTX is compiled by the driver.
  const bool hopper = facts_.major == 9 && facts_.minor == 0;
  const std::string& image = hopper && !code.cubin.empty() ? code.cubin : code.ptx;
  const char* form = &image == &code.cubin ? "its cubin for sm_90a" : "its PTX for compute_90";
  if (image.empty())
    throw Error(ErrorCode::Unsupported,
                "kernel '" + code.name + "' has no code for " + facts_.name +
                    " (compute capability " + std::to_string(facts_.major) + "." +
                    std::to_string(facts_.minor) + "): " +
                    (code.cubin.empty() ? "the program holds texts alone; compile it with --target "
                                          "sm_90a where NVRTC is installed (scripts/setup)"
                                        : "it was compiled for sm_90a only"));
  std::array<char, 4096> log{};
  api::JitOption options[] = {api::kJitErrorLogBuffer, api::kJitErrorLogBufferSizeBytes};
  void* values[] = {log.data(), reinterpret_cast<void*>(log.size() - 1)};
  api::Result loaded =
      api_.libraryLoadData(&kernel.library, image.c_str(), options, values, 2, nullptr, nullptr, 0);
  std::string details = "kernel '" + code.name + "', " + form + ", " + inBytes(image.size());
  if (log[0]) details += "; the driver says: " + std::string(log.data());
  check(loaded, "cuLibraryLoadData", details);
  details = "kernel '" + code.name + "'";
  api::LibraryKernel found = nullptr;
  check(api_.libraryGetKernel(&found, kernel.library, code.name.c_str()), "cuLibraryGetKernel",
        details);
  // Loaded here and not at the first launch: that may be while a recording is under way.
  check(api_.kernelGetFunction(&kernel.function, found), "cuKernelGetFunction", details);
  check(api_.funcLoad(kernel.function), "cuFuncLoad", details);
  // One division of L1 and shared memory for all kernels: with a division of its own for each, a
  // multiprocessor would have to be empty before the next kernel's, which ends every overlap.
  check(api_.funcSetAttribute(kernel.function, api::kPreferredSharedCarveout,
                              api::kCarveoutMaxShared),
        "cuFuncSetAttribute", details);
  check(api_.funcGetAttribute(&kernel.staticShared, api::kSharedSizeBytes, kernel.function),
        "cuFuncGetAttribute", details);
  kernel.dynamicShared = std::max(0, kSharedWithoutAsking - kernel.staticShared);
}

std::vector<Driver::Function> GpuDriver::load(const std::vector<KernelCode>& kernels) {
  enter("load");
  const size_t before = kernels_.size();
  std::vector<Function> functions;
  try {
    for (const KernelCode& code : kernels) {
      kernels_.push_back(std::make_unique<Kernel>());
      loadOne(code, *kernels_.back());
      functions.push_back(kernels_.back().get());
    }
  } catch (...) {
    for (size_t i = before; i < kernels_.size(); ++i)
      if (kernels_[i]->library) api_.libraryUnload(kernels_[i]->library);
    kernels_.resize(before);
    throw;
  }
  return functions;
}

void GpuDriver::launch(Function function, const LaunchConfig& config, void** arguments) {
  enter("launch", true);
  auto& kernel = *static_cast<Kernel*>(function);
  auto& grid = config.grid;
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return;
  auto details = [&] {
    return "kernel '" + kernel.name + "', grid " + std::to_string(grid[0]) + " x " +
           std::to_string(grid[1]) + " x " + std::to_string(grid[2]) + ", " +
           std::to_string(config.threads) + " threads, clusters of " +
           std::to_string(config.cluster) + ", " + inBytes(config.sharedBytes) + " dynamic and " +
           inBytes(size_t(kernel.staticShared)) + " static shared memory";
  };
  if (config.sharedBytes > size_t(kernel.dynamicShared)) {
    if (config.sharedBytes + size_t(kernel.staticShared) > size_t(sharedLimit_))
      throw Error(ErrorCode::Unsupported, details() + ": a block of " + facts_.name + " has " +
                                              inBytes(size_t(sharedLimit_)));
    check(api_.funcSetAttribute(kernel.function, api::kMaxDynamicSharedSizeBytes,
                                int(config.sharedBytes)),
          "cuFuncSetAttribute", details());
    kernel.dynamicShared = int(config.sharedBytes);
  }
  std::array<api::LaunchAttribute, 2> attributes;
  api::LaunchConfig launch{
      grid[0], grid[1],           grid[2], config.threads, 1, 1, unsigned(config.sharedBytes),
      stream_, attributes.data(), 0};
  if (config.cluster > 1) {
    api::LaunchAttribute& attribute = attributes[launch.attributeCount++];
    attribute.id = api::kClusterDimension;
    attribute.cluster = {config.cluster, 1, 1};
  }
  if (config.overlaps) {
    api::LaunchAttribute& attribute = attributes[launch.attributeCount++];
    attribute.id = api::kProgrammaticStreamSerialization;
    attribute.flag = 1;
  }
  if (sinceSynchronize_.size() == kNamedLaunches)
    sinceSynchronize_.erase(sinceSynchronize_.begin());
  sinceSynchronize_.push_back(&kernel);
  api::Result result = api_.launchKernelEx(&launch, kernel.function, arguments, nullptr);
  if (result != api::kSuccess) check(result, "cuLaunchKernelEx", details());
}

void GpuDriver::synchronize() {
  enter("synchronize");
  awaitRanks([this] { return api_.streamQuery(stream_); });
  check(api_.streamSynchronize(stream_), "cuStreamSynchronize");
  sinceSynchronize_.clear();
}

std::unique_ptr<Driver::Recorded> GpuDriver::record(const std::function<void()>& body) {
  enter("record");
  auto recorded = std::make_unique<RecordedGraph>(*this);
  auto before = std::exchange(sinceSynchronize_, {});
  check(api_.streamBeginCapture(stream_, api::kCaptureThreadLocal), "cuStreamBeginCapture");
  recording_ = true;
  try {
    body();
  } catch (...) {
    recording_ = false;
    api_.streamEndCapture(stream_, &recorded->graph);
    sinceSynchronize_ = std::move(before);
    throw;
  }
  recording_ = false;
  recorded->kernels = std::exchange(sinceSynchronize_, std::move(before));
  check(api_.streamEndCapture(stream_, &recorded->graph), "cuStreamEndCapture");
  check(api_.graphInstantiate(&recorded->exec, recorded->graph, 0), "cuGraphInstantiate");
  check(api_.graphUpload(recorded->exec, stream_), "cuGraphUpload");
  return recorded;
}

void GpuDriver::replay(Recorded& recorded) {
  enter("replay");
  auto& graph = static_cast<RecordedGraph&>(recorded);
  sinceSynchronize_ = graph.kernels;
  check(api_.graphLaunch(graph.exec, stream_), "cuGraphLaunch");
}

std::unique_ptr<Driver> openGpu(int place) { return std::make_unique<GpuDriver>(place); }

}  // namespace lathe::cuda
