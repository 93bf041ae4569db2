// SPDX-License-Identifier: Apache-2.0
#pragma once
// What runs kernels: a GPU through the driver API, or this CPU through host execution. One driver
// holds one stream; work on it is in order and asynchronous until `synchronize`.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device/library_attention.h"
#include "backends/cuda/device/library_matmul.h"
#include "lathe/runtime/communicator.h"
#include "lathe/runtime/device.h"

namespace lathe::cuda {

struct DeviceFacts {
  std::string name;  ///< "NVIDIA H200", "host execution (g++ 12.2.0, check)"
  int major = 0, minor = 0, multiprocessors = 0;
  int64_t memoryBytes = 0;
  std::string driver;  ///< version text
};

struct LaunchConfig {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t threads = 1;
  uint32_t cluster = 1;
  size_t sharedBytes = 0;
  /// Programmatic dependent launch: may start before the previous kernel has ended.
  bool overlaps = false;
  /// Bytes that the kernel may reach through each parameter, negative for what is no pointer: host
  /// execution checks it. Empty: as much as was allocated.
  std::vector<int64_t> extents = {};
  /// The parameter that points to zero words which the kernel leaves zero, or -1: host execution
  /// checks that it does.
  int counters = -1;
};

/// A kernel in every form that the program holds; a driver takes the one that it runs.
struct KernelCode {
  std::string name;    ///< the extern "C" name
  std::string source;  ///< the CUDA C++ text
  std::string cubin;   ///< sm_90a
  std::string ptx;     ///< compute_90
};

class Driver : public DeviceMemory {
 public:
  using Function = void*;
  /// A sequence of launches and copies that runs again with one call.
  class Recorded {
   public:
    virtual ~Recorded() = default;
  };

  virtual DeviceFacts facts() const = 0;

  /// Loads all kernels of a program at once; the functions in the order of `kernels`.
  virtual std::vector<Function> load(const std::vector<KernelCode>& kernels) = 0;
  /// `arguments` points to each parameter's value, as for cuLaunchKernel.
  virtual void launch(Function function, const LaunchConfig& config, void** arguments) = 0;

  /// Puts the product on the stream by a library of the vendor's: false if there is none, or none
  /// for this product. The first call must not be recorded: it loads the library.
  virtual bool multiply(const LibraryMatmul& matmul, const LibraryOperands& operands) {
    return false;
  }
  /// The same for an attention.
  virtual bool attend(const LibraryAttention& attention, const LibraryAttentionOperands& operands) {
    return false;
  }
  /// Who computes attention that is left to a library, for reports; "" before the first one.
  virtual std::string attentionReport() const { return {}; }
  /// Who computes large products, for reports; "" before the first one.
  virtual std::string matmulsReport() const { return {}; }

  /// For programs of several ranks, of which all call it at once: the end that joins what lies in
  /// this memory. Its calls are work like copies, and may be recorded. It goes with the driver.
  virtual Communicator* join(std::shared_ptr<Communicator> ranks) = 0;
  /// By what ranks are joined, for reports; "" where there are none.
  virtual std::string ranksReport() const { return {}; }

  /// Records what `body` launches and copies (device to device only) instead of running it.
  virtual std::unique_ptr<Recorded> record(const std::function<void()>& body) = 0;
  virtual void replay(Recorded& recorded) = 0;
  /// Waits for `count` replays, one behind the other; the seconds of each. On a GPU without what
  /// the host does to start them and to wait.
  virtual std::vector<double> replayTimes(Recorded& recorded, int count) = 0;
};

/// A GPU, through libcuda.so.1 (or the library that LATHE_LIBCUDA names): the first that this
/// process sees, or that which `place` is the number of, round and round. Throws Error
/// (Unsupported) that says what is missing: library, driver version, device.
std::unique_ptr<Driver> openGpu(int place = 0);
/// This CPU: every kernel is compiled by the host compiler and run by fibers, with checks as
/// LATHE_CUDA_HOST says (fast | check | asan; fast by default). Throws Error (Unsupported) without
/// a compiler.
std::unique_ptr<Driver> openHost();

}  // namespace lathe::cuda
