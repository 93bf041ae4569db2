// SPDX-License-Identifier: Apache-2.0
#pragma once
// The run side of a backend: it turns a program's calls into kernels.
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/program.h"

namespace lathe {

class Communicator;

/// The concrete shapes of a call's operands and results, in this order.
struct KernelShapes {
  std::vector<Shape> shapes;
  const SymbolValues* symbols = nullptr;
};

/// One call of a program, ready to run. Belongs to one session.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Called when the symbols' values change and before the first run. Returns the bytes of scratch
  /// memory that `run` needs.
  virtual size_t bind(const KernelShapes& shapes) = 0;
  /// `pointers`: operands, then results, dense row-major; `scratch` is 64-byte aligned. Throws
  /// Error for values that the op's definition forbids (an index out of range).
  virtual void run(void* const* pointers, std::byte* scratch) = 0;
};

/// Memory that is not the host's. Work on it is in order and may be asynchronous until
/// `synchronize`; host memory may be reused as soon as a call returns.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Aligned to 256 bytes; throws Error (OutOfMemory) with the sizes. `name` is for reports.
  virtual void* allocate(size_t bytes, std::string_view name) = 0;
  virtual void release(void* memory) = 0;
  /// Host to device, device to host, device to device.
  virtual void upload(void* to, const void* from, size_t bytes) = 0;
  virtual void download(void* to, const void* from, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  /// `rows` pieces of `bytes` bytes, device to device: the next one begins `toStride` bytes behind
  /// the beginning of the one before, and `fromStride`.
  virtual void copyRows(void* to, size_t toStride, const void* from, size_t fromStride,
                        size_t bytes, size_t rows);
  /// Sets bytes to zero.
  virtual void zero(void* to, size_t bytes) = 0;
  /// Waits; throws Error for what went wrong since the last call.
  virtual void synchronize() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  /// Where operands and results must be; null: in host memory.
  virtual DeviceMemory* memory() { return nullptr; }
  /// For programs of several ranks: the end by which kernels join values that lie in memory(). Its
  /// calls are work like copies there, and may be recorded. Null: there is none, and where memory()
  /// is null, DeviceOptions::ranks does it.
  virtual Communicator* collectives() { return nullptr; }
  /// Before the runs that the next finish() ends.
  virtual void start() {}
  /// Runs the calls of an entry point, which `launch` starts. `entry` tells entry points apart;
  /// `same` says that nothing but the contents of buffers has changed since its last run, so that
  /// the launches may be recorded and played again.
  virtual void run(const void* entry, bool same, const std::function<void()>& launch) { launch(); }
  /// After one `run` or several: waits, and throws Error for what went wrong on the device.
  virtual void finish() {}
  virtual std::unique_ptr<Kernel> makeKernel(const Program& program, const EntryPoint& entry,
                                             const Call& call) = 0;
  /// Lines for the compile report: implementations chosen, fall-backs taken.
  virtual std::vector<std::string> report() const { return {}; }
};

/// Options of a session that devices see.
struct DeviceOptions {
  int threads = 0;          ///< 0: all
  std::string device = {};  ///< SessionOptions::device
  /// This rank's end, where several run the program: all open their devices at once.
  std::shared_ptr<Communicator> ranks = {};
};

using DeviceFactory =
    std::function<std::unique_ptr<Device>(std::shared_ptr<const Program>, const DeviceOptions&)>;
/// Tokens of a prompt that one `prefill` call takes at most where a backend says nothing else.
inline constexpr int64_t kPromptTokens = 512;
/// Backends call it once at start-up. `promptTokens`: longer prompts run in chunks of so many, so
/// that intermediate results stay small; a device whose products need more rows to be at their peak
/// asks for more. Throws Error(InvalidArgument) for less than 1.
void registerDevice(std::string name, DeviceFactory factory, int64_t promptTokens = kPromptTokens);
bool hasDevice(std::string_view name);
/// Of the device that runs the programs of a backend; kPromptTokens where this process has none.
int64_t promptTokensOf(std::string_view backend);
/// Throws Error (Unsupported) naming the devices that this process has.
std::unique_ptr<Device> openDevice(std::shared_ptr<const Program> program,
                                   const DeviceOptions& options);

}  // namespace lathe
