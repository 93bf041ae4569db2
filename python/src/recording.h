// SPDX-License-Identifier: Apache-2.0
#pragma once
// What records graphs, and the questions that are asked of them.
#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

#include "lathe/frontend/compile.h"
#include "lathe/frontend/graph.h"

namespace lathe::python {

namespace nb = nanobind;

void bindTensor(nb::module_& m);
void bindGraph(nb::module_& m);
void bindCompile(nb::module_& m);
void bindQuestions(nb::module_& m);
void bindPatterns(nb::module_& m);
void bindOnnx(nb::module_& m);

/// None is an empty handle: an operand that is left out.
inline Tensor tensorOr(const std::optional<Tensor>& tensor) { return tensor.value_or(Tensor()); }

/// The other operand of an operator: a Tensor, or a number of the first one's dtype. Null where
/// it is neither.
std::optional<Tensor> operandLike(const Tensor& first, nb::handle other);
/// Both operands of an elementwise op: Tensors, or one of them and a number. Else an Error that
/// names `function`.
std::pair<Tensor, Tensor> operandsFrom(const char* function, nb::handle a, nb::handle b);

/// The keywords of lathe.compile() as options. `patterns` are functions of a Pattern.
CompileOptions compileOptionsFrom(const nb::dict& keywords);
/// What PatternsFor calls: functions of Python that record a Pattern each.
PatternsFor patternsFrom(nb::handle functions);

}  // namespace lathe::python
