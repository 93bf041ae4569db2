// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/kernels/views.h"

#include "runtime/error.h"

namespace lathe::cpu {

SymbolicView::SymbolicView(const JsonValue& config) {
  for (size_t i = 0; i < config.size(); ++i) {
    auto term = DimExpr::parse(config.at(i).asString());
    if (!term)
      throw Error(ErrorCode::InvalidFile,
                  "expected a size of a view, got '" + config.at(i).asString() + "'");
    terms_.push_back(*term);
  }
  if (terms_.size() % 2 == 0)
    throw Error(ErrorCode::InvalidFile,
                "expected an offset, sizes and as many strides in a view, got " +
                    std::to_string(terms_.size()) + " numbers");
}

View SymbolicView::evaluate(const SymbolValues& symbols) const {
  View view;
  for (size_t i = 0; i < terms_.size(); ++i) {
    auto value = terms_[i].evaluate(symbols);
    if (!value)
      throw Error(ErrorCode::InvalidArgument, "size " + terms_[i].text() + " has no value");
    if (i == 0)
      view.offset = *value;
    else
      (i <= rank() ? view.sizes : view.strides).push_back(*value);
  }
  return view;
}

}  // namespace lathe::cpu
