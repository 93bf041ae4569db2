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

def CostedOp : OpInterface<"CostedOp"> {
  let cppNamespace = "::lathe";
  let description = [{
    What running an op once takes, as polynomials of the sizes. Every op of the dialect that runs
    says it; a fused op has the arithmetic of its decomposition unless it says better.
  }];
  let methods = [
    InterfaceMethod<
        "Floating-point operations; nothing where the decomposition says it. A multiply-add counts "
        "two, a transcendental function one, integers nothing.",
        "::std::optional<::lathe::DimExpr>", "flops", (ins "const ::lathe::Sizes &":$sizes), "", [{
          if constexpr (ConcreteOp::template hasTrait<::lathe::DecomposableOp::Trait>())
            return ::std::nullopt;
          else if constexpr (ConcreteOp::template hasTrait<::lathe::fact::IsMovement>() ||
                             ConcreteOp::template hasTrait<::lathe::fact::HasNoArithmetic>())
            return ::lathe::DimExpr(0);
          else
            static_assert(sizeof(ConcreteOp) == 0,
                          "the op must define flops(), or have the trait HasNoArithmetic");
        }]>,
    InterfaceMethod<
        "How many elements of an operand are read; nothing where it is all of them.",
        "::std::optional<::lathe::DimExpr>", "elementsRead",
        (ins "unsigned":$operand, "const ::lathe::Sizes &":$sizes), "",
        [{ return ::std::nullopt; }]>,
    InterfaceMethod<
        "How many elements of the first result are written; nothing where it is all of them.",
        "::std::optional<::lathe::DimExpr>", "elementsWritten",
        (ins "const ::lathe::Sizes &":$sizes), "", [{ return ::std::nullopt; }]>];
}

// What passes and backends ask of an op without knowing it.
class Fact<string name> : NativeOpTrait<name> {
  let cppNamespace = "::lathe::fact";
}
def IsElementwise : Fact<"IsElementwise">;
def IsMovement : Fact<"IsMovement">;
def IsReduction : Fact<"IsReduction">;
def IsRowOp : Fact<"IsRowOp">;
def IsTranscendental : Fact<"IsTranscendental">;
def IsDeclaration : Fact<"IsDeclaration">;
def HasOwnKernel : Fact<"HasOwnKernel">;
def HasNoArithmetic : Fact<"HasNoArithmetic">;
def RoundsOnce : Fact<"RoundsOnce">;
#endif
