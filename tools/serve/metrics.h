// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts in Prometheus' text form (https://prometheus.io/docs/instrumenting/exposition_formats).
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "lathe/runtime/batch_engine.h"

namespace lathe::serve {

struct HttpCounts {
  std::array<int64_t, 6> answered = {};  ///< by the status's first digit
  int64_t connections = 0, turnedAway = 0, gone = 0;
};
std::string metricsText(const HttpCounts& http, const std::optional<BatchEngineCounts>& engine);

}  // namespace lathe::serve
