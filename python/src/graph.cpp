// SPDX-License-Identifier: Apache-2.0
#include "lathe/frontend/graph.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/arrays.h"
#include "python/src/caller.h"
#include "python/src/dtypes.h"
#include "python/src/recording.h"
#include "runtime/foreign_line.h"

namespace lathe::python {
namespace {

/// `with graph.scope("blocks.0"):`, ops inside carry the path and one line.
struct GraphScope {
  Graph& graph;
  std::string path;
  std::source_location at;
  std::optional<Scope> open = {};
};

AttrValue attributeFrom(const std::string& name, nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return wholeFrom(value);
  if (nb::isinstance<nb::float_>(value)) return realFrom(value);
  if (nb::isinstance<Array>(value)) return nb::cast<Array>(value);
  if (nb::isinstance<nb::str>(value)) {
    std::string text = nb::cast<std::string>(value);
    if (name == "dtype") return dtypeFrom(value);
    // A keyword of the enumeration that has the attribute's name, or has the word alone.
    std::optional<Keyword> keyword;
    int found = 0;
    auto consider = [&]<KeywordEnum Enum>() {
      if (Keywords<Enum>::enumeration == name) {
        keyword.emplace(Keywords<Enum>::enumeration, text);
        found = -1000;
      } else if (parseKeyword<Enum>(text) && found >= 0) {
        ++found;
        if (!keyword) keyword.emplace(Keywords<Enum>::enumeration, text);
      }
    };
#define LATHE_CONSIDER(Enum) consider.template operator()<Enum>();
    LATHE_KEYWORD_ENUMS(LATHE_CONSIDER)
#undef LATHE_CONSIDER
    if (keyword) return *keyword;
    return text;
  }
  // Sizes are Dims wherever one is symbolic or the op's attribute is of sizes.
  static const std::vector<std::string> sizes = {"shape", "starts", "sizes"};
  if (std::find(sizes.begin(), sizes.end(), name) != sizes.end()) return dimsFrom(value);
  if (PyIndex_Check(value.ptr())) return wholeFrom(nb::int_(value));
  std::vector<int64_t> integers;
  if (nb::try_cast(value, integers)) return integers;
  throw Error(ErrorCode::InvalidArgument,
              "attribute '" + name +
                  "': expected a bool, a number, a text, a list of integers or an Array, got " +
                  nb::cast<std::string>(nb::repr(value)),
              here());
}

}  // namespace

void bindGraph(nb::module_& m) {
  nb::class_<GraphScope>(m, "_Scope")
      .def("__enter__", [](GraphScope& s) { s.open.emplace(s.graph.recorder(), s.path, s.at); })
      .def("__exit__", [](GraphScope& s, const nb::args&) { s.open.reset(); });

  nb::class_<Graph> type(
      m, "Graph",
      "A model under construction: records entry points, weights, states and symbols as IR. One "
      "thread records in a graph at a time.");
  type.def(
          "__init__", [](Graph* self, const std::string& name) { new (self) Graph(name, here()); },
          nb::arg("name") = "model")
      .def_static(
          "parse",
          [](const std::string& text, const std::string& fileName) {
            return Graph::parse(text, fileName);
          },
          nb::arg("text"), nb::arg("file_name") = "<text>",
          "Reads a module back from its text. Raises Error (InvalidFile) with the parser's words.")
      .def(
          "dim",
          [](Graph& g, const std::string& name, int64_t lo, int64_t hi, int64_t multiple) {
            return g.dim(name, lo, hi, multiple, here());
          },
          nb::arg("name"), nb::arg("lo"), nb::arg("hi"), nb::arg("multiple") = 1,
          "Declares a symbol with its inclusive range. Sizes are multiples of `multiple`.")
      .def(
          "entry", [](Graph& g, const std::string& name) { g.entry(name, here()); },
          nb::arg("name"),
          "Starts an entry point; inputs, ops and outputs belong to the latest one. Without a call "
          "the first input starts \"forward\". Weights and states are shared.")
      .def(
          "input",
          [](Graph& g, const std::string& name, nb::handle dtype, nb::handle shape) {
            return g.input(name, dtypeFrom(dtype), dimsFrom(shape), here());
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
          nb::sig("def input(self, name: str, dtype: DTypeLike, shape: Sequence[DimLike]) -> "
                  "Tensor"))
      .def(
          "output",
          [](Graph& g, const std::string& name, const Tensor& value) {
            g.output(name, value, here());
          },
          nb::arg("name"), nb::arg("value"))
      .def(
          "observe",
          [](Graph& g, const std::string& name, const Tensor& value) {
            g.observe(name, value, here());
          },
          nb::arg("name"), nb::arg("value"),
          "Keeps a value that a fusion might remove, as the further output \"observed.NAME\".")
      .def(
          "mesh",
          [](Graph& g, const std::string& axis, int64_t ranks) { g.mesh(axis, ranks, here()); },
          nb::arg("axis"), nb::arg("ranks"),
          "The ranks that the graph is for, along a named axis of them; compile's go before it.")
      .def(
          "shard",
          [](Graph& g, const std::string& weights, int64_t axis, const std::string& meshAxis) {
            g.shard(weights, axis, meshAxis, here());
          },
          nb::arg("weights"), nb::arg("axis"), nb::arg("mesh_axis") = "tp",
          "Ranks hold the weights whose names match (* and ? as in a shell) in pieces along an "
          "axis, "
          "whatever the plan that is found says. compile raises Error naming this line where no "
          "weight matches or the ranks do not divide a size.")
      .def(
          "keep_whole", [](Graph& g, const std::string& weights) { g.keepWhole(weights, here()); },
          nb::arg("weights"), "The same for weights that every rank shall hold whole.")
      .def(
          "weight",
          [](Graph& g, const std::string& name, nb::handle dtype, const Shape& shape) {
            return g.weight(name, dtypeFrom(dtype), shape, here());
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
          nb::sig("def weight(self, name: str, dtype: DTypeLike, shape: Sequence[int]) -> Tensor"),
          "A checkpoint tensor by name; one value per name and entry point.")
      .def(
          "state",
          [](Graph& g, const std::string& name, nb::handle dtype, nb::handle shape) {
            g.state(name, dtypeFrom(dtype), dimsFrom(shape), here());
          },
          nb::arg("name"), nb::arg("dtype"), nb::arg("shape"),
          nb::sig("def state(self, name: str, dtype: DTypeLike, shape: Sequence[DimLike]) -> None"),
          "A tensor that lives across calls, zero at first (a KV cache).")
      .def(
          "read_state", [](Graph& g, const std::string& name) { return g.readState(name, here()); },
          nb::arg("name"))
      .def(
          "write_state",
          [](Graph& g, const std::string& name, const Tensor& value) {
            g.writeState(name, value, here());
          },
          nb::arg("name"), nb::arg("value"))
      .def(
          "constant",
          [](Graph& g, nb::handle value, nb::handle dtype) {
            if (PyFloat_Check(value.ptr()) || PyLong_Check(value.ptr())) {
              const bool whole = dtype.is_none() && PyLong_Check(value.ptr());
              DType given = dtype.is_none() ? (whole ? DType::I64 : DType::F32) : dtypeFrom(dtype);
              int isTooLarge = 0;
              const int64_t number = PyLong_Check(value.ptr())
                                         ? PyLong_AsLongLongAndOverflow(value.ptr(), &isTooLarge)
                                         : 0;
              constexpr int64_t kExact = int64_t(1) << 53;
              if (!isTooLarge && (number > kExact || number < -kExact)) {
                Array exact(DType::I64, {});  // a double would round it
                *static_cast<int64_t*>(exact.data()) = number;
                return g.constant(exact.to(given), here());
              }
              return g.constant(realFrom(value), given, here());
            }
            Array array = arrayFrom(value, "constant");
            return g.constant(dtype.is_none() ? array : array.to(dtypeFrom(dtype)), here());
          },
          nb::arg("value"), nb::arg("dtype") = nb::none(),
          nb::sig("def constant(self, value: float | ArrayLike, dtype: DTypeLike | None = None) -> "
                  "Tensor"),
          "A literal: a number (f32, or i64 for a whole one, unless a dtype is given) or an array.")
      .def(
          "full",
          [](Graph& g, nb::handle shape, double value, nb::handle dtype) {
            return g.full(dimsFrom(shape), value, dtypeFrom(dtype), here());
          },
          nb::arg("shape"), nb::arg("value"), nb::arg("dtype") = "f32",
          nb::sig("def full(self, shape: Sequence[DimLike], value: float, dtype: DTypeLike = 'f32')"
                  " -> Tensor"))
      .def(
          "arange",
          [](Graph& g, nb::handle size, nb::handle dtype) {
            return g.arange(dimFrom(size), dtypeFrom(dtype), here());
          },
          nb::arg("size"), nb::arg("dtype") = "i64",
          nb::sig("def arange(self, size: DimLike, dtype: DTypeLike = 'i64') -> Tensor"),
          "Integers 0, 1, ... size - 1.")
      .def(
          "op",
          [](Graph& g, const std::string& name, const std::vector<std::optional<Tensor>>& operands,
             const nb::kwargs& attributes) {
            std::vector<Tensor> given;
            for (const auto& operand : operands) given.push_back(tensorOr(operand));
            std::vector<std::string> names;  // a NamedAttr holds a view of its name
            names.reserve(attributes.size());
            std::vector<NamedAttr> named;
            for (auto [key, value] : attributes) {
              names.push_back(nb::cast<std::string>(key));
              named.push_back({names.back(), attributeFrom(names.back(), value)});
            }
            return g.recorder()->emit("lathe." + name, given, named, here());
          },
          // Not by keyword: an op may have an attribute of such a name.
          nb::sig("def op(self, name: str, operands: Sequence[Tensor | None], /, **attributes: "
                  "object) -> Tensor"),
          "Records any op of the dialect by name; its first result. None is an operand that is "
          "left out; attributes are those of docs/ops.md.")
      .def(
          "scope",
          [](Graph& g, const std::string& path, std::optional<std::string> file, unsigned line) {
            return new GraphScope{g, path, file ? foreignLine(*file, line, "") : here()};
          },
          nb::arg("path"), nb::arg("file") = nb::none(), nb::arg("line") = 1,
          nb::keep_alive<0, 1>(),
          nb::sig("def scope(self, path: str, file: str | None = None, line: int = 1) -> "
                  "contextlib.AbstractContextManager[None]"),
          "Ops recorded inside carry this module path, and one line: the caller's or the one "
          "given.")
      .def(
          "_text", [](const Graph& g, bool locations) { return g.text(locations); },
          nb::arg("locations") = false)
      .def("graphviz", &Graph::graphviz, "Graphviz form: one node per op.")
      .def("__repr__", [](const Graph&) { return "lathe.Graph(...)"; });
}

}  // namespace lathe::python
