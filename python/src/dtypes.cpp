// SPDX-License-Identifier: Apache-2.0
#include "python/src/dtypes.h"

#include <map>

namespace lathe::python {

DType dtypeFrom(nb::handle object) {
  // What NumPy and PyTorch call them: "float32", "<class 'numpy.float32'>", "torch.float32".
  static const std::map<std::string, DType, std::less<>> names = {
      {"float64", DType::F64}, {"float32", DType::F32}, {"bfloat16", DType::BF16},
      {"float16", DType::F16}, {"int64", DType::I64},   {"int32", DType::I32},
      {"int16", DType::I16},   {"int8", DType::I8},     {"uint8", DType::U8},
      {"bool", DType::Bool},   {"bool_", DType::Bool}};
  std::string name = nb::hasattr(object, "__name__")
                         ? nb::cast<std::string>(object.attr("__name__"))
                         : std::string(nb::str(object).c_str());
  if (auto dtype = parseDType(name)) return *dtype;
  name = name.substr(name.rfind('.') + 1);
  if (auto it = names.find(name); it != names.end()) return it->second;
  throw Error(ErrorCode::InvalidArgument,
              std::string("expected a dtype, one of f64, f32, bf16, f16, i64, i32, i16, i8, u8, "
                          "bool or NumPy's or PyTorch's of the same, got ") +
                  nb::repr(object).c_str());
}

std::optional<DType> optionalDType(nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return dtypeFrom(object);
}

int64_t wholeFrom(nb::handle number) {
  int isTooLarge = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(number.ptr(), &isTooLarge);
  if (isTooLarge)
    throw Error(ErrorCode::InvalidArgument,
                std::string("expected a whole number that i64 holds, got one of ") +
                    nb::str(number.attr("bit_length")()).c_str() + " bits");
  if (value == -1 && PyErr_Occurred()) nb::raise_python_error();
  return value;
}

double realFrom(nb::handle number) {
  const double value = PyFloat_AsDouble(number.ptr());
  if (value == -1 && PyErr_Occurred()) {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) nb::raise_python_error();
    PyErr_Clear();
    throw Error(ErrorCode::InvalidArgument,
                std::string("expected a number that f64 holds, got one of ") +
                    nb::str(number.attr("bit_length")()).c_str() + " bits");
  }
  return value;
}

DimExpr dimFrom(nb::handle object) {
  if (nb::isinstance<DimExpr>(object)) return nb::cast<DimExpr>(object);
  if (nb::isinstance<nb::str>(object)) {
    std::string text = nb::cast<std::string>(object);
    if (auto parsed = DimExpr::parse(text)) return *parsed;
  } else if (PyIndex_Check(object.ptr())) {
    return DimExpr(wholeFrom(nb::steal(PyNumber_Index(object.ptr()))));
  }
  throw Error(ErrorCode::InvalidArgument,
              std::string("expected a size: a whole number, a Dim of Graph.dim or a text such as "
                          "'2*seq+1', got ") +
                  nb::repr(object).c_str());
}

std::vector<DimExpr> dimsFrom(nb::handle object) {
  std::vector<DimExpr> dims;
  if (nb::isinstance<nb::str>(object) || !nb::hasattr(object, "__iter__"))
    throw Error(ErrorCode::InvalidArgument,
                std::string("expected a shape, a list of sizes, got ") + nb::repr(object).c_str());
  for (nb::handle size : object) dims.push_back(dimFrom(size));
  return dims;
}

nb::object dimToPython(const DimExpr& dim) {
  if (auto number = dim.asConstant()) return nb::cast(*number);
  return nb::cast(dim);
}

nb::tuple shapeToPython(const std::vector<DimExpr>& shape) {
  nb::list sizes;
  for (const DimExpr& dim : shape) sizes.append(dimToPython(dim));
  return nb::tuple(sizes);
}

}  // namespace lathe::python
