// SPDX-License-Identifier: Apache-2.0
#include "python/src/arrays.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "lathe/runtime/error.h"
#include "python/src/dtypes.h"

namespace lathe::python {
namespace {

using Given = nb::ndarray<nb::ro>;
using Dense = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

struct DTypePair {
  DType ours;
  nb::dlpack::dtype_code code;
};
constexpr DTypePair kDTypes[] = {
    {DType::F64, nb::dlpack::dtype_code::Float},   {DType::F32, nb::dlpack::dtype_code::Float},
    {DType::BF16, nb::dlpack::dtype_code::Bfloat}, {DType::F16, nb::dlpack::dtype_code::Float},
    {DType::I64, nb::dlpack::dtype_code::Int},     {DType::I32, nb::dlpack::dtype_code::Int},
    {DType::I16, nb::dlpack::dtype_code::Int},     {DType::I8, nb::dlpack::dtype_code::Int},
    {DType::U8, nb::dlpack::dtype_code::UInt},     {DType::Bool, nb::dlpack::dtype_code::Bool}};

DType oursOf(const nb::dlpack::dtype& given, const std::string& what) {
  for (const DTypePair& pair : kDTypes)
    if (uint8_t(pair.code) == given.code && sizeOf(pair.ours) * 8 == given.bits && given.lanes == 1)
      return pair.ours;
  throw Error(ErrorCode::Unsupported,
              what + ": an array of DLPack type " + std::to_string(given.code) + " with " +
                  std::to_string(given.bits) +
                  " bits has no dtype here; convert it to one of f64, f32, bf16, f16, i64, i32, "
                  "i16, i8, u8, bool");
}

// NumPy has no bf16 of its own: that of ml_dtypes, which JAX brings, has a name and two bytes, and
// NumPy exports no such type.
bool isNumPysBF16(nb::handle object) {
  if (!nb::hasattr(object, "__array_interface__")) return false;
  const nb::object dtype = object.attr("dtype");
  return nb::str(dtype).equal(nb::str("bfloat16"));
}

[[noreturn]] void refuse(nb::handle object, const std::string& what) {
  // PyTorch's own words for a tensor that needs gradients come from its __dlpack__.
  if (nb::hasattr(object, "__dlpack__")) {
    Given given;
    if (nb::try_cast(object, given) && given.device_type() != nb::device::cpu::value)
      throw Error(ErrorCode::InvalidArgument,
                  what + ": expected an array in the host's memory, got one on DLPack device " +
                      std::to_string(given.device_type()) + "; copy it to the CPU first");
    object.attr("__dlpack__")();
  }
  throw Error(ErrorCode::InvalidArgument,
              what +
                  ": expected an array (anything with __dlpack__: NumPy's, PyTorch's, ...), got " +
                  nb::inst_name(object).c_str() + "; numpy.asarray() makes one");
}

std::string textOf(const Array& a) {
  std::string values;
  const int64_t shown = std::min<int64_t>(a.size(), 6);
  for (int64_t i = 0; i < shown; ++i) values += (i ? ", " : "") + numberText(a.at(i));
  return "lathe.Array(" + describe(a.dtype(), a.shape()) + ": " + values +
         (shown < a.size() ? ", ...)" : ")");
}

}  // namespace

nb::dlpack::dtype dlpackOf(DType dtype) {
  for (const DTypePair& pair : kDTypes)
    if (pair.ours == dtype) return {uint8_t(pair.code), uint8_t(sizeOf(dtype) * 8), 1};
  throw Error(ErrorCode::InvalidArgument, "no such dtype");
}

Array arrayFrom(nb::handle object, const std::string& what) {
  if (nb::isinstance<Array>(object)) return nb::cast<Array>(object);
  const bool isBF16 = isNumPysBF16(object);
  nb::object bits = isBF16 ? object.attr("view")("uint16") : nb::borrow(object);
  Dense dense;
  if (nb::isinstance<nb::str>(object) || !nb::try_cast(bits, dense)) refuse(object, what);
  DType dtype = isBF16 ? DType::BF16 : oursOf(dense.dtype(), what);
  Shape shape(dense.ndim());
  for (size_t i = 0; i < dense.ndim(); ++i) shape[i] = int64_t(dense.shape(i));
  static char nothing;  // an array without elements may have no memory
  void* data = const_cast<void*>(dense.data() ? dense.data() : &nothing);
  std::shared_ptr<void> owner(new Dense(dense), [](void* p) {
    nb::gil_scoped_acquire lock;
    delete static_cast<Dense*>(p);
  });
  return Array(dtype, std::move(shape), data, std::move(owner));
}

// NumPy has no bf16 of its own.
nb::object numpyOf(const Array& a) {
  if (a.dtype() != DType::BF16) return nb::cast(viewOf<nb::numpy>(a));
  nb::object type;
  try {
    type = nb::module_::import_("ml_dtypes").attr("bfloat16");
  } catch (const nb::python_error&) {
    throw Error(ErrorCode::Unsupported,
                "NumPy has no bf16: install ml_dtypes, or read the array by torch.from_dlpack()");
  }
  nb::object words = nb::cast(viewOf<nb::numpy>(a, {uint8_t(nb::dlpack::dtype_code::UInt), 16, 1}));
  return words.attr("view")(type);
}

void bindArray(nb::module_& m) {
  nb::class_<Array>(m, "Array",
                    "A dense row-major array of values in the host's memory: what sessions return. "
                    "numpy.asarray(), torch.from_dlpack() and other DLPack consumers read it "
                    "without a copy.")
      .def(
          "__init__",
          [](Array* self, nb::handle values) { new (self) Array(arrayFrom(values, "Array")); },
          nb::arg("values"), nb::sig("def __init__(self, values: ArrayLike) -> None"),
          "A view of another array's memory.")
      .def_prop_ro(
          "shape", [](const Array& a) { return nb::tuple(nb::cast(a.shape())); },
          nb::sig("def shape(self) -> tuple[int, ...]"), "The sizes of the axes.")
      .def_prop_ro(
          "dtype", [](const Array& a) { return std::string(nameOf(a.dtype())); },
          "\"f32\", \"bf16\", \"i64\", ...")
      .def_prop_ro(
          "ndim", [](const Array& a) { return a.shape().size(); }, "Number of axes.")
      .def_prop_ro("size", &Array::size, "Number of elements.")
      .def_prop_ro("nbytes", &Array::bytes, "Bytes of the elements.")
      .def(
          "__dlpack__",
          [](const Array& a, const nb::kwargs& options) {
            return nb::cast(viewOf<nb::array_api>(a)).attr("__dlpack__")(**options);
          },
          nb::sig("def __dlpack__(self, **options: object) -> object"))
      .def("__dlpack_device__", [](const Array&) { return std::pair(1, 0); })
      .def("numpy", numpyOf, nb::sig("def numpy(self) -> numpy.ndarray"),
           "NumPy's view of the memory; one of bf16 needs the package ml_dtypes.")
      .def(
          "__array__",
          [](const Array& a, nb::object dtype, nb::object copy) {
            nb::object view = numpyOf(a);
            if (!dtype.is_none()) view = view.attr("astype")(dtype, nb::arg("copy") = false);
            return copy.is(nb::bool_(true)) ? view.attr("copy")() : view;
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
          nb::sig("def __array__(self, dtype: object = None, copy: bool | None = None) -> "
                  "numpy.ndarray"))
      .def(
          "item",
          [](const Array& a) -> nb::object {
            if (a.size() != 1)
              throw Error(
                  ErrorCode::InvalidArgument,
                  "item: expected an Array of one element, got " + describe(a.dtype(), a.shape()));
            if (a.dtype() == DType::Bool) return nb::bool_(a.at(0) != 0);
            if (a.dtype() == DType::I64) return nb::int_(a.as<int64_t>()[0]);  // beyond 2^53, too
            return isFloat(a.dtype()) ? nb::object(nb::float_(a.at(0)))
                                      : nb::object(nb::int_(int64_t(a.at(0))));
          },
          nb::sig("def item(self) -> float | int | bool"),
          "The only element as a number. Raises Error for another count.")
      .def(
          "tolist", [](const Array& a) { return numpyOf(a).attr("tolist")(); },
          nb::sig("def tolist(self) -> list"), "Nested lists of numbers.")
      .def(
          "__getitem__",
          [](const Array& a, nb::object key) {
            // The item is read while the view that it belongs to is alive.
            const nb::object view = numpyOf(a);
            return nb::object(view[key]);
          },
          nb::arg("key").none())
      .def("__len__",
           [](const Array& a) {
             if (a.shape().empty())
               throw nb::type_error("an Array of rank 0 has no length; item() is its value");
             return a.shape()[0];
           })
      .def("__repr__", textOf);
}

std::string pathFrom(nb::handle value, const char* expected) {
  if (PyObject* path = PyOS_FSPath(value.ptr())) return nb::cast<std::string>(nb::steal(path));
  PyErr_Clear();
  throw Error(ErrorCode::InvalidArgument,
              std::string("expected ") + expected + ", got " + nb::inst_name(value).c_str());
}

}  // namespace lathe::python
