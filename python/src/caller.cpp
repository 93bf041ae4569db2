// SPDX-License-Identifier: Apache-2.0
#include "python/src/caller.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <tuple>

namespace lathe::python {
namespace {

namespace nb = nanobind;

// What a std::source_location points to. Compilers fill such an object for
// __builtin_source_location(), which fixes its members and their order; the standard has no way to
// make a location of a line in another language.
struct Line {
  const char* file;
  const char* function;
  unsigned line, column;
};
static_assert(sizeof(std::source_location) == sizeof(const Line*));

bool layoutHolds() {
  const std::source_location probe = std::source_location::current();
  const Line* line = std::bit_cast<const Line*>(probe);
  return line->file == probe.file_name() && line->function == probe.function_name() &&
         line->line == probe.line() && line->column == probe.column();
}

std::string& packageFolder() {
  static std::string folder;
  return folder;
}

}  // namespace

void setPackageFolder(std::string folder) { packageFolder() = std::move(folder); }

std::source_location lineOf(const std::string& file, unsigned line, const std::string& function) {
  static const bool known = layoutHolds();
  if (!known) throw std::logic_error("std::source_location is not laid out as compilers fill it");
  struct Kept {
    std::string file, function;
    Line line;
  };
  static std::map<std::tuple<std::string, std::string, unsigned>, std::unique_ptr<Kept>> lines;
  auto& kept = lines[{file, function, line}];
  if (!kept) {
    kept = std::make_unique<Kept>(Kept{file, function, {}});
    kept->line = {kept->file.c_str(), kept->function.c_str(), line, 0};
  }
  return std::bit_cast<std::source_location>(&std::as_const(kept->line));
}

std::source_location here() {
  const std::string& own = packageFolder();
  nb::object frame = nb::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame.is_valid() && !frame.is_none()) {
    auto* raw = reinterpret_cast<PyFrameObject*>(frame.ptr());
    nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(raw)));
    std::string file = nb::cast<std::string>(code.attr("co_filename"));
    if (own.empty() || !file.starts_with(own))
      return lineOf(file, unsigned(PyFrame_GetLineNumber(raw)),
                    nb::cast<std::string>(code.attr("co_name")));
    frame = frame.attr("f_back");
  }
  return lineOf("<python>", 1, "");
}

}  // namespace lathe::python
