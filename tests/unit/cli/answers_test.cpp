// SPDX-License-Identifier: Apache-2.0
// How verbs tell the compiler's answers, as text and as JSON.
#include "tests/unit/cli/fake_compiler.h"

namespace lathe {
namespace {

using nlohmann::json;
using test::CliResult;
using ::testing::HasSubstr;
using AnswersCli = test::WithFakeCompiler;

TEST_F(AnswersCli, InspectInTwoForms) {
  expectOutput(
      0, "inspect short.mlir",
      "short.mlir: mlir\narithmetic: f32\n\nentry forward\n  in  x: f32[n, 3]\n"
      "  out y: f32[n, 3]\n\nsymbols\n  n: 1 to 8\n  k: 4 to 64, multiples of 4\n\nstates\n"
      "  kept: i64[2]\n  cache: f32[k, 2]\n\nweights: 2 tensors, 3.01 k parameters, "
      "6.03 kB\n  a.weight: bf16[300, 10]\n  b.bias: f32[7]\n",
      "asked compile: backend=reference ranks=1 stages=1\n");
  EXPECT_THAT(run("inspect short.mlir --tensors 'b*' --ranks 4").err,
              HasSubstr("asked compile: backend=cpu ranks=4 stages=1\n"));
  EXPECT_EQ(documentOf(0, "inspect short.mlir --tensors 'a*'"), json::parse(R"({
    "schema_version": 1, "verb": "inspect", "model": "short.mlir", "kind": "mlir",
    "arithmetic": "f32",
    "entries": [{"name": "forward", "inputs": [{"name": "x", "dtype": "f32", "shape": ["n", 3]}],
                 "outputs": [{"name": "y", "dtype": "f32", "shape": ["n", 3]}]}],
    "symbols": [{"name": "n", "low": 1, "high": 8, "multiple": 1},
                {"name": "k", "low": 4, "high": 64, "multiple": 4}],
    "states": [{"name": "kept", "dtype": "i64", "shape": [2]},
               {"name": "cache", "dtype": "f32", "shape": ["k", 2]}],
    "weights": [{"name": "a.weight", "dtype": "bf16", "shape": [300, 10], "parameters": 3000,
                 "size_bytes": 6000}],
    "parameters": 3007, "weights_bytes": 6028})"));
}

TEST_F(AnswersCli, RewritesInTwoForms) {
  expectOutput(0, "inspect short.mlir --rewrites",
               "number  attempt  step           pattern          at\n"
               "     1        0  fuse           gate             blocks.0.mlp m.py:4:2\n"
               "    12       30  hoist-weights  sum-of-products  blocks.1 m.py:5:2"
               "  weakens rounding, order\n",
               "asked rewrites: backend=cpu\n");
  EXPECT_EQ(documentOf(0, "inspect short.mlir --rewrites"), json::parse(R"({
    "schema_version": 1, "verb": "inspect", "model": "short.mlir", "rewrites": [
      {"number": 1, "attempt": 0, "step": "fuse", "pattern": "gate",
       "at": "blocks.0.mlp m.py:4:2", "weakened": []},
      {"number": 12, "attempt": 30, "step": "hoist-weights", "pattern": "sum-of-products",
       "at": "blocks.1 m.py:5:2", "weakened": ["rounding", "order"]}]})"));
}

TEST_F(AnswersCli, NumericsInTwoForms) {
  const std::string head =
      "stage      step                  rewrites  contract   absolute  relative      ulps  first "
      "diverging op\n"
      "canonical  canonicalize                 4  same bits         0         0         0  \n"
      "fused      fuse                        12  inside      0.00125     2e-05         3  "
      "lathe.glu "
      "at m.py:4:2 (was lathe.mul)\n"
      "fused      quantize-weights             1  weights     0.00125     2e-05         3  "
      "lathe.linear at m.py:9:1\n"
      "lowered    lower                        0  kernel calls, which only the backend runs\n";
  const std::string asks = "asked checkNumerics: backend=cpu";
  expectOutput(
      5, "inspect step.mlir --check-numerics --seed 7 --set n=2",
      "step.mlir: 3 results, interpreter in float64, mode relaxed, n = 2, seq = 5, seed 7"
      "\n\n" +
          head +
          "program    cpu                          0  beyond      0.00125     2e-05        "
          " 3  \n            beyond the contract: y[0] is 1, want 2\n",
      asks +
          "; trial float64 n=2 seed=7 entry= device= tolerance=0 weights=false\n"
          "note: a step is beyond the contract; this names the rewrite: lathe bisect "
          "step.mlir --set n=2 --seed 7\n");
  expectOutput(
      0, "inspect right.mlir --check-numerics --mode strict",
      "right.mlir: 3 results, interpreter in own, mode strict, n = 2, seq = 5, seed 0\n\n" + head +
          "program    cpu                          0  inside      0.00125     2e-05        "
          " 3  \n",
      asks +
          " mode=strict; trial own seed=0 entry= device= tolerance=0 weights=false\n"
          "note: every step is inside the contract\n");
  const json out = documentOf(5, "inspect config.json --check-numerics --seed 7 --layers 3");
  EXPECT_EQ(out["model"], "config.json");
  EXPECT_EQ(out["precision"], "float64");
  EXPECT_EQ(out["mode"], "relaxed");
  EXPECT_EQ(out["seed"], 7);
  EXPECT_EQ(out["layers"], 3);
  EXPECT_EQ(out["sizes"], json::parse(R"({"n": 2, "seq": 5})"));
  EXPECT_EQ(out["within_contract"], false);
  ASSERT_EQ(out["steps"].size(), 5u);
  EXPECT_EQ(out["steps"][0], json::parse(R"({"stage": "canonical", "step": "canonicalize",
    "rewrites": 4, "ran": true, "deviation": {"absolute": 0.0, "relative": 0.0, "ulps": 0.0,
    "identical": true, "within_contract": true, "where": ""}})"));
  EXPECT_EQ(out["steps"][1], json::parse(R"({"stage": "fused", "step": "fuse", "rewrites": 12,
    "ran": true, "deviation": {"absolute": 0.00125, "relative": 2e-05, "ulps": 3.0,
    "identical": false, "within_contract": true, "where": "y[0] is 1, want 2"},
    "first_diverging": {"op": "lathe.glu", "at": "m.py:4:2", "was": "lathe.mul",
    "was_at": "m.py:3:2"}})"));
  EXPECT_EQ(out["steps"][2]["changes_weights"], true);
  EXPECT_FALSE(out["steps"][1].contains("changes_weights"));
  EXPECT_EQ(out["steps"][3], json::parse(R"({"stage": "lowered", "step": "lower", "rewrites": 0,
    "ran": false})"));
  EXPECT_EQ(out["steps"][4]["deviation"]["within_contract"], false);
}

TEST_F(AnswersCli, LocationsInTwoForms) {
  const std::string head =
      "stage      step                      ops with origin\n"
      "recorded   record                      3     100.0 %\n"
      "fused      fuse                        0     100.0 %\n";
  expectOutput(1, "inspect step.mlir --check-locations",
               head +
                   "lowered    lower                       3      66.7 %\n"
                   "            lathe.mul lost\n            lathe.add lost\n",
               "asked checkLocations: backend=cpu\n"
               "note: the pipeline ended there: no recorded line\n");
  expectOutput(0, "inspect right.mlir --check-locations", head,
               "asked checkLocations: backend=cpu\n");
  const json out = documentOf(1, "inspect step.mlir --check-locations");
  EXPECT_EQ(out["complete"], false);
  EXPECT_EQ(out["error"], "no recorded line");
  EXPECT_EQ(out["steps"][0], json::parse(R"({"stage": "recorded", "step": "record", "ops": 3,
    "with_origin": 3, "percent": 100.0, "lost": []})"));
  EXPECT_EQ(out["steps"][1]["percent"], 100.0);
  EXPECT_EQ(out["steps"][2]["lost"], json::parse(R"(["lathe.mul lost", "lathe.add lost"])"));
  EXPECT_FALSE(documentOf(0, "inspect right.mlir --check-locations").contains("error"));
}

// --- bisect, why-not, diff

TEST_F(AnswersCli, BisectNamesWhoItWas) {
  auto out = [&](int status, const std::string& arguments) {
    const CliResult r = run("bisect " + arguments);
    EXPECT_EQ(r.status, status);
    return r.out;
  };
  const std::string error =
      "  forward: y[1] is 0.5, want 0.25\n"
      "  largest error: 0.5 absolute, 0.25 relative, 1e+06 ulps\n"
      "  found in 9 runs of the graph with n = 2\n";
  EXPECT_EQ(out(0, "right.mlir"),
            "right.mlir: nothing is wrong; 40 rewrites and backend cpu stay inside the contract "
            "(n = 2, then n = 17)\n");
  EXPECT_EQ(
      out(5, "rewrite.mlir --mode fast"),
      "rewrite 12 of step fuse: sum-of-products at blocks.1 m.py:5:2\n"
      "  weakens rounding, order\n" +
          error +
          "\nbefore and after it:\n"
          "  lathe inspect rewrite.mlir --mode fast --stop-after fused --stop-after-rewrite 11\n"
          "  lathe inspect rewrite.mlir --mode fast --stop-after fused --stop-after-rewrite 12\n"
          "\nreproducer: out/reproducer.mlir (1 op)\n  lathe run a\n  lathe run b\n");
  EXPECT_EQ(
      out(5, "step.mlir"),
      "step fuse of stage fused, which has no numbered rewrites\n" + error +
          "\nreproducer: out/reproducer.mlir (7 ops; it does not show the mistake by itself)\n"
          "  lathe run a\n");
  EXPECT_EQ(out(5, "kernel.mlir --backend reference"),
            "backend reference: lathe.attention at m.py:8:1\n" + error);
  EXPECT_EQ(
      out(5, "whole.mlir"),
      "backend cpu: its program differs as a whole, no part of the graph alone does\n" + error);
}

TEST_F(AnswersCli, BisectAsADocument) {
  EXPECT_EQ(documentOf(0, "bisect right.mlir"), json::parse(R"({"schema_version": 1,
    "verb": "bisect", "model": "right.mlir", "culprit": "nobody", "rewrites": 40, "runs": 9,
    "sizes": {"n": 2}, "also_sizes": {"n": 17}})"));
  json wanted = json::parse(R"({"schema_version": 1, "verb": "bisect", "model": "rewrite.mlir",
    "culprit": "rewrite", "rewrites": 40, "runs": 9, "sizes": {"n": 2}, "deviation": {
      "absolute": 0.5, "relative": 0.25, "ulps": 1e6, "identical": false, "within_contract": false,
      "where": "forward: y[1] is 0.5, want 0.25"}, "stage": "fused", "step": "fuse",
    "rewrite": {"number": 12, "attempt": 30, "pattern": "sum-of-products",
      "at": "blocks.1 m.py:5:2", "weakened": ["rounding", "order"]},
    "reproducer": {"graph": "out/reproducer.mlir", "data": ["out/x.npy"], "ops": 1,
      "shows_the_mistake": true, "commands": ["lathe run a", "lathe run b"]}})");
  EXPECT_EQ(documentOf(5, "bisect rewrite.mlir"), wanted);
  wanted.erase("rewrite");
  wanted["model"] = "step.mlir";
  wanted["culprit"] = "step";
  wanted["reproducer"] = json::parse(R"({"graph": "out/reproducer.mlir", "data": [], "ops": 7,
    "shows_the_mistake": false, "commands": ["lathe run a"]})");
  EXPECT_EQ(documentOf(5, "bisect step.mlir"), wanted);
  for (const char* key : {"reproducer", "stage", "step"}) wanted.erase(key);
  wanted["model"] = "kernel.mlir";
  wanted["culprit"] = "backend";
  wanted["op"] = "lathe.attention";
  wanted["at"] = "m.py:8:1";
  EXPECT_EQ(documentOf(5, "bisect kernel.mlir"), wanted);
}

// Refusals of all layers are one line; misses of patterns stay apart.
TEST_F(AnswersCli, WhyNotTellsOneRefusalOnce) {
  expectOutput(0, "why-not step.mlir --op mul --at m.py:4 --ranks 2",
               "blocks.0 m.py:4:2: lathe.mul: 0.5 is no 1\n"
               "blocks.1 m.py:4:2: lathe.mul: 0.5 is no 1\n"
               "blocks.* m.py:7:2: lathe.rope refused by the backend: no kernel (2 times)\n"
               "blocks.3 m.py:8:2: lathe.rope refused by the backend: no kernel\n"
               "unknown line: fusion fold-gain refused by the mode: rounds otherwise\n"
               "m.py:7:2: lathe.rope refused by the backend: no kernel\n",
               "asked whyNot: backend=cpu ranks=2; op=mul at=m.py:4\n");
  const std::string none = "asked whyNot: backend=cpu; op= at=\n";
  expectOutput(0, "why-not right.mlir", "",
               none + "note: no fusion came near an op that it did not take\n");
  for (const char* flag : {"--op mul", "--at m.py:4"})
    EXPECT_THAT(
        run("why-not right.mlir " + std::string(flag)).err,
        HasSubstr("note: no such op is left over: it was fused, or no pattern starts at it\n"));
  const json misses = documentOf(0, "why-not step.mlir")["misses"];
  ASSERT_EQ(misses.size(), 7u);
  EXPECT_EQ(misses[0], json::parse(R"({"refused_by": "pattern", "op": "lathe.mul",
    "at": "blocks.0 m.py:4:2", "path": "blocks.0", "pattern": "gate", "matched_ops": 3,
    "pattern_ops": 5, "constraint": "constant", "reason": "0.5 is no 1"})"));
  EXPECT_EQ(misses[2]["refused_by"], "backend");
}

TEST_F(AnswersCli, DiffInTwoForms) {
  const std::string entries =
      "\nentry prefill: equal, 3 ops\n\nentry decode: equal, 2 ops in A, 3 in B\n";
  expectOutput(0, "diff right.mlir right.mlir",
               "A: right.mlir\nB: right.mlir\n" + entries + "\nthe graphs are equal\n",
               "asked diff a: backend=cpu\nasked diff b: backend=cpu; canonical byName=true\n");
  expectOutput(0, "diff right.mlir right_layouts.mlir --stage fused --weights-by-shape",
               "A: right.mlir\nB: right_layouts.mlir\n"
               "weight layout: 'w' is [8, 4] in A, [4, 8] in B\n" +
                   entries + "\nthe graphs are equal up to the layout of weights\n",
               "asked diff a: backend=cpu\nasked diff b: backend=cpu; fused byName=false\n");
  const std::string other =
      "A: step.mlir\nB: config.json\nnote: size 'n' is 'm' in B\n" + entries +
      "\nentry forward: the ops differ\n  A: lathe.mul at m.py:4:2\n     %0 = lathe.mul %a, %b\n"
      "  B: nothing\n  on the way from\n     step 0\n     step 1\n     step 2\n     step 3\n"
      "     step 4\n     step 5\n     ... 3 steps\n     step 9\n     step 10\n     step 11\n"
      "     step 12\n     step 13\n     step 14\n  ops: 13 in A, 7 in B\n"
      "     lathe.exp            0     1\n     lathe.mul           11     4\n"
      "\nthe graphs differ\n";
  expectOutput(1, "diff step.mlir config.json --dtype f32", other,
               "asked diff a: backend=cpu\n"
               "asked diff b: dtype=f32 bareConfig=true backend=cpu; canonical byName=true\n");
  const std::string shown = run("diff step.mlir short.mlir").out;
  EXPECT_THAT(shown, HasSubstr("     step 5\n     step 6\n"));
  EXPECT_EQ(shown.find("..."), shown.npos);
  const json out = documentOf(1, "diff step.mlir short.mlir");
  EXPECT_EQ(out["a"], "step.mlir");
  EXPECT_EQ(out["b"], "short.mlir");
  EXPECT_EQ(out["stage"], "canonical");
  EXPECT_EQ(out["equal"], false);
  EXPECT_EQ(out["weight_layouts"], json::array());
  EXPECT_EQ(out["notes"], json::parse(R"(["size 'n' is 'm' in B"])"));
  EXPECT_EQ(out["entries"][0], json::parse(R"({"name": "prefill", "equal": true,
    "ops": {"lathe.add": [2, 2], "lathe.mul": [1, 1]}})"));
  json last = out["entries"][2];
  EXPECT_EQ(last["path"].size(), 12u);
  last.erase("path");
  EXPECT_EQ(last, json::parse(R"({"name": "forward", "equal": false, "why": "the ops differ",
    "first_in_a": {"op": "lathe.mul", "at": "m.py:4:2", "text": "%0 = lathe.mul %a, %b"},
    "first_in_b": {"op": "nothing", "at": "", "text": ""},
    "ops": {"lathe.add": [2, 2], "lathe.exp": [0, 1], "lathe.mul": [11, 4]}})"));
}

}  // namespace
}  // namespace lathe
