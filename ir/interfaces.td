// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_INTERFACES_TD
#define LATHE_INTERFACES_TD
include "mlir/IR/OpBase.td"

def DecomposableOp : OpInterface<"DecomposableOp"> {
  let cppNamespace = "::lathe";
  let description = [{
    A fused op. Its meaning is the elementary ops that `decompose` builds: the reference backend
    runs them, a backend that declines the op expands to them, and tests are generated from them.
  }];
  let methods = [InterfaceMethod<
      "Builds the elementary form before the op; returns one value per result. Erases nothing.",
      "::llvm::FailureOr<::llvm::SmallVector<::mlir::Value>>", "decompose",
      (ins "::mlir::OpBuilder &":$builder)>];
}
#endif
