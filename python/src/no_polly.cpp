// SPDX-License-Identifier: Apache-2.0
// Debian builds LLVM's link-time optimizer with the loop optimizer Polly as a part, which its
// static archives leave to a package of its own. lld refers to that optimizer for bitcode; Lathe
// links object files alone.
#include "llvm/Plugins/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo();
llvm::PassPluginLibraryInfo getPollyPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Polly", "left out", [](llvm::PassBuilder&) {}};
}
