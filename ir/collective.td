// SPDX-License-Identifier: Apache-2.0
// What the ranks of a mesh tell each other. One graph runs on all of them, each on its own pieces of
// the weights and states; passes/shard makes these ops. Users record `shard` alone.
#ifndef LATHE_COLLECTIVE_TD
#define LATHE_COLLECTIVE_TD
include "attrs.td"

// Every rank runs the same collectives in the same order: as ops with an effect on the mesh they are
// never moved, merged or left out.
def MeshResource : Resource<"::lathe::MeshResource">;
class Collective<string mnemonic, list<Trait> traits = []>
    : LatheOp<mnemonic, [InferTypeOpAdaptor, CostedOp, HasOwnKernel, HasNoArithmetic, IsOfOneRank,
                         MemoryEffects<[MemRead<MeshResource>, MemWrite<MeshResource>]>] # traits>;
// Of whose axis ranks may have unequal parts: the names of their sizes are declared.
defvar ofParts = DeclareOpInterfaceMethods<SymbolUserOpInterface>;

def AllReduceOp : Collective<"all_reduce"> {
  let summary = "the sum, or largest value, of every element over all ranks";
  let description = [{
    `mesh_axis` names the axis of the mesh, which has `ranks` ranks; a mesh of one gives x. Values
    are joined in the order of the ranks, 16-bit floats in f32 and rounded once, so that all ranks
    have the same bits.

    - [C1] there is at least one rank.
  }];
  let arguments = (ins NumberTensor:$x, CombineAttr:$combine, StrAttr:$mesh_axis, I64Attr:$ranks);
  let results = (outs NumberTensor:$y);
  let assemblyFormat = "`` $combine $x `over` $mesh_axis `of` $ranks attr-dict `:` type($x)";
  let hasFolder = 1;
}
def AllGatherOp : Collective<"all_gather", [ofParts]> {
  let summary = "the pieces of all ranks, one behind the other along an axis";
  let description = [{
    The axis is cut into `parts` pieces over the `ranks` ranks of the mesh's axis `mesh_axis`; where
    there are fewer pieces than ranks, neighbours hold the same one, and it is taken once. With
    `whole` that is the size of the axis, and what the pieces have beyond it, padding, is left out.

    - [C1] the axis is inside the rank.
    - [C2] `parts` is at least one and divides `ranks`.
    - [C3] the pieces are what each part of a `whole` has: ceil(whole / parts), a number or the
      `lathe.dim_part` of it.
  }];
  let arguments = (ins AnyTensorType:$x, AxisAttr:$axis, I64Attr:$parts, StrAttr:$mesh_axis,
                       I64Attr:$ranks, OptionalAttr<DimsAttr>:$whole);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = [{$x `axis` $axis `parts` $parts (`whole` $whole^)? `over` $mesh_axis `of` $ranks
      attr-dict `:` type($x)}];
  let hasFolder = 1;
}
def ReduceScatterOp : Collective<"reduce_scatter", [ofParts]> {
  let summary = "a rank's own piece of the sum, or largest values, over all ranks";
  let description = [{
    `all_reduce`, then `all_slice` with as many parts as ranks, without sending what a rank does not
    keep: the axis is cut into `ranks` equal pieces, and rank r has piece r. Values are joined as by
    `all_reduce`. With `part` a piece has so many elements, and the last ones end in zeros where
    there are no more: a rank may have zeros alone.

    - [C1] the axis is inside the rank, and `ranks` divides its size.
    - [C2] there is at least one rank.
    - [C3] `part` is what each part of the axis has: ceil(size / ranks), a number or the
      `lathe.dim_part` of it. With it C1 asks for no multiple.
  }];
  let arguments = (ins NumberTensor:$x, CombineAttr:$combine, AxisAttr:$axis, StrAttr:$mesh_axis,
                       I64Attr:$ranks, OptionalAttr<DimsAttr>:$part);
  let results = (outs NumberTensor:$y);
  let assemblyFormat = [{`` $combine $x `axis` $axis (`part` $part^)? `over` $mesh_axis `of` $ranks
      attr-dict `:` type($x)}];
  let hasFolder = 1;
}
def AllToAllOp : Collective<"all_to_all"> {
  let summary = "pieces along another axis: ranks send each other what that one has from now on";
  let description = [{
    The ranks hold a tensor in equal pieces along `concat_axis`, of which x is this rank's, and have
    it in equal pieces along `split_axis` behind it: rank r gets the r-th of `ranks` parts of every
    rank's x along `split_axis`, one behind the other along `concat_axis` in the order of the ranks.
    So a rank sends what `all_gather` would, once instead of `ranks` times. Where both are one axis,
    the parts of that axis change places.

    - [C1] both axes are inside the rank, and the size of `split_axis` is a number that `ranks`
      divides.
    - [C2] there is at least one rank.
  }];
  let arguments = (ins AnyTensorType:$x, AxisAttr:$split_axis, AxisAttr:$concat_axis,
                       StrAttr:$mesh_axis, I64Attr:$ranks);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = [{$x `split` $split_axis `concat` $concat_axis `over` $mesh_axis `of` $ranks
      attr-dict `:` type($x)}];
  let hasFolder = 1;
}
// From one stage of a pipeline to another: a rank's message is for the rank that stands at its place
// in the other stage.
class Message<string mnemonic>
    : LatheOp<mnemonic, [CostedOp, HasOwnKernel, HasNoArithmetic, IsOfOneRank,
                         MemoryEffects<[MemRead<MeshResource>, MemWrite<MeshResource>]>]>;

def SendOp : Message<"send"> {
  let summary = "x goes to another stage of a pipeline";
  let description = [{
    `mesh_axis` names the axis of the mesh whose `stages` stages stand behind each other, each with a
    program of its own. Stage `stage` has a `lathe.receive` for every `lathe.send`, in the order of
    these. Nobody waits until the other has come, unless many messages are on their way. With
    `result` it is an output that goes to the first stage, and is left out of runs whose outputs
    nobody wants.

    - [C1] `stage` is one of the stages.
  }];
  let arguments = (ins AnyTensorType:$x, I64Attr:$stage, StrAttr:$mesh_axis, I64Attr:$stages,
                       UnitAttr:$result);
  let assemblyFormat = [{$x `to` $stage `over` $mesh_axis `of` $stages (`result` $result^)?
      attr-dict `:` type($x)}];
  let hasVerifier = 1;
}
def ReceiveOp : Message<"receive"> {
  let summary = "the next value that another stage of a pipeline sends";
  let description = [{
    What stage `stage` gives to its `lathe.send`, which has the same type. With `result` it is an
    output of a later stage, and is left out where that is not sent.

    - [C1] `stage` is one of the stages.
  }];
  let arguments = (ins I64Attr:$stage, StrAttr:$mesh_axis, I64Attr:$stages, UnitAttr:$result);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = [{`from` $stage `over` $mesh_axis `of` $stages (`result` $result^)? attr-dict
      `:` type($y)}];
  let hasVerifier = 1;
}
def AllSliceOp : PureInferred<"all_slice", [HasOwnKernel, HasNoArithmetic, IsOfOneRank, ofParts]> {
  let summary = "a rank's own piece of a tensor that every rank has";
  let description = [{
    The axis is cut into `parts` equal pieces; rank r of `ranks` takes piece `r * parts / ranks`. No
    rank waits for another. With `part` pieces are as those of `reduce_scatter`, with zeros behind
    the axis's end.

    - [C1] the axis is inside the rank, and its size is a number that `parts` divides.
    - [C2] `parts` is at least one and divides `ranks`.
    - [C3] `part` is what each part of the axis has: ceil(size / parts), a number or the
      `lathe.dim_part` of it. With it C1 asks for no multiple.
  }];
  let arguments = (ins AnyTensorType:$x, AxisAttr:$axis, I64Attr:$parts, StrAttr:$mesh_axis,
                       I64Attr:$ranks, OptionalAttr<DimsAttr>:$part);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = [{$x `axis` $axis `parts` $parts (`part` $part^)? `over` $mesh_axis `of` $ranks
      attr-dict `:` type($x)}];
  let hasFolder = 1;
}
def ShardOp : PureInferred<"shard", [HasNoArithmetic, DeclareOpInterfaceMethods<DecomposableOp>]> {
  let summary = "x, of which each rank has a piece along an axis";
  let description = [{
    Recorded by the user, for passes/shard to follow: here the ranks of `mesh_axis` hold x in equal
    pieces, whatever their plan is elsewhere. On one rank it is x, and taken away before any rewrite.

    - [C1] the axis is inside the rank, and its size is a number.
  }];
  let arguments = (ins AnyTensorType:$x, AxisAttr:$axis, StrAttr:$mesh_axis);
  let results = (outs AnyTensorType:$y);
  let assemblyFormat = "$x `axis` $axis `over` $mesh_axis attr-dict `:` type($x)";
  let extraClassDeclaration = [{
    ::std::optional<::lathe::Factors> factors();
    ::std::optional<::lathe::DimExpr> elementsRead(unsigned, const ::lathe::Sizes &) {
      return ::lathe::DimExpr(0);
    }
    ::std::optional<::lathe::DimExpr> elementsWritten(const ::lathe::Sizes &) {
      return ::lathe::DimExpr(0);
    }
  }];
}
#endif
