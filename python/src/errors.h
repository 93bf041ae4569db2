// SPDX-License-Identifier: Apache-2.0
#pragma once
// lathe::Error in Python.
#include <nanobind/nanobind.h>

namespace lathe::python {

namespace nb = nanobind;

/// The exception `Error` with the attributes code, file and line.
void bindError(nb::module_& m);

}  // namespace lathe::python
