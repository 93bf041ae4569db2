// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operands that a kernel reads or writes through strides.
#include <vector>

#include "lathe/runtime/call_config.h"
#include "lathe/runtime/device.h"
#include "lathe/runtime/dim_expr.h"

namespace lathe::cpu {

/// A view under the values of the symbols, in elements.
struct View {
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
};

/// A view of a kernel's config.
class SymbolicView {
 public:
  explicit SymbolicView(ViewTerms terms) : terms_(std::move(terms)) {}
  size_t rank() const { return terms_.size() / 2; }
  /// Throws Error(InvalidArgument) if a symbol has no value.
  View evaluate(const SymbolValues& symbols) const;

 private:
  ViewTerms terms_;
};

}  // namespace lathe::cpu
