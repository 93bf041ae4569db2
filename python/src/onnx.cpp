// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/onnx.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/arrays.h"
#include "python/src/recording.h"

namespace lathe::python {

void bindOnnx(nb::module_& m) {
  nb::class_<OnnxModel>(
      m, "OnnxModel",
      "The graph of an ONNX file, with the one entry point \"forward\", and its weights.")
      .def_prop_ro(
          "graph", [](OnnxModel& model) -> Graph& { return model.graph; },
          nb::rv_policy::reference_internal)
      .def_ro("inputs", &OnnxModel::inputs, "Their names, in the order of the file.")
      .def_ro("outputs", &OnnxModel::outputs, "Their names, in the order of the file.")
      .def_prop_ro(
          "weights",
          [](const OnnxModel& model) {
            nb::dict weights;
            for (const std::string& name : model.weights.names())
              weights[name.c_str()] = nb::cast(model.weights.find(name).value());
            return weights;
          },
          nb::sig("def weights(self) -> dict[str, Array]"),
          "The initializers that are weights of the graph, for Session and bind_weights(). They "
          "are "
          "views of the mapped file where its bytes are aligned.");

  m.def(
      "load",
      [](const std::filesystem::path& path, const nb::dict& constants, int64_t largest) {
        OnnxOptions options{.largest = largest};
        for (auto [name, value] : constants) {
          const std::string input = nb::cast<std::string>(name);
          options.constants.insert_or_assign(input, arrayFrom(value, input));
        }
        return loadOnnx(path.string(), options);
      },
      nb::arg("path"), nb::arg("constants") = nb::dict(),
      nb::arg("largest") = OnnxOptions().largest,
      nb::sig("def load(path: str | os.PathLike, constants: Mapping[str, ArrayLike] = {}, "
              "largest: int = 4096) -> OnnxModel"),
      "Records the graph of an ONNX file; docs/onnx.md lists what is read. `constants`: values of "
      "inputs that shapes depend on, which are no inputs of the graph then. `largest`: the upper "
      "end of the range of sizes that the file leaves open. Raises Error: Io, InvalidFile for what "
      "breaks the format, Unsupported for an op or an attribute that there is no lowering for.");
  m.def(
      "load_tensor",
      [](const std::filesystem::path& path) { return loadOnnxTensor(path.string()); },
      nb::arg("path"), nb::sig("def load_tensor(path: str | os.PathLike) -> Array"),
      "One tensor of ONNX's own test data (a TensorProto in a file). Raises Error (InvalidFile, "
      "Io).");
}

}  // namespace lathe::python
