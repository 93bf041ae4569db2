// SPDX-License-Identifier: Apache-2.0
#include "runtime/foreign_line.h"

#include <bit>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace lathe {
namespace {

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

}  // namespace

std::source_location foreignLine(const std::string& file, unsigned line,
                                 const std::string& function) {
  static const bool known = layoutHolds();
  if (!known) throw std::logic_error("std::source_location is not laid out as compilers fill it");
  struct Kept {
    std::string file, function;
    Line line;
  };
  static std::mutex mutex;
  static std::map<std::tuple<std::string, std::string, unsigned>, std::unique_ptr<Kept>> lines;
  const std::lock_guard lock(mutex);
  auto& kept = lines[{file, function, line}];
  if (!kept) {
    kept = std::make_unique<Kept>(Kept{file, function, {}});
    kept->line = {kept->file.c_str(), kept->function.c_str(), line, 0};
  }
  return std::bit_cast<std::source_location>(&std::as_const(kept->line));
}

}  // namespace lathe
