// SPDX-License-Identifier: Apache-2.0
// lathe-lsp-server: hover, definitions and diagnostics for `.mlir` files in editors (docs/lsp.md).
#include "lathe/ir/dialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char** argv) {
  mlir::DialectRegistry registry;
  registry.insert<lathe::LatheDialect, mlir::func::FuncDialect>();
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
