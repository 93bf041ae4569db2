// SPDX-License-Identifier: Apache-2.0
// The passes of `lathe-opt`: their names, their options and what docs/passes.md says about them.
// Each numbers what it does in the context's rewrite log, if there is one, and merges locations in
// any case.
#ifndef LATHE_PASSES
#define LATHE_PASSES

include "mlir/Pass/PassBase.td"

def CanonicalizePass : Pass<"lathe-canonicalize"> {
  let summary = "One spelling per idea";
  let description = [{
    The rules of [the canonical form](canonical-form.md), with the folds of the dialect. Fusions are
    matched on what it leaves.
  }];
}

def CsePass : Pass<"lathe-cse"> {
  let summary = "Equal ops become one, which carries the origins of all";
}

def DecomposePass : Pass<"lathe-decompose"> {
  let summary = "Fused ops become the elementary ops that they stand for";
}

def FusePass : Pass<"lathe-fuse"> {
  let summary = "Elementary ops become fused ops";
  let description = [{
    The built-in fusions of `passes/patterns`, phase by phase, after the patterns of the option's
    files and again with them.
  }];
  let options = [ListOption<"files", "patterns", "std::string",
                            "files of more patterns, PDL (.mlir) or PDLL (.pdll)">];
  let dependentDialects = ["mlir::pdl::PDLDialect"];
}

def WhyNotPass : Pass<"lathe-why-not"> {
  let summary = "Says which fusion nearly took an op and what stopped it";
  let description = [{
    A remark on each op that no fusion took although one came near, with the first constraint that
    failed. Run it after `lathe-fuse`; it changes nothing.
  }];
}

def CheckLocationsPass : Pass<"lathe-check-locations"> {
  let summary = "An error on each op that lost its origin";
}

def StripDimsPass : Pass<"lathe-strip-dims"> {
  let summary = "Tensor types lose their named dims";
  let description = [{
    For upstream passes that would drop some of them. Only once no lathe op is left: their inference
    cannot prove `?` equal to `?`.
  }];
}

def ShardPass : Pass<"lathe-shard", "mlir::ModuleOp"> {
  let summary = "One graph for every rank of a mesh, with collectives";
  let description = [{
    Linear ops are cut by columns and rows in pairs, states with them; see [ranks](ranks.md). Run it
    after `lathe-fuse`.
  }];
  let options = [Option<"ranks", "ranks", "int64_t", "2", "how many">,
                 Option<"axis", "axis", "std::string", "\"\"",
                        "name of the mesh's axis; the graph's or tp without one">,
                 Option<"simulate", "simulate", "bool", "false", "all ranks in one graph">,
                 Option<"splitRows", "split-rows", "bool", "false",
                        "norms and residuals of a rank's share of the rows">];
}

def CutStagesPass : Pass<"lathe-cut-stages", "mlir::ModuleOp"> {
  let summary = "One stage of a pipeline: its layers, and messages from and to the others";
  let description = [{
    Entry points are cut where least crosses; see [ranks](ranks.md). Run it after `lathe-shard`.
  }];
  let options = [Option<"stages", "stages", "int64_t", "2", "how many there are">,
                 Option<"stage", "stage", "int64_t", "0", "the one that stays">];
}

// The steps that a backend takes from `fused` to `lowered`, with the widest answers that a backend
// could give about what it packs and what it generates.

def FoldNormGainPass : Pass<"lathe-fold-norm-gain", "mlir::ModuleOp"> {
  let summary = "A norm's gain moves into the weights that follow (mode fast)";
}

def MergeLinearsPass : Pass<"lathe-merge-linears", "mlir::ModuleOp"> {
  let summary = "Linear ops on one input become one wider linear op (qkv, gate and up)";
}

def QuantizeWeightsPass : Pass<"lathe-quantize-weights", "mlir::ModuleOp"> {
  let summary = "Linear ops and embeddings of checkpoint weights read them in few bits";
  let description = [{
    As `--weight-format` of `lathe` ([numerics](numerics.md)): integers, scales and zero points are
    made of the weights, and a linear op on a dequantized weight is one on its integers. With
    `packed` linear ops read the integers packed.
  }];
  let options = [Option<"formats", "formats", "std::string", "\"int8\"",
                        "stored, int8 or int4, then :GROUP, :asymmetric, ,embedding= and ,head=">,
                 Option<"packed", "packed", "bool", "false", "pack the integers">];
}

def ChooseWeightLayoutPass : Pass<"lathe-choose-weight-layout", "mlir::ModuleOp"> {
  let summary = "Linear ops on checkpoint weights read them packed";
}

def HoistWeightsPass : Pass<"lathe-hoist-weights", "mlir::ModuleOp"> {
  let summary = "Weight-only arithmetic moves to @load";
}

def FormRegionsPass : Pass<"lathe-form-regions", "mlir::ModuleOp"> {
  let summary = "What is no contraction, scan or update becomes lathe.region ops";
}

#endif // LATHE_PASSES
