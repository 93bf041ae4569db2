// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace lathe::cli {

/// What a file holds, or standard input where its name is "-", without the mark of byte order that
/// some editors begin a text with.
std::string textOf(const std::string& file);

/// The lines of a file of texts, without their ends. Throws Error where there is none.
std::vector<std::string> linesOf(const std::string& file);

}  // namespace lathe::cli
