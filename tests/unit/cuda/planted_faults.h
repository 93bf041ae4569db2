// SPDX-License-Identifier: Apache-2.0
#pragma once
// Faults planted into the texts that the compiler prints, or into the templates that these include,
// and what host execution says of them.
#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/cuda/device/headers.h"
#include "backends/cuda/device/program_code.h"
#include "lathe/frontend/compile.h"
#include "lathe/frontend/families/llama.h"
#include "lathe/frontend/graph.h"
#include "lathe/runtime/error.h"
#include "tests/unit/cuda/host_program.h"
#include "tests/unit/cuda/tuning_records.h"

namespace lathe::cuda {

/// A program and what one run of it takes.
struct Recorded {
  std::shared_ptr<Program> program;
  std::string entry = "forward";
  Arrays inputs;
};

inline Array values(DType dtype, const Shape& shape) {
  Array a(dtype, shape);
  for (int64_t i = 0; i < a.size(); ++i) a.set(i, double(i * 37 % 101) / 50 - 1);
  return a;
}
inline Array positions(int64_t at) {
  Array a(DType::I64, {1});
  a.set(0, double(at));
  return a;
}

/// Records `body` of inputs with these shapes as one entry point.
inline Recorded recorded(DType dtype, const std::vector<Shape>& shapes,
                         const std::function<Tensor(Graph&, const std::vector<Tensor>&)>& body,
                         const std::string& wanted = "") {
  Graph g;
  Recorded r;
  std::vector<Tensor> in;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    in.push_back(g.input(name, dtype, Dims(shapes[i].begin(), shapes[i].end())));
    r.inputs[name] = values(dtype, shapes[i]);
  }
  g.output("y", body(g, in));
  r.program = compiledAs(g, wanted);
  return r;
}
using In = const std::vector<Tensor>&;

// Few columns and long sums: four warps of four blocks share them.
inline Recorded sharedSums() {
  return recorded(DType::BF16, {{16, 4096}}, [](Graph& g, In x) {
    return fused::linear(x[0], g.weight("w", DType::BF16, {96, 4096}));
  });
}
inline Recorded attention(int64_t queries, int64_t keys) {
  return recorded(
      DType::BF16, {{1, 2, queries, 64}, {1, 2, keys, 64}, {1, 2, keys, 64}},
      [](Graph&, In x) { return fused::attention(x[0], x[1], x[2], {.scale = 0.125}); });
}
inline Graph smallModel(int64_t keyHeads = 1) {
  LlamaConfig config;
  config.vocabSize = 64;
  config.hiddenSize = config.intermediateSize = 128;
  config.layers = 1;
  config.heads = 2;
  config.kvHeads = keyHeads;
  config.headDim = 64;
  config.maxPositions = 32;
  config.tieWordEmbeddings = true;
  // Room for what tests run: kernels for more rows are not made.
  return buildLlama(config, {.dtype = DType::BF16,
                             .weightDType = DType::BF16,
                             .maxBatch = 1,
                             .maxSeq = 4,
                             .greedy = true});
}
// A decode step that writes the last place of its cache.
inline Recorded decodeStep() {
  return {std::make_shared<Program>(compile(smallModel(), {.backend = "cuda"})),
          "decode",
          {{"input_ids", Array(DType::I64, {1, 1})}, {"positions", positions(31)}}};
}
// Two steps, of which the second takes its token from the first.
inline Recorded greedySteps() {
  return {std::make_shared<Program>(compile(smallModel(), {.backend = "cuda"})), "greedy", {}};
}

struct Fault {
  const char* name;
  Recorded (*record)();
  const char* kernel;  ///< found in the texts that are changed
  const char* old;     ///< its first occurrence is replaced
  const char* now;
  const char* report;  ///< a regular expression that the report holds
  const char* line;    ///< found in the line, generated or of a template, that it names
  /// The template in which `old` is; put into the text at its place, like one that includes it.
  const char* header = "";
};

inline void PrintTo(const Fault& f, std::ostream* os) { *os << f.name; }

/// Puts the template into the text in place of its include, or of that of a template which includes
/// it. False where the text has neither.
inline bool putIn(std::string& text, const std::string& header) {
  auto includeOf = [](const std::string& file) { return "#include \"" + file + "\"\n"; };
  auto replaced = [&](const std::string& file) {
    const size_t at = text.find(includeOf(file));
    if (at != std::string::npos) text.replace(at, includeOf(file).size(), hostHeaders().at(file));
    return at != std::string::npos;
  };
  if (replaced(header)) return true;
  for (const auto& [file, lines] : hostHeaders())
    if (lines.find(includeOf(header)) != std::string::npos && replaced(file))
      return replaced(header);
  return false;
}

/// The kernels of a fault's program with the fault in them, by name.
inline std::map<std::string, std::string> plant(const Fault& f, Program& program) {
  std::vector<KernelCode> kernels = kernelCodeOf(program);
  std::map<std::string, std::string> planted;
  for (KernelCode& k : kernels) {
    if (k.source.find(f.kernel) == std::string::npos) continue;
    if (*f.header && !putIn(k.source, f.header)) continue;
    const size_t at = k.source.find(f.old);
    if (at == std::string::npos) continue;
    k.source.replace(at, std::string(f.old).size(), f.now);
    planted[k.name] = k.source;
  }
  storeKernels(program, kernelTableOf(program), kernels);
  return planted;
}

// "region_0.cu:17" for every line of the text, or of the templates behind it, that holds `snippet`.
inline std::vector<std::string> placesOf(const std::string& name, const std::string& text,
                                         const std::string& snippet) {
  std::vector<std::string> places;
  auto search = [&](const std::string& file, const std::string& in) {
    for (size_t at = 0; (at = in.find(snippet, at)) != std::string::npos; ++at)
      places.push_back(file + ":" +
                       std::to_string(1 + std::count(in.begin(), in.begin() + long(at), '\n')));
  };
  search(name + ".cu", text);
  for (const auto& [header, lines] : hostHeaders()) search(header, lines);
  return places;
}

/// What one run gives: a report, or the outputs.
struct Outcome {
  std::string report;
  Arrays outputs;
};
inline Outcome outcomeOf(const Recorded& r, const std::string& options) {
  HostProgram host(r.program, options);
  try {
    host.session().bindRandomWeights(1);
    if (r.entry == "decode" || r.entry == "greedy") host.session().setSymbol("cache", 32);
    if (r.entry != "greedy") return {"", host.session().run(r.entry, r.inputs)};
    std::vector<Array> outputs;
    host.session().run(host.session().entryIndex(r.entry), {}, outputs, 2);
    return {"", {{"chosen", host.session().state("chosen_ids")}}};
  } catch (const Error& e) {
    return {e.what(), {}};
  }
}
inline std::string reportOf(const Recorded& r, const std::string& options) {
  return outcomeOf(r, options).report;
}

/// Whether a report names one of the planted kernels and a line of it, or of a template behind it,
/// that holds `snippet`.
inline bool namesLine(const std::string& report, const std::map<std::string, std::string>& planted,
                      const std::string& snippet) {
  return std::ranges::any_of(planted, [&](const auto& kernel) {
    return report.find("kernel " + kernel.first + " of ") != std::string::npos &&
           std::ranges::any_of(
               placesOf(kernel.first, kernel.second, snippet), [&](const std::string& place) {
                 const size_t at = report.find(place);
                 return at != std::string::npos && !std::isdigit(report[at + place.size()]);
               });
  });
}

}  // namespace lathe::cuda
