// SPDX-License-Identifier: Apache-2.0
// The module lathe._compiler: graphs, modules, compilation and questions. Importing it loads LLVM
// and MLIR, which the package does when one of its names is first asked for.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "python/src/caller.h"
#include "python/src/generated.h"
#include "python/src/recording.h"

NB_MODULE(_compiler, m) {
  using namespace lathe::python;
  namespace nb = nanobind;
  nb::module_::import_("lathe._runtime");  // Dim, Array, Program and Error are its
  nanobind::set_leak_warnings(false);      // a traceback at the end of a program holds objects, too
  m.doc() = "Graphs, modules, compilation and questions of Lathe.";
  bindTensor(m);
  bindGraph(m);
  bindPatterns(m);
  nb::module_ fused =
      m.def_submodule("fused", "Fused ops, for those who want them recorded directly.");
  bindRecordedOps(m, fused);
  bindComposedOps(m);
  nb::module_ modules = m.def_submodule("nn", "Modules: a graph, a path, sizes and options.");
  bindModules(modules);
  bindModels(modules);
  nb::module_ onnx = m.def_submodule("onnx", "Graphs of ONNX files.");
  bindOnnx(onnx);
  bindCompile(m);
  bindQuestions(m);
  m.def("_set_package_folder", setPackageFolder, nb::arg("folder"),
        "Files below it are the package's own: no line of theirs is the user's.");
}
