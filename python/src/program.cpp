// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/program.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/dtypes.h"
#include "python/src/programs.h"

namespace lathe::python {
namespace {

nb::object typeOf(DType dtype, const SymbolicShape& shape) {
  return nb::make_tuple(std::string(nameOf(dtype)), shapeToPython(shape));
}

nb::dict typesOf(const std::vector<TensorInfo>& tensors) {
  nb::dict types;
  for (const TensorInfo& t : tensors) types[t.name.c_str()] = typeOf(t.dtype, t.shape);
  return types;
}

nb::dict portsOf(const Program& program, const std::string& entry, bool inputs) {
  const EntryPoint& e = program.entry(entry);
  nb::dict types;
  for (const Port& port : inputs ? e.inputs : e.outputs) {
    const Slot& slot = e.slots[size_t(port.slot)];
    types[port.name.c_str()] = typeOf(slot.dtype, slot.shape);
  }
  return types;
}

std::string textOf(const Program& p) {
  std::string entries;
  for (const EntryPoint& e : p.entries) entries += (entries.empty() ? "" : ", ") + e.name;
  return "lathe.Program(" + p.backend + ": " + entries + "; " + std::to_string(p.weights.size()) +
         " weights, " + std::to_string(p.states.size()) + " states)";
}

}  // namespace

void bindProgram(nb::module_& m) {
  constexpr const char* ports = "dict[str, tuple[str, tuple[int | Dim, ...]]]";
  const std::string inputs = std::string("def inputs(self, entry: str = 'forward') -> ") + ports;
  const std::string outputs = std::string("def outputs(self, entry: str = 'forward') -> ") + ports;
  const std::string weights = std::string("def weights(self) -> ") + ports;
  const std::string states = std::string("def states(self) -> ") + ports;
  nb::class_<Program>(m, "Program",
                      "What a backend makes of a graph and sessions run. Immutable; several "
                      "sessions and threads may share one.")
      .def_static(
          "open",
          [](const std::string& path) {
            nb::gil_scoped_release released;
            return std::const_pointer_cast<Program>(Program::open(path));
          },
          nb::arg("path"), "Reads an artifact. Raises Error (InvalidFile) for anything else.")
      .def(
          "save",
          [](const Program& p, const std::string& path) {
            nb::gil_scoped_release released;
            p.save(path);
          },
          nb::arg("path"),
          "Writes an artifact: code, constants and files; weights stay where "
          "they are. It is a program: run only those that you trust.")
      .def_ro("backend", &Program::backend)
      .def_prop_ro(
          "entries",
          [](const Program& p) {
            std::vector<std::string> names;
            for (const EntryPoint& e : p.entries) names.push_back(e.name);
            return names;
          },
          "Names of the entry points.")
      .def(
          "inputs",
          [](const Program& p, const std::string& entry) { return portsOf(p, entry, true); },
          nb::arg("entry") = "forward", nb::sig(inputs.c_str()),
          "Dtype and shape of each input of an entry point, in order.")
      .def(
          "outputs",
          [](const Program& p, const std::string& entry) { return portsOf(p, entry, false); },
          nb::arg("entry") = "forward", nb::sig(outputs.c_str()),
          "Dtype and shape of each output of an entry point, in order.")
      .def_prop_ro(
          "weights", [](const Program& p) { return typesOf(p.weights); }, nb::sig(weights.c_str()),
          "Dtype and shape of each weight.")
      .def_prop_ro(
          "states", [](const Program& p) { return typesOf(p.states); }, nb::sig(states.c_str()),
          "Dtype and shape of each state.")
      .def_prop_ro(
          "symbols",
          [](const Program& p) {
            nb::dict ranges;
            for (const SymbolInfo& s : p.symbols)
              ranges[s.name.c_str()] = nb::make_tuple(s.lo, s.hi, s.multiple);
            return ranges;
          },
          nb::sig("def symbols(self) -> dict[str, tuple[int, int, int]]"),
          "Least and largest value of each symbol, and what it is a multiple of.")
      .def_ro("metadata", &Program::metadata, "Free text: compiler version, numerics mode.")
      .def("__repr__", textOf);
}

}  // namespace lathe::python
