// SPDX-License-Identifier: Apache-2.0
#pragma once
// MLIR passes that a user brings: shared libraries, and pipelines by name.
#include <memory>
#include <string>
#include <vector>

namespace mlir {
class MLIRContext;
class PassManager;
}  // namespace mlir

namespace lathe {

/// Loads a shared library with `mlirGetPassPluginInfo`; its passes are then known by name for the
/// rest of the process. A library that is loaded already is left alone. Throws Error (InvalidFile)
/// for a missing file, a library without that symbol or of another version of the interface. The
/// library's code runs with the rights of the process.
void loadPassPlugin(const std::string& path);

/// Reads a textual pipeline: "my-pass,cse", or with the anchor, "builtin.module(my-pass)". Lathe's
/// passes, MLIR's `cse`, `canonicalize` and their like, and those of loaded plugins have names.
/// Throws Error (InvalidArgument) with the parser's words.
std::unique_ptr<mlir::PassManager> parsePasses(mlir::MLIRContext* context, const std::string& text);

}  // namespace lathe
