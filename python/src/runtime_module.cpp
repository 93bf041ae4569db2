// SPDX-License-Identifier: Apache-2.0
// The module lathe._runtime: arrays, programs and sessions. It links neither LLVM nor MLIR.
#include <nanobind/nanobind.h>

#include "lathe/runtime/session.h"
#include "python/src/arrays.h"
#include "python/src/errors.h"
#include "python/src/programs.h"

NB_MODULE(_runtime, m) {
  using namespace lathe::python;
  nanobind::set_leak_warnings(false);  // a traceback at the end of a program holds objects, too
  m.doc() = "Arrays, programs and sessions of Lathe.";
  bindError(m);
  bindDim(m);
  bindArray(m);
  bindProgram(m);
  bindSession(m);
  m.def("allocations", &lathe::Session::allocations,
        "Allocations made by sessions of this process so far: constant over a steady state.");
}
