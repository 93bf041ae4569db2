// SPDX-License-Identifier: Apache-2.0
// lathe diff: whether two graphs are one.
#include <fmt/format.h>

#include "tools/lathe/compiler_library.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/model.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

// Of a long way both ends are worth reading.
constexpr size_t kShownSteps = 12;

Json sideJson(const GraphDiff::Side& side) {
  return {{"op", side.op}, {"at", side.at}, {"text", side.text}};
}

void printAsJson(const std::string& a, const std::string& b, const std::string& stage,
                 const GraphDiff& d) {
  Json out = document("diff");
  out["a"] = a;
  out["b"] = b;
  out["stage"] = stage;
  out["equal"] = d.equal;
  out["weight_layouts"] = d.layouts;
  out["notes"] = d.notes;
  out["entries"] = Json::array();
  for (const GraphDiff::Entry& e : d.entries) {
    Json item{{"name", e.name}, {"equal", e.equal}};
    if (!e.equal) {
      item["why"] = e.why;
      item["first_in_a"] = sideJson(e.a);
      item["first_in_b"] = sideJson(e.b);
      item["path"] = e.path;
    }
    item["ops"] = Json::object();
    for (auto& [op, count] : e.counts) item["ops"][op] = {count.first, count.second};
    out["entries"].push_back(item);
  }
  printJson(out);
}

void printSide(const char* name, const GraphDiff::Side& side) {
  fmt::print("  {}: {}{}\n", name, side.op, side.at.empty() ? "" : " at " + side.at);
  if (!side.text.empty()) fmt::print("     {}\n", side.text);
}

void printAsText(const std::string& a, const std::string& b, const GraphDiff& d) {
  fmt::print("A: {}\nB: {}\n", a, b);
  for (const std::string& note : d.notes) fmt::print("note: {}\n", note);
  for (const std::string& layout : d.layouts) fmt::print("weight layout: {}\n", layout);
  for (const GraphDiff::Entry& e : d.entries) {
    int inA = 0, inB = 0;
    for (auto& [op, count] : e.counts) {
      inA += count.first;
      inB += count.second;
    }
    if (e.equal) {
      fmt::print("\nentry {}: equal, {} ops{}\n", e.name, inA,
                 inA == inB ? "" : fmt::format(" in A, {} in B", inB));
      continue;
    }
    fmt::print("\nentry {}: {}\n", e.name, e.why);
    printSide("A", e.a);
    printSide("B", e.b);
    fmt::print("  on the way from\n");
    for (size_t i = 0; i < e.path.size(); ++i) {
      if (e.path.size() > kShownSteps && i == kShownSteps / 2) {
        i = e.path.size() - kShownSteps / 2;
        fmt::print("     ... {} steps\n", e.path.size() - kShownSteps);
      }
      fmt::print("     {}\n", e.path[i]);
    }
    fmt::print("  ops: {} in A, {} in B\n", inA, inB);
    for (auto& [op, count] : e.counts)
      if (count.first != count.second)
        fmt::print("     {:<16} {:>5} {:>5}\n", op, count.first, count.second);
  }
  fmt::print("\n{}\n", !d.equal            ? "the graphs differ"
                       : d.layouts.empty() ? "the graphs are equal"
                                           : "the graphs are equal up to the layout of weights");
}

}  // namespace

int diffVerb(const ArgumentList& arguments) {
  auto parser = makeParser("diff", "Compares two graphs op by op after canonicalization.",
                           "lathe diff mine.mlir models/llama --stage fused");
  std::string a, b;
  bool json = false, byShape = false;
  GraphDiffOptions options;
  CompileFlags flags;
  parser->add_option("A", a, kGraphFiles)->required();
  parser->add_option("B", b, "the same")->required();
  parser->add_option("--stage", options.stage, "recorded, canonical (default) or fused")
      ->check(CLI::IsMember({"recorded", "canonical", "fused"}));
  parser->add_flag("--weights-by-shape", byShape,
                   "weights go by dtype, shape and order, not by name");
  addDType(*parser, flags.dtype);
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;

  options.weightsByName = !byShape;
  auto request = [&](const std::string& path) {
    Model model = openModel(path);
    requireGraph(model);
    CompileFlags own = flags;
    if (model.kind == ModelKind::Mlir || model.kind == ModelKind::Onnx)
      own.dtype.reset();  // it has its dtypes written in it
    own.randomWeights = lacksWeights(model);
    return requestFor(model, own);
  };
  const GraphDiff d = compiler().diff(request(a), request(b), options);
  if (json)
    printAsJson(a, b, options.stage, d);
  else
    printAsText(a, b, d);
  return d.equal ? kOk : kFailed;
}

}  // namespace lathe::cli
