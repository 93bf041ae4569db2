// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled program on host execution, with the driver that runs it.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/device/program_code.h"
#include "backends/cuda/hostexec/host_driver.h"
#include "lathe/runtime/session.h"

namespace lathe::cuda {

class HostProgram {
 public:
  /// `options`: as LATHE_CUDA_HOST takes them.
  HostProgram(std::shared_ptr<const Program> program, const std::string& options)
      : session_(open(std::move(program), options)) {}

  Session& session() { return session_; }
  /// Of the session: device "host" has no other.
  HostDriver& driver() { return static_cast<HostDriver&>(*session_.device().memory()); }

 private:
  static Session open(std::shared_ptr<const Program> program, const std::string& options) {
    setenv("LATHE_CUDA_HOST", options.c_str(), 1);
    return Session(std::move(program), {.threads = 2, .device = "host"});
  }

  Session session_;
};

/// Launches of a run of `forward` with so many `rows`.
inline int64_t launchesOf(const Program& program, int64_t rows) {
  const KernelTable table = kernelTableOf(program);
  int64_t launches = 0;
  for (const Call& call : program.entry("forward").calls)
    for (const Variant& v : table.at(call.callee)) {
      if (!std::ranges::all_of(v.when, [&](const Condition& c) {
            const int64_t value = c.value.evaluate({{"rows", rows}}).value();
            return c.low <= value && value <= c.high;
          }))
        continue;
      launches += int64_t(v.launches.size());
      break;
    }
  return launches;
}

}  // namespace lathe::cuda
