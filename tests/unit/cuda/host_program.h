// SPDX-License-Identifier: Apache-2.0
#pragma once
// A compiled program on host execution, with the driver that runs it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "backends/cuda/device/tuning_measure.h"
#include "backends/cuda/device/tuning_record.h"
#include "backends/cuda/hostexec/host_driver.h"
#include "lathe/frontend/compile.h"
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

/// The program whose kernels are the candidates that begin with `wanted`, where a kernel has such a
/// candidate: what a test is about must not hang on what the model of time prefers.
inline std::shared_ptr<Program> compiledAs(const Graph& g, const std::string& wanted) {
  if (wanted.empty()) return std::make_shared<Program>(compile(g, {.backend = "cuda"}));
  const std::string path = ::testing::TempDir() + "wanted_" + std::to_string(getpid()) + ".txt";
  std::ofstream file(path);
  const Program candidates = compile(g, {.backend = "cuda", .target = "candidates"});
  for (const TuningProblem& p : tuningProblemsOf(candidates))
    for (const std::string& choice : p.choices)
      if (choice.starts_with(wanted)) {
        file << toText({"test", 9, 0, 132, p.problem, p.version, choice, 1, 0, "-", "2026-01-31"})
             << "\n";
        break;
      }
  file.close();
  setenv("LATHE_TUNING", path.c_str(), 1);
  auto program = std::make_shared<Program>(compile(g, {.backend = "cuda"}));
  unsetenv("LATHE_TUNING");
  std::filesystem::remove(path);
  return program;
}

}  // namespace lathe::cuda
