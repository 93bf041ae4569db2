// SPDX-License-Identifier: Apache-2.0
// Precompiled for the run side: the standard library, formatting and JSON take a file 2-4 s.
#pragma once
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
