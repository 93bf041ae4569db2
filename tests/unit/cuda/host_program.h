// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled program on host execution, with the driver that runs it.
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

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

}  // namespace lathe::cuda
