// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/compile.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lathe/inspect/compiler_api.h"
#include "python/src/arrays.h"
#include "python/src/dtypes.h"
#include "python/src/recording.h"

namespace lathe::python {
namespace {

/// Takes a keyword out of a copy of the caller's.
template <class T>
void take(nb::dict& keywords, const char* name, T& into) {
  if (!keywords.contains(name)) return;
  nb::object value = keywords[name];
  keywords.attr("pop")(name);
  if (!value.is_none() && !nb::try_cast(value, into))
    throw Error(ErrorCode::InvalidArgument, std::string("compile: the option ") + name +
                                                " cannot be " + nb::repr(value).c_str());
}

std::shared_ptr<Program> compileGraph(const Graph& graph, const nb::kwargs& keywords) {
  CompileOptions options = compileOptionsFrom(keywords);
  nb::gil_scoped_release released;
  return std::make_shared<Program>(compile(graph, options));
}

// A folder of Hugging Face or a file of IR, as the command takes them.
std::shared_ptr<Program> compilePath(nb::handle path, const nb::kwargs& keywords) {
  ModelRequest request;
  request.path = pathFrom(
      path,
      "a Graph or the path of a model to compile (lathe.torch.export makes a Graph of a module)");
  nb::dict rest = nb::borrow<nb::dict>(nb::handle(keywords).attr("copy")());
  if (rest.contains("dtype")) {
    request.dtype = dtypeFrom(rest["dtype"]);
    rest.attr("pop")("dtype");
  }
  take(rest, "max_batch", request.family.maxBatch);
  take(rest, "max_seq", request.family.maxSeq);
  take(rest, "cache_capacity", request.family.cacheCapacity);
  take(rest, "cache_block", request.family.cacheBlock);
  take(rest, "layers", request.family.layers);
  if (rest.contains("patterns"))
    throw Error(ErrorCode::Unsupported,
                "compile: patterns go with a Graph, got a path; give `pattern_files`");
  request.compile = compileOptionsFrom(rest);
  nb::gil_scoped_release released;
  return std::const_pointer_cast<Program>(latheCompilerApi()->compile(request));
}

}  // namespace

CompileOptions compileOptionsFrom(const nb::dict& keywords) {
  CompileOptions options;
  nb::dict rest = nb::borrow<nb::dict>(nb::handle(keywords).attr("copy")());
  std::string mode;
  nb::object patterns = nb::none();
  take(rest, "backend", options.backend);
  take(rest, "all_tiers", options.backendOptions.allTiers);
  take(rest, "float64", options.backendOptions.float64);
  take(rest, "target", options.backendOptions.target);
  take(rest, "save_ir_dir", options.saveIrDir);
  take(rest, "mode", mode);
  take(rest, "patterns", patterns);
  take(rest, "pattern_files", options.pipeline.patternFiles);
  take(rest, "passes", options.pipeline.passes);
  take(rest, "ranks", options.pipeline.mesh.ranks);
  take(rest, "stages", options.pipeline.mesh.stages);
  take(rest, "split_rows", options.pipeline.mesh.splitRows);
  take(rest, "simulate_ranks", options.pipeline.mesh.simulate);
  take(rest, "stop_after_rewrite", options.stopAfterRewrite);
  if (!mode.empty()) options.pipeline.mode = parseNumericsMode(mode);
  if (!patterns.is_none()) options.pipeline.patterns = patternsFrom(patterns);
  if (rest.size() != 0)
    throw Error(ErrorCode::InvalidArgument,
                std::string("compile: there is no option ") +
                    nb::repr(nb::list(rest.attr("keys")())).c_str() +
                    "; there are backend, mode, patterns, pattern_files, passes, all_tiers, "
                    "float64, target, save_ir_dir, ranks, stages, split_rows, simulate_ranks, "
                    "stop_after_rewrite");
  return options;
}

void bindCompile(nb::module_& m) {
  constexpr const char* options =
      "backend: str = 'cpu', mode: str = 'relaxed', patterns: Sequence[Callable[[Pattern], None]] "
      "= "
      "(), pattern_files: Sequence[str] = (), passes: str = '', all_tiers: bool = False, float64: "
      "bool = False, target: str = '', save_ir_dir: str = '', ranks: int = 0, stages: int = 0, "
      "split_rows: bool = False, simulate_ranks: "
      "bool = False, stop_after_rewrite: int | None = None";
  const std::string ofGraph =
      std::string("def compile(graph: Graph, *, ") + options + ") -> Program";
  const std::string ofPath = std::string("def compile(path: str | os.PathLike, *, ") + options +
                             ", dtype: DTypeLike = 'f32', max_batch: int = 64, max_seq: int = 0, "
                             "cache_capacity: int = 0, layers: int = 0) -> Program";
  const std::string atStage =
      std::string("def ir_at(graph: Graph, stage: str, locations: bool = False, *, ") + options +
      ") -> str";
  m.def("compile", compileGraph, nb::arg("graph"), nb::arg("options"), nb::sig(ofGraph.c_str()),
        "A program of the graph. `backend`: one of backends(). `mode`: \"strict\", \"relaxed\" or "
        "\"fast\" (docs/numerics.md). `patterns`: fusions, functions of a Pattern. `ranks`: of a "
        "program for several "
        "(0: as many as Graph.mesh says); `stages`: of a pipeline that their layers lie in; with "
        "`split_rows` each computes norms and residuals of its share of a prompt's rows; with "
        "`simulate_ranks` all of them are one program, which "
        "a Session runs. Raises Error: "
        "InvalidArgument for an unfinished graph, Unsupported with the op, its line and the reason "
        "for what the backend cannot run.");
  m.def("compile", compilePath, nb::arg("path"), nb::arg("options"), nb::sig(ofPath.c_str()),
        "A program of a Hugging Face folder or a file of IR.");
  m.def(
      "ir_at",
      [](const Graph& graph, const std::string& stage, bool locations, const nb::kwargs& keywords) {
        CompileOptions options = compileOptionsFrom(keywords);
        nb::gil_scoped_release released;
        return irAt(graph, stage, options, locations);
      },
      nb::arg("graph"), nb::arg("stage"), nb::arg("locations") = false, nb::arg("options"),
      nb::sig(atStage.c_str()),
      "The graph's text at a stage: recorded, canonical, fused, sharded, laid-out, lowered or "
      "program.");
  m.def("backends", [] { return latheCompilerApi()->backends(); }, "Names of the backends.");
}

}  // namespace lathe::python
