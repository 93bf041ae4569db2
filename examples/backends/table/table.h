// SPDX-License-Identifier: Apache-2.0
#pragma once
// What both sides of the example backend know: the functions that it has, by the names of the ops.
#include <cstddef>
#include <memory>
#include <string_view>

#include "lathe/runtime/device.h"

namespace lathe {
class Backend;
}

namespace table {

/// One element of the result from one of each operand.
struct Function {
  std::string_view kind;  ///< "add"; "compare_lt" for an op with a predicate
  size_t operands;
  double (*apply)(const double* x);
};
/// A reduction: what an empty one gives, and how one more element is taken in.
struct Fold {
  std::string_view kind;
  double start;
  double (*take)(double total, double x);
};
/// Null for an op that is not in the table.
const Function* findFunction(std::string_view kind);
const Fold* findFold(std::string_view kind);

/// The table computes in double: floats and bool (0 and 1), which double holds exactly.
constexpr bool isHeld(lathe::DType dtype) {
  using enum lathe::DType;
  return dtype == F64 || dtype == F32 || dtype == BF16 || dtype == F16 || dtype == Bool;
}

std::unique_ptr<lathe::Backend> makeBackend();
std::unique_ptr<lathe::Device> makeDevice(std::shared_ptr<const lathe::Program> program,
                                          const lathe::DeviceOptions& options);

}  // namespace table
