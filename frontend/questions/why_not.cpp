// SPDX-License-Identifier: Apache-2.0
#include "frontend/questions/why_not.h"

#include <fnmatch.h>

#include <map>

namespace lathe {
namespace {

using Miss = CompileRecord::Miss;

std::string fileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "blocks.3 model.cc:40:3" lies in "src/model.cc:40".
bool liesAt(const std::string& at, const std::string& line) {
  std::string own = fileName(at.substr(at.rfind(' ') + 1)), wanted = fileName(line);
  return own == wanted || own.starts_with(wanted + ":");
}

bool isAsked(const Miss& miss, const WhyNotOptions& options) {
  if (!options.at.empty() && !liesAt(miss.at, options.at)) return false;
  if (options.op.empty()) return true;
  for (const std::string& name : {miss.op, miss.op.substr(miss.op.find('.') + 1), miss.pattern})
    if (fnmatch(options.op.c_str(), name.c_str(), 0) == 0) return true;
  return false;
}

// Fusions of one mode and how many there are of each.
std::map<std::pair<std::string, std::string>, int> fusionsOf(const CompileRecord& record) {
  std::map<std::pair<std::string, std::string>, int> fusions;
  for (const CompileRecord::Rewrite& r : record.rewrites)
    if (r.step == "fuse") ++fusions[{r.what, r.at}];
  return fusions;
}

}  // namespace

std::vector<Miss> whyNot(const Graph& graph, const WhyNotOptions& options) {
  CompileRecord record;
  record.wantMisses = true;
  record.wantFarMisses = !options.op.empty() || !options.at.empty();
  CompileOptions compile = options.compile;
  compile.record = &record;
  runStages(graph, Stage::LaidOut, compile, {});
  std::vector<Miss> misses = std::move(record.misses);

  auto had = fusionsOf(record);
  for (NumericsMode mode : {NumericsMode::Relaxed, NumericsMode::Fast}) {
    if (mode <= options.compile.mode) continue;
    CompileRecord laxer;
    compile.mode = mode;
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
  std::erase_if(misses, [&](const Miss& m) { return !isAsked(m, options); });
  return misses;
}

}  // namespace lathe
