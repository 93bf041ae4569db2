// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the `lathe` command asks of the compiler library, which it loads only when a verb compiles:
// running an artifact starts no LLVM.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/program.h"

namespace lathe {

struct ModelRequest {
  std::string path;  ///< Hugging Face folder, or an .mlir file
  std::string backend = "cpu";
  DType dtype = DType::F32;  ///< of the arithmetic, for folders
  bool allTiers = false, float64 = false;
  std::string saveIrDir;
  int64_t maxBatch = 64, maxSeq = 0, cacheCapacity = 0;  ///< as LlamaGraphOptions
  bool bareConfig = false;  ///< the folder (or config.json itself) has no weights: bf16 ones
};

struct CompilerApi {
  /// Compiles; the model's config.json, generation_config.json and tokenizer.json (whichever exist)
  /// go into Program::files.
  std::shared_ptr<const Program> (*compile)(const ModelRequest& request);
  /// The IR at a stage, with locations.
  std::string (*irAt)(const ModelRequest& request, const std::string& stage);
  std::string (*graphviz)(const ModelRequest& request);
  std::vector<std::string> (*backends)();
};

/// Name of the one C symbol of liblathe.so that gives the table.
inline constexpr char kCompilerApiSymbol[] = "latheCompilerApi";

}  // namespace lathe

extern "C" const lathe::CompilerApi* latheCompilerApi();
