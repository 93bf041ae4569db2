// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_FUSED_TD
#define LATHE_FUSED_TD
include "attrs.td"

class Fused<string mnemonic, list<Trait> t = []>
    : PureInferred<mnemonic, !listconcat([DeclareOpInterfaceMethods<DecomposableOp>], t)>;

def SoftmaxOp : Fused<"softmax"> {
  let summary = "exp(x - max) / sum over one axis";
  let description = [{
    Computed in f32 (f64 for f64). `masked_row` says what a row of -inf gives.

    - [C1] the axis is inside the rank.
  }];
  let arguments = (ins RealTensor:$x, I64Attr:$axis,
      DefaultValuedAttr<MaskedRowAttr, "::lathe::MaskedRow::nan">:$masked_row);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "$x `axis` $axis (`masked_row` `` $masked_row^)? attr-dict `:` type($x)";
}
def RmsNormOp : Fused<"rms_norm"> {
  let summary = "x * rsqrt(mean(x^2) + epsilon) * gain over the last axis";
  let description = [{
    Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019. Computed in f32. `rounding`
    says whether the normalized value is rounded to the dtype before the gain is applied (Llama) or
    only at the end.

    - [C1] the operand has an axis and the gain is `[last dim]` of the same element type.
    - [C2] epsilon is not negative.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$gain, F64Attr:$epsilon,
      DefaultValuedAttr<GainRoundingAttr, "::lathe::GainRounding::after_gain">:$rounding);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "$x `,` $gain `epsilon` $epsilon (`rounding` `` $rounding^)? attr-dict `:` type($x) `,` type($gain)";
}
def RopeOp : Fused<"rope"> {
  let summary = "rotary position embedding of the last axis";
  let description = [{
    Su et al., "RoFormer", 2021. Pair (a, b) becomes (a cos - b sin, a sin + b cos); pairs are
    neighbours (`interleaved`) or element i and i + d/2 (`half`). `cos` and `sin` broadcast to x
    with d/2 in the last axis. Products and sums are f32.

    - [C1] the last dim is an even number.
    - [C2] `cos` and `sin` have one f32 type, end in half the last dim and broadcast to x.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$cos, RealTensor:$sin, PairingAttr:$pairing);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "`` $pairing $x `,` $cos `,` $sin attr-dict `:` type($x) `,` type($cos) `,` type($sin)";
}
def SiluGateOp : Fused<"silu_gate"> {
  let summary = "activation(gate) * up, for any gated activation";
  let description = [{
    Shazeer, "GLU Variants Improve Transformer", 2020. Computed in f32 (f64 for f64) and rounded
    once.

    - [C1] both operands have one element type.
    - [C2] two dims are equal, or one is a literal 1.
  }];
  let arguments = (ins RealTensor:$gate, RealTensor:$up,
      DefaultValuedAttr<ActivationAttr, "::lathe::Activation::silu">:$activation);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "$gate `,` $up (`activation` `` $activation^)? attr-dict `:` type($gate) `,` type($up)";
}
def AttentionOp : Fused<"attention", [AttrSizedOperandSegments]> {
  let summary = "softmax(scale * q k^T + mask) v with grouped heads";
  let description = [{
    q `[b, h, s, d]`, k `[b, g, t, d]`, v `[b, g, t, e]` with g dividing h (query head i reads key
    head i * g / h); result `[b, h, s, e]`. A rank-3 form leaves the heads out. `mask` broadcasts to
    `[b, h, s, t]`: i1 (true = visible) or a float that is added. `causal = top_left` lets query i
    see keys up to i, `bottom_right` up to i + t - s, `positions` up to i + positions[b].
    Vaswani et al., 2017; computed with f32 maxima, sums and accumulation.

    - [C1] ranks are 3 or 4 and equal, element types are equal.
    - [C2] batch, depth and key length agree.
    - [C3] the number of key heads divides the number of query heads.
    - [C4] the mask is i1 or a float and broadcasts to the scores.
    - [C5] `positions` is given exactly with `causal = positions`, and is `[b]`.
  }];
  let arguments = (ins RealTensor:$q, RealTensor:$k, RealTensor:$v,
      Optional<AnyTensorType>:$mask, Optional<IdTensor>:$positions, F64Attr:$scale,
      DefaultValuedAttr<CausalAttr, "::lathe::Causal::none">:$causal,
      DefaultValuedAttr<MaskedRowAttr, "::lathe::MaskedRow::nan">:$masked_row);
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$q `,` $k `,` $v (`mask` $mask^)? (`positions` $positions^)? `scale` $scale
      (`causal` `` $causal^)? (`masked_row` `` $masked_row^)? attr-dict `:` type($q) `,` type($k) `,` type($v)
      (`mask` type($mask)^)? (`positions` type($positions)^)?}];
}
def LinearOp : Fused<"linear", [AttrSizedOperandSegments]> {
  let summary = "x w^T + bias, with an optional residual added";
  let description = [{
    x `[..., k]`; w `[n, k]` under layout `out_in` and `packed`, `[k, n]` under `in_out`; bias `[n]`;
    residual `[..., n]`; result `[..., n]`. Accumulates in f32, adds bias and residual in f32 and
    rounds once. `packed` means that the backend has re-ordered the weight (`lathe.pack`).

    - [C1] x has an axis, w is a static matrix, element types are equal.
    - [C2] the inner dims are equal.
    - [C3] the bias is `[n]`.
    - [C4] the residual has the type of the result.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$w, Optional<RealTensor>:$bias,
      Optional<RealTensor>:$residual,
      DefaultValuedAttr<WeightLayoutAttr, "::lathe::WeightLayout::out_in">:$layout);
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$x `,` $w (`bias` $bias^)? (`residual` $residual^)? (`layout` `` $layout^)?
      attr-dict `:` type($x) `,` type($w) (`bias` type($bias)^)? (`residual` type($residual)^)?}];
}
def EmbeddingOp : Fused<"embedding"> {
  let summary = "rows of a table by token id";
  let description = [{
    ids `[...]`, table `[vocabulary, d]` -> `[..., d]`. An id outside the table is an error when
    the program runs.

    - [C1] the table is a matrix.
  }];
  let arguments = (ins IdTensor:$ids, AnyTensorType:$table);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$ids `,` $table attr-dict `:` type($ids) `,` type($table)";
}
#endif
