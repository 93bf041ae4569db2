// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace lathe::cli {

/// The lines of a file of texts, without their ends. Throws Error where there is none.
std::vector<std::string> linesOf(const std::string& file);

}  // namespace lathe::cli
