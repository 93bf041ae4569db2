// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/gpu_driver.h"

#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lathe/runtime/error.h"
#include "tests/cuda_mocks/mock_library.h"
#include "tests/unit/test_files.h"

// Only where a toolkit is installed; its macros rename functions, so it comes last.
#if __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#define LATHE_HAS_CUDA_HEADER 1
#endif

namespace lathe::cuda {
namespace {

using test::expectError;
using test::Variable;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class GpuDriverTest : public ::testing::Test {
 protected:
  GpuDriverTest() : library_("LATHE_LIBCUDA", test::mockPath("mock_cuda")) { reset(); }
  ~GpuDriverTest() override { EXPECT_EQ(live(), 0) << "something was not given back"; }

  std::string log() { return test::mockFunction<const char*()>("mock_cuda", "mockLog")(); }
  int live() { return test::mockFunction<int()>("mock_cuda", "mockLive")(); }
  void reset() { test::mockFunction<void()>("mock_cuda", "mockReset")(); }
  /// The lines of the log with `part`.
  std::vector<std::string> lines(const std::string& part) {
    std::istringstream in(log());
    std::vector<std::string> found;
    for (std::string line; std::getline(in, line);)
      if (line.find(part) != std::string::npos) found.push_back(line);
    return found;
  }
  static KernelCode code(const std::string& name) {
    return {name, "// text", "cubin " + name, "ptx " + name};
  }
  static int read(Driver& driver, const void* from) {
    int value = 0;
    driver.download(&value, from, sizeof(value));
    return value;
  }

  Variable library_;
};

TEST_F(GpuDriverTest, TellsTheDevicesFacts) {
  DeviceFacts facts = openGpu()->facts();
  EXPECT_EQ(facts.name, "Mock GPU");
  EXPECT_EQ(facts.major, 9);
  EXPECT_EQ(facts.minor, 0);
  EXPECT_EQ(facts.multiprocessors, 132);
  EXPECT_EQ(facts.memoryBytes, int64_t(80) << 30);
  EXPECT_EQ(facts.driver, "CUDA 13.0");
}

TEST_F(GpuDriverTest, NamesTheLibraryThatIsMissing) {
  Variable nowhere("LATHE_LIBCUDA", "/nowhere/libcuda.so.1");
  expectError(ErrorCode::Unsupported, "LATHE_LIBCUDA=/nowhere/libcuda.so.1: ", [] { openGpu(); });
  expectError(ErrorCode::Unsupported, "no CUDA driver is installed", [] { openGpu(); });
}

TEST_F(GpuDriverTest, LooksForTheDriverWhereContainersHaveIt) {
  Variable unset("LATHE_LIBCUDA", "");
  try {
    openGpu();
    GTEST_SKIP() << "a GPU is here";
  } catch (const Error& e) {
    if (std::string(e.what()).find("no CUDA driver is installed") == std::string::npos)
      GTEST_SKIP() << e.what();
    EXPECT_THAT(e.what(), HasSubstr("\n  libcuda.so.1: "));
    EXPECT_THAT(e.what(), HasSubstr("\n  /usr/local/nvidia/lib64/libcuda.so.1: "));
  }
}

TEST_F(GpuDriverTest, RefusesALibraryThatIsNoDriver) {
  Variable other("LATHE_LIBCUDA", "libm.so.6");
  expectError(ErrorCode::Unsupported, "libm.so.6 is no CUDA driver", [] { openGpu(); });
}

TEST_F(GpuDriverTest, RefusesADriverThatIsTooOld) {
  Variable old("LATHE_MOCK_VERSION", "12040");
  expectError(ErrorCode::Unsupported,
              "supports CUDA 12.4, expected CUDA 13.0 or later; install driver 580",
              [] { openGpu(); });
}

TEST_F(GpuDriverTest, NamesTheFunctionThatADriverLacks) {
  Variable missing("LATHE_MOCK_MISSING", "cuLaunchKernelEx");
  expectError(ErrorCode::Unsupported, "has no cuLaunchKernelEx", [] { openGpu(); });
}

TEST_F(GpuDriverTest, SaysThatThereIsNoGpu) {
  Variable none("LATHE_MOCK_DEVICES", "0");
  expectError(ErrorCode::Unsupported, "sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES",
              [] { openGpu(); });
}

TEST_F(GpuDriverTest, RefusesAGpuOlderThanHopper) {
  Variable ampere("LATHE_MOCK_CAPABILITY", "80");
  expectError(ErrorCode::Unsupported, "Mock GPU has compute capability 8.0; expected 9.0",
              [] { openGpu(); });
}

TEST_F(GpuDriverTest, GivesBackWhatItHoldsWhenOpeningFails) {
  for (const char* at : {"cuStreamCreate:1:999", "cuMemHostAlloc:2:2", "cuEventCreate:2:999"}) {
    Variable fail("LATHE_MOCK_FAIL", at);
    reset();
    EXPECT_THROW(openGpu(), Error) << at;
    EXPECT_EQ(live(), 0) << at;
  }
}

TEST_F(GpuDriverTest, CopiesGoThroughPinnedMemory) {
  auto driver = openGpu();
  // The mock's stream runs at synchronisation: the source is overwritten long before.
  for (size_t bytes : {size_t(1), size_t(31), size_t(257), StagingBuffer::kHalf,
                       StagingBuffer::kHalf + 1, 3 * StagingBuffer::kHalf + 77}) {
    std::vector<unsigned char> sent(bytes), kept, got(bytes);
    for (size_t i = 0; i < bytes; ++i)
      sent[i] = static_cast<unsigned char>(i * 7 + i / 251 + bytes);
    kept = sent;
    void* memory = driver->allocate(bytes, "test");
    void* twin = driver->allocate(bytes, "twin");
    driver->upload(memory, sent.data(), bytes);
    std::fill(sent.begin(), sent.end(), 0);
    driver->copy(twin, memory, bytes);
    driver->zero(memory, bytes);
    driver->download(got.data(), twin, bytes);
    EXPECT_TRUE(got == kept) << bytes;
    driver->download(got.data(), memory, bytes);
    EXPECT_TRUE(got == sent) << bytes;
    driver->release(memory);
    driver->release(twin);
  }
}

TEST_F(GpuDriverTest, ManySmallUploadsDoNotWait) {
  auto driver = openGpu();
  constexpr int kCount = 1000;
  auto* memory = static_cast<int*>(driver->allocate(kCount * sizeof(int), "test"));
  for (int i = 0; i < kCount; ++i) {
    const int value = i * i;
    driver->upload(memory + i, &value, sizeof(value));
  }
  EXPECT_TRUE(lines("Synchronize").empty());
  std::vector<int> got(kCount);
  driver->download(got.data(), memory, kCount * sizeof(int));
  for (int i = 0; i < kCount; ++i) ASSERT_EQ(got[size_t(i)], i * i);
  driver->release(memory);
}

TEST_F(GpuDriverTest, CopiesOfNothingKeepWhatIsUnderWay) {
  auto driver = openGpu();
  void* memory = driver->allocate(4, "test");
  int first = 11, second = 22;
  driver->upload(memory, &first, 4);
  driver->download(nullptr, memory, 0);
  driver->upload(nullptr, nullptr, 0);
  driver->copy(memory, memory, 0);
  driver->zero(memory, 0);
  void* other = driver->allocate(0, "nothing");
  void* more = driver->allocate(4, "test");
  driver->upload(more, &second, 4);
  EXPECT_EQ(read(*driver, memory), 11);
  for (void* m : {memory, other, more}) driver->release(m);
}

TEST_F(GpuDriverTest, OutOfMemoryTellsTheSizes) {
  auto driver = openGpu();
  expectError(ErrorCode::OutOfMemory,
              "cuMemAlloc (8589934592 bytes for weights; 1000 bytes of 85899345920 bytes are free) "
              "failed on Mock GPU: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
              [&] { driver->allocate(size_t(8) << 30, "weights"); });
  // It is no end: smaller memory can still be had.
  driver->release(driver->allocate(16, "test"));
}

TEST_F(GpuDriverTest, LoadsCubinsOnHopperAndPtxElsewhere) {
  openGpu()->load({code("first"), code("second")});
  EXPECT_THAT(lines("cuLibraryLoadData"),
              ElementsAre("cuLibraryLoadData cubin first", "cuLibraryLoadData cubin second"));
  reset();
  Variable blackwell("LATHE_MOCK_CAPABILITY", "100");
  openGpu()->load({code("first")});
  EXPECT_THAT(lines("cuLibraryLoadData"), ElementsAre("cuLibraryLoadData ptx first"));
  expectError(ErrorCode::Unsupported,
              "kernel 'wide' has no code for Mock GPU (compute capability 10.0)",
              [] { openGpu()->load({{"wide", "", "cubin wide", ""}}); });
}

TEST_F(GpuDriverTest, AKernelThatDoesNotLoadIsNamedWithTheDriversLog) {
  auto driver = openGpu();
  driver->load({code("good")});
  reset();
  expectError(ErrorCode::Io,
              "cuLibraryLoadData (kernel 'broken', its cubin for sm_90a, 9 bytes; the driver says: "
              "ptxas application ptx input, line 28; error) failed on Mock GPU: "
              "CUDA_ERROR_INVALID_IMAGE",
              [&] { driver->load({code("other"), {"broken", "", "bad image", ""}}); });
  EXPECT_EQ(lines("cuLibraryUnload").size(), 1u) << "what was loaded before it is unloaded";
  expectError(ErrorCode::Io, "cuLibraryGetKernel (kernel 'renamed')",
              [&] { driver->load({{"renamed", "", "cubin name", ""}}); });
}

TEST_F(GpuDriverTest, LaunchesWithTheConfigurationsAttributes) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("kernel")})[0];
  reset();
  driver->launch(f, {{1, 31, 257}, 96, 1, 0, false}, nullptr);
  driver->launch(f, {{8, 1, 1}, 256, 4, 1024, false}, nullptr);
  driver->launch(f, {{8, 1, 1}, 256, 2, 1024, true}, nullptr);
  EXPECT_THAT(
      lines("cuLaunchKernelEx"),
      ElementsAre("cuLaunchKernelEx kernel grid 1,31,257 block 96,1,1 shared 0",
                  "cuLaunchKernelEx kernel grid 8,1,1 block 256,1,1 shared 1024 cluster 4,1,1",
                  "cuLaunchKernelEx kernel grid 8,1,1 block 256,1,1 shared 1024 cluster 2,1,1 "
                  "attribute 6=1"));
}

TEST_F(GpuDriverTest, AnEmptyGridLaunchesNothing) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("kernel")})[0];
  for (int axis = 0; axis < 3; ++axis) {
    LaunchConfig config;
    config.grid[axis] = 0;
    driver->launch(f, config, nullptr);
  }
  EXPECT_TRUE(lines("cuLaunchKernelEx").empty());
}

TEST_F(GpuDriverTest, AsksOnceForMoreThan48KiBOfSharedMemory) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("kernel")})[0];
  auto launch = [&](size_t shared) {
    driver->launch(f, {{1, 1, 1}, 128, 1, shared, false}, nullptr);
  };
  // 1,024 bytes of the mock's kernels are static.
  launch(47 << 10);
  EXPECT_TRUE(lines("cuFuncSetAttribute 8 ").empty());
  launch(100 << 10);
  launch(100 << 10);
  launch(60 << 10);
  EXPECT_THAT(lines("cuFuncSetAttribute 8 "), ElementsAre("cuFuncSetAttribute 8 102400"));
  launch((227 << 10) - 1024);
  expectError(ErrorCode::Unsupported, "a block of Mock GPU has 232448 bytes",
              [&] { launch((227 << 10) - 1023); });
}

TEST_F(GpuDriverTest, KernelsDivideL1AndSharedMemoryInOneWay) {
  openGpu()->load({code("first"), code("second")});
  EXPECT_THAT(lines("cuFuncSetAttribute"),
              ElementsAre("cuFuncSetAttribute 9 100", "cuFuncSetAttribute 9 100"));
}

TEST_F(GpuDriverTest, AFailedLaunchTellsItsConfiguration) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("kernel")})[0];
  expectError(ErrorCode::Io,
              "cuLaunchKernelEx (kernel 'kernel', grid 1 x 70000 x 1, 256 threads, clusters of 1, "
              "0 bytes dynamic and 1024 bytes static shared memory) failed on Mock GPU: "
              "CUDA_ERROR_INVALID_VALUE",
              [&] { driver->launch(f, {{1, 70000, 1}, 256, 1, 0, false}, nullptr); });
}

TEST_F(GpuDriverTest, RecordsNowAndRunsAtEveryReplay) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("increment")})[0];
  void* value = driver->allocate(sizeof(int), "value");
  void* copied = driver->allocate(sizeof(int), "copied");
  driver->zero(value, sizeof(int));
  reset();
  auto recorded = driver->record([&] {
    // The argument's memory is gone before the replay: its value must have been taken.
    void* pointer = value;
    void* arguments[] = {&pointer};
    driver->launch(f, {}, arguments);
    driver->copy(copied, value, sizeof(int));
    driver->launch(f, {}, arguments);
  });
  EXPECT_THAT(lines("Capture"), ElementsAre("cuStreamBeginCapture 1", "cuStreamEndCapture 3"));
  EXPECT_EQ(read(*driver, value), 0);
  driver->replay(*recorded);
  driver->replay(*recorded);
  EXPECT_EQ(read(*driver, value), 4);
  EXPECT_EQ(read(*driver, copied), 3);
  EXPECT_EQ(lines("cuLaunchKernelEx").size(), 2u);
  EXPECT_EQ(lines("cuGraphLaunch").size(), 2u);
  driver->release(value);
  driver->release(copied);
}

TEST_F(GpuDriverTest, TimesReplaysThatWaitForNothingBetween) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("kernel")})[0];
  auto recorded = driver->record([&] {
    for (int i = 0; i < 31; ++i) driver->launch(f, {}, nullptr);
  });
  reset();
  // A work of the mock takes a microsecond.
  EXPECT_THAT(driver->replayTimes(*recorded, 3),
              ::testing::Each(::testing::DoubleNear(31e-6, 1e-9)));
  EXPECT_EQ(lines("Synchronize").size(), 1u);
  EXPECT_EQ(lines("cuGraphLaunch").size(), 4u) << "one goes ahead, while the others are queued";
  EXPECT_EQ(driver->replayTimes(*recorded, 0), std::vector<double>());
}

TEST_F(GpuDriverTest, EventsAreGivenBackWhenTimingFails) {
  auto driver = openGpu();
  auto recorded = driver->record([] {});
  for (const char* at : {"cuEventCreate:2:999", "cuEventRecord:2:999", "cuEventElapsedTime:1:999",
                         "cuGraphLaunch:2:999", "cuStreamSynchronize:1:999"}) {
    Variable fail("LATHE_MOCK_FAIL", at);
    reset();
    EXPECT_THROW(driver->replayTimes(*recorded, 2), Error) << at;
  }
  EXPECT_EQ(driver->replayTimes(*recorded, 2).size(), 2u);
}

TEST_F(GpuDriverTest, WhatCannotBeRecordedIsRefusedAndTheRecordingEnds) {
  auto driver = openGpu();
  int word = 0;
  void* value = driver->allocate(sizeof(int), "value");
  const auto earlier = driver->record([] {});
  for (const std::function<void()>& body : std::vector<std::function<void()>>{
           [&] { driver->upload(value, &word, sizeof(int)); },
           [&] { driver->download(&word, value, sizeof(int)); },
           [&] { driver->synchronize(); },
           [&] { driver->allocate(1, "more"); },
           [&] { driver->record([] {}); },
           [&] { driver->replayTimes(*earlier, 1); },
       })
    expectError(ErrorCode::InvalidArgument, "cannot be recorded", [&] { driver->record(body); });
  // The driver works on, and the stream captures no more.
  word = 5;
  driver->upload(value, &word, sizeof(int));
  EXPECT_EQ(read(*driver, value), 5);
  driver->release(value);
}

TEST_F(GpuDriverTest, AFailureInsideARecordingIsToldAndClearedUp) {
  auto driver = openGpu();
  for (const char* at :
       {"cuStreamEndCapture:1:999", "cuGraphInstantiate:1:2", "cuGraphUpload:1:999"}) {
    Variable fail("LATHE_MOCK_FAIL", at);
    reset();
    EXPECT_THROW(driver->record([] {}), Error) << at;
    EXPECT_EQ(lines("cuGraphDestroy").size(), 1u) << at;
  }
  driver->replay(*driver->record([] {}));
}

TEST_F(GpuDriverTest, AfterAnErrorOfTheGpuEveryCallRepeatsTheReason) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("first"), code("second")})[1];
  void* value = driver->allocate(sizeof(int), "value");
  driver->launch(f, {}, nullptr);
  Variable fail("LATHE_MOCK_FAIL", "cuStreamSynchronize:1:700");
  reset();
  const std::string reason =
      "cuStreamSynchronize failed on Mock GPU: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory "
      "access was encountered\nlast launched: second\nCUDA_LAUNCH_BLOCKING=1";
  expectError(ErrorCode::Io, reason, [&] { driver->synchronize(); });
  expectError(ErrorCode::Io,
              "launch: the GPU cannot be used by this process any more, since: " + reason,
              [&] { driver->launch(f, {}, nullptr); });
  expectError(ErrorCode::Io, "start the process again", [&] { driver->allocate(4, "more"); });
  driver->release(value);  // does not throw
}

TEST_F(GpuDriverTest, ALaunchThatFailsForItsConfigurationIsNoEnd) {
  auto driver = openGpu();
  Driver::Function f = driver->load({code("kernel")})[0];
  Variable fail("LATHE_MOCK_FAIL", "cuLaunchKernelEx:1:701");
  expectError(ErrorCode::Io, "CUDA error 701", [&] { driver->launch(f, {}, nullptr); });
  driver->launch(f, {}, nullptr);
  driver->synchronize();
}

TEST_F(GpuDriverTest, ReportsTheLatestLaunchesOnly) {
  auto driver = openGpu();
  std::vector<KernelCode> codes;
  for (int i = 10; i < 20; ++i) codes.push_back(code("k" + std::to_string(i)));
  for (Driver::Function f : driver->load(codes)) driver->launch(f, {}, nullptr);
  Variable fail("LATHE_MOCK_FAIL", "cuStreamSynchronize:1:719");
  expectError(ErrorCode::Io, "last launched: k12 k13 k14 k15 k16 k17 k18 k19\n",
              [&] { driver->synchronize(); });
}

#ifdef LATHE_HAS_CUDA_HEADER
// Two C interfaces agree where every parameter has the same size and is a pointer in both or none.
template <class... A>
constexpr bool sameInterface(int (*)(A...), auto other) {
  return []<class... B>(CUresult (*)(B...)) {
    if constexpr (sizeof...(A) != sizeof...(B))
      return false;
    else
      return ((sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B>) && ...);
  }(other);
}

TEST(DriverApiTest, IsTheToolkitsInterface) {
  api::DriverApi a;
#define LATHE_COMPARE(member, name, parameters) \
  static_assert(sameInterface(decltype(a.member)(), decltype (&::name)()), #name);
  LATHE_CUDA_FUNCTIONS(LATHE_COMPARE)
#undef LATHE_COMPARE
  static_assert(sizeof(api::LaunchConfig) == sizeof(CUlaunchConfig));
  static_assert(offsetof(api::LaunchConfig, sharedBytes) ==
                offsetof(CUlaunchConfig, sharedMemBytes));
  static_assert(offsetof(api::LaunchConfig, stream) == offsetof(CUlaunchConfig, hStream));
  static_assert(offsetof(api::LaunchConfig, attributes) == offsetof(CUlaunchConfig, attrs));
  static_assert(offsetof(api::LaunchConfig, attributeCount) == offsetof(CUlaunchConfig, numAttrs));
  static_assert(sizeof(api::LaunchAttribute) == sizeof(CUlaunchAttribute));
  static_assert(offsetof(api::LaunchAttribute, bytes) == offsetof(CUlaunchAttribute, value));
  static_assert(sizeof(api::RowsCopy) == sizeof(CUDA_MEMCPY2D));
  static_assert(offsetof(api::RowsCopy, from.kind) == offsetof(CUDA_MEMCPY2D, srcMemoryType));
  static_assert(offsetof(api::RowsCopy, from.device) == offsetof(CUDA_MEMCPY2D, srcDevice));
  static_assert(offsetof(api::RowsCopy, from.stride) == offsetof(CUDA_MEMCPY2D, srcPitch));
  static_assert(offsetof(api::RowsCopy, to.kind) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
  static_assert(offsetof(api::RowsCopy, to.device) == offsetof(CUDA_MEMCPY2D, dstDevice));
  static_assert(offsetof(api::RowsCopy, to.stride) == offsetof(CUDA_MEMCPY2D, dstPitch));
  static_assert(offsetof(api::RowsCopy, bytes) == offsetof(CUDA_MEMCPY2D, WidthInBytes));
  static_assert(offsetof(api::RowsCopy, rows) == offsetof(CUDA_MEMCPY2D, Height));
  static_assert(int(api::kMemoryDevice) == CU_MEMORYTYPE_DEVICE);
  static_assert(int(api::kSuccess) == CUDA_SUCCESS);
  static_assert(int(api::kNotReady) == CUDA_ERROR_NOT_READY);
  static_assert(int(api::kOutOfMemory) == CUDA_ERROR_OUT_OF_MEMORY);
  static_assert(int(api::kNoDevice) == CUDA_ERROR_NO_DEVICE);
  static_assert(int(api::kEccUncorrectable) == CUDA_ERROR_ECC_UNCORRECTABLE);
  static_assert(int(api::kContained) == CUDA_ERROR_CONTAINED);
  static_assert(int(api::kIllegalAddress) == CUDA_ERROR_ILLEGAL_ADDRESS);
  static_assert(int(api::kLaunchTimeout) == CUDA_ERROR_LAUNCH_TIMEOUT);
  static_assert(int(api::kContextIsDestroyed) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  static_assert(int(api::kAssert) == CUDA_ERROR_ASSERT);
  static_assert(int(api::kHardwareStackError) == CUDA_ERROR_HARDWARE_STACK_ERROR);
  static_assert(int(api::kLaunchFailed) == CUDA_ERROR_LAUNCH_FAILED);
  static_assert(int(api::kMultiprocessorCount) == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  static_assert(int(api::kComputeCapabilityMajor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  static_assert(int(api::kComputeCapabilityMinor) == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  static_assert(int(api::kMaxSharedPerBlockOptin) ==
                CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  static_assert(int(api::kSharedSizeBytes) == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  static_assert(int(api::kMaxDynamicSharedSizeBytes) ==
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  static_assert(int(api::kPreferredSharedCarveout) ==
                CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  static_assert(int(api::kCarveoutMaxShared) == CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
  static_assert(int(api::kJitErrorLogBuffer) == CU_JIT_ERROR_LOG_BUFFER);
  static_assert(int(api::kJitErrorLogBufferSizeBytes) == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  static_assert(int(api::kClusterDimension) == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  static_assert(int(api::kProgrammaticStreamSerialization) ==
                CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  static_assert(int(api::kStreamNonBlocking) == CU_STREAM_NON_BLOCKING);
  static_assert(int(api::kEventTiming) == CU_EVENT_DEFAULT);
  static_assert(int(api::kEventDisableTiming) == CU_EVENT_DISABLE_TIMING);
  static_assert(int(api::kCaptureThreadLocal) == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  EXPECT_GE(CUDA_VERSION, api::kLowestDriver);
}
#endif

}  // namespace
}  // namespace lathe::cuda
