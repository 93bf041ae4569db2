// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `lathe selftest` asks of liblathe_selftest.so, which holds the table of conformance samples
// (tests/conformance/cases.h) and needs the compiler.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lathe/runtime/cost.h"
#include "lathe/runtime/dtype.h"

namespace lathe::selftest {

/// A row of the table.
struct Op {
  std::string name;           ///< "lathe.add"
  std::vector<DType> dtypes;  ///< all that it takes
};
struct Support {
  std::string word;    ///< yes, expanded or no
  std::string reason;  ///< of the latter two, in the backend's words
};

/// An op at a size whose speed is measured.
struct Kernel {
  std::string op;     ///< "lathe.linear"
  std::string shape;  ///< "M=16 K=2048 N=5632"
  DType dtype = DType::F32;
};
struct Measurement {
  std::string refused;             ///< if set: the backend's words, and nothing else
  std::vector<double> seconds;     ///< of all calls of the op, run by run
  std::optional<CostValues> work;  ///< of one run; nothing if the backend does not note costs
};

struct Api {
  /// {name}, or all but the reference for an empty name. Throws Error(Unsupported) for one that
  /// this build lacks.
  std::vector<std::string> (*backends)(const std::string& name);
  std::vector<DType> (*dtypes)();  ///< in the order of docs/support.md
  std::vector<Op> (*ops)();
  Support (*support)(const std::string& backend, const std::string& op, DType dtype);
  /// Empty if the backend agrees with the reference in float64 on every sample, or refuses the op;
  /// else a line for each output that differs.
  std::string (*test)(const std::string& backend, const std::string& op, DType dtype);
  std::vector<Kernel> (*kernels)();
  /// Times a kernel, by position in kernels(), on the process's threads and on random data. Writes
  /// `flushBytes` of other memory before each run, so that operands come from memory.
  Measurement (*measure)(const std::string& backend, size_t kernel, int64_t flushBytes);
};

inline constexpr char kApiSymbol[] = "latheSelftestApi";

}  // namespace lathe::selftest

extern "C" const lathe::selftest::Api* latheSelftestApi();
