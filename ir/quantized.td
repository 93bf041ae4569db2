// SPDX-License-Identifier: Apache-2.0
// Values in few bits: integers, a scale for every block of them, and where zero lies.
#ifndef LATHE_QUANTIZED_TD
#define LATHE_QUANTIZED_TD
include "attrs.td"

def QuantizeOp : PureInferred<"quantize", [DeclareOpInterfaceMethods<DecomposableOp>]> {
  let summary = "round(x / scale) + zero, clamped to an integer dtype";
  let description = [{
    A scale serves `block` neighbours along the axis, the last one what is left of it. Computed in
    f32 (f64 for f64), rounded to nearest, ties to even, and clamped to the range of `dtype`; without
    `zero` it is 0. A scale of 0 gives `zero`. NaN and infinities have no defined value.

    - [C1] the axis is inside the rank, its size is a number, and `block` is from 1 to 2^31 - 1.
    - [C2] `scale` and `zero` have the dims of the operand, but one element a block along the axis.
    - [C3] `dtype` is i8, ui8, i4 or ui4.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$scale, Optional<NumberTensor>:$zero,
      AxisAttr:$axis, Given<I64Attr, "32">:$block, Given<TypeAttr, "DType::I8">:$dtype);
  let results = (outs QuantizedTensor:$y);
  let assemblyFormat = [{$x `,` $scale (`zero` $zero^)? `axis` $axis `block` $block `to` $dtype
      attr-dict `:` type($x) `,` type($scale) (`zero` type($zero)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def DequantizeOp : PureInferred<"dequantize", [DeclareOpInterfaceMethods<DecomposableOp>]> {
  let summary = "(q - zero) * scale, what integers in few bits stand for";
  let description = [{
    A scale and a `zero` serve `block` neighbours along the axis, the last ones what is left of it;
    without `zero` it is 0. Computed in f32 (f64 for f64) and rounded once to `dtype`.

    - [C1] the axis is inside the rank, its size is a number, and `block` is from 1 to 2^31 - 1.
    - [C2] `scale` and `zero` have the dims of the operand, but one element a block along the axis.
    - [C3] `dtype` is a float dtype.
  }];
  let arguments = (ins QuantizedTensor:$q, RealTensor:$scale, Optional<NumberTensor>:$zero,
      AxisAttr:$axis, Given<I64Attr, "32">:$block, Given<TypeAttr, "DType::F32">:$dtype);
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$q `,` $scale (`zero` $zero^)? `axis` $axis `block` $block `to` $dtype
      attr-dict `:` type($q) `,` type($scale) (`zero` type($zero)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
#endif
