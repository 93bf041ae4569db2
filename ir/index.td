// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_INDEX_TD
#define LATHE_INDEX_TD
include "attrs.td"

def IotaOp : Movement<"iota"> {
  let summary = "0, 1, 2, ... along one axis, the same along the others";
  let description = [{
    - [C1] the axis is inside the shape.
    - [C2] `dtype` is a number type.
  }];
  let arguments = (ins DimsAttr:$shape, I64Attr:$axis,
                       Given<TypeAttr, "DType::I64">:$dtype);
  let results = (outs NumberTensor:$y);
  let assemblyFormat = "$shape `axis` $axis `dtype` $dtype attr-dict";
}
def GatherOp : Movement<"gather"> {
  let summary = "slices of x along one axis, chosen by indices";
  let description = [{
    The dims of `indices` replace the axis: `x[.., a, ..]` by `i[..]` gives
    `x.dims[:axis] + indices.dims + x.dims[axis+1:]`. An index outside [0, dim) is an error when
    the program runs.

    - [C1] the axis is inside the rank of x.
  }];
  let arguments = (ins AnyTensorType:$x, IdTensor:$indices, AxisAttr:$axis);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `,` $indices `axis` $axis attr-dict `:` type($x) `,` type($indices)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &sizes) {
      return operand == 0 ? ::std::optional(sizes.count(getY())) : ::std::nullopt;
    }
  }];
}
def UpdateOp : PureInferred<"update", [HasOwnKernel, HasNoArithmetic]> {
  let summary = "x with a block of one axis overwritten, at a position per batch";
  let description = [{
    `y = x; y[b, .., positions[b] + s, ..] = value[b, .., s, ..]` with `s` along `axis` and `b`
    along axis 0. The KV cache is appended with it. A position outside the axis is an error when
    the program runs.

    - [C1] `value` has the rank and element type of `x`, and equal dims except along the axis.
    - [C2] the axis is inside the rank and not 0.
    - [C3] `positions` is `[dim 0 of x]`.
  }];
  let arguments = (ins AnyTensorType:$x, AnyTensorType:$value, IdTensor:$positions, AxisAttr:$axis);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `,` $value `,` $positions `axis` $axis attr-dict `:` type($x) `,` type($value) `,` type($positions)";
  // In place: the block is written, nothing else is touched.
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &) {
      return operand == 0 ? ::std::optional(::lathe::DimExpr(0)) : ::std::nullopt;
    }
    ::std::optional<::lathe::DimExpr> elementsWritten(const ::lathe::Sizes &sizes) {
      return sizes.count(getValue());
    }
  }];
}
def PagedUpdateOp : PureInferred<"paged_update", [HasOwnKernel, HasNoArithmetic]> {
  let summary = "x, which is blocks of sequences, with new elements behind a position per sequence";
  let description = [{
    Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention",
    2023. `x` is `[blocks, .., m, ..]` with `m` along `axis`; element p of sequence b lies in block
    `table[b, p / m]` at `p % m`. `y = x`, and for every s along the axis of `value`
    `y[table[b, p / m], .., p % m, ..] = value[b, .., s, ..]` with `p = positions[b] + s`. Where
    several are written to one place, the last stays: that of the largest b, then of the largest s.
    A position outside of the table, and a block outside of x that is to be written, is an error
    when the program runs. Sequences come and go, and share what they begin with, by their tables
    alone.

    - [C1] `value` has the rank and element type of `x`, and equal dims except axis 0 and the axis.
    - [C2] the axis is inside the rank and not 0.
    - [C3] `table` is `[dim 0 of value, entries]` and `positions` is `[dim 0 of value]`.
  }];
  let arguments = (ins AnyTensorType:$x, AnyTensorType:$value,
      Arg<IdTensor, "`[batch, entries]`, blocks of x">:$table,
      Arg<IdTensor, "`[batch]`">:$positions, AxisAttr:$axis);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = [{$x `,` $value `table` $table `positions` $positions `axis` $axis attr-dict `:`
      type($x) `,` type($value) `table` type($table) `positions` type($positions)}];
  // In place: the new elements are written, nothing else is touched.
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &) {
      return operand == 0 ? ::std::optional(::lathe::DimExpr(0)) : ::std::nullopt;
    }
    ::std::optional<::lathe::DimExpr> elementsWritten(const ::lathe::Sizes &sizes) {
      return sizes.count(getValue());
    }
  }];
}
def RandomBitsOp : PureInferred<"random_bits", [HasOwnKernel, HasNoArithmetic]> {
  let summary = "uniform i32 bits from a counter-based generator (Philox-4x32-10)";
  let description = [{
    Element n of the result is word n mod 4 of the Philox block with counter n / 4 and the 64-bit
    key `seed` (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

    - [C1] `seed` is a rank-0 i64 tensor.
  }];
  let arguments = (ins RankedTensorOf<[I64]>:$seed, DimsAttr:$shape);
  let results = (outs RankedTensorOf<[I32]>:$y);
  let assemblyFormat = "$seed `to` $shape attr-dict `:` type($seed)";
}
#endif
