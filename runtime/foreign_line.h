// SPDX-License-Identifier: Apache-2.0
#pragma once
// Lines of files that are no C++, as the functions that record take lines.
#include <source_location>
#include <string>

namespace lathe {

/// A line by name: of a Python file, a node of an ONNX graph. The texts are kept for the life of
/// the process, once each.
std::source_location foreignLine(const std::string& file, unsigned line,
                                 const std::string& function = {});

}  // namespace lathe
