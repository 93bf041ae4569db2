// SPDX-License-Identifier: Apache-2.0
#pragma once
// The user's line in Python, as the C++ builder takes lines.
#include <source_location>
#include <string>

namespace lathe::python {

/// The innermost line of Python that is not the package's own.
std::source_location here();
/// Files below this folder are the package's own.
void setPackageFolder(std::string folder);

}  // namespace lathe::python
