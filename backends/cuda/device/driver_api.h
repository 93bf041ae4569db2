// SPDX-License-Identifier: Apache-2.0
#pragma once
// What Lathe uses of the CUDA driver API, declared by hand: building needs no toolkit, and the
// library is opened when a GPU is asked for. Sizes, offsets and values are compared with cuda.h in
// tests/unit/cuda/gpu_driver_test.cpp.
#include <cstddef>
#include <cstdint>
#include <string>

namespace lathe::cuda::api {

using Result = int;
using Device = int;
using DevicePointer = unsigned long long;
using Context = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Library = struct LibraryTag*;
using LibraryKernel = struct LibraryKernelTag*;
using Function = struct FunctionTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;

constexpr Result kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100, kEccUncorrectable = 214,
                 kContained = 226, kNotReady = 600, kIllegalAddress = 700, kLaunchTimeout = 702,
                 kContextIsDestroyed = 709, kAssert = 710, kHardwareStackError = 714,
                 kLaunchFailed = 719;

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedPerBlockOptin = 97,
};
enum FunctionAttribute : int {
  kSharedSizeBytes = 1,
  kMaxDynamicSharedSizeBytes = 8,
  kPreferredSharedCarveout = 9,
};
constexpr int kCarveoutMaxShared = 100;
enum JitOption : int { kJitErrorLogBuffer = 5, kJitErrorLogBufferSizeBytes = 6 };
enum LaunchAttributeId : int { kClusterDimension = 4, kProgrammaticStreamSerialization = 6 };
constexpr unsigned kStreamNonBlocking = 1, kEventTiming = 0, kEventDisableTiming = 2;
constexpr int kCaptureThreadLocal = 1;

struct LaunchAttribute {
  int id = 0;
  char padding[4] = {};
  union {
    char bytes[64] = {};
    struct {
      unsigned x, y, z;
    } cluster;
    int flag;
  };
};
struct LaunchConfig {
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  Stream stream;
  LaunchAttribute* attributes;
  unsigned attributeCount;
};

constexpr int kMemoryDevice = 2;
/// CUDA_MEMCPY2D: each end has a place of its own kind, here an address on the device.
struct RowsEnd {
  size_t xBytes = 0, y = 0;
  int kind = kMemoryDevice;
  void* host = nullptr;
  DevicePointer device = 0;
  void* array = nullptr;
  size_t stride = 0;  ///< bytes from the beginning of a row to that of the next
};
struct RowsCopy {
  RowsEnd from, to;
  size_t bytes = 0, rows = 0;  ///< of a row; how many
};

/// The lowest CUDA version whose drivers run what this build's kernels are compiled to.
constexpr int kLowestDriver = 13000;
/// The version of the interface below: a function keeps this form in every later driver.
constexpr int kInterfaceVersion = 12040;

// F(member, name in the library, parameters)
#define LATHE_CUDA_FUNCTIONS(F)                                                         \
  F(init, cuInit, (unsigned))                                                           \
  F(driverGetVersion, cuDriverGetVersion, (int*))                                       \
  F(getErrorName, cuGetErrorName, (Result, const char**))                               \
  F(getErrorString, cuGetErrorString, (Result, const char**))                           \
  F(deviceGetCount, cuDeviceGetCount, (int*))                                           \
  F(deviceGet, cuDeviceGet, (Device*, int))                                             \
  F(deviceGetName, cuDeviceGetName, (char*, int, Device))                               \
  F(deviceGetUuid, cuDeviceGetUuid, (char*, Device))                                    \
  F(deviceTotalMem, cuDeviceTotalMem, (size_t*, Device))                                \
  F(deviceGetAttribute, cuDeviceGetAttribute, (int*, int, Device))                      \
  F(primaryCtxRetain, cuDevicePrimaryCtxRetain, (Context*, Device))                     \
  F(primaryCtxRelease, cuDevicePrimaryCtxRelease, (Device))                             \
  F(ctxSetCurrent, cuCtxSetCurrent, (Context))                                          \
  F(streamCreate, cuStreamCreate, (Stream*, unsigned))                                  \
  F(streamDestroy, cuStreamDestroy, (Stream))                                           \
  F(streamSynchronize, cuStreamSynchronize, (Stream))                                   \
  F(streamQuery, cuStreamQuery, (Stream))                                               \
  F(eventCreate, cuEventCreate, (Event*, unsigned))                                     \
  F(eventDestroy, cuEventDestroy, (Event))                                              \
  F(eventRecord, cuEventRecord, (Event, Stream))                                        \
  F(eventSynchronize, cuEventSynchronize, (Event))                                      \
  F(eventQuery, cuEventQuery, (Event))                                                  \
  F(eventElapsedTime, cuEventElapsedTime, (float*, Event, Event))                       \
  F(memAlloc, cuMemAlloc, (DevicePointer*, size_t))                                     \
  F(memFree, cuMemFree, (DevicePointer))                                                \
  F(memGetInfo, cuMemGetInfo, (size_t*, size_t*))                                       \
  F(memHostAlloc, cuMemHostAlloc, (void**, size_t, unsigned))                           \
  F(memFreeHost, cuMemFreeHost, (void*))                                                \
  F(memcpyHtoDAsync, cuMemcpyHtoDAsync, (DevicePointer, const void*, size_t, Stream))   \
  F(memcpyDtoHAsync, cuMemcpyDtoHAsync, (void*, DevicePointer, size_t, Stream))         \
  F(memcpyDtoDAsync, cuMemcpyDtoDAsync, (DevicePointer, DevicePointer, size_t, Stream)) \
  F(memcpy2DAsync, cuMemcpy2DAsync, (const RowsCopy*, Stream))                          \
  F(memsetD8Async, cuMemsetD8Async, (DevicePointer, unsigned char, size_t, Stream))     \
  F(libraryLoadData, cuLibraryLoadData,                                                 \
    (Library*, const void*, JitOption*, void**, unsigned, int*, void**, unsigned))      \
  F(libraryUnload, cuLibraryUnload, (Library))                                          \
  F(libraryGetKernel, cuLibraryGetKernel, (LibraryKernel*, Library, const char*))       \
  F(kernelGetFunction, cuKernelGetFunction, (Function*, LibraryKernel))                 \
  F(funcLoad, cuFuncLoad, (Function))                                                   \
  F(funcGetAttribute, cuFuncGetAttribute, (int*, int, Function))                        \
  F(funcSetAttribute, cuFuncSetAttribute, (Function, int, int))                         \
  F(launchKernelEx, cuLaunchKernelEx, (const LaunchConfig*, Function, void**, void**))  \
  F(streamBeginCapture, cuStreamBeginCapture, (Stream, int))                            \
  F(streamEndCapture, cuStreamEndCapture, (Stream, Graph*))                             \
  F(graphInstantiate, cuGraphInstantiate, (GraphExec*, Graph, unsigned long long))      \
  F(graphUpload, cuGraphUpload, (GraphExec, Stream))                                    \
  F(graphLaunch, cuGraphLaunch, (GraphExec, Stream))                                    \
  F(graphDestroy, cuGraphDestroy, (Graph))                                              \
  F(graphExecDestroy, cuGraphExecDestroy, (GraphExec))

/// The driver's functions. `open` finds what LATHE_LIBCUDA names, or else libcuda.so.1 where the
/// loader or a container has it, and every function below, and initialises it; throws Error
/// (Unsupported) for what is missing or too old.
struct DriverApi {
#define LATHE_CUDA_MEMBER(member, name, parameters) Result(*member) parameters = nullptr;
  LATHE_CUDA_FUNCTIONS(LATHE_CUDA_MEMBER)
#undef LATHE_CUDA_MEMBER

  static DriverApi open();
  /// "CUDA_ERROR_OUT_OF_MEMORY: out of memory"
  std::string describe(Result result) const;
};

}  // namespace lathe::cuda::api
