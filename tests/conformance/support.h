// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a backend makes of the samples of one op and dtype.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/program.h"
#include "tests/conformance/cases.h"

namespace lathe::conformance {

enum class Support {
  Yes,
  Expanded,  ///< a fused op that runs as its decomposition, at least for some samples
  No,        ///< refused when compiling
};

struct Compiled {
  Support support = Support::Yes;
  std::string reason;                      ///< of an expansion or a refusal, in the backend's words
  std::shared_ptr<const Program> program;  ///< null under Support::No
};

/// Compiles all samples of a row and dtype as one program; kept for the life of the process.
/// Throws Error for anything but a refusal.
const Compiled& compiled(const std::string& backend, const OpRow& row, DType dtype);

/// Backends to test: all but the reference.
std::vector<std::string> testedBackends();

std::string_view nameOf(Support support);
/// All dtypes, in the order of the table's columns.
const std::vector<DType>& columns();

/// docs/support.md: op x dtype for every tested backend.
std::string supportPage();
/// The part of docs/limits.md between the markers: one line for each reason.
std::string limitsTable();
inline constexpr char kLimitsBegin[] = "<!-- conformance: begin -->\n";
inline constexpr char kLimitsEnd[] = "<!-- conformance: end -->\n";

}  // namespace lathe::conformance
