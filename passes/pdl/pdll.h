// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace lathe {

/// The PDL text that LLVM's `mlir-pdll` makes of a .pdll file. The tool is looked for on PATH, then
/// in `toolFolder`, LLVM's own by default. `#include "lathe.pdll"` declares our native constraints
/// and rewrites; files beside `path` can be included as well. Throws Error: Unsupported without the
/// tool, InvalidFile with its words for a file it refuses.
std::string pdlFromPdll(const std::string& path, const std::string& toolFolder = "");

}  // namespace lathe
