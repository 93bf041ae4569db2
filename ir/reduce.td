// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_REDUCE_TD
#define LATHE_REDUCE_TD
include "attrs.td"

// How a reduction accumulates (ReductionOp): expressions of a ScalarBuilder `k`. `start` knows the
// `type` that elements are computed in, `combine` two accumulators `a` and `b`; `isUnsigned` is true
// of ui8.
class Combiner<string functor, string none, string both> {
  string name = functor;
  string start = none;
  string combine = both;
}
def CombineSum : Combiner<"Sum", "k.whole(type, 0)", "k.sum(a, b)">;
def CombineProd : Combiner<"Prod", "k.whole(type, 1)", "k.product(a, b)">;
def CombineMax : Combiner<"Max", "k.lowest(type, isUnsigned)", "k.larger(a, b, isUnsigned)">;
def CombineMin : Combiner<"Min", "k.highest(type, isUnsigned)", "k.smaller(a, b, isUnsigned)">;
def CombineOr : Combiner<"Or", "k.whole(type, 0)", "k.make<arith::OrIOp>(a, b)">;
def CombineAnd : Combiner<"And", "k.whole(type, 1)", "k.make<arith::AndIOp>(a, b)">;

defvar reductionDeclarations = [{
    ::llvm::SmallVector<::mlir::Value, 4> start(::lathe::ScalarBuilder &k, ::mlir::Type type);
    ::llvm::SmallVector<::mlir::Value, 4> lift(::lathe::ScalarBuilder &k, ::mlir::Value x,
                                               ::mlir::Value position);
    ::llvm::SmallVector<::mlir::Value, 4> combine(::lathe::ScalarBuilder &k, ::mlir::ValueRange a,
                                                  ::mlir::ValueRange b);
    ::mlir::Value finish(::lathe::ScalarBuilder &k, ::mlir::ValueRange accumulators,
                         ::mlir::Value count);
    ::llvm::StringRef combiner();
}];

// `finish` makes the result of the accumulator `x` and of the `count` of the elements.
class Reduce<string mnemonic, string text, Type type, Combiner how, string finish = "x">
    : PureInferred<mnemonic, [IsReduction]> {
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
  let extraClassDeclaration = reductionDeclarations # [{
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
    ::llvm::SmallVector<::mlir::Value, 4> $cppClass::start(::lathe::ScalarBuilder &k,
                                                           ::mlir::Type type) {
      [[maybe_unused]] const bool isUnsigned = ::lathe::isUnsigned(getX().getType());
      return {}] # how.start # [{};
    }
    ::llvm::SmallVector<::mlir::Value, 4> $cppClass::lift(::lathe::ScalarBuilder &, ::mlir::Value x,
                                                          ::mlir::Value) {
      return {x};
    }
    ::llvm::SmallVector<::mlir::Value, 4> $cppClass::combine(::lathe::ScalarBuilder &k,
        ::mlir::ValueRange one, ::mlir::ValueRange other) {
      [[maybe_unused]] const bool isUnsigned = ::lathe::isUnsigned(getX().getType());
      const ::mlir::Value a = one[0], b = other[0];
      return {}] # how.combine # [{};
    }
    ::mlir::Value $cppClass::finish([[maybe_unused]] ::lathe::ScalarBuilder &k,
        ::mlir::ValueRange accumulators, [[maybe_unused]] ::mlir::Value count) {
      const ::mlir::Value x = accumulators[0];
      return }] # finish # [{;
    }
    ::llvm::StringRef $cppClass::combiner() { return "}] # how.name # [{"; }
  }];
}
def ReduceSumOp : Reduce<"reduce_sum", "sum over axes; 0 if empty", NumberTensor, CombineSum>;
def ReduceMeanOp : Reduce<"reduce_mean", "arithmetic mean over axes; NaN if empty", RealTensor,
    CombineSum, "k.quotient(x, k.fromCount(count, x.getType()))">;
def ReduceMaxOp : Reduce<"reduce_max",
    "largest over axes; NaN if any is; lowest value if empty", NumberTensor, CombineMax>;
def ReduceMinOp : Reduce<"reduce_min",
    "smallest over axes; NaN if any is; highest value if empty", NumberTensor, CombineMin>;
def ReduceProdOp : Reduce<"reduce_prod", "product over axes; 1 if empty", NumberTensor, CombineProd>;
def ReduceAnyOp : Reduce<"reduce_any", "logical or over axes", BoolTensor, CombineOr>;
def ReduceAllOp : Reduce<"reduce_all", "logical and over axes", BoolTensor, CombineAnd>;

class ArgReduce<string mnemonic, string text, string functor, string start, string isLeast>
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
  let extraClassDeclaration = reductionDeclarations;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *c,
        ::std::optional<::mlir::Location> loc, Adaptor a, ::llvm::SmallVectorImpl<::mlir::Type> &r) {
      return ::lathe::inferArgReduce(loc, getOperationName(), a.getX(), a.getAxis(), r);
    }
    ::llvm::SmallVector<::mlir::Value, 4> $cppClass::start(::lathe::ScalarBuilder &k,
                                                           ::mlir::Type type) {
      const bool isUnsigned = ::lathe::isUnsigned(getX().getType());
      return {}] # start # ", k.noPosition(type)" # [{};
    }
    ::llvm::SmallVector<::mlir::Value, 4> $cppClass::lift(::lathe::ScalarBuilder &, ::mlir::Value x,
                                                          ::mlir::Value position) {
      return {x, position};
    }
    ::llvm::SmallVector<::mlir::Value, 4> $cppClass::combine(::lathe::ScalarBuilder &k,
        ::mlir::ValueRange a, ::mlir::ValueRange b) {
      return k.best(a, b, }] # isLeast # [{, ::lathe::isUnsigned(getX().getType()));
    }
    ::mlir::Value $cppClass::finish(::lathe::ScalarBuilder &k, ::mlir::ValueRange accumulators,
                                    ::mlir::Value) {
      return k.positionOrZero(accumulators[1]);
    }
    ::llvm::StringRef $cppClass::combiner() { return "}] # functor # [{"; }
  }];
}
def ArgMaxOp : ArgReduce<"argmax", "index of the largest element", "ArgMax",
    "k.lowest(type, isUnsigned)", "false">;
def ArgMinOp : ArgReduce<"argmin", "index of the smallest element", "ArgMin",
    "k.highest(type, isUnsigned)", "true">;

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
