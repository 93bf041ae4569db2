// SPDX-License-Identifier: Apache-2.0
// Constants, weights, states and symbols: what a graph holds besides arithmetic.
#ifndef LATHE_STATE_TD
#define LATHE_STATE_TD
include "attrs.td"

def ConstantOp : LatheOp<"constant", [Pure, ConstantLike, IsDeclaration, InferTypeOpAdaptor]> {
  let summary = "a literal tensor";
  let description = "For scalars and small tables; checkpoint tensors are `lathe.weight`.";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}
def WeightOp : LatheOp<"weight", [Pure, IsDeclaration]> {
  let summary = "a checkpoint tensor by name; its values are never in the IR";
  let description = [{
    On the ranks of a mesh it may be a piece of the checkpoint's tensor `of`, which is cut into
    `parts` equal pieces along `axis`: rank r of n reads piece `r * parts / n`. Where the axis is
    `groups` equal groups, one behind the other, each of them is cut so, and the piece has its part
    of all. With `begin` and `extent` a group has `extent` elements, and those from `begin` on are
    cut: the keys of a tensor that holds queries and values, too.

    - [C1] the shape is static.
    - [C2] `of`, `axis` and `parts` go together; the axis is inside the rank and there is at least
      one part. `groups`, `begin` and `extent` are a piece's.
    - [C3] the groups divide the axis, and all parts of a group are inside of it.
  }];
  let arguments = (ins StrAttr:$name, OptionalAttr<StrAttr>:$of, OptionalAttr<I64Attr>:$axis,
                       OptionalAttr<I64Attr>:$parts, OptionalAttr<I64Attr>:$groups,
                       OptionalAttr<I64Attr>:$begin, OptionalAttr<I64Attr>:$extent);
  let results = (outs StoredTensor:$y);
  let assemblyFormat = [{$name (`of` $of^ `axis` $axis `parts` $parts)? (`groups` $groups^)?
      (`begin` $begin^ `extent` $extent)? attr-dict `:` type($y)}];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::llvm::StringRef":$name), [{
    build($_builder, $_state, type, name, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
  }]>];
  let hasVerifier = 1;
}
def DimOp : LatheOp<"dim", [Symbol, IsDeclaration]> {
  let summary = "a named dimension and its range";
  let description = "- [C1] 0 <= lo <= hi, and `multiple` is at least 1.";
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$lo, I64Attr:$hi,
                       DefaultValuedAttr<I64Attr, "1">:$multiple);
  let assemblyFormat = "$sym_name $lo `to` $hi (`multiple` $multiple^)? attr-dict";
  let hasVerifier = 1;
}
def DimPartOp : LatheOp<"dim_part", [Symbol, IsDeclaration,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a named dimension: what each rank has of an axis that parts need not divide";
  let description = [{
    It stands for `ceil(of / parts)` and is set in every run by the symbols of `of`. Of the last
    parts some elements, or all, are padding.

    - [C1] `of` is one size of symbols, each of which is a `lathe.dim`.
    - [C2] `parts` is at least one.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, DimsAttr:$of, I64Attr:$parts);
  let assemblyFormat = "$sym_name `of` $of `parts` $parts attr-dict";
}
def StateOp : LatheOp<"state", [Symbol, IsDeclaration]> {
  let summary = "a tensor that lives across calls, zero at first";
  let description = [{
    Entry points take it as an argument marked `lathe.state = @name` and return its new value as a
    result marked likewise; the planner proves that the update happens in place.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyTensorType>:$type);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
}
def MeshOp : LatheOp<"mesh", [IsDeclaration]> {
  let summary = "the ranks that the graph is for, along a named axis of them";
  let description = [{
    What `compile` is told of a mesh goes before it. A module has at most one.

    - [C1] there is at least one rank, and the axis has a name.
  }];
  let arguments = (ins StrAttr:$mesh_axis, I64Attr:$ranks);
  let assemblyFormat = "$mesh_axis `of` $ranks attr-dict";
  let hasVerifier = 1;
}
def ShardWeightsOp : LatheOp<"shard_weights", [IsDeclaration]> {
  let summary = "the axis along which ranks hold weights in pieces, or that all hold them whole";
  let description = [{
    For all weights whose names match `weights`, a glob of `*` and `?`; of several that match one
    weight the last counts. It goes before what the ranks' plan finds, and says nothing on one rank.
    An axis may count from the back. Without an axis every rank has the weights whole.

    - [C1] the pattern is not empty, and an axis of the weights goes with an axis of the mesh.
  }];
  let arguments = (ins StrAttr:$weights, OptionalAttr<I64Attr>:$axis,
                       OptionalAttr<StrAttr>:$mesh_axis);
  let assemblyFormat = "$weights (`axis` $axis^ `over` $mesh_axis)? attr-dict";
  let hasVerifier = 1;
}
#endif
