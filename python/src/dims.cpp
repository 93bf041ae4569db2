// SPDX-License-Identifier: Apache-2.0
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/src/dtypes.h"
#include "python/src/programs.h"

namespace lathe::python {

void bindDim(nb::module_& m) {
  nb::class_<DimExpr>(
      m, "Dim", "A size: a number, a symbol declared with Graph.dim, or a polynomial of both.")
      .def(
          "__init__", [](DimExpr* self, nb::handle size) { new (self) DimExpr(dimFrom(size)); },
          nb::arg("size"), nb::sig("def __init__(self, size: DimLike) -> None"),
          "From a number or a text such as \"2*seq+1\".")
      .def(
          "__add__", [](const DimExpr& a, nb::handle b) { return a + dimFrom(b); },
          nb::sig("def __add__(self, other: DimLike) -> Dim"))
      .def(
          "__radd__", [](const DimExpr& a, nb::handle b) { return dimFrom(b) + a; },
          nb::sig("def __radd__(self, other: DimLike) -> Dim"))
      .def(
          "__sub__", [](const DimExpr& a, nb::handle b) { return a - dimFrom(b); },
          nb::sig("def __sub__(self, other: DimLike) -> Dim"))
      .def(
          "__rsub__", [](const DimExpr& a, nb::handle b) { return dimFrom(b) - a; },
          nb::sig("def __rsub__(self, other: DimLike) -> Dim"))
      .def(
          "__mul__", [](const DimExpr& a, nb::handle b) { return a * dimFrom(b); },
          nb::sig("def __mul__(self, other: DimLike) -> Dim"))
      .def(
          "__rmul__", [](const DimExpr& a, nb::handle b) { return dimFrom(b) * a; },
          nb::sig("def __rmul__(self, other: DimLike) -> Dim"))
      .def(
          "__floordiv__",
          [](const DimExpr& a, nb::handle b) {
            DimExpr divisor = dimFrom(b);
            if (auto quotient = a.dividedBy(divisor)) return *quotient;
            throw Error(ErrorCode::InvalidArgument,
                        "'" + a.text() + "' is not a multiple of '" + divisor.text() +
                            "' for all values of its symbols; sizes are polynomials");
          },
          nb::sig("def __floordiv__(self, other: DimLike) -> Dim"),
          "The exact quotient. Raises Error where there is none.")
      .def(
          "__eq__",
          [](const DimExpr& a, nb::handle b) {
            if (nb::isinstance<DimExpr>(b)) return a == nb::cast<DimExpr>(b);
            int isTooLarge = 0;  // is equal to no size
            if (!PyLong_Check(b.ptr())) return false;
            const int64_t number = PyLong_AsLongLongAndOverflow(b.ptr(), &isTooLarge);
            return !isTooLarge && a == DimExpr(number);
          },
          nb::sig("def __eq__(self, other: object, /) -> bool"),
          "Whether both are equal for all values of the symbols.")
      .def("__hash__",
           [](const DimExpr& a) {
             if (auto number = a.asConstant()) return nb::hash(nb::int_(*number));
             return nb::hash(nb::str(a.text().c_str()));
           })
      .def(
          "evaluate",
          [](const DimExpr& a, const std::map<std::string, int64_t>& values) {
            std::map<std::string, int64_t, std::less<>> given(values.begin(), values.end());
            if (auto value = a.evaluate(given)) return *value;
            throw Error(ErrorCode::InvalidArgument,
                        "'" + a.text() + "' needs a value of each of its symbols");
          },
          nb::arg("values"), "Its value where symbols have these. Raises Error for a missing one.")
      .def_prop_ro("symbols", &DimExpr::symbols, "Names of the symbols in it.")
      .def("__str__", &DimExpr::text)
      .def("__repr__", &DimExpr::text);
}

}  // namespace lathe::python
