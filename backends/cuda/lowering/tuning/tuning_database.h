// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measured choices: the records in backends/cuda/tuning, which are part of this library, and behind
// them those of the file that LATHE_TUNING names.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cuda/device/tuning_record.h"

namespace lathe::cuda {

class TuningDatabase {
 public:
  /// Of several records for one problem the last counts. Records of other compute capabilities than
  /// the compiler's target (9.0) are left out.
  explicit TuningDatabase(const std::vector<TuningRecord>& records);

  /// What was measured for `problem`, or null.
  const TuningRecord* find(std::string_view problem) const;
  size_t size() const { return records_.size(); }

 private:
  std::map<std::string, TuningRecord, std::less<>> records_;
};

/// The database of this process; read anew when LATHE_TUNING changes. Throws Error (Io,
/// InvalidFile) for a file that cannot be read or has a bad line.
std::shared_ptr<const TuningDatabase> tuningDatabase();

}  // namespace lathe::cuda
