// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the `lathe` command asks of the compiler library, which it loads only when a verb compiles:
// running an artifact starts no LLVM.
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/family.h"
#include "lathe/inspect/bisect.h"
#include "lathe/inspect/check_locations.h"
#include "lathe/inspect/check_numerics.h"
#include "lathe/inspect/graph_diff.h"
#include "lathe/inspect/report.h"
#include "lathe/inspect/why_not.h"
#include "lathe/runtime/program.h"
#include "lathe/runtime/session.h"

namespace lathe {

struct ModelRequest {
  std::string path = {};                ///< Hugging Face folder, .gguf, .onnx or .mlir file
  std::vector<std::string> loras = {};  ///< folders of PEFT, merged in this order
  /// Of the arithmetic, for folders. Nothing: BF16 where most of the weights have it, else F32.
  std::optional<DType> dtype = {};
  /// For folders, but for the dtypes, which the weights and `dtype` say; of .onnx, `maxSeq` bounds
  /// every size.
  FamilyOptions family = {};
  Arrays constants = {};    ///< as OnnxOptions, of .onnx
  bool bareConfig = false;  ///< the folder (or config.json itself) has no weights: bf16 ones
  CompileOptions compile = {};
  // For a caller who links no parser of theirs; empty: what `compile` says.
  std::string mode = {};           ///< "strict", "relaxed" or "fast"
  std::string weightFormats = {};  ///< as parseWeightFormats reads them

  /// Told the steps of compile() as they end, "fuse", and how many of how many are done.
  std::function<void(const std::string& step, size_t done, size_t total)> progress = {};
};

struct CompilerApi {
  /// Compiles; the model's config.json, generation_config.json and tokenizer.json (whichever exist)
  /// go into Program::files.
  std::shared_ptr<const Program> (*compile)(const ModelRequest& request);
  /// The IR at a stage, with locations.
  std::string (*irAt)(const ModelRequest& request, const std::string& stage);
  /// The graph at a stage for dot(1).
  std::string (*graphviz)(const ModelRequest& request, const std::string& stage);
  std::vector<std::string> (*backends)();
  /// Whether a family of this architecture continues texts over a cache (ModelTask::Generate).
  bool (*isDecoder)(const std::string& architecture);
  /// The model at a stage from `fused` on as a program without code, whose calls have costs
  /// (lathe/inspect/explain.h, lathe/runtime/cost.h). `values` are symbols that are known.
  std::shared_ptr<const Program> (*explain)(const ModelRequest& request, const std::string& stage,
                                            const SymbolValues& values);

  // Questions (inspect/questions); `trial.compile` and `options.compile` are taken from the
  // request.
  /// The rewrites of the pipeline up to `lowered`.
  CompileRecord (*rewrites)(const ModelRequest& request);
  NumericsTable (*checkNumerics)(const ModelRequest& request, const TrialOptions& trial);
  BisectResult (*bisect)(const ModelRequest& request, const BisectOptions& options);
  std::vector<CompileRecord::Miss> (*whyNot)(const ModelRequest& request,
                                             const WhyNotOptions& options);
  LocationTable (*checkLocations)(const ModelRequest& request);
  GraphDiff (*diff)(const ModelRequest& a, const ModelRequest& b, const GraphDiffOptions& options);

  /// compile() that keeps what the report shows (lathe/inspect/report.h): `report` is set.
  std::shared_ptr<const Program> (*compileReported)(const ModelRequest& request,
                                                    std::shared_ptr<const Report>& report);
  void (*writeReport)(const Report& report, const std::string& path, const Program& program,
                      const ReportOptions& options, const std::vector<ReportRun>& runs);
};

/// Name of the one C symbol of liblathe.so that gives the table.
inline constexpr char kCompilerApiSymbol[] = "latheCompilerApi";

}  // namespace lathe

extern "C" const lathe::CompilerApi* latheCompilerApi();
