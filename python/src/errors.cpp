// SPDX-License-Identifier: Apache-2.0
#include "python/src/errors.h"

#include <nanobind/stl/string.h>

#include "lathe/runtime/error.h"

namespace lathe::python {
namespace {

const char* nameOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "InvalidArgument";
    case ErrorCode::InvalidFile:
      return "InvalidFile";
    case ErrorCode::Unsupported:
      return "Unsupported";
    case ErrorCode::Numeric:
      return "Numeric";
    case ErrorCode::OutOfMemory:
      return "OutOfMemory";
    case ErrorCode::Io:
      return "Io";
  }
  return "?";
}

// Lives as long as the process: translators have no end.
PyObject* errorClass = nullptr;

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& e) {
    nb::object error = nb::handle(errorClass)(e.what());
    error.attr("code") = nameOf(e.code());
    error.attr("file") = e.file().empty() ? nb::none() : nb::object(nb::cast(e.file()));
    error.attr("line") = e.line() ? nb::object(nb::cast(e.line())) : nb::none();
    PyErr_SetObject(errorClass, error.ptr());
  }
}

}  // namespace

void bindError(nb::module_& m) {
  errorClass = PyErr_NewExceptionWithDoc(
      "lathe.Error",
      "A mistake of the user or a bad file. `code` is InvalidArgument, InvalidFile, Unsupported, "
      "Numeric, OutOfMemory or Io; `file` and `line` are those of the call that recorded the "
      "mistake, or None.",
      PyExc_RuntimeError, nullptr);
  if (!errorClass) throw nb::python_error();
  nb::handle type(errorClass);
  for (const char* name : {"code", "file", "line"}) type.attr(name) = nb::none();
  m.attr("Error") = type;
  nb::register_exception_translator(translate, nullptr);
}

}  // namespace lathe::python
