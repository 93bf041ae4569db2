// SPDX-License-Identifier: Apache-2.0
#pragma once
// Records of measurements that a test makes up, and programs that follow them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device/tuning_measure.h"
#include "backends/cuda/device/tuning_record.h"
#include "lathe/frontend/compile.h"

namespace lathe::cuda {

inline TuningRecord record(const std::string& problem, const std::string& choice, int version = 1) {
  TuningRecord r;
  r.device = "NVIDIA H200";
  r.major = 9;
  r.multiprocessors = 132;
  r.problem = problem;
  r.version = version;
  r.choice = choice;
  r.software = "driver 13.0";
  r.date = "2026-01-31";
  return r;
}

/// LATHE_TUNING names a file with these lines while it lives.
class LocalRecords {
 public:
  explicit LocalRecords(const std::vector<TuningRecord>& records) {
    static int number = 0;
    path_ = ::testing::TempDir() + "tuning_" + std::to_string(getpid()) + "_" +
            std::to_string(number++) + ".txt";
    std::ofstream file(path_);
    for (const TuningRecord& r : records) file << toText(r) << "\n";
    file.close();
    setenv("LATHE_TUNING", path_.c_str(), 1);
  }
  ~LocalRecords() {
    unsetenv("LATHE_TUNING");
    std::remove(path_.c_str());
  }

 private:
  std::string path_;
};

/// The program whose kernels are the candidates that begin with `wanted`, where a kernel has such a
/// candidate: what a test is about must not hang on what the model of time prefers.
inline std::shared_ptr<Program> compiledAs(const Graph& g, const std::string& wanted) {
  std::vector<TuningRecord> records;
  if (!wanted.empty())
    for (const TuningProblem& p : tuningProblemsOf(
             compile(g, {.backend = "cuda", .backendOptions = {.target = "candidates"}})))
      for (const std::string& choice : p.choices)
        if (choice.starts_with(wanted)) {
          records.push_back(record(p.problem, choice, p.version));
          break;
        }
  const LocalRecords local(records);
  return std::make_shared<Program>(compile(g, {.backend = "cuda"}));
}

}  // namespace lathe::cuda
