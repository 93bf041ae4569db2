// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning/tuning_database.h"

#include <cstdlib>
#include <mutex>

#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe::cuda {
namespace {

const std::map<std::string, std::string>& embeddedFiles() {
  static const std::map<std::string, std::string> files{
#include "backends/cuda/tuning_records.inc"
  };
  return files;
}

std::string textOf(const std::string& path) {
  try {
    return readWholeFile(path, kTuningFile);
  } catch (const Error& e) {
    throw Error(e.code(), std::string("LATHE_TUNING: ") + e.what() +
                              "; it names a file of tuning records (docs/tuning.md)");
  }
}

std::shared_ptr<const TuningDatabase> load(const std::string& local) {
  std::vector<TuningRecord> all;
  auto add = [&](const std::string& text, const std::string& file) {
    for (TuningRecord& r : parseTuningRecords(text, file)) all.push_back(std::move(r));
  };
  for (auto& [name, text] : embeddedFiles()) add(text, name);
  if (!local.empty()) add(textOf(local), local);
  return std::make_shared<const TuningDatabase>(all);
}

}  // namespace

TuningDatabase::TuningDatabase(const std::vector<TuningRecord>& records) {
  for (const TuningRecord& r : records)
    if (r.major == 9 && r.minor == 0) records_[r.problem] = r;
}

const TuningRecord* TuningDatabase::find(std::string_view problem) const {
  auto it = records_.find(problem);
  return it == records_.end() ? nullptr : &it->second;
}

std::shared_ptr<const TuningDatabase> tuningDatabase() {
  static std::mutex mutex;
  static std::string loadedFrom;
  static std::shared_ptr<const TuningDatabase> loaded;
  const char* variable = std::getenv("LATHE_TUNING");
  const std::string local = variable ? variable : "";
  const std::lock_guard lock(mutex);
  if (!loaded || loadedFrom != local) {
    loaded = load(local);
    loadedFrom = local;
  }
  return loaded;
}

}  // namespace lathe::cuda
