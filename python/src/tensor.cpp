// SPDX-License-Identifier: Apache-2.0
#include "lathe/ir/tensor.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lathe/ir/ops.h"
#include "python/src/caller.h"
#include "python/src/dtypes.h"
#include "python/src/recording.h"

namespace lathe::python {
namespace {

using Function = Tensor (*)(const Tensor&, const Tensor&, std::source_location);

template <Compare predicate>
Tensor compared(const Tensor& a, const Tensor& b, std::source_location at) {
  return compare(a, b, predicate, at);
}
template <Function logical, Function bits>
Tensor ofBits(const Tensor& a, const Tensor& b, std::source_location at) {
  return a.dtype(at) == DType::Bool ? logical(a, b, at) : bits(a, b, at);
}

/// `__add__`, and where it has a name `__radd__`.
template <Function function>
void bindOperator(nb::class_<Tensor>& type, const char* name, const char* reflected = nullptr) {
  std::string signature = std::string("def ") + name + "(self, other: Tensor | float, /) -> Tensor";
  type.def(
      name,
      [](const Tensor& a, nb::handle b) -> nb::object {
        std::optional<Tensor> other = operandLike(a, b);
        if (!other) return nb::borrow(Py_NotImplemented);
        return nb::cast(function(a, *other, here()));
      },
      nb::sig(signature.c_str()));
  if (!reflected) return;
  signature = std::string("def ") + reflected + "(self, other: Tensor | float, /) -> Tensor";
  type.def(
      reflected,
      [](const Tensor& a, nb::handle b) -> nb::object {
        std::optional<Tensor> other = operandLike(a, b);
        if (!other) return nb::borrow(Py_NotImplemented);
        return nb::cast(function(*other, a, here()));
      },
      nb::sig(signature.c_str()));
}

std::string typeNameOf(nb::handle value) {
  return nb::cast<std::string>(value.type().attr("__name__"));
}

// Of the first axis, whose size is a number.
int64_t rowsOf(const Tensor& x) {
  if (x.rank(here()) == 0) throw nb::type_error("a Tensor without axes has no length");
  const auto rows = x.dim(0, here()).asConstant();
  if (!rows) throw nb::type_error("the first axis has a symbolic size, which is not known yet");
  return *rows;
}

// x[1:3], x[..., 0], x[:, None]: constants and Dims; steps are positive numbers.
Tensor indexed(Tensor x, nb::handle key) {
  const std::source_location at = here();
  nb::list parts;
  if (nb::isinstance<nb::tuple>(key))
    for (nb::handle part : key) parts.append(part);
  else
    parts.append(key);
  int64_t named = 0;
  for (nb::handle part : parts) named += !part.is_none() && part.ptr() != Py_Ellipsis;
  int64_t axis = 0;
  bool elided = false;
  for (nb::handle part : parts) {
    if (part.is_none()) {
      x = unsqueeze(x, axis++, at);
    } else if (part.ptr() == Py_Ellipsis) {
      if (elided) throw Error(ErrorCode::InvalidArgument, "an index has one ellipsis at most", at);
      elided = true;
      axis += x.rank(at) - axis - named;
    } else if (PySlice_Check(part.ptr())) {
      --named;
      const Dim size = x.dim(axis, at);
      // Places beyond the ends are the ends, as of Python's sequences.
      auto bound = [&](const char* name, Dim otherwise) {
        nb::object given = part.attr(name);
        if (given.is_none()) return otherwise;
        Dim dim = dimFrom(given);
        if (auto number = dim.asConstant(); number && *number < 0) dim = size + dim;
        const auto number = dim.asConstant(), most = size.asConstant();
        return number && most ? Dim(std::clamp<int64_t>(*number, 0, *most)) : dim;
      };
      const Dim start = bound("start", 0);
      Dim stop = bound("stop", size);
      if (auto from = start.asConstant(), to = stop.asConstant(); from && to && *to < *from)
        stop = start;
      nb::object step = part.attr("step");
      const int64_t stride = step.is_none() ? 1 : wholeFrom(step);
      Dim count = stop - start;
      if (stride != 1) {
        auto number = count.asConstant();
        if (!number || stride < 1)
          throw Error(ErrorCode::InvalidArgument,
                      "a slice with a step needs a step of at least 1 and a range whose size is a "
                      "number",
                      at);
        count = (*number + stride - 1) / stride;
      }
      if (!(start == Dim(0)) || !(count == size) || stride != 1)
        x = sliceAxis(x, axis, start, count, stride, at);
      ++axis;
    } else {
      --named;
      if (PyBool_Check(part.ptr()) || nb::isinstance<Tensor>(part) ||
          nb::isinstance<nb::list>(part) || nb::hasattr(part, "__dlpack__"))
        throw Error(ErrorCode::InvalidArgument,
                    "expected a number, a Dim, a slice, None or ... as an index, got a " +
                        typeNameOf(part) + "; gather(x, ids, axis) takes elements by their ids",
                    at);
      Dim place = dimFrom(part);
      if (auto number = place.asConstant(); number && *number < 0) place = x.dim(axis, at) + place;
      x = squeeze(sliceAxis(x, axis, place, 1, 1, at), axis, at);
    }
  }
  return x;
}

std::string textOf(const Tensor& t) {
  if (!t.defined()) return "lathe.Tensor(empty)";
  try {
    std::string sizes;
    for (const Dim& d : t.shape()) sizes += (sizes.empty() ? "" : ", ") + d.text();
    return "lathe.Tensor(" + std::string(nameOf(t.dtype())) + "[" + sizes + "])";
  } catch (const Error&) {
    return "lathe.Tensor(without a shape)";  // of a pattern, or of a graph that is gone
  }
}

// A number that a double would round stays as it is.
Tensor scalarFrom(const Tensor& like, nb::handle number) {
  constexpr int64_t kExact = int64_t(1) << 53;
  int isTooLarge = 0;
  const int64_t whole =
      PyLong_Check(number.ptr()) ? PyLong_AsLongLongAndOverflow(number.ptr(), &isTooLarge) : 0;
  if (!isTooLarge && (whole > kExact || whole < -kExact) && like.dtype(here()) == DType::I64) {
    Array exact(DType::I64, {});
    *static_cast<int64_t*>(exact.data()) = whole;
    return like.recorder(here())->emit("lathe.constant", {}, {{"value", exact}}, here());
  }
  return scalarLike(like, realFrom(number), here());
}

}  // namespace

std::optional<Tensor> operandLike(const Tensor& first, nb::handle other) {
  if (nb::isinstance<Tensor>(other)) return nb::cast<Tensor>(other);
  if (PyFloat_Check(other.ptr()) || PyLong_Check(other.ptr())) return scalarFrom(first, other);
  if (nb::hasattr(other, "__dlpack__"))
    throw Error(ErrorCode::InvalidArgument,
                "expected a Tensor or a number, got an array (" + typeNameOf(other) +
                    "); record it with Graph.constant",
                here());
  if (nb::hasattr(other, "__float__"))  // a number of NumPy's
    return scalarLike(first, realFrom(other.attr("__float__")()), here());
  return std::nullopt;
}

std::pair<Tensor, Tensor> operandsFrom(const char* function, nb::handle a, nb::handle b) {
  if (nb::isinstance<Tensor>(a)) {
    const Tensor first = nb::cast<Tensor>(a);
    if (std::optional<Tensor> second = operandLike(first, b)) return {first, *second};
  } else if (nb::isinstance<Tensor>(b)) {
    const Tensor second = nb::cast<Tensor>(b);
    if (std::optional<Tensor> first = operandLike(second, a)) return {*first, second};
  }
  throw Error(ErrorCode::InvalidArgument,
              std::string(function) + ": expected two Tensors, or a Tensor and a number, got a " +
                  typeNameOf(a) + " and a " + typeNameOf(b) + "; Graph.constant records an array",
              here());
}

void bindTensor(nb::module_& m) {
  nb::class_<Tensor> type(m, "Tensor",
                          "A symbolic value of a graph under construction: a cheap handle. Made by "
                          "Graph.input, Graph.weight and the functions that record ops.");
  type.def_prop_ro(
          "shape", [](const Tensor& t) { return shapeToPython(t.shape(here())); },
          nb::sig("def shape(self) -> tuple[int | Dim, ...]"),
          "Sizes: numbers, and Dims where they depend on symbols.")
      .def_prop_ro(
          "dtype", [](const Tensor& t) { return std::string(nameOf(t.dtype(here()))); },
          "\"f32\", \"bf16\", \"i64\", ...")
      .def_prop_ro(
          "ndim", [](const Tensor& t) { return t.rank(here()); }, "Number of axes.")
      .def(
          "astype",
          [](const Tensor& t, nb::handle dtype) { return cast(t, dtypeFrom(dtype), here()); },
          nb::arg("dtype"), nb::sig("def astype(self, dtype: DTypeLike) -> Tensor"),
          "Converts the elements, as cast does.")
      .def_prop_ro(
          "T", [](const Tensor& t) { return swapAxes(t, -2, -1, here()); },
          "The last two axes exchanged.")
      .def("__len__", rowsOf)
      .def(
          "__iter__",
          [](const Tensor& t) {
            nb::list rows;
            for (int64_t row = 0; row < rowsOf(t); ++row) rows.append(indexed(t, nb::int_(row)));
            return nb::iter(rows);
          },
          nb::sig("def __iter__(self) -> collections.abc.Iterator[Tensor]"))
      .def("__getitem__", indexed, nb::arg("key"),
           nb::sig("def __getitem__(self, key: object, /) -> Tensor"),
           "Slices, places, None for a new axis and one ellipsis; sizes may be Dims.")
      .def("__neg__", [](const Tensor& t) { return neg(t, here()); })
      .def("__abs__", [](const Tensor& t) { return abs(t, here()); })
      .def("__invert__", [](const Tensor& t) { return logicalNot(t, here()); })
      .def("__bool__",
           [](const Tensor&) -> bool {
             throw nb::type_error(
                 "a Tensor has no value while a graph is recorded: use where(), not `if`");
           })
      .def("__hash__",
           [](const Tensor& t) {
             return nb::hash(
                 nb::make_tuple(reinterpret_cast<uintptr_t>(t.recorder(here())), t.id()));
           })
      .def("__repr__", textOf);
  bindOperator<add>(type, "__add__", "__radd__");
  bindOperator<sub>(type, "__sub__", "__rsub__");
  bindOperator<mul>(type, "__mul__", "__rmul__");
  bindOperator<divide>(type, "__truediv__", "__rtruediv__");
  bindOperator<mod>(type, "__mod__", "__rmod__");
  bindOperator<pow>(type, "__pow__", "__rpow__");
  bindOperator<matmul>(type, "__matmul__");
  bindOperator<ofBits<logicalAnd, bitwiseAnd>>(type, "__and__");
  bindOperator<ofBits<logicalOr, bitwiseOr>>(type, "__or__");
  // NumPy leaves operators between its arrays and Tensors to us.
  type.attr("__array_ufunc__") = nb::none();
  bindOperator<compared<Compare::eq>>(type, "__eq__");
  bindOperator<compared<Compare::ne>>(type, "__ne__");
  bindOperator<compared<Compare::lt>>(type, "__lt__");
  bindOperator<compared<Compare::le>>(type, "__le__");
  bindOperator<compared<Compare::gt>>(type, "__gt__");
  bindOperator<compared<Compare::ge>>(type, "__ge__");
}

}  // namespace lathe::python
