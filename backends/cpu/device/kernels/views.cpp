// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/device/kernels/views.h"

#include "lathe/runtime/error.h"

namespace lathe::cpu {

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
