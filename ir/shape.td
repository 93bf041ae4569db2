// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_SHAPE_TD
#define LATHE_SHAPE_TD
include "attrs.td"

def TransposeOp : Movement<"transpose"> {
  let summary = "permutes the axes: axis i of the result is axis permutation[i] of x";
  let description = "- [C1] `permutation` is a permutation of the axes.";
  let arguments = (ins AnyTensorType:$x, AxesAttr:$permutation);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x $permutation attr-dict `:` type($x)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def ReshapeOp : Movement<"reshape"> {
  let summary = "the same elements in row-major order under other dims";
  let description = "- [C1] the products of the dims are provably equal.";
  let arguments = (ins AnyTensorType:$x, DimsAttr:$shape);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `to` $shape attr-dict `:` type($x)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def BroadcastOp : Movement<"broadcast"> {
  let summary = "stretches literal 1s and adds leading axes";
  let description = [{
    - [C1] the result has at least the operand's rank.
    - [C2] aligned at the last axis every dim is equal or a literal 1 in the operand.
  }];
  let arguments = (ins AnyTensorType:$x, DimsAttr:$shape);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `to` $shape attr-dict `:` type($x)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def SliceOp : Movement<"slice"> {
  let summary = "a box of x: element i of an axis is start + i * stride";
  let description = [{
    - [C1] one start, size and stride per axis.
    - [C2] strides are at least 1.
    - [C3] the box provably lies inside x.
  }];
  let arguments = (ins AnyTensorType:$x, DimsAttr:$starts, DimsAttr:$sizes,
                       DenseI64ArrayAttr:$strides);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `starts` $starts `sizes` $sizes `strides` $strides attr-dict `:` type($x)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned, const ::lathe::Sizes &sizes) {
      return sizes.count(getY());
    }
  }];
  let hasFolder = 1;
}
def ConcatOp : Movement<"concat"> {
  let summary = "joins tensors along one axis";
  let description = [{
    - [C1] at least one operand, all of one element type and rank.
    - [C2] the axis is inside the rank.
    - [C3] all other dims are equal.
  }];
  let arguments = (ins Variadic<AnyTensorType>:$inputs, AxisAttr:$axis);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$inputs `axis` $axis attr-dict `:` type($inputs)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def PadOp : Movement<"pad"> {
  let summary = "adds `low` elements before and `high` after each axis, all equal to the value";
  let description = [{
    - [C1] `value` is a rank-0 tensor of the operand's element type.
    - [C2] one non-negative `low` and `high` per axis.
  }];
  let arguments = (ins AnyTensorType:$x, AnyTensorType:$value, DenseI64ArrayAttr:$low,
                       DenseI64ArrayAttr:$high);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `,` $value `low` $low `high` $high attr-dict `:` type($x) `,` type($value)";
}
def ReverseOp : Movement<"reverse"> {
  let summary = "turns the listed axes around";
  let description = [{
    - [C1] every axis is inside the rank.
    - [C2] the axes ascend without repetition.
  }];
  let arguments = (ins AnyTensorType:$x, AxesAttr:$axes);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `axes` $axes attr-dict `:` type($x)";
}
#endif
