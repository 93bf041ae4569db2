// SPDX-License-Identifier: Apache-2.0
// A CUDA driver of host memory for tests. The stream is a queue that runs as late as it may: at
// synchronisation. So a copy from memory that was reused too early gives wrong numbers. Every call
// is logged. A work takes a microsecond. The environment says what it is and where it fails:
//   LATHE_MOCK_VERSION=13000 LATHE_MOCK_DEVICES=1 LATHE_MOCK_CAPABILITY=90
//   LATHE_MOCK_MISSING=cuFuncLoad      a function that is not there
//   LATHE_MOCK_FAIL=cuMemAlloc:2:999   the second call of it gives 999
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "backends/cuda/device/driver_api.h"

namespace {

using namespace lathe::cuda::api;

constexpr Result kInvalidValue = 1, kInvalidContext = 201, kNotFound = 500, kInvalidImage = 200,
                 kInvalidHandle = 400, kCaptureUnsupported = 900;

struct MockKernel {
  std::string name;
  int dynamicShared = 47 << 10;
  bool loaded = false;
};
struct MockLibrary {
  std::string image;
  std::map<std::string, MockKernel> kernels;
};
using Work = std::function<bool()>;  // false: it is not done yet, and is called again
struct MockGraph {
  std::vector<Work> works;
};

struct MockEvent {
  bool timed, recorded = false;
  size_t works = 0;  // before it
};

struct State {
  std::string log;
  std::map<std::string, int> calls;
  std::deque<Work> queue;  // what the stream has not run yet
  std::set<void*> memory, pinned;
  MockGraph* capture = nullptr;
  Context current = nullptr;
  int contexts = 0;
  size_t done = 0, queued = 0;  // works of the stream
  std::map<const void*, MockEvent> events;
};
State& state() {
  static State s;
  return s;
}

int number(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value ? std::atoi(value) : otherwise;
}

// Logs the call; the result it must fail with, or success.
Result enter(const std::string& name, const std::string& details = {}) {
  state().log += name + (details.empty() ? "" : " " + details) + "\n";
  const int count = ++state().calls[name];
  const char* fail = std::getenv("LATHE_MOCK_FAIL");
  if (!fail) return kSuccess;
  std::string text = fail;
  size_t first = text.find(':'), second = text.find(':', first + 1);
  if (text.substr(0, first) != name || std::stoi(text.substr(first + 1)) != count) return kSuccess;
  return std::stoi(text.substr(second + 1));
}
#define ENTER(...) \
  if (Result failed = enter(__VA_ARGS__)) return failed

// False: one of them is not done yet.
bool tryUpTo(size_t works) {
  State& s = state();
  for (; s.done < works; ++s.done) {
    if (!s.queue.front()()) return false;
    s.queue.pop_front();
  }
  return true;
}
void runUpTo(size_t works) {
  while (!tryUpTo(works)) continue;
}

Result putWork(Work work) {
  State& s = state();
  if (!s.current) return kInvalidContext;
  if (s.capture) {
    s.capture->works.push_back(std::move(work));
  } else {
    s.queue.push_back(std::move(work));
    ++s.queued;
  }
  return kSuccess;
}

template <class Do>
Result put(Do work) {
  return putWork([work] {
    work();
    return true;
  });
}

std::string text(size_t n) { return std::to_string(n); }
void* host(DevicePointer p) { return reinterpret_cast<void*>(p); }

Result cuInit(unsigned) {
  ENTER("cuInit");
  return number("LATHE_MOCK_DEVICES", 1) ? kSuccess : kNoDevice;
}
Result cuDeviceGetCount(int* count) {
  ENTER("cuDeviceGetCount");
  *count = number("LATHE_MOCK_DEVICES", 1);
  return kSuccess;
}
Result cuDeviceGet(Device* device, int index) {
  ENTER("cuDeviceGet");
  *device = index;
  return kSuccess;
}
Result cuDeviceGetName(char* name, int size, Device) {
  ENTER("cuDeviceGetName");
  std::strncpy(name, "Mock GPU", size_t(size));
  return kSuccess;
}
// Every one has its own.
Result cuDeviceGetUuid(char* id, Device device) {
  ENTER("cuDeviceGetUuid");
  std::memset(id, 1 + device, 16);
  return kSuccess;
}
Result cuDeviceTotalMem(size_t* bytes, Device) {
  ENTER("cuDeviceTotalMem");
  *bytes = size_t(80) << 30;
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int attribute, Device) {
  ENTER("cuDeviceGetAttribute", text(size_t(attribute)));
  const int capability = number("LATHE_MOCK_CAPABILITY", 90);
  if (attribute == kComputeCapabilityMajor) *value = capability / 10;
  if (attribute == kComputeCapabilityMinor) *value = capability % 10;
  if (attribute == kMultiprocessorCount) *value = 132;
  if (attribute == kMaxSharedPerBlockOptin) *value = 227 << 10;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device) {
  ENTER("cuDevicePrimaryCtxRetain");
  ++state().contexts;
  *context = reinterpret_cast<Context>(&state());
  return kSuccess;
}
Result cuDevicePrimaryCtxRelease(Device) {
  ENTER("cuDevicePrimaryCtxRelease");
  --state().contexts;
  return kSuccess;
}
Result cuCtxSetCurrent(Context context) {
  if (Result failed = enter("cuCtxSetCurrent")) return failed;
  state().current = context;
  return kSuccess;
}
Result cuStreamCreate(Stream* stream, unsigned flags) {
  ENTER("cuStreamCreate", text(flags));
  *stream = reinterpret_cast<Stream>(&state().queue);
  return kSuccess;
}
Result cuStreamDestroy(Stream) {
  ENTER("cuStreamDestroy");
  return kSuccess;
}
Result cuStreamSynchronize(Stream) {
  ENTER("cuStreamSynchronize");
  if (state().capture) return kCaptureUnsupported;
  runUpTo(state().queued);
  return kSuccess;
}
Result cuStreamQuery(Stream) {
  ENTER("cuStreamQuery");
  if (state().capture) return kCaptureUnsupported;
  return tryUpTo(state().queued) ? kSuccess : kNotReady;
}
Result cuEventCreate(Event* event, unsigned flags) {
  ENTER("cuEventCreate", text(flags));
  *event = reinterpret_cast<Event>(new char);
  state().events[*event] = {flags != kEventDisableTiming};
  return kSuccess;
}
Result cuEventDestroy(Event event) {
  ENTER("cuEventDestroy");
  state().events.erase(event);
  delete reinterpret_cast<char*>(event);
  return kSuccess;
}
Result cuEventRecord(Event event, Stream) {
  ENTER("cuEventRecord");
  MockEvent& e = state().events.at(event);
  e.recorded = true;
  e.works = state().queued;
  return kSuccess;
}
Result cuEventSynchronize(Event event) {
  ENTER("cuEventSynchronize");
  runUpTo(state().events.at(event).works);
  return kSuccess;
}
Result cuEventQuery(Event event) {
  ENTER("cuEventQuery");
  return tryUpTo(state().events.at(event).works) ? kSuccess : kNotReady;
}
Result cuEventElapsedTime(float* milliseconds, Event begin, Event end) {
  ENTER("cuEventElapsedTime");
  const MockEvent &b = state().events.at(begin), &e = state().events.at(end);
  if (!b.timed || !e.timed || !b.recorded || !e.recorded) return kInvalidHandle;
  if (e.works > state().done || b.works > state().done) return kNotReady;
  *milliseconds = 1e-3f * (float(e.works) - float(b.works));
  return kSuccess;
}
Result cuMemAlloc(DevicePointer* memory, size_t bytes) {
  ENTER("cuMemAlloc", text(bytes));
  if (bytes == 0) return kInvalidValue;
  if (bytes > size_t(1) << 32) return kOutOfMemory;
  void* p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(p, 0xcd, bytes);
  state().memory.insert(p);
  *memory = reinterpret_cast<DevicePointer>(p);
  return kSuccess;
}
Result cuMemFree(DevicePointer memory) {
  ENTER("cuMemFree");
  if (!state().memory.erase(host(memory))) return kInvalidValue;
  runUpTo(state().queued);
  std::free(host(memory));
  return kSuccess;
}
Result cuMemGetInfo(size_t* free, size_t* total) {
  ENTER("cuMemGetInfo");
  *free = 1000;
  *total = size_t(80) << 30;
  return kSuccess;
}
Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  ENTER("cuMemHostAlloc", text(bytes));
  *memory = std::malloc(bytes);
  state().pinned.insert(*memory);
  return kSuccess;
}
Result cuMemFreeHost(void* memory) {
  ENTER("cuMemFreeHost");
  if (!state().pinned.erase(memory)) return kInvalidValue;
  std::free(memory);
  return kSuccess;
}
Result copy(const char* name, void* to, const void* from, size_t bytes) {
  ENTER(name, text(bytes));
  return put([=] { std::memcpy(to, from, bytes); });
}
Result cuMemcpyHtoDAsync(DevicePointer to, const void* from, size_t bytes, Stream) {
  return copy("cuMemcpyHtoDAsync", host(to), from, bytes);
}
Result cuMemcpyDtoHAsync(void* to, DevicePointer from, size_t bytes, Stream) {
  return copy("cuMemcpyDtoHAsync", to, host(from), bytes);
}
Result cuMemcpyDtoDAsync(DevicePointer to, DevicePointer from, size_t bytes, Stream) {
  return copy("cuMemcpyDtoDAsync", host(to), host(from), bytes);
}
Result cuMemcpy2DAsync(const RowsCopy* given, Stream) {
  const RowsCopy c = *given;
  ENTER("cuMemcpy2DAsync", text(c.rows) + " times " + text(c.bytes));
  if (c.from.kind != kMemoryDevice || c.to.kind != kMemoryDevice || c.from.stride < c.bytes ||
      c.to.stride < c.bytes || c.from.xBytes || c.from.y || c.to.xBytes || c.to.y)
    return kInvalidValue;
  return put([c] {
    for (size_t row = 0; row < c.rows; ++row)
      std::memcpy(static_cast<char*>(host(c.to.device)) + row * c.to.stride,
                  static_cast<char*>(host(c.from.device)) + row * c.from.stride, c.bytes);
  });
}
Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, Stream) {
  ENTER("cuMemsetD8Async", text(bytes));
  return put([=] { std::memset(host(to), value, bytes); });
}
Result cuLibraryLoadData(Library* library, const void* image, JitOption* options, void** values,
                         unsigned count, int*, void**, unsigned) {
  std::string code = static_cast<const char*>(image);
  ENTER("cuLibraryLoadData", code.substr(0, 20));
  if (code.starts_with("bad")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == kJitErrorLogBuffer)
        std::strcpy(static_cast<char*>(values[i]), "ptxas application ptx input, line 28; error");
    return kInvalidImage;
  }
  *library = reinterpret_cast<Library>(new MockLibrary{code, {}});
  return kSuccess;
}
Result cuLibraryUnload(Library library) {
  ENTER("cuLibraryUnload");
  delete reinterpret_cast<MockLibrary*>(library);
  return kSuccess;
}
// An image is "cubin NAME" or "ptx NAME".
Result cuLibraryGetKernel(LibraryKernel* kernel, Library library, const char* name) {
  ENTER("cuLibraryGetKernel", name);
  auto& loaded = *reinterpret_cast<MockLibrary*>(library);
  if (!loaded.image.ends_with(std::string(" ") + name)) return kNotFound;
  loaded.kernels[name].name = name;
  *kernel = reinterpret_cast<LibraryKernel>(&loaded.kernels[name]);
  return kSuccess;
}
Result cuKernelGetFunction(Function* function, LibraryKernel kernel) {
  ENTER("cuKernelGetFunction");
  *function = reinterpret_cast<Function>(kernel);
  return kSuccess;
}
MockKernel& kernelOf(Function function) { return *reinterpret_cast<MockKernel*>(function); }
Result cuFuncLoad(Function function) {
  ENTER("cuFuncLoad");
  kernelOf(function).loaded = true;
  return kSuccess;
}
Result cuFuncGetAttribute(int* value, int attribute, Function function) {
  ENTER("cuFuncGetAttribute", text(size_t(attribute)));
  if (attribute != kSharedSizeBytes) return kInvalidValue;
  *value = 1024;
  return kSuccess;
}
Result cuFuncSetAttribute(Function function, int attribute, int value) {
  ENTER("cuFuncSetAttribute", text(size_t(attribute)) + " " + text(size_t(value)));
  if (attribute == kPreferredSharedCarveout)
    return value >= -1 && value <= 100 ? kSuccess : kInvalidValue;
  if (attribute != kMaxDynamicSharedSizeBytes || value + 1024 > 227 << 10) return kInvalidValue;
  kernelOf(function).dynamicShared = value;
  return kSuccess;
}
// "increment" adds one to the int that its first argument points to; values of arguments are taken
// at the launch, as a GPU does.
Result cuLaunchKernelEx(const LaunchConfig* c, Function function, void** arguments, void**) {
  const MockKernel& kernel = kernelOf(function);
  std::string details = kernel.name + " grid " + text(c->gridX) + "," + text(c->gridY) + "," +
                        text(c->gridZ) + " block " + text(c->blockX) + "," + text(c->blockY) + "," +
                        text(c->blockZ) + " shared " + text(c->sharedBytes);
  for (unsigned i = 0; i < c->attributeCount; ++i) {
    const LaunchAttribute& a = c->attributes[i];
    if (a.id == kClusterDimension)
      details +=
          " cluster " + text(a.cluster.x) + "," + text(a.cluster.y) + "," + text(a.cluster.z);
    else
      details += " attribute " + text(size_t(a.id)) + "=" + text(size_t(a.flag));
  }
  ENTER("cuLaunchKernelEx", details);
  if (!kernel.loaded || c->sharedBytes > unsigned(kernel.dynamicShared) || c->gridY > 65535)
    return kInvalidValue;
  if (kernel.name != "increment") return put([] {});
  int* target = *static_cast<int**>(arguments[0]);
  return put([target] { ++*target; });
}
Result cuStreamBeginCapture(Stream, int mode) {
  ENTER("cuStreamBeginCapture", text(size_t(mode)));
  state().capture = new MockGraph;
  return kSuccess;
}
Result cuStreamEndCapture(Stream, Graph* graph) {
  MockGraph* captured = state().capture;
  state().capture = nullptr;
  *graph = reinterpret_cast<Graph>(captured);
  ENTER("cuStreamEndCapture", text(captured->works.size()));
  return kSuccess;
}
Result cuGraphInstantiate(GraphExec* exec, Graph graph, unsigned long long) {
  ENTER("cuGraphInstantiate");
  *exec = reinterpret_cast<GraphExec>(new MockGraph(*reinterpret_cast<MockGraph*>(graph)));
  return kSuccess;
}
Result cuGraphUpload(GraphExec, Stream) {
  ENTER("cuGraphUpload");
  return kSuccess;
}
Result cuGraphLaunch(GraphExec exec, Stream) {
  ENTER("cuGraphLaunch");
  for (const Work& work : reinterpret_cast<MockGraph*>(exec)->works) putWork(work);
  return kSuccess;
}
Result cuGraphDestroy(Graph graph) {
  ENTER("cuGraphDestroy");
  delete reinterpret_cast<MockGraph*>(graph);
  return kSuccess;
}
Result cuGraphExecDestroy(GraphExec exec) {
  ENTER("cuGraphExecDestroy");
  delete reinterpret_cast<MockGraph*>(exec);
  return kSuccess;
}

}  // namespace

extern "C" {

Result cuDriverGetVersion(int* version) {
  *version = number("LATHE_MOCK_VERSION", 13000);
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  static const std::map<Result, const char*> names = {
      {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {kNotFound, "CUDA_ERROR_NOT_FOUND"},
      {kInvalidValue, "CUDA_ERROR_INVALID_VALUE"}};
  auto it = names.find(result);
  *name = it == names.end() ? nullptr : it->second;
  return *name ? kSuccess : kInvalidValue;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = result == kOutOfMemory      ? "out of memory"
          : result == kIllegalAddress ? "an illegal memory access was encountered"
                                      : "some text";
  return kSuccess;
}
Result cuGetProcAddress_v2(const char* name, void** address, int version, uint64_t, int* status) {
  static const std::map<std::string, void*> functions = {
#define LATHE_MOCK_ENTRY(member, name, parameters) {#name, reinterpret_cast<void*>(name)},
      LATHE_CUDA_FUNCTIONS(LATHE_MOCK_ENTRY)
#undef LATHE_MOCK_ENTRY
  };
  auto it = functions.find(name);
  const char* missing = std::getenv("LATHE_MOCK_MISSING");
  if (it == functions.end() || version != kInterfaceVersion || (missing && missing == it->first)) {
    *address = nullptr;
    *status = 1;
    return kNotFound;
  }
  *address = it->second;
  *status = 0;
  return kSuccess;
}

/// For other mocks: `step` is called in the stream's turn until it says that it is done.
Result mockPut(bool (*step)(void*), void* of) {
  return putWork([=] { return step(of); });
}
/// Since the last call of mockReset.
const char* mockLog() { return state().log.c_str(); }
/// Allocations, pinned buffers and contexts that are still there.
int mockLive() {
  return int(state().memory.size() + state().pinned.size() + state().events.size()) +
         state().contexts;
}
void mockReset() {
  state().log.clear();
  state().calls.clear();
}
}
