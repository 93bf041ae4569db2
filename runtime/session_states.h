// SPDX-License-Identifier: Apache-2.0
#pragma once
// The states of a session: their memory, and the rows of them that a run sees.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lathe/runtime/array.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/program.h"

namespace lathe {

class Executor;

class SessionStates {
 public:
  SessionStates(const Program& program, Device& device);

  /// A copy on the host; undefined before the first run that needs it.
  Array copyOf(std::string_view name) const;
  void set(std::string_view name, const Array& value);
  void reset();
  /// Those whose size depends on the symbol.
  void reset(const std::string& symbol);
  /// Row i of every state with this first size becomes what row `rows[i]` was.
  void gatherRows(std::string_view symbol, std::span<const int64_t> rows);

  /// Row `to` of every state with this first size becomes what row `from` is.
  void copyBlock(std::string_view symbol, int64_t from, int64_t to);

  /// States with this first size hold `rows` of it, and a run sees some of them.
  void keepRows(std::string_view symbol, int64_t rows);
  /// The runs that follow see kept rows from this one on.
  void selectRow(int64_t first);
  /// That row; nothing where none are kept.
  std::optional<int64_t> selectedRow() const;
  /// The first `count` along the size `along` of a kept row.
  void copyRow(int64_t from, int64_t to, std::string_view along, int64_t count);

  /// The states as a run of `executor` sees them; those that are not there yet get zeros.
  std::vector<Array>& prepare(const Executor& executor);
  /// The size that states hold of a symbol, by its number in the program; nothing without one.
  std::optional<int64_t> sizeOf(size_t symbol) const;
  int64_t bytes() const;

 private:
  size_t indexOf(std::string_view name) const;
  bool keeps(const TensorInfo& info) const;

  const Program& program_;
  Device& device_;
  std::vector<Array> states_, windows_;
  std::vector<std::vector<int>> symbols_;  // of each state's sizes that are one; -1: no symbol
  // Of states with kept rows: how many there are, and those that this run sees.
  std::string rowsSymbol_;
  int64_t keptRows_ = 0, firstRow_ = 0;
};

}  // namespace lathe
