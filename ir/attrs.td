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

// An enumeration of keywords. Its C++ side is lathe/runtime/enums.h, which scripts/generate_api writes from
// this file: programs and devices know it without MLIR.
class LatheEnum<string name, string summary, list<string> keywords>
    : I32EnumAttr<name, summary,
                  !foreach(i, !range(keywords), I32EnumAttrCase<keywords[i], i>)> {
  let cppNamespace = "::lathe";
  let genSpecializedAttr = 0;
  let stringToSymbolFnName = "parseKeyword<::lathe::" # name # ">";
  let symbolToStringFnName = "nameOf";
}

def Compare : LatheEnum<"Compare", "an ordered comparison; a NaN makes all but `ne` false",
    ["eq", "ne", "lt", "le", "gt", "ge"]>;
def CompareAttr : EnumAttr<LatheDialect, Compare, "predicate">;

def MaskedRow : LatheEnum<"MaskedRow", "what a fully masked softmax row gives",
    ["nan", "zero", "uniform"]>;
def MaskedRowAttr : EnumAttr<LatheDialect, MaskedRow, "masked_row">;

def Causal : LatheEnum<"Causal", "alignment of the causal mask",
    ["none", "top_left", "bottom_right", "positions"]>;
def CausalAttr : EnumAttr<LatheDialect, Causal, "causal">;

def Pairing : LatheEnum<"Pairing", "which elements RoPE rotates together", ["interleaved", "half"]>;
def PairingAttr : EnumAttr<LatheDialect, Pairing, "pairing">;

def Activation : LatheEnum<"Activation", "an activation function: x, x sigmoid(x), x Phi(x), its approximation by tanh, max(x, 0)",
    ["none", "silu", "gelu", "gelu_tanh", "relu"]>;
def ActivationAttr : EnumAttr<LatheDialect, Activation, "activation">;

def WeightLayout : LatheEnum<"WeightLayout", "how the weight of a linear op lies in memory",
    ["out_in", "in_out", "packed"]>;
def WeightLayoutAttr : EnumAttr<LatheDialect, WeightLayout, "weight_layout">;

def GainRounding : LatheEnum<"GainRounding",
    "rounding of a norm to its dtype relative to the gain", ["after_gain", "before_gain"]>;
def GainRoundingAttr : EnumAttr<LatheDialect, GainRounding, "gain_rounding">;

def Norm : LatheEnum<"Norm", "what a norm divides by", ["rms", "layer"]>;
def NormAttr : EnumAttr<LatheDialect, Norm, "norm">;

def Combine : LatheEnum<"Combine", "what joins the values of several ranks", ["sum", "max"]>;
def CombineAttr : EnumAttr<LatheDialect, Combine, "combine">;

// Builder functions take axes that count from the back, of the first operand.
def AxisAttr : TypedSignlessIntegerAttrBase<I64, "uint64_t", "64-bit signless integer attribute">;
def AxesAttr : DenseArrayAttrBase<"DenseI64ArrayAttr", "int64_t", "i64">;
#endif
