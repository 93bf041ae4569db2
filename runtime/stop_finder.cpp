// SPDX-License-Identifier: Apache-2.0
#include "runtime/stop_finder.h"

#include <algorithm>
#include <utility>

#include "lathe/runtime/error.h"

namespace lathe {

StopFinder::StopFinder(std::vector<std::string> stops) : stops_(std::move(stops)) {
  if (std::ranges::any_of(stops_, &std::string::empty))
    throw Error(ErrorCode::InvalidArgument, "expected a stop text, got an empty one");
}

std::string StopFinder::push(std::string_view piece) {
  if (found_) return "";
  held_ += piece;
  size_t first = held_.npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != held_.npos) {
    found_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  size_t kept = 0;
  for (const std::string& stop : stops_)
    for (size_t n = std::min(stop.size() - 1, held_.size()); n > kept; --n)
      if (std::string_view(held_).ends_with(std::string_view(stop).substr(0, n))) kept = n;
  std::string certain = held_.substr(0, held_.size() - kept);
  held_.erase(0, certain.size());
  return certain;
}

std::string StopFinder::finish() { return std::exchange(held_, {}); }

}  // namespace lathe
