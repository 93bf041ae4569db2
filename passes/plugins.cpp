// SPDX-License-Identifier: Apache-2.0
#include "lathe/passes/plugins.h"

#include <filesystem>
#include <mutex>
#include <set>

#include "lathe/passes/passes.h"
#include "lathe/runtime/error.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/Passes.h"
#include "runtime/mapped_file.h"

using namespace mlir;

namespace lathe {

void loadPassPlugin(const std::string& path) {
  static std::mutex mutex;
  static std::set<std::string> loaded;
  std::error_code error;
  std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error)
    throw Error(ErrorCode::InvalidFile, path + ": expected a pass plugin, " + error.message());
  expectWholeLibrary(path);
  std::lock_guard lock(mutex);
  // Passes of one name registered twice end the process.
  if (!loaded.insert(file.string()).second) return;
  llvm::Expected<PassPlugin> plugin = PassPlugin::load(file.string());
  if (!plugin) {
    loaded.erase(file.string());
    throw Error(ErrorCode::InvalidFile,
                path + ": no pass plugin: " + llvm::toString(plugin.takeError()) +
                    "; see docs/write-a-fusion.md");
  }
  plugin->registerPassRegistryCallbacks();
}

std::unique_ptr<PassManager> parsePasses(MLIRContext* context, const std::string& text) {
  static std::once_flag once;
  std::call_once(once, [] {
    registerRewritePasses();
    registerTransformsPasses();
  });
  auto manager = std::make_unique<PassManager>(context, ModuleOp::getOperationName());
  StringRef passes = StringRef(text).trim();
  // The anchor that mlir-opt wants is the only one there is here.
  StringRef anchored = passes;
  if (anchored.consume_front("builtin.module(") && anchored.consume_back(")")) passes = anchored;
  std::string words;
  llvm::raw_string_ostream os(words);
  LogicalResult parsed = success();
  {
    ScopedDiagnosticHandler collect(context, [&](Diagnostic& d) {
      os << d << "\n";
      return success();
    });
    parsed = parsePassPipeline(passes, *manager, os);
  }
  if (failed(parsed)) {
    while (!words.empty() && words.back() == '\n') words.pop_back();
    throw Error(ErrorCode::InvalidArgument, "passes '" + text + "': " + words);
  }
  return manager;
}

}  // namespace lathe
