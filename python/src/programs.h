// SPDX-License-Identifier: Apache-2.0
#pragma once
// The classes Dim, Program and Session.
#include <nanobind/nanobind.h>

namespace lathe::python {

namespace nb = nanobind;

void bindDim(nb::module_& m);
void bindProgram(nb::module_& m);
void bindSession(nb::module_& m);

}  // namespace lathe::python
