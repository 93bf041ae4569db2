// SPDX-License-Identifier: Apache-2.0
// lathe why-not: what stopped a fusion.
#include <algorithm>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/model.h"
#include "tools/lathe/places.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

// What a backend or a mode refuses, it refuses in every layer: once, with a count.
void printAsText(const std::vector<CompileRecord::Miss>& misses) {
  struct Line {
    std::string at, everywhere, text;
    int count = 1;
  };
  std::vector<Line> lines;
  for (const CompileRecord::Miss& m : misses) {
    const bool ofPattern = m.by == "pattern";
    Line line;
    line.at = line.everywhere = m.at.empty() ? "unknown line" : m.at;
    if (const size_t space = m.at.find(' '); space != m.at.npos)
      line.everywhere = placeOf(m.at) + m.at.substr(space);
    line.text = fmt::format("{}{}: {}", m.op.empty() ? "fusion " + m.pattern : m.op,
                            ofPattern ? "" : " refused by the " + m.by, m.reason);
    auto same = std::find_if(lines.begin(), lines.end(), [&](const Line& l) {
      return !ofPattern && l.everywhere == line.everywhere && l.text == line.text;
    });
    if (same == lines.end())
      lines.push_back(std::move(line));
    else
      ++same->count;
  }
  for (const Line& line : lines)
    if (line.count == 1)
      fmt::print("{}: {}\n", line.at, line.text);
    else
      fmt::print("{}: {} ({} times)\n", line.everywhere, line.text, line.count);
}

}  // namespace

int whyNotVerb(const ArgumentList& arguments) {
  auto parser = makeParser("why-not", "Says which fusion nearly took an op and what stopped it.",
                           "lathe why-not model.mlir --op 'mul' --at model.cc:40");
  std::string path;
  bool json = false;
  CompileFlags flags;
  WhyNotOptions options;
  parser->add_option("MODEL", path, kGraphFiles)->required();
  parser->add_option("--op", options.op,
                     "only ops or patterns whose name matches this glob; tells of far misses too");
  parser->add_option("--at", options.at, "only ops of a line, FILE:LINE; tells of far misses too");
  addBackend(*parser, flags.compile.backend);
  addDType(*parser, flags.dtype);
  addLayers(*parser, flags.family.layers);
  addPipelineFlags(*parser, flags);
  addRanks(*parser, flags.compile.pipeline.mesh);
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  if (!options.at.empty() && options.at.find(':') == options.at.npos)
    throw Error(ErrorCode::InvalidArgument, "--at: expected FILE:LINE, got '" + options.at + "'");

  Model model = openModel(path, flags.loras);
  requireGraph(model);
  flags.randomWeights = lacksWeights(model);
  const std::vector<CompileRecord::Miss> misses =
      compiler().whyNot(requestFor(model, flags), options);
  if (json) {
    Json out = document("why-not");
    out["model"] = path;
    out["misses"] = Json::array();
    for (const CompileRecord::Miss& m : misses)
      out["misses"].push_back({{"refused_by", m.by},
                               {"op", m.op},
                               {"at", m.at},
                               {"path", m.path},
                               {"pattern", m.pattern},
                               {"matched_ops", m.matched},
                               {"pattern_ops", m.of},
                               {"constraint", m.constraint},
                               {"reason", m.reason}});
    printJson(out);
    return kOk;
  }
  printAsText(misses);
  if (misses.empty())
    console().note(options.op.empty() && options.at.empty()
                       ? "no fusion came near an op that it did not take"
                       : "no such op is left over: it was fused, or no pattern starts at it");
  return kOk;
}

}  // namespace lathe::cli
