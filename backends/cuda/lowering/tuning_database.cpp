// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/lowering/tuning_database.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "runtime/error.h"

namespace lathe::cuda {
namespace {

const std::map<std::string, std::string>& embeddedFiles() {
  static const std::map<std::string, std::string> files{
#include "backends/cuda/tuning_records.inc"
  };
  return files;
}

std::string textOf(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  char part[4096];
  while (file.read(part, sizeof part), file.gcount()) text.append(part, size_t(file.gcount()));
  std::error_code ignored;
  if (!file.is_open() || file.bad())  // a folder can be opened and not read
    throw Error(ErrorCode::Io,
                "LATHE_TUNING: cannot read '" + path + "'" +
                    (std::filesystem::is_directory(path, ignored) ? ", a folder" : "") +
                    "; it names a file of tuning records (docs/tuning.md)");
  return text;
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
