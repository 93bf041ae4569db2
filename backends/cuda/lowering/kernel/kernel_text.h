// SPDX-License-Identifier: Apache-2.0
#pragma once
// What printers of kernels hand over, and the parameter list that a kernel's text and its launches
// agree on.
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device/kernel_table.h"
#include "lathe/runtime/dtype.h"

namespace lathe::cuda {

struct KernelText {
  std::string name;    ///< the extern "C" name
  std::string source;  ///< CUDA C++; includes lathe_device.cuh and templates alone
};

/// The kernels of one call and when each of them is taken.
struct KernelSet {
  std::vector<KernelText> kernels;
  std::vector<Variant> variants;
  /// (operand, result) pairs of a printed region that may be one buffer. Several of them may be
  /// used together.
  std::vector<std::pair<unsigned, unsigned>> inPlace = {};
};

/// The name of an element type in kernel text: "bf16", "float", "i64"; a boolean is a "u8".
std::string_view elementType(DType dtype);

/// A number as an exact literal of type float (`wide`: double).
std::string realLiteral(double value, bool wide = false);

/// Parameters and arguments of one kernel, added together.
class KernelParameters {
 public:
  /// A pointer to operand or result `index` of the call. Inputs are not `__restrict__`: the
  /// compiler would read them as constants of the kernel, ahead of its wait for the previous one.
  void input(std::string_view type, std::string_view name, int index);
  void output(std::string_view type, std::string_view name, int index);
  /// A pointer into the call's scratch memory; `at` is a multiple of 256.
  void scratch(std::string_view type, std::string_view name, const DimExpr& at);
  /// u32 words that are zero when the kernel starts and when it ends.
  void counters(std::string_view name, int64_t count);
  /// The status word of a check.
  void status(std::string_view name, IndexCheck check);
  /// A parameter as it is declared: "const bf16* __restrict__ gain".
  void add(std::string declaration, Argument argument);
  /// The value as kernel text: a literal, or a parameter of that name (one for equal values).
  std::string size(std::string_view name, const DimExpr& value);

  const std::string& list() const { return list_; }
  const std::vector<Argument>& arguments() const { return arguments_; }
  const std::vector<IndexCheck>& checks() const { return checks_; }

 private:
  std::string list_;
  std::vector<Argument> arguments_;
  std::vector<IndexCheck> checks_;
  std::map<std::string, std::string> sizes_;  // canonical text to parameter
};

/// `__launch_bounds__(threads, blocks)`: the compiler keeps to the registers with which `blocks`
/// blocks run on a multiprocessor. Without that number it aims at an occupancy of its own and moves
/// values to local memory for it.
std::string launchBounds(int threads, int blocks = 1);

/// `extern "C" __global__ void launchBounds name(parameters) { body }`.
std::string kernelFunction(std::string_view name, int threads, const KernelParameters& parameters,
                           std::string_view body, int blocks = 1);

}  // namespace lathe::cuda
