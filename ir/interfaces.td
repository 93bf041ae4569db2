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

def ScalarOp : OpInterface<"ScalarOp"> {
  let cppNamespace = "::lathe";
  let description = [{
    An elementwise op says what it does to one element. Backends that generate code emit this and
    know no op by name.
  }];
  let methods = [InterfaceMethod<
      "Emits arith and math for one element, or for a vector of them. The operands are broadcast, "
      "of the types that their elements are computed in (ir/scalar_builder.h).",
      "::mlir::Value", "emit",
      (ins "::lathe::ScalarBuilder &":$k, "::mlir::ValueRange":$operands), "", [{
        static_assert(sizeof(ConcreteOp) == 0, "the op must define emit(): what it computes");
        return {};
      }]>];
}

def ReductionOp : OpInterface<"ReductionOp"> {
  let cppNamespace = "::lathe";
  let description = [{
    A reduction says what it accumulates, in one value or, where it looks for a place, in a value
    and an i64 index. Accumulators may be combined in any order.
  }];
  let methods = [
    InterfaceMethod<
        "The accumulators of no element at all, for elements computed in `type`.",
        "::llvm::SmallVector<::mlir::Value, 4>", "start",
        (ins "::lathe::ScalarBuilder &":$k, "::mlir::Type":$type)>,
    InterfaceMethod<
        "The accumulators of one element; `position` is its i64 index along the reduced axis, "
        "which only accumulators that hold one need.",
        "::llvm::SmallVector<::mlir::Value, 4>", "lift",
        (ins "::lathe::ScalarBuilder &":$k, "::mlir::Value":$x, "::mlir::Value":$position)>,
    InterfaceMethod<
        "The accumulators of two sets of elements together.",
        "::llvm::SmallVector<::mlir::Value, 4>", "combine",
        (ins "::lathe::ScalarBuilder &":$k, "::mlir::ValueRange":$a, "::mlir::ValueRange":$b)>,
    InterfaceMethod<
        "The result; `count` is the number of elements as a scalar of type i64.",
        "::mlir::Value", "finish",
        (ins "::lathe::ScalarBuilder &":$k, "::mlir::ValueRange":$accumulators,
             "::mlir::Value":$count)>,
    InterfaceMethod<
        "The name of `combine`: Sum, Prod, Max, Min, Or, And, ArgMax or ArgMin.",
        "::llvm::StringRef", "combiner", (ins)>];
}

def FactoredOp : OpInterface<"FactoredOp"> {
  let cppNamespace = "::lathe";
  let description = [{
    Which axes of an op's operands and results are one loop: what is cut along such an axis of one of
    them is computed in pieces that know nothing of each other. A graph is split over the ranks of a
    mesh by it (passes/shard).
  }];
  let methods = [InterfaceMethod<
      "A number for every axis, the same for axes that are one loop (lathe/ir/factors.h). Nothing: "
      "the op needs its operands whole.",
      "::std::optional<::lathe::Factors>", "factors", (ins), "", [{
        if constexpr (ConcreteOp::template hasTrait<::lathe::fact::IsElementwise>())
          return ::lathe::factorsOfBroadcast(this->getOperation());
        else if constexpr (ConcreteOp::template hasTrait<::lathe::fact::IsReduction>())
          return ::lathe::factorsOfReduction(this->getOperation());
        else
          return ::std::nullopt;
      }]>];
}

// What passes and backends ask of an op without knowing it.
class Fact<string name> : NativeOpTrait<name> {
  let cppNamespace = "::lathe::fact";
}
def IsElementwise : TraitList<[Fact<"IsElementwise">, ScalarOp]>;
def IsMovement : Fact<"IsMovement">;
def IsReduction : TraitList<[Fact<"IsReduction">, ReductionOp]>;
def IsRowOp : Fact<"IsRowOp">;
def IsPointwise : Fact<"IsPointwise">;
def IsRowNorm : Fact<"IsRowNorm">;
def IsTranscendental : Fact<"IsTranscendental">;
def IsDeclaration : Fact<"IsDeclaration">;
def HasOwnKernel : Fact<"HasOwnKernel">;
def HasNoArithmetic : Fact<"HasNoArithmetic">;
def RoundsOnce : Fact<"RoundsOnce">;
def IsOfOneRank : Fact<"IsOfOneRank">;
#endif
