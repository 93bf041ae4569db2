// SPDX-License-Identifier: Apache-2.0
// Precompiled for the tests that see the compiler, where a build is made for once: reading these
// headers takes such a test longer than its own lines.
#pragma once
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "backends/cuda/device/program_code.h"
#include "frontend/graph_impl.h"
#include "ir/pch.h"
#include "lathe/backends/backend.h"
#include "lathe/backends/interpreter.h"
#include "lathe/ir/context.h"
#include "lathe/ir/ops.h"
#include "lathe/lathe.h"
#include "lathe/passes/passes.h"
#include "tests/closeness.h"
#include "tests/unit/test_files.h"
