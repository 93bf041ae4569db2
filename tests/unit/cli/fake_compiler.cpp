// SPDX-License-Identifier: Apache-2.0
// A stand-in for liblathe.so: tells on standard error what it is asked, and answers with results
// that are made up. What of several answers it gives is said by the name of the model's file.
#include <cstdio>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/inspect/compiler_api.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {

bool isNamed(const ModelRequest& request, const char* word) {
  return request.path.substr(request.path.rfind('/') + 1).starts_with(word);
}

// What is not as it is by default, in the order of the fields.
void tell(const char* question, const ModelRequest& r, const std::string& more = "") {
  std::string text;
  auto add = [&](const char* name, const auto& value, bool isSet) {
    if (isSet) text += fmt::format(" {}={}", name, value);
  };
  auto list = [](const std::vector<std::string>& words) {
    return fmt::format("{}", fmt::join(words, "|"));
  };
  const CompileOptions& c = r.compile;
  const PipelineOptions& p = c.pipeline;
  add("loras", list(r.loras), !r.loras.empty());
  add("dtype", r.dtype ? nameOf(*r.dtype) : "", r.dtype.has_value());
  add("maxSeq", r.family.maxSeq, r.family.maxSeq != 0);
  add("cacheBlock", r.family.cacheBlock, r.family.cacheBlock != 0);
  add("verify", r.family.verify, r.family.verify);
  add("greedy", r.family.greedy, r.family.greedy);
  add("layers", r.family.layers, r.family.layers != 0);
  for (const auto& [name, array] : r.constants)
    add(("constant." + name).c_str(), describe(array.dtype(), array.shape()), true);
  add("bareConfig", r.bareConfig, r.bareConfig);
  add("backend", c.backend, true);
  add("allTiers", c.backendOptions.allTiers, c.backendOptions.allTiers);
  add("target", c.backendOptions.target, !c.backendOptions.target.empty());
  add("patterns", list(p.patternFiles), !p.patternFiles.empty());
  add("plugins", list(p.plugins), !p.plugins.empty());
  add("passes", p.passes, !p.passes.empty());
  add("ranks", p.mesh.ranks, p.mesh.ranks != 0);
  add("stages", p.mesh.stages, p.mesh.stages != 0);
  add("stage", p.mesh.stage, p.mesh.stage != 0);
  add("splitRows", p.mesh.splitRows, p.mesh.splitRows);
  add("saveIr", c.saveIrDir, !c.saveIrDir.empty());
  add("stopAfterRewrite", c.stopAfterRewrite, c.stopAfterRewrite != ~uint64_t(0));
  add("skipAttempt", c.skipAttempt, c.skipAttempt != ~uint64_t(0));
  add("mode", r.mode, !r.mode.empty());
  add("weights", r.weightFormats, !r.weightFormats.empty());
  fmt::print(stderr, "asked {}:{}{}\n", question, text, more);
}

void tellTrial(const char* question, const ModelRequest& r, const TrialOptions& t) {
  std::string text = t.precision == Precision::Float64 ? " float64" : " own";
  for (const auto& [name, value] : t.sizes) text += fmt::format(" {}={}", name, value);
  for (const auto& [name, array] : t.inputs)
    text += fmt::format(" {}:{}", name, describe(array.dtype(), array.shape()));
  tell(question, r,
       fmt::format("; trial{} seed={} entry={} device={} tolerance={} weights={}", text, t.seed,
                   t.entry, t.device, t.tolerance, bool(t.weights)));
}

std::vector<CompileRecord::Rewrite> rewriteList() {
  return {{1, 0, "fuse", "gate", "m.py:4:2", {}, "blocks.0.mlp"},
          {12,
           30,
           "hoist-weights",
           "sum-of-products",
           "blocks.1 m.py:5:2",
           {"rounding", "order"},
           "blocks.1"}};
}

std::shared_ptr<const Program> programFor(const ModelRequest& r) {
  auto program = std::make_shared<Program>();
  program->backend = r.compile.backend;
  program->symbols = {{"n", 1, 8, 1}, {"k", 4, 64, 4}};
  program->states = {{"kept", DType::I64, {2}}, {"cache", DType::F32, {DimExpr::symbol("k"), 2}}};
  program->weights = {{"a.weight", DType::BF16, {300, 10}}, {"b.bias", DType::F32, {7}}};
  EntryPoint e;
  e.name = "forward";
  e.slots = {{SlotKind::Argument, DType::F32, {DimExpr::symbol("n"), 3}, 0},
             {SlotKind::Result, DType::F32, {DimExpr::symbol("n"), 3}, 0}};
  e.inputs = {{"x", 0}};
  e.outputs = {{"y", 1}};
  e.calls = {{"copy", "", "{}", {0}, {1}, "a.py:1"}};
  program->entries = {e};
  return program;
}

std::shared_ptr<const Program> compileFake(const ModelRequest& r) {
  tell("compile", r);
  if (r.progress) r.progress("fuse", 1, 2);
  return programFor(r);
}
std::string irAtFake(const ModelRequest& r, const std::string& stage) {
  tell("irAt", r, "; " + stage);
  return "module of " + stage + "\n";
}
std::string graphvizFake(const ModelRequest& r, const std::string& stage) {
  tell("graphviz", r, "; " + stage);
  return "digraph of " + stage;
}
std::vector<std::string> backendsFake() { return {"one", "two"}; }
bool isDecoderFake(const std::string& architecture) { return architecture == "Decoder"; }
std::shared_ptr<const Program> explainFake(const ModelRequest& r, const std::string& stage,
                                           const SymbolValues& values) {
  std::string text = "; " + stage;
  for (const auto& [name, value] : values) text += fmt::format(" {}={}", name, value);
  tell("explain", r, text);
  auto program = std::make_shared<Program>();
  program->backend = r.compile.backend;
  program->symbols = {{"n", 1, 8}};
  EntryPoint e;
  e.name = "forward";
  e.slots = {{SlotKind::Argument, DType::F32, {DimExpr::symbol("n")}}};
  e.inputs = {{"x", 0}};
  e.calls = {{"copy", "", "{}", {0}, {0}, "a.py:1"}};
  EntryPoint other = e;
  other.name = "other";
  other.slots[0].shape = {DimExpr(3)};
  program->entries = {e, other};
  return program;
}

CompileRecord rewritesFake(const ModelRequest& r) {
  tell("rewrites", r);
  CompileRecord record;
  record.rewrites = rewriteList();
  return record;
}

NumericsTable numericsFake(const ModelRequest& r, const TrialOptions& trial) {
  tellTrial("checkNumerics", r, trial);
  NumericsTable table;
  table.sizes = {{"n", 2}, {"seq", 5}};
  table.results = 3;
  NumericsRow same{"canonical", "canonicalize", 4, true}, inside{"fused", "fuse", 12, true},
      weights{"fused", "quantize-weights", 1, true}, calls{"lowered", "lower", 0, false},
      beyond{"program", "cpu", 0, true};
  inside.deviation = {.absolute = 0.00125,
                      .relative = 2e-5,
                      .share = 1e-5,
                      .ulps = 3,
                      .identical = false,
                      .within = true,
                      .beyond = 0,
                      .where = "y[0] is 1, want 2"};
  inside.op = "lathe.glu";
  inside.at = "m.py:4:2";
  inside.was = "lathe.mul";
  inside.wasAt = "m.py:3:2";
  weights.changesWeights = true;
  weights.deviation = inside.deviation;
  weights.op = weights.was = "lathe.linear";
  weights.at = "m.py:9:1";
  beyond.deviation = inside.deviation;
  beyond.deviation.within = isNamed(r, "right");
  table.within = beyond.deviation.within;
  table.rows = {same, inside, weights, calls, beyond};
  return table;
}

BisectResult bisectFake(const ModelRequest& r, const BisectOptions& options) {
  tellTrial("bisect", r, options.trial);
  fmt::print(stderr, "folder={} backend={}\n", options.folder, options.backend);
  using Culprit = BisectResult::Culprit;
  BisectResult result;
  result.sizes = {{"n", 2}};
  result.alsoSizes = {{"n", 17}};
  result.rewrites = 40;
  result.runs = 9;
  result.deviation = {.absolute = 0.5,
                      .relative = 0.25,
                      .share = 0.1,
                      .ulps = 1e6,
                      .identical = false,
                      .within = false,
                      .beyond = 3,
                      .where = "forward: y[1] is 0.5, want 0.25"};
  if (isNamed(r, "right")) return result;
  result.alsoSizes.reset();
  result.stage = "fused";
  result.step = "fuse";
  if (isNamed(r, "rewrite")) {
    result.culprit = Culprit::Rewrite;
    result.rewrite = rewriteList()[1];
    result.files = {"out/reproducer.mlir", {"out/x.npy"}, {"lathe run a", "lathe run b"}, 1, true};
  } else if (isNamed(r, "step")) {
    result.culprit = Culprit::Step;
    result.files = {"out/reproducer.mlir", {}, {"lathe run a"}, 7, false};
  } else {
    result.culprit = Culprit::Backend;
    result.step.clear();
    if (isNamed(r, "kernel")) {
      result.op = "lathe.attention";
      result.at = "m.py:8:1";
    }
  }
  return result;
}

std::vector<CompileRecord::Miss> whyNotFake(const ModelRequest& r, const WhyNotOptions& options) {
  tell("whyNot", r, "; op=" + options.op + " at=" + options.at);
  if (isNamed(r, "right")) return {};
  CompileRecord::Miss near{"lathe.mul", "blocks.0 m.py:4:2", "gate",        3,
                           5,           "constant",          "0.5 is no 1", "blocks.0"},
      refused{"lathe.rope", "blocks.0 m.py:7:2", "rope", 0, 0, "", "no kernel", "", "backend"},
      mode{"", "", "fold-gain", 0, 0, "", "rounds otherwise", "", "mode"};
  auto again = [](CompileRecord::Miss miss, const char* at) {
    miss.at = at;
    return miss;
  };
  return {near,
          again(near, "blocks.1 m.py:4:2"),
          refused,
          again(refused, "blocks.11 m.py:7:2"),
          again(refused, "blocks.3 m.py:8:2"),
          mode,
          again(refused, "m.py:7:2")};
}

LocationTable locationsFake(const ModelRequest& r) {
  tell("checkLocations", r);
  LocationTable table;
  table.rows = {{"recorded", "record", 3, 3, {}}, {"fused", "fuse", 0, 0, {}}};
  if (isNamed(r, "right")) return table;
  table.rows.push_back({"lowered", "lower", 3, 2, {"lathe.mul lost", "lathe.add lost"}});
  table.complete = false;
  table.error = "no recorded line";
  return table;
}

GraphDiff diffFake(const ModelRequest& a, const ModelRequest& b, const GraphDiffOptions& options) {
  tell("diff a", a);
  tell("diff b", b, fmt::format("; {} byName={}", options.stage, options.weightsByName));
  GraphDiff d;
  GraphDiff::Entry equal{.name = "prefill",
                         .counts = {{"lathe.add", {2, 2}}, {"lathe.mul", {1, 1}}}},
      order{.name = "decode", .counts = {{"lathe.add", {2, 3}}}},
      other{.name = "forward",
            .equal = false,
            .why = "the ops differ",
            .a = {"lathe.mul", "m.py:4:2", "%0 = lathe.mul %a, %b"},
            .b = {"nothing", "", ""},
            .counts = {{"lathe.add", {2, 2}}, {"lathe.mul", {11, 4}}, {"lathe.exp", {0, 1}}}};
  d.entries = {equal, order};
  if (isNamed(a, "right")) {
    if (isNamed(b, "right_layouts")) d.layouts = {"'w' is [8, 4] in A, [4, 8] in B"};
    return d;
  }
  for (int i = 0; i < (isNamed(b, "short") ? 12 : 15); ++i)
    other.path.push_back("step " + std::to_string(i));
  d.entries.push_back(other);
  d.notes = {"size 'n' is 'm' in B"};
  d.equal = false;
  return d;
}

std::shared_ptr<const Program> reportedFake(const ModelRequest& r, std::shared_ptr<const Report>&) {
  tell("compileReported", r);
  return programFor(r);
}
void writeReportFake(const Report&, const std::string&, const Program&, const ReportOptions&,
                     const std::vector<ReportRun>&) {}

}  // namespace
}  // namespace lathe

const lathe::CompilerApi* latheCompilerApi() {
  using namespace lathe;
  static const CompilerApi api{compileFake,   irAtFake,       graphvizFake,  backendsFake,
                               isDecoderFake, explainFake,    rewritesFake,  numericsFake,
                               bisectFake,    whyNotFake,     locationsFake, diffFake,
                               reportedFake,  writeReportFake};
  return &api;
}
