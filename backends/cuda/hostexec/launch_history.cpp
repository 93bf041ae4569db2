// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/hostexec/launch_history.h"

namespace lathe::cuda::host {

void LaunchHistory::begin(const std::string& kernel, bool overlaps) {
  if (!overlaps) settle();
  ++number_;
  overlaps_ = overlaps;
  names_.push_back(kernel);
}

void LaunchHistory::end(bool waited) {
  if (overlaps_ && !waited) unordered_ = number_;
}

void LaunchHistory::settle() {
  running_ = unordered_ = number_ + 1;
  names_.clear();
}

std::string LaunchHistory::describe(uint32_t launch) const {
  const uint32_t back = number_ - launch;
  return names_.at(launch - running_) + ", " + std::to_string(back) +
         (back == 1 ? " launch before" : " launches before");
}

}  // namespace lathe::cuda::host
