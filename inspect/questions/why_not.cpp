// SPDX-License-Identifier: Apache-2.0
#include "lathe/inspect/why_not.h"

#include <fnmatch.h>

#include <map>

#include "frontend/graph_impl.h"
#include "lathe/runtime/error.h"
#include "passes/patterns/goals.h"
#include "passes/patterns/library.h"
#include "passes/rewrite/locations.h"
#include "passes/user_patterns.h"

namespace lathe {
namespace {

std::string fileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "model.cc:40:3" of "blocks.3 model.cc:40:3" and its module path. Names of files and modules may
// hold blanks and colons. Empty where there is no line.
std::string placeIn(const std::string& at, llvm::StringRef path) {
  if (path.empty() || !llvm::StringRef(at).starts_with(path)) return at;
  return at.size() == path.size() ? "" : at.substr(path.size() + 1);
}
// "model.cc:40:3" lies in "src/model.cc:40".
bool liesAt(const std::string& place, const std::string& line) {
  std::string own = fileName(place), wanted = fileName(line);
  return own == wanted || own.starts_with(wanted + ":");
}

bool isAsked(const CompileRecord::Miss& miss, const WhyNotOptions& options) {
  if (!options.at.empty() && !liesAt(placeIn(miss.at, miss.path), options.at)) return false;
  if (options.op.empty()) return true;
  auto fits = [&](const std::string& name) {
    return fnmatch(options.op.c_str(), name.c_str(), 0) == 0;
  };
  if (fits(miss.op) || fits(miss.op.substr(miss.op.find('.') + 1))) return true;
  // "layer_norm" asks for "layer_norm-of-moments" as well.
  if (!fits(miss.pattern) && !fits(miss.pattern.substr(0, miss.pattern.find('-')))) return false;
  // The name of its root alone is no sign of a fusion.
  return miss.meant || !options.at.empty() || miss.matched != 1 || miss.of <= 2;
}

// Asking for what cannot be there is a slip of the pen, no answer.
void checkQuestion(const Graph& graph, const WhyNotOptions& options) {
  mlir::ModuleOp module = graph.impl().finished();
  auto fits = [&](llvm::StringRef name) {
    return fnmatch(options.op.c_str(), name.str().c_str(), 0) == 0;
  };
  if (!options.op.empty()) {
    mlir::MLIRContext* context = module.getContext();
    bool known = llvm::any_of(context->getRegisteredOperationsByDialect("lathe"),
                              [&](mlir::RegisteredOperationName op) {
                                return fits(op.getStringRef()) || fits(op.stripDialect());
                              });
    for (auto& p : userPatterns(context, options.compile.pipeline.patterns,
                                options.compile.pipeline.patternFiles))
      known |= fits(p->name());
    for (auto& p : fusionPatterns(context)) known |= fits(p->name());
    for (const Goal& goal : fusionGoals()) known |= fits(goal.fused);
    if (!known)
      throw Error(ErrorCode::InvalidArgument, "no op and no pattern has a name like '" +
                                                  options.op + "'; docs/ops.md lists the ops");
  }
  if (options.at.empty()) return;
  std::map<std::string, std::pair<int64_t, int64_t>> lines;  // of each file, the first and last
  bool known = false;
  module.walk([&](mlir::Operation* op) {
    if (op == module) return;  // of text that has none it is at line 0
    Origins origins;
    addOrigins(origins, op->getLoc());
    for (mlir::Location origin : origins) {
      const std::string place = placeIn(originText(origin, /*column=*/true), modulePathOf(origin));
      if (place.empty()) continue;
      known |= liesAt(place, options.at);
      const size_t end = place.rfind(':'), colon = place.rfind(':', end - 1);
      const int64_t line = std::stoll(place.substr(colon + 1, end - colon - 1));
      auto& range = lines.try_emplace(place.substr(0, colon), line, line).first->second;
      range = {std::min(range.first, line), std::max(range.second, line)};
    }
  });
  if (known) return;
  std::string there;
  for (auto& [file, range] : lines)
    there += (there.empty() ? "" : ", ") + file + ":" + std::to_string(range.first) +
             (range.first == range.second ? "" : " to " + std::to_string(range.second));
  throw Error(ErrorCode::InvalidArgument, "no op was recorded at '" + options.at +
                                              "'; the graph's are at " +
                                              (there.empty() ? "no known line" : there));
}

// Fusions of one mode and how many there are of each.
std::map<std::pair<std::string, std::string>, int> fusionsOf(const CompileRecord& record) {
  std::map<std::pair<std::string, std::string>, int> fusions;
  for (const CompileRecord::Rewrite& r : record.rewrites)
    if (r.step == "fuse") ++fusions[{r.what, r.at}];
  return fusions;
}

}  // namespace

std::vector<CompileRecord::Miss> whyNot(const Graph& graph, const WhyNotOptions& options) {
  checkQuestion(graph, options);
  CompileRecord record;
  record.wantMisses = true;
  record.wantFarMisses = !options.op.empty() || !options.at.empty();
  CompileOptions compile = options.compile;
  compile.record = &record;
  runStages(graph, Stage::LaidOut, compile, {});
  std::vector<CompileRecord::Miss> misses = std::move(record.misses);

  auto had = fusionsOf(record);
  for (NumericsMode mode : {NumericsMode::Relaxed, NumericsMode::Fast}) {
    if (mode <= options.compile.pipeline.mode) continue;
    CompileRecord laxer;
    compile.pipeline.mode = mode;
    compile.record = &laxer;
    runStages(graph, Stage::Fused, compile, {});
    auto has = fusionsOf(laxer);
    for (const CompileRecord::Rewrite& r : laxer.rewrites) {
      if (r.step != "fuse") continue;
      int& count = had[{r.what, r.at}];
      if (count >= has[{r.what, r.at}]) continue;
      ++count;
      std::string weakens;
      for (const std::string& c : r.weakened) weakens += (weakens.empty() ? "" : ", ") + c;
      misses.push_back({"", r.at, r.what, 0, 0, "mode",
                        r.what + ": taken from mode " + std::string(nameOf(mode)) + " on" +
                            (weakens.empty() ? "" : ", as it weakens " + weakens),
                        r.path, "mode"});
    }
  }
  std::erase_if(misses, [&](const CompileRecord::Miss& m) { return !isAsked(m, options); });
  return misses;
}

}  // namespace lathe
