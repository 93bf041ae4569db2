// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_FUSED_TD
#define LATHE_FUSED_TD
include "attrs.td"

class Fused<string mnemonic, list<Trait> t = []>
    : PureInferred<mnemonic, !listconcat([DeclareOpInterfaceMethods<DecomposableOp>], t)>;

def SoftmaxOp : Fused<"softmax", [IsRowOp, RoundsOnce]> {
  let summary = "exp(s - max) / sum over one axis, s = softcap(scale * x) + mask";
  let description = [{
    Computed in f32 (f64 for f64). `scale` multiplies first; a positive `softcap` c then gives
    `c * tanh(s / c)` (Gemma 2, 2024); `mask` broadcasts to x: i1 (true = visible, elsewhere -inf)
    or a float that is added. `masked_row` says what a row of -inf gives.

    - [C1] the axis is inside the rank.
    - [C2] the mask is i1 or a float and broadcasts to x.
    - [C3] the scale is a positive number, the softcap is not negative.
  }];
  let arguments = (ins RealTensor:$x,
      Arg<Optional<AnyTensorType>, "i1 (true = visible) or an added float">:$mask, AxisAttr:$axis,
      DefaultValuedAttr<F64Attr, "1.0">:$scale,
      Arg<DefaultValuedAttr<F64Attr, "0.0">, "0: none">:$softcap,
      DefaultValuedAttr<MaskedRowAttr, "::lathe::MaskedRow::nan">:$masked_row);
  let builderParameters = ["x", "axis"];
  let builderOptions = "SoftmaxOptions";
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$x (`mask` $mask^)? `axis` $axis (`scale` $scale^)? (`softcap` $softcap^)?
      (`masked_row` `` $masked_row^)? attr-dict `:` type($x) (`mask` type($mask)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    // Without scale, softcap and mask.
    bool isPlain() {
      return !getMask() && getScale().convertToDouble() == 1 && getSoftcap().isZero();
    }
  }];
}
def RmsNormOp : Fused<"rms_norm", [IsRowOp, IsRowNorm, RoundsOnce]> {
  let summary = "x * rsqrt(mean(x^2) + epsilon) * gain over the last axis";
  let description = [{
    Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019. Computed in f32. `rounding`
    says whether the normalized value is rounded to the dtype before the gain is applied (Llama) or
    only at the end. Without a gain the normalized value is the result.

    - [C1] the operand has an axis and the gain is `[last dim]` of the same element type.
    - [C2] epsilon is not negative.
  }];
  let arguments = (ins RealTensor:$x, Optional<RealTensor>:$gain, F64Attr:$epsilon,
      DefaultValuedAttr<GainRoundingAttr, "::lathe::GainRounding::after_gain">:$rounding);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "$x (`,` $gain^)? `epsilon` $epsilon (`rounding` `` $rounding^)? attr-dict `:` type($x) (`,` type($gain)^)?";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def LayerNormOp : Fused<"layer_norm", [IsRowOp, IsRowNorm, RoundsOnce, AttrSizedOperandSegments]> {
  let summary = "(x - mean) * rsqrt(var + epsilon) * gain + bias over the last axis";
  let description = [{
    Ba, Kiros and Hinton, "Layer Normalization", 2016. The variance is the biased mean of the
    squared differences. Computed in f32 and rounded once. Gain and bias are each optional.

    - [C1] the operand has an axis; gain and bias are `[last dim]` of the same element type.
    - [C2] epsilon is not negative.
  }];
  let arguments = (ins RealTensor:$x, Optional<RealTensor>:$gain, Optional<RealTensor>:$bias,
      F64Attr:$epsilon);
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$x (`gain` $gain^)? (`bias` $bias^)? `epsilon` $epsilon attr-dict `:` type($x)
      (`gain` type($gain)^)? (`bias` type($bias)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def AddNormOp : Fused<"add_norm", [IsRowOp, IsRowNorm, AttrSizedOperandSegments, AllTypesMatch<["x", "residual"]>]> {
  let summary = "sum = x + residual, and the norm of the sum";
  let description = [{
    The first result is the sum, rounded to the dtype; the second is `rms_norm` or `layer_norm`
    (`norm`) of that rounded sum. `bias` is for `layer` alone, `rounding` for `rms`.

    - [C1] both operands have one type.
    - [C2] gain and bias are `[last dim]` of the same element type; `rms` has no bias.
    - [C3] epsilon is not negative.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$residual, Optional<RealTensor>:$gain,
      Arg<Optional<RealTensor>, "of the layer norm">:$bias, Given<NormAttr, "Norm::rms">:$norm,
      Given<F64Attr, "1e-5">:$epsilon,
      Arg<DefaultValuedAttr<GainRoundingAttr, "::lathe::GainRounding::after_gain">,
          "of the rms norm">:$rounding);
  let builderParameters = ["x", "residual"];
  let builderOptions = "AddNormOptions";
  let results = (outs RealTensor:$sum, RealTensor:$y);
  let assemblyFormat = [{`` $norm $x `,` $residual (`gain` $gain^)? (`bias` $bias^)? `epsilon` $epsilon
      (`rounding` `` $rounding^)? attr-dict `:` type($x) (`gain` type($gain)^)? (`bias` type($bias)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def AdalnModulateOp : Fused<"adaln_modulate", [IsRowOp, IsRowNorm, RoundsOnce, AllTypesMatch<["shift", "scale"]>]> {
  let summary = "norm(x) * (1 + scale) + shift, the norm without gain or bias";
  let description = [{
    Peebles and Xie, "Scalable Diffusion Models with Transformers", 2023. Computed in f32 and
    rounded once.

    - [C1] `shift` and `scale` have one type, x's element type, and broadcast to x.
    - [C2] epsilon is not negative.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$shift, RealTensor:$scale,
      Given<NormAttr, "Norm::layer">:$norm, F64Attr:$epsilon);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "`` $norm $x `shift` $shift `scale` $scale `epsilon` $epsilon attr-dict `:` type($x) `,` type($scale)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def GatedResidualOp : Fused<"gated_residual", [IsRowOp, IsPointwise, RoundsOnce, AllTypesMatch<["x", "f"]>]> {
  let summary = "x + gate * f";
  let description = [{
    Computed in f32 and rounded once.

    - [C1] f has the type of x; the gate has its element type and broadcasts to it.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$gate, RealTensor:$f);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "$x `,` $gate `,` $f attr-dict `:` type($x) `,` type($gate)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def RopeOp : Fused<"rope", [IsRowOp, RoundsOnce]> {
  let summary = "rotary position embedding of the last axis";
  let description = [{
    Su et al., "RoFormer", 2021. Pair (a, b) becomes (a cos - b sin, a sin + b cos); pairs are
    neighbours (`interleaved`) or element i and i + r/2 (`half`). `cos` and `sin` broadcast to x
    with r/2 in the last axis; the first r elements rotate, the others stay (partial RoPE, r < d).
    Products and sums are f32.

    - [C1] the last dim is an even number.
    - [C2] `cos` and `sin` have one f32 type, end in at most half the last dim and broadcast to x.
  }];
  let arguments = (ins RealTensor:$x,
      Arg<RealTensor, "a table of fewer than d/2 angles rotates the first elements">:$cos,
      RealTensor:$sin, PairingAttr:$pairing);
  let results = (outs RealTensor:$y);
  let assemblyFormat = "`` $pairing $x `,` $cos `,` $sin attr-dict `:` type($x) `,` type($cos) `,` type($sin)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def NormRopeOp : Fused<"norm_rope", [IsRowOp]> {
  let summary = "rope(rms_norm(x)): the query's or key's own norm, then its rotation";
  let description = [{
    The norm runs over the last axis, one head at a time (Henry et al., "Query-Key Normalization",
    2020), and its result is rounded to the dtype before the rotation.

    - [C1] the gain is `[last dim]` of x's element type; epsilon is not negative.
    - [C2] `cos` and `sin` are those of `rope`.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$gain, RealTensor:$cos, RealTensor:$sin,
      Given<PairingAttr, "Pairing::half">:$pairing, Given<F64Attr, "1e-6">:$epsilon,
      DefaultValuedAttr<GainRoundingAttr, "::lathe::GainRounding::after_gain">:$rounding);
  let builderParameters = ["x", "gain", "cos", "sin"];
  let builderOptions = "NormRopeOptions";
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{`` $pairing $x `gain` $gain `,` $cos `,` $sin `epsilon` $epsilon
      (`rounding` `` $rounding^)? attr-dict `:` type($x) `,` type($gain) `,` type($cos) `,` type($sin)}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def RopeAppendOp : Fused<"rope_append"> {
  let summary = "a cache with rope(x), or rope(rms_norm(x)), written at a position per batch";
  let description = [{
    `update(cache, rope(x), positions)` along `axis`; with a gain the key is normed first, as in
    `norm_rope`.

    - [C1] the gain is `[last dim]` of x's element type; epsilon is not negative.
    - [C2] `cos` and `sin` are those of `rope`.
    - [C3] cache, x and positions are those of `update`.
  }];
  let arguments = (ins RealTensor:$cache, RealTensor:$x,
      Arg<Optional<RealTensor>, "norms x first where it is given">:$gain, RealTensor:$cos,
      RealTensor:$sin, IdTensor:$positions, AxisAttr:$axis,
      Given<PairingAttr, "Pairing::half">:$pairing, Given<DefaultValuedAttr<F64Attr, "0.0">, "1e-6">:$epsilon,
      DefaultValuedAttr<GainRoundingAttr, "::lathe::GainRounding::after_gain">:$rounding);
  let builderParameters = ["cache", "x", "gain", "cos", "sin", "positions", "axis"];
  let builderOptions = "NormRopeOptions";
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{`` $pairing $cache `,` $x (`gain` $gain^)? `,` $cos `,` $sin `,` $positions `axis` $axis
      (`epsilon` $epsilon^)? (`rounding` `` $rounding^)? attr-dict `:` type($cache) `,` type($x)
      (`gain` type($gain)^)? `,` type($cos) `,` type($sin) `,` type($positions)}];
  // In place: the block is written, nothing else is touched.
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &) {
      return operand == 0 ? ::std::optional(::lathe::DimExpr(0)) : ::std::nullopt;
    }
    ::std::optional<::lathe::DimExpr> elementsWritten(const ::lathe::Sizes &sizes) {
      return sizes.count(getX());
    }
  }];
}
def GluOp : Fused<"glu", [IsRowOp, IsPointwise, RoundsOnce]> {
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
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def AttentionOp : Fused<"attention", [HasOwnKernel, RoundsOnce, AttrSizedOperandSegments]> {
  let summary = "softmax(scale * q k^T + mask) v with grouped heads";
  let description = [{
    q `[b, h, s, d]`, k `[b, g, t, d]`, v `[b, g, t, e]` with g dividing h (query head i reads key
    head i * g / h); result `[b, h, s, e]`. A rank-3 form leaves the heads out. `mask` broadcasts to
    `[b, h, s, t]`: i1 (true = visible) or a float that is added. `causal = top_left` lets query i
    see keys up to i, `bottom_right` up to i + t - s, `positions` up to i + positions[b]; a `window`
    w then hides all but the last w of those. A positive `softcap` c makes the scaled score s
    `c * tanh(s / c)` before the mask. Vaswani et al., 2017; computed with f32 maxima, sums and
    accumulation.

    - [C1] ranks are 3 or 4 and equal, element types are equal.
    - [C2] batch, depth and key length agree.
    - [C3] the number of key heads divides the number of query heads.
    - [C4] the mask is i1 or a float and broadcasts to the scores.
    - [C5] `positions` is given exactly with `causal = positions`, and is `[b]`.
    - [C6] a window is not negative (0: none) and goes with a causal mask; the softcap is not
      negative.
  }];
  let arguments = (ins RealTensor:$q, RealTensor:$k, RealTensor:$v,
      Arg<Optional<AnyTensorType>, "i1 (true = visible) or an added float">:$mask,
      Arg<Optional<IdTensor>, "`[batch]`, with `causal = positions`">:$positions,
      Given<F64Attr, "1">:$scale, Arg<DefaultValuedAttr<F64Attr, "0.0">, "0: none">:$softcap,
      DefaultValuedAttr<CausalAttr, "::lathe::Causal::none">:$causal,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "keys that a query sees, itself included; 0: all">:$window,
      DefaultValuedAttr<MaskedRowAttr, "::lathe::MaskedRow::nan">:$masked_row);
  let builderParameters = ["q", "k", "v"];
  let builderOptions = "AttentionOptions";
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$q `,` $k `,` $v (`mask` $mask^)? (`positions` $positions^)? `scale` $scale
      (`softcap` $softcap^)? (`causal` `` $causal^)? (`window` $window^)? (`masked_row` `` $masked_row^)? attr-dict `:` type($q) `,` type($k) `,` type($v)
      (`mask` type($mask)^)? (`positions` type($positions)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    // The visible part of the scores alone.
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes);
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &sizes);
  }];
}
def PagedAttentionOp : Fused<"paged_attention", [HasOwnKernel, RoundsOnce]> {
  let summary = "attention over keys and values that lie in blocks, found by a table per sequence";
  let description = [{
    `attention` with `causal = positions` (Kwon et al., "Efficient Memory Management for Large
    Language Model Serving with PagedAttention", 2023). q `[b, h, s, d]`, k `[blocks, g, m, d]`,
    v `[blocks, g, m, e]`, `table` `[b, n]`, `positions` `[b]`; result `[b, h, s, e]`. Key j of
    sequence b, of n m, is `k[table[b, j / m], :, j % m, :]`, and so are values; scale, softcap, mask
    `[b, h, s, n m]`, window and masked rows are those of `attention`. An entry of the table outside
    of the blocks is an error when the program runs, whether its keys are visible or not.

    - [C1] q, k and v have rank 4 and one element type.
    - [C2] k and v have as many blocks, heads and keys in a block; q has the depth of k.
    - [C3] the number of key heads divides the number of query heads.
    - [C4] the mask is i1 or a float and broadcasts to the scores.
    - [C5] `table` is `[b, n]` and `positions` is `[b]`.
    - [C6] window and softcap are not negative.
  }];
  let arguments = (ins RealTensor:$q, RealTensor:$k, RealTensor:$v,
      Arg<IdTensor, "`[batch, entries]`, blocks of k and v">:$table,
      Arg<IdTensor, "`[batch]`: query i sees keys up to i + positions">:$positions,
      Arg<Optional<AnyTensorType>, "i1 (true = visible) or an added float">:$mask,
      Given<F64Attr, "1">:$scale, Arg<DefaultValuedAttr<F64Attr, "0.0">, "0: none">:$softcap,
      Arg<DefaultValuedAttr<I64Attr, "0">,
          "keys that a query sees, itself included; 0: all">:$window,
      DefaultValuedAttr<MaskedRowAttr, "::lathe::MaskedRow::nan">:$masked_row);
  let builderParameters = ["q", "k", "v", "table", "positions"];
  let builderOptions = "PagedAttentionOptions";
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$q `,` $k `,` $v `table` $table `positions` $positions (`mask` $mask^)? `scale` $scale
      (`softcap` $softcap^)? (`window` $window^)? (`masked_row` `` $masked_row^)? attr-dict `:`
      type($q) `,` type($k) `,` type($v) `table` type($table) `positions` type($positions)
      (`mask` type($mask)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    // The visible part of the scores alone, and the keys and values that are seen.
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes);
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &sizes);
  }];
}
def LinearOp : Fused<"linear", [HasOwnKernel, RoundsOnce, AttrSizedOperandSegments]> {
  let summary = "activation(x w^T + bias) + residual";
  let description = [{
    x `[..., k]`; w `[n, k]` under layout `out_in` and `packed`, `[k, n]` under `in_out`; bias `[n]`;
    residual `[..., n]`; result `[..., n]`; each but x and w is optional. Accumulates in f32, adds
    the bias, applies the activation and adds the residual in f32, and rounds once; with `unrounded`
    it does not: the result, and the residual, are f32 where x has 16 bits. `packed` means that the
    backend has re-ordered the weight (`lathe.pack`).

    - [C1] x has an axis, w is a static matrix, element types are equal.
    - [C2] the inner dims are equal.
    - [C3] the bias is `[n]`.
    - [C4] the residual has the type of the result.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$w, Optional<RealTensor>:$bias,
      Optional<RealTensor>:$residual,
      DefaultValuedAttr<ActivationAttr, "::lathe::Activation::none">:$activation,
      Arg<DefaultValuedAttr<WeightLayoutAttr, "::lathe::WeightLayout::out_in">,
          "`packed` is a backend's own">:$layout,
      Arg<DefaultValuedAttr<BoolAttr, "false">, "the result is f32 where x has 16 bits">:$unrounded);
  let builderParameters = ["x", "w"];
  let builderOptions = "LinearOptions";
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$x `,` $w (`bias` $bias^)? (`activation` `` $activation^)? (`residual` $residual^)?
      (`layout` `` $layout^)? (`unrounded` $unrounded^)? attr-dict `:` type($x) `,` type($w) (`bias` type($bias)^)? (`residual` type($residual)^)?}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
  }];
}
def GroupedLinearOp : Fused<"grouped_linear", [HasOwnKernel, RoundsOnce]> {
  let summary = "x w[index]^T: every row is multiplied by the weight that its index chooses";
  let description = [{
    The products of a mixture of experts, known as grouped matrix products (Gale et al.,
    "MegaBlocks: Efficient Sparse Training with Mixture-of-Experts", 2023). x `[..., k]`; w
    `[groups, n, k]` under layout `out_in` and `packed`, `[groups, k, n]` under `in_out`; `indices`
    has as many axes as x has in front of k, and those of x are as long or 1; result
    `indices.dims + [n]`. Accumulates in f32 and rounds once; with `unrounded` it does not: the
    result is f32 where x has 16 bits. A weight that no index chooses has no part in the result,
    whatever it holds. An index outside [0, groups) is an error when the program runs. `packed` means
    that the backend has re-ordered each weight (`lathe.pack`).

    - [C1] w is static of rank 3, and element types are equal.
    - [C2] the inner dims are equal.
    - [C3] x has one axis more than `indices`, and those in front are as long or 1.
  }];
  let arguments = (ins RealTensor:$x, RealTensor:$w, IdTensor:$indices,
      Arg<DefaultValuedAttr<WeightLayoutAttr, "::lathe::WeightLayout::out_in">,
          "`packed` is a backend's own">:$layout,
      Arg<DefaultValuedAttr<BoolAttr, "false">, "the result is f32 where x has 16 bits">:$unrounded);
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$x `,` $w `by` $indices (`layout` `` $layout^)? (`unrounded` $unrounded^)?
      attr-dict `:` type($x) `,` type($w) `,` type($indices)}];
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes);
    // The weights that indices choose, each once: no more than there are.
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &sizes);
  }];
}
def QuantizedLinearOp : Fused<"quantized_linear", [HasOwnKernel, RoundsOnce, AttrSizedOperandSegments]> {
  let summary = "linear(x, dequantize(q, scale, zero)): the weight is in few bits";
  let description = [{
    x `[..., k]`; q `[n, k]`; scale and zero `[n, ceil(k / block)]`; bias `[n]`; residual
    `[..., n]`; result `[..., n]`; each but x, q and scale is optional. The weight's elements are
    `(q - zero) * scale`, not rounded to x's dtype; products accumulate in f32, then bias, activation
    and residual follow in f32, and it rounds once; with `unrounded` it does not: the result, and the
    residual, are f32 where x has 16 bits. `packed` means that the backend has re-ordered q, and
    scale and zero where they have several columns (`lathe.pack`).

    With `quantizes_x` each row of x is rounded to 8 bits before: it becomes `round(x * (127 / L)) *
    (L / 127)` in f32, ties to even, where L is the row's largest magnitude, at least 2^-100 (the
    dynamic quantization by tokens of "LLM.int8()", Dettmers et al., 2022). A row that holds a NaN or
    an infinity gives NaN.

    - [C1] x has an axis, q is a static matrix whose columns are x's last dim.
    - [C2] `block` is from 1 to 2^31 - 1; scale and zero are `[n, ceil(k / block)]`.
    - [C3] the bias is `[n]` of x's element type.
    - [C4] the residual has the result's type.
    - [C5] the layout is `out_in` or `packed`.
  }];
  let arguments = (ins RealTensor:$x, QuantizedTensor:$q, RealTensor:$scale,
      Optional<NumberTensor>:$zero, Optional<RealTensor>:$bias, Optional<RealTensor>:$residual,
      Given<I64Attr, "32">:$block,
      DefaultValuedAttr<ActivationAttr, "::lathe::Activation::none">:$activation,
      Arg<DefaultValuedAttr<WeightLayoutAttr, "::lathe::WeightLayout::out_in">,
          "`packed` is a backend's own">:$layout,
      Arg<DefaultValuedAttr<BoolAttr, "false">, "the result is f32 where x has 16 bits">:$unrounded,
      Arg<DefaultValuedAttr<BoolAttr, "false">, "rows of x are rounded to 8 bits">:$quantizes_x);
  let builderParameters = ["x", "q", "scale", "block"];
  let builderOptions = "QuantizedLinearOptions";
  let results = (outs RealTensor:$y);
  let assemblyFormat = [{$x `,` $q `,` $scale (`zero` $zero^)? `block` $block (`bias` $bias^)?
      (`activation` `` $activation^)? (`residual` $residual^)? (`layout` `` $layout^)?
      (`unrounded` $unrounded^)? (`quantizes_x` $quantizes_x^)? attr-dict `:`
      type($x) `,` type($q) `,` type($scale) (`zero` type($zero)^)? (`bias` type($bias)^)?
      (`residual` type($residual)^)?}];
  // The products: what a weight's element costs is hidden behind reading it.
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> flops(const ::lathe::Sizes &sizes);
  }];
}
def EmbeddingOp : Fused<"embedding", [IsRowOp, RoundsOnce]> {
  let summary = "rows of a table by token id, scaled, plus rows of positions";
  let description = [{
    ids `[...]`, table `[vocabulary, d]` -> `[..., d]`: `table[ids] * scale + positions`. Without
    scale and positions it is a copy of rows; else computed in f32 and rounded once. An id outside
    the table is an error when the program runs.

    - [C1] the table is a matrix.
    - [C2] `positions` has the table's element type and broadcasts to the result.
    - [C3] a table of integers has neither scale nor positions.
  }];
  let arguments = (ins IdTensor:$ids, AnyTensorType:$table,
      Arg<Optional<AnyTensorType>, "rows that are added">:$positions,
      Arg<DefaultValuedAttr<F64Attr, "1.0">, "of the table's rows">:$scale);
  let builderParameters = ["ids", "table"];
  let builderOptions = "EmbeddingOptions";
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = [{$ids `,` $table (`positions` $positions^)? (`scale` $scale^)? attr-dict `:`
      type($ids) `,` type($table) (`positions` type($positions)^)?}];
  // Of the table its rows.
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned operand, const ::lathe::Sizes &sizes) {
      return operand == 1 ? ::std::optional(sizes.count(getY())) : ::std::nullopt;
    }
  }];
}
#endif
