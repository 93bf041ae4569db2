// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element types, sizes and keywords as Python gives them.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>

#include "lathe/runtime/dim_expr.h"
#include "lathe/runtime/dtype.h"
#include "lathe/runtime/enums.h"
#include "lathe/runtime/error.h"

namespace lathe::python {

namespace nb = nanobind;

/// "f32", or a dtype of NumPy or PyTorch. Throws Error (InvalidArgument) naming the dtypes.
DType dtypeFrom(nb::handle object);
/// The same; nothing for None.
std::optional<DType> optionalDType(nb::handle object);

/// A Python number as C++ has it. Throws Error (InvalidArgument) where it does not fit.
int64_t wholeFrom(nb::handle number);
double realFrom(nb::handle number);

/// A size: a whole number, a Dim or a text such as "2*seq+1". Throws Error (InvalidArgument).
DimExpr dimFrom(nb::handle object);
/// A sequence of sizes.
std::vector<DimExpr> dimsFrom(nb::handle object);
/// A number where the size is one, else a Dim.
nb::object dimToPython(const DimExpr& dim);
nb::tuple shapeToPython(const std::vector<DimExpr>& shape);

/// A keyword of an enumeration by name. Throws Error (InvalidArgument) naming the choices.
template <KeywordEnum Enum>
Enum keywordFrom(nb::handle object) {
  if (nb::isinstance<nb::str>(object))
    if (auto found = parseKeyword<Enum>(nb::cast<std::string>(object))) return *found;
  throw Error(ErrorCode::InvalidArgument, std::string(Keywords<Enum>::enumeration) +
                                              ": expected one of " + choicesOf<Enum>() + ", got " +
                                              nb::repr(object).c_str());
}

}  // namespace lathe::python
