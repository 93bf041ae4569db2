// SPDX-License-Identifier: Apache-2.0
// What verbs ask of the compiler, flag by flag.
#include "tests/unit/cli/fake_compiler.h"

namespace lathe {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::CliResult;
using ::testing::HasSubstr;
using RequestsCli = test::WithFakeCompiler;

TEST_F(RequestsCli, FlagsOfACompilationReachTheCompiler) {
  EXPECT_EQ(asked("inspect short.mlir --stop-after fused"), "asked irAt: backend=cpu; fused\n");
  EXPECT_EQ(asked("inspect short.mlir --stop-after fused", "LATHE_BACKEND=reference"),
            "asked irAt: backend=reference; fused\n");
  EXPECT_EQ(
      asked("inspect short.mlir --stop-after fused --backend cuda", "LATHE_BACKEND=reference"),
      "asked irAt: backend=cuda; fused\n");
  EXPECT_EQ(asked("inspect short.mlir --graphviz"), "asked graphviz: backend=cpu; recorded\n");
  EXPECT_EQ(asked("inspect short.mlir --graphviz --stop-after lowered"),
            "asked graphviz: backend=cpu; lowered\n");
  EXPECT_EQ(
      asked("inspect config.json --stop-after fused --dtype bf16 --layers 3 --greedy --backend cuda"
            " --target sm_90a --patterns a.pdl --patterns b.pdl --load-pass-plugin c.so"
            " --passes 'x,y' --ranks 6 --stages 3 --stop-after-rewrite 4 --skip-attempt 0"
            " --mode strict --weight-format int8"),
      "asked irAt: dtype=bf16 greedy=true layers=3 bareConfig=true backend=cuda target=sm_90a"
      " patterns=a.pdl|b.pdl plugins=c.so passes=x,y ranks=6 stages=3 stopAfterRewrite=4"
      " skipAttempt=0 mode=strict weights=int8; fused\n");
  EXPECT_EQ(asked("inspect short.mlir --stop-after fused --stages 3"),
            "asked irAt: backend=cpu ranks=3 stages=3; fused\n");
  EXPECT_EQ(asked("inspect a.onnx --stop-after fused --constant k=2xi64=1,2"),
            "asked irAt: constant.k=i64[2] backend=cpu; fused\n");
  EXPECT_EQ(asked("compile config.json --stop-after recorded --max-seq 9 --verify --greedy"
                  " --cache-block 16 --save-ir ir"),
            "asked irAt: maxSeq=9 cacheBlock=16 verify=true greedy=true bareConfig=true"
            " backend=cpu saveIr=ir; recorded\n");
}

// A program that travels has code for every tier, unless one says otherwise.
TEST_F(RequestsCli, WhatCompileAsks) {
  for (auto [flags, request] : {std::pair("", "backend=cpu allTiers=true"),
                                {" --all-tiers", "backend=cpu allTiers=true"},
                                {" --host-only", "backend=cpu"}}) {
    const CliResult r = run("compile short.mlir -o m.lathe" + std::string(flags));
    EXPECT_EQ(r.status, 0);
    const uint64_t size = fs::file_size(folder_ / "models/m.lathe");
    const std::string amount = size < 1000 ? std::to_string(size) + " B" : "";
    EXPECT_EQ(r.err.substr(0, r.err.find('\n')), "asked compile: " + std::string(request));
    EXPECT_THAT(r.err, HasSubstr("\nnote: wrote m.lathe (" + amount));
  }
  const json out = documentOf(0, "compile short.mlir -o m.lathe");
  EXPECT_EQ(out["verb"], "compile");
  EXPECT_EQ(out["output"], "m.lathe");
  EXPECT_EQ(out["size_bytes"], fs::file_size(folder_ / "models/m.lathe"));
  EXPECT_EQ(out["backend"], "cpu");
  EXPECT_EQ(out["entries"], json::parse(R"([{"name": "forward", "calls": 1}])"));
}

TEST_F(RequestsCli, WhatATrialIs) {
  const std::string plain =
      "; trial float64 seed=0 entry= device= tolerance=0 weights=false\nfolder= backend=true\n";
  EXPECT_EQ(asked("bisect right.mlir"), "asked bisect: backend=cpu" + plain);
  EXPECT_EQ(asked("bisect right.mlir --mode strict"),
            "asked bisect: backend=cpu mode=strict; trial own seed=0 entry= device= tolerance=0"
            " weights=false\nfolder= backend=true\n");
  EXPECT_EQ(asked("bisect right.mlir --mode strict --precision float64"),
            "asked bisect: backend=cpu mode=strict" + plain);
  EXPECT_EQ(asked("bisect right.mlir --set a=1,b=2 --set c=3 --input x=2xf32=1 --input y=i64=1"
                  " --seed 5 --precision own --entry e --tolerance 0.5 -o out --no-backend"
                  " --backend cuda --device host --ranks 2"),
            "asked bisect: backend=cuda ranks=2; trial own a=1 b=2 c=3 x:f32[2] y:i64[] seed=5"
            " entry=e device=host tolerance=0.5 weights=false\nfolder=out backend=false\n");
  EXPECT_EQ(run("bisect right.mlir --input x=f32=1 --input x=f32=2").err,
            "error: --input x: given twice\n");
}

TEST_F(RequestsCli, WhatTuneAndExplainAsk) {
  EXPECT_THAT(asked("tune config.json -o m.lathe"),
              HasSubstr("asked compile: greedy=true bareConfig=true backend=cuda"
                        " target=sm_90a,candidates\n"));
  EXPECT_THAT(asked("tune config.json -o m.lathe --texts --only a,b --max-seq 7 --dtype f32"),
              HasSubstr("asked compile: dtype=f32 maxSeq=7 greedy=true bareConfig=true backend=cuda"
                        " target=candidates:a,b\n"));
  const json out = documentOf(0, "tune config.json -o m.lathe");
  EXPECT_EQ(out["output"], "m.lathe");
  EXPECT_EQ(out["size_bytes"], fs::file_size(folder_ / "models/m.lathe"));
  EXPECT_EQ(out["problems"], 1);
  EXPECT_EQ(out["candidates"], 1);
  EXPECT_EQ(run("tune config.json -o m.bin").err,
            "error: --output: expected a name that ends in .lathe, got m.bin\n");
  EXPECT_EQ(asked("explain short.mlir --device h100"), "asked explain: backend=cpu; lowered\n");
  EXPECT_EQ(asked("explain config.json --stage fused --set n=3 --device h100 --ranks 2"),
            "asked explain: bareConfig=true backend=cpu ranks=2; fused n=3\n");
  EXPECT_EQ(
      asked("explain short.mlir --stage laid-out --mesh pp=2,tp=3 --entry forward --device h100"),
      "asked explain: backend=cpu ranks=6 stages=2; laid-out\n");
  EXPECT_THAT(asked("explain short.mlir --split-rows --mesh pp=2,tp=3 --device h100"),
              HasSubstr("asked explain: backend=cpu ranks=6 stages=2 splitRows=true; lowered\n"));
}

// Rows of 1, 2, 4, ... ranks up to 64 in all, each asked for by itself; with stages one rank first.
TEST_F(RequestsCli, AMeshIsScaledUpTo64Ranks) {
  std::string wanted = "asked explain: backend=cpu ranks=2 stages=1; lowered n=3\n";
  for (int ranks : {1, 2, 4, 8, 16, 32, 64})
    wanted +=
        "asked explain: backend=cpu ranks=" + std::to_string(ranks) + " stages=1; lowered n=3\n";
  EXPECT_EQ(asked("explain short.mlir --mesh tp=2 --set n=3 --device h100"), wanted);
  wanted = "asked explain: backend=cpu ranks=8 stages=4; lowered n=3\n";
  for (int stage : {0, 1, 2, 3})
    wanted += "asked explain: backend=cpu ranks=8 stages=4" +
              (stage ? " stage=" + std::to_string(stage) : "") + "; lowered n=3\n";
  wanted += "asked explain: backend=cpu ranks=1 stages=1; lowered n=3\n";
  for (int ranks : {4, 8, 16, 32, 64})
    for (int stage : {0, 1, 2, 3})
      wanted += "asked explain: backend=cpu ranks=" + std::to_string(ranks) + " stages=4" +
                (stage ? " stage=" + std::to_string(stage) : "") + "; lowered n=3\n";
  EXPECT_EQ(asked("explain short.mlir --mesh tp=2,pp=4 --set n=3 --device h100"), wanted);
  for (const char* alone : {"", " --ranks 1", " --mesh tp=1"})
    EXPECT_EQ(run("explain short.mlir --link 1us,1GB/s" + std::string(alone)).err,
              "error: --link is between ranks; add --mesh tp=N\n");
}

TEST_F(RequestsCli, EntryPointsThatLackASize) {
  const CliResult r = run("explain short.mlir --set m=3 --device h100");
  EXPECT_EQ(r.status, 0);
  EXPECT_THAT(r.err, HasSubstr("note: left out: entry point 'forward' needs n (1 to 8)\n"));
  EXPECT_EQ(r.out.find("entry forward"), r.out.npos);
  EXPECT_THAT(r.out, HasSubstr("\nentry other\n"));
}

}  // namespace
}  // namespace lathe
