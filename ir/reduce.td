// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_REDUCE_TD
#define LATHE_REDUCE_TD
include "attrs.td"

class Reduce<string mnemonic, string text, Type type> : PureInferred<mnemonic, [IsReduction]> {
  let summary = text;
  let description = [{
    Reduces the listed axes; they stay as literal 1s under `keep_dims`, else they go. bf16 and f16
    accumulate in f32.

    - [C1] every axis is inside the rank.
    - [C2] the axes ascend without repetition.
  }];
  let arguments = (ins type:$x, AxesAttr:$axes,
                       DefaultValuedAttr<BoolAttr, "false">:$keep_dims);
  let results = (outs type:$y);
  let assemblyFormat = "$x `axes` $axes (`keep_dims` $keep_dims^)? attr-dict `:` type($x)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes) {
      return sizes.reals(getX());
    }
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *,
        ::std::optional<::mlir::Location> loc, Adaptor a, ::llvm::SmallVectorImpl<::mlir::Type> &r) {
      return ::lathe::inferReduce(loc, getOperationName(), a.getX(), a.getAxes(),
                                  a.getKeepDimsAttr() && a.getKeepDims(), r);
    }
  }];
}
def ReduceSumOp : Reduce<"reduce_sum", "sum over axes; 0 if empty", NumberTensor>;
def ReduceMeanOp : Reduce<"reduce_mean", "arithmetic mean over axes; NaN if empty", RealTensor>;
def ReduceMaxOp : Reduce<"reduce_max", "largest over axes; NaN if any is; lowest value if empty", NumberTensor>;
def ReduceMinOp : Reduce<"reduce_min", "smallest over axes; NaN if any is; highest value if empty", NumberTensor>;
def ReduceProdOp : Reduce<"reduce_prod", "product over axes; 1 if empty", NumberTensor>;
def ReduceAnyOp : Reduce<"reduce_any", "logical or over axes", BoolTensor>;
def ReduceAllOp : Reduce<"reduce_all", "logical and over axes", BoolTensor>;

class ArgReduce<string mnemonic, string text>
    : PureInferred<mnemonic, [IsReduction, HasNoArithmetic]> {
  let summary = text;
  let description = [{
    The axis goes; the result is i64. Ties give the first index; a NaN wins. An axis of a symbolic
    size that is 0 in a call gives 0.

    - [C1] the axis is inside the rank, and its size is not the number 0.
  }];
  let arguments = (ins NumberTensor:$x, AxisAttr:$axis);
  let results = (outs RankedTensorOf<[I64]>:$y);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x)";
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *c,
        ::std::optional<::mlir::Location> loc, Adaptor a, ::llvm::SmallVectorImpl<::mlir::Type> &r) {
      return ::lathe::inferArgReduce(loc, getOperationName(), a.getX(), a.getAxis(), r);
    }
  }];
}
def ArgMaxOp : ArgReduce<"argmax", "index of the largest element">;
def ArgMinOp : ArgReduce<"argmin", "index of the smallest element">;

def CumSumOp : PureInferred<"cumsum", [HasOwnKernel]> {
  let summary = "inclusive running sum along one axis";
  let description = "- [C1] the axis is inside the rank.";
  let arguments = (ins NumberTensor:$x, AxisAttr:$axis);
  let results = (outs NumberTensor:$y);
  let assemblyFormat = "$x `axis` $axis attr-dict `:` type($x)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes) {
      return sizes.reals(getX());
    }
  }];
}
def TopKOp : PureInferred<"top_k", [HasOwnKernel, HasNoArithmetic]> {
  let summary = "the k largest of the last axis, descending, and their indices";
  let description = [{
    Equal values keep the order of their indices; a NaN counts as the largest.

    - [C1] the operand has an axis.
    - [C2] k is at least 1, and at most the last dim where that is a number.
  }];
  let arguments = (ins NumberTensor:$x, I64Attr:$k);
  let results = (outs NumberTensor:$values, RankedTensorOf<[I64]>:$indices);
  let assemblyFormat = "$x `k` $k attr-dict `:` type($x)";
}
#endif
