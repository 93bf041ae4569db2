// SPDX-License-Identifier: Apache-2.0
#pragma once
// What scripts/generate_python writes from the headers of include/lathe.
#include <nanobind/nanobind.h>

namespace lathe::python {

namespace nb = nanobind;

/// One function per op of lathe/ir/recorded_ops.h.
void bindRecordedOps(nb::module_& m, nb::module_& fused);
/// The functions of lathe/ir/composed_ops.h.
void bindComposedOps(nb::module_& m);
/// Functions, options and modules of lathe/frontend/nn; the models stand on the modules.
void bindModules(nb::module_& m);
void bindModels(nb::module_& m);

}  // namespace lathe::python
