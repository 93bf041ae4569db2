// SPDX-License-Identifier: Apache-2.0
#include "python/src/caller.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <utility>

#include "runtime/foreign_line.h"

namespace lathe::python {
namespace {

namespace nb = nanobind;

std::string& packageFolder() {
  static std::string folder;
  return folder;
}

}  // namespace

void setPackageFolder(std::string folder) { packageFolder() = std::move(folder); }

std::source_location here() {
  const std::string& own = packageFolder();
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none()) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    std::string file = nb::cast<std::string>(code.attr("co_filename"));
    if (own.empty() || !file.starts_with(own))
      return foreignLine(file, unsigned(PyFrame_GetLineNumber(raw)),
                         nb::cast<std::string>(code.attr("co_name")));
    frame = frame.attr("f_back");
  }
  return foreignLine("<python>", 1, "");
}

}  // namespace lathe::python
