// SPDX-License-Identifier: Apache-2.0
#pragma once
// The run side of a backend: it turns a program's calls into kernels.
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/program.h"

namespace lathe {

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

class Device {
 public:
  virtual ~Device() = default;
  virtual std::unique_ptr<Kernel> makeKernel(const Program& program, const EntryPoint& entry,
                                             const Call& call) = 0;
  /// Lines for the compile report: implementations chosen, fall-backs taken.
  virtual std::vector<std::string> report() const { return {}; }
};

/// Options of a session that devices see.
struct DeviceOptions {
  int threads = 0;  ///< 0: all
};

using DeviceFactory =
    std::function<std::unique_ptr<Device>(std::shared_ptr<const Program>, const DeviceOptions&)>;
/// Backends call it once at start-up.
void registerDevice(std::string name, DeviceFactory factory);
/// Throws Error (Unsupported) naming the devices that this process has.
std::unique_ptr<Device> openDevice(std::shared_ptr<const Program> program,
                                   const DeviceOptions& options);

}  // namespace lathe
