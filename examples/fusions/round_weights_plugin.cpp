// SPDX-License-Identifier: Apache-2.0
// The pass as a plugin:
//   lathe run MODEL --load-pass-plugin round_weights_plugin.so --passes example-round-weights
#include "llvm/Config/llvm-config.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "round_weights.h"

extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "round_weights", LLVM_VERSION_STRING,
          [] { mlir::PassRegistration<RoundWeights>(); }};
}
