// SPDX-License-Identifier: Apache-2.0
#ifndef LATHE_ATTRS_TD
#define LATHE_ATTRS_TD
include "base.td"

class LatheAttr<string name, string mn, list<Trait> traits = []> : AttrDef<LatheDialect, name, traits> {
  let mnemonic = mn;
}

def DimsAttr : LatheAttr<"Dims", "dims", [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "named dimensions: one canonical polynomial in the symbols per axis";
  let description = [{
    As the encoding of a tensor type it names the dynamic dims; as an attribute of an op it gives
    sizes (`reshape`, `broadcast`, `slice`, `iota`). Two dims are equal only if their canonical
    texts are: `2*seq+cache` reads back as `cache+2*seq`.

    - [C1] as an encoding there are as many dims as the tensor has axes.
    - [C2] a number agrees with the static size, a symbol stands at a dynamic one.
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$dims);
  let hasCustomAssemblyFormat = 1;
}

class LatheEnum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::lathe";
  let genSpecializedAttr = 0;
}

def Predicate : LatheEnum<"Predicate", "an ordered comparison; a NaN makes all but `ne` false", [
    I32EnumAttrCase<"eq", 0>, I32EnumAttrCase<"ne", 1>, I32EnumAttrCase<"lt", 2>,
    I32EnumAttrCase<"le", 3>, I32EnumAttrCase<"gt", 4>, I32EnumAttrCase<"ge", 5>]>;
def PredicateAttr : EnumAttr<LatheDialect, Predicate, "predicate">;

def MaskedRow : LatheEnum<"MaskedRow", "what a fully masked softmax row gives", [
    I32EnumAttrCase<"nan", 0>, I32EnumAttrCase<"zero", 1>, I32EnumAttrCase<"uniform", 2>]>;
def MaskedRowAttr : EnumAttr<LatheDialect, MaskedRow, "masked_row">;

def Causal : LatheEnum<"Causal", "alignment of the causal mask", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"top_left", 1>,
    I32EnumAttrCase<"bottom_right", 2>, I32EnumAttrCase<"positions", 3>]>;
def CausalAttr : EnumAttr<LatheDialect, Causal, "causal">;

def Pairing : LatheEnum<"Pairing", "which elements RoPE rotates together", [
    I32EnumAttrCase<"interleaved", 0>, I32EnumAttrCase<"half", 1>]>;
def PairingAttr : EnumAttr<LatheDialect, Pairing, "pairing">;

def Activation : LatheEnum<"Activation", "an activation function", [
    I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"silu", 1>, I32EnumAttrCase<"gelu", 2>,
    I32EnumAttrCase<"gelu_tanh", 3>, I32EnumAttrCase<"relu", 4>]>;
def ActivationAttr : EnumAttr<LatheDialect, Activation, "activation">;

def WeightLayout : LatheEnum<"WeightLayout", "how the weight of a linear op lies in memory", [
    I32EnumAttrCase<"out_in", 0>, I32EnumAttrCase<"in_out", 1>, I32EnumAttrCase<"packed", 2>]>;
def WeightLayoutAttr : EnumAttr<LatheDialect, WeightLayout, "weight_layout">;

def GainRounding : LatheEnum<"GainRounding", "rounding of a norm to its dtype relative to the gain", [
    I32EnumAttrCase<"after_gain", 0>, I32EnumAttrCase<"before_gain", 1>]>;
def GainRoundingAttr : EnumAttr<LatheDialect, GainRounding, "gain_rounding">;

def Norm : LatheEnum<"Norm", "what a norm divides by", [
    I32EnumAttrCase<"rms", 0>, I32EnumAttrCase<"layer", 1>]>;
def NormAttr : EnumAttr<LatheDialect, Norm, "norm">;
#endif
