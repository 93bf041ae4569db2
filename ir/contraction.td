// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_CONTRACTION_TD
#define LATHE_CONTRACTION_TD
include "attrs.td"

def MatmulOp : PureInferred<"matmul", [HasOwnKernel]> {
  let summary = "[..., m, k] x [..., k, n] -> [..., m, n]";
  let description = [{
    Leading axes broadcast. bf16 and f16 accumulate in f32 and round once.

    - [C1] both ranks are at least 2 and the element types are equal.
    - [C2] the inner dims are equal.
    - [C3] the leading dims are equal, or one is a literal 1.
  }];
  let arguments = (ins NumberTensor:$a, NumberTensor:$b);
  let results = (outs NumberTensor:$y);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `,` type($b)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes);
  }];
}
def ConvolutionOp : PureInferred<"convolution", [HasOwnKernel]> {
  let summary = "2-D cross-correlation, [n, c, h, w] x [o, c, kh, kw] -> [n, o, oh, ow]";
  let description = [{
    `oh = (h + pad_top + pad_bottom - kh) / stride_h + 1`, likewise for the width. `padding` is
    top, bottom, left, right, filled with zeros.

    - [C1] both ranks are 4 and the element types are equal.
    - [C2] the channel dims are equal; the image's and kernel's height and width are numbers.
    - [C3] two strides of at least 1, four non-negative paddings.
    - [C4] the kernel is not larger than the padded image.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$w, DenseI64ArrayAttr:$strides,
                       Arg<DenseI64ArrayAttr, "top, bottom, left, right">:$padding);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "$x `,` $w `strides` $strides `padding` $padding attr-dict `:` type($x) `,` type($w)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes);
  }];
}
#endif
