// SPDX-License-Identifier: Apache-2.0
#pragma once
// Fusions from text: PDL (.mlir) and PDLL (.pdll) files.
//
// A file becomes patterns of our own matcher: they are numbered, explain their misses and decline
// what does not hold like the built-in ones. PDL's interpreter in MLIR does none of that, and ends
// the process on an unknown native name or a replacement whose types cannot be inferred.
#include <string>

#include "lathe/passes/dag_pattern.h"
#include "llvm/ADT/StringRef.h"

namespace lathe {

/// The patterns of a file, in its order. Everything is checked here: ops, their attributes and
/// operands, native constraints and rewrites (passes/pdl/pdl_natives.h). Throws Error: Io or
/// InvalidFile for what cannot be read, Unsupported for PDL that has no meaning here (ranges of
/// several values, ops with several results, replacing anything but the root), each with the file's
/// line.
PatternLibrary loadPatternFile(mlir::MLIRContext* context, const std::string& path);

/// The same for PDL text; `name` stands for the file.
PatternLibrary parsePatterns(mlir::MLIRContext* context, llvm::StringRef text,
                             llvm::StringRef name);

}  // namespace lathe
