// SPDX-License-Identifier: Apache-2.0
// compile, irAt and parse.
#include "tests/bad_input/misuse/misuse.h"

namespace lathe::misuse {
namespace {

void compiled(CompileOptions options) {
  Finished m;
  compile(m.g, options);
}
void parsed(const std::string& body) {
  compile(Graph::parse("func.func @forward(" + body), {.backend = "reference"});
}

}  // namespace

Table compilation() {
  return blamingNobody({
      {"compile_of_nothing", [] { compile(Graph()); }, kArgument, {"the graph is empty"}},
      {"compile_without_output",
       [] {
         Model m;
         compile(m.g);
       },
       kArgument,
       {"entry point 'forward' has no output", "Graph::output"}},
      {"compile_of_an_empty_entry",
       [] {
         Graph g;
         g.entry("e");
         compile(g);
       },
       kArgument,
       {"entry point 'e' has no output"}},
      {"second_entry_without_output",
       [] {
         Finished m;
         m.g.entry("second");
         compile(m.g);
       },
       kArgument,
       {"entry point 'second' has no output"}},
      {"text_of_nothing", [] { Graph().text(); }, kArgument, {"the graph is empty"}},
      {"graphviz_of_nothing", [] { Graph().graphviz(); }, kArgument, {"the graph is empty"}},
      {"unknown_backend",
       [] { compiled({.backend = "tpu"}); },
       kUnsupported,
       {"no backend 'tpu'", "cpu"}},
      {"backend_without_name", [] { compiled({.backend = ""}); }, kUnsupported, {"no backend ''"}},
      {"backend_of_bytes", [] { compiled({.backend = "\xff"}); }, kUnsupported, {"no backend"}},
      {"float64_on_cpu",
       [] { compiled({.backend = "cpu", .backendOptions = {.float64 = true}}); },
       kUnsupported,
       {"float64", "'cpu'", "reference"}},
      {"float64_on_cuda",
       [] { compiled({.backend = "cuda", .backendOptions = {.float64 = true}}); },
       kUnsupported,
       {"float64", "'cuda'", "reference"}},
      {"target_on_cpu",
       [] { compiled({.backend = "cpu", .backendOptions = {.target = "sm_90a"}}); },
       kUnsupported,
       {"target", "'cpu'", "cuda"}},
      {"target_on_reference",
       [] { compiled({.backend = "reference", .backendOptions = {.target = "sm_90a"}}); },
       kUnsupported,
       {"target", "'reference'"}},
      {"unknown_target",
       [] { compiled({.backend = "cuda", .backendOptions = {.target = "gfx942"}}); },
       kArgument,
       {"gfx942"}},
      {"mode_outside_the_enum",
       [] { compiled({.pipeline = {.mode = NumericsMode(9)}}); },
       kArgument,
       {"9 is no numerics mode"}},
      {"ir_into_a_file",
       [] { compiled({.backend = "reference", .saveIrDir = "/dev/null/ir"}); },
       kIo,
       {"/dev/null/ir"}},
      {"pattern_file_that_is_missing",
       [] { compiled({.pipeline = {.patternFiles = {"/nonexistent/p.mlir"}}}); },
       kIo,
       {"/nonexistent/p.mlir"}},
      {"pattern_file_without_name",
       [] { compiled({.pipeline = {.patternFiles = {""}}}); },
       kArgument,
       {"expected a pattern file"}},
      {"pattern_file_that_is_a_folder",
       [] { compiled({.pipeline = {.patternFiles = {"/tmp"}}}); },
       kArgument,
       {"/tmp", "expected a pattern file"}},
      {"plugin_that_is_missing",
       [] { compiled({.pipeline = {.plugins = {"/nonexistent/p.so"}}}); },
       kFile,
       {"/nonexistent/p.so"}},
      {"plugin_that_is_no_library",
       [] { compiled({.pipeline = {.plugins = {"/dev/null"}}}); },
       kFile,
       {"/dev/null"}},
      {"passes_that_are_none",
       [] { compiled({.pipeline = {.passes = "lathe-frobnicate"}}); },
       kArgument,
       {"lathe-frobnicate"}},
      {"passes_that_do_not_parse",
       [] { compiled({.pipeline = {.passes = "canonicalize("}}); },
       kArgument,
       {"canonicalize("}},
      {"unknown_stage",
       [] {
         Finished m;
         irAt(m.g, "fuzed");
       },
       kArgument,
       {"stage 'fuzed' is none of recorded, canonical, fused"}},
      {"empty_stage",
       [] {
         Finished m;
         irAt(m.g, "");
       },
       kArgument,
       {"stage '' is none of"}},
      {"stage_outside_the_enum",
       [] {
         Finished m;
         runStages(m.g, Stage(17), {}, {});
       },
       kArgument,
       {"17 is no stage"}},
  });
}

Table parsedTexts() {
  return blamingNobody({
      {"parse_of_nothing", [] { compile(Graph::parse("")); }, kArgument, {"the graph is empty"}},
      {"parse_of_words", [] { Graph::parse("hello", "a.mlir"); }, kFile, {"a.mlir:1"}},
      {"parse_of_bytes", [] { Graph::parse("\xff\xfe\x00\x01", "a.mlir"); }, kFile, {"a.mlir"}},
      {"parse_of_bytecode",
       [] { Graph::parse("ML\xefR\x01\x02", "a.mlir"); },
       kFile,
       {"a.mlir", "bytecode"}},
      {"parse_of_a_deep_text",
       [] { Graph::parse(std::string(100000, '('), "a.mlir"); },
       kFile,
       {"a.mlir", "256"}},
      {"parse_of_a_long_text",
       [] { Graph::parse(std::string((64 << 20) + 1, ' '), "a.mlir"); },
       kFile,
       {"a.mlir", "64"}},
      {"parse_of_an_unfinished_function", [] { parsed("%x: tensor<4xf32>"); }, kFile, {"<text>"}},
      {"parse_of_another_dialect",
       [] { parsed("%x: tensor<4xf32>) { %y = tosa.exp %x : tensor<4xf32> return }"); },
       kFile,
       {"tosa"}},
      {"parse_of_an_unranked_type",
       [] { parsed("%x: tensor<*xf32>) -> tensor<*xf32> { return %x : tensor<*xf32> }"); },
       kFile,
       {"ranked"}},
      {"parse_of_an_unnamed_dim",
       [] { parsed("%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }"); },
       kFile,
       {"has no name"}},
      {"recording_in_a_parsed_entry",
       [] {
         Finished m;
         Graph parsed = Graph::parse(m.g.text());
         parsed.output("z", m.x);
       },
       kArgument,
       {"belongs to another graph"}},
  });
}

}  // namespace lathe::misuse
