// SPDX-License-Identifier: Apache-2.0
#pragma once
// The module's text after every step, as edits to the text before. A value keeps its name for as
// long as the op that makes it stays: only what a step changed differs.
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspect/report/line_forms.h"
#include "inspect/report/origin_table.h"

namespace mlir {
class ModuleOp;
}

namespace lathe {

class IrHistory {
 public:
  explicit IrHistory(OriginTable& origins) : origins_(origins) {}

  void add(std::string_view stage, std::string_view step, mlir::ModuleOp module);
  /// Keys `forms` and `steps`: [{stage, step, edits: [[at, removed, [form, set, holes...]...]]}].
  /// `at` counts lines of the text before; the first step adds all of its lines.
  void write(llvm::json::OStream& out) const;
  size_t steps() const { return steps_.size(); }

 private:
  struct Line {
    unsigned form = 0, set = 0, scope = 0;
    std::vector<uint32_t> holes;
  };
  struct Edit {
    size_t at = 0, removed = 0;
    std::vector<Line> added;
  };
  struct Step {
    std::string stage, name;
    std::vector<Edit> edits;
  };

  std::vector<Line> linesOf(mlir::ModuleOp module);
  std::string keyOf(const Line& line, bool withOrigins) const;
  void matchRange(const std::vector<Line>& lines, std::vector<int64_t>& partner, size_t oldBegin,
                  size_t oldEnd, size_t begin, size_t end, bool withOrigins) const;
  void rename(std::vector<Line>& lines, const std::vector<int64_t>& partner);
  std::vector<Edit> editsFor(const std::vector<Line>& lines,
                             const std::vector<int64_t>& partner) const;
  static void writeLine(llvm::json::OStream& out, const Line& line);

  OriginTable& origins_;
  LineForms forms_;
  std::unordered_map<std::string, unsigned> scopes_;
  std::vector<uint32_t> nextName_;  // by scope
  std::vector<Line> current_;
  std::vector<Step> steps_;
};

}  // namespace lathe
