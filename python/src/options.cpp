// SPDX-License-Identifier: Apache-2.0
#include "python/src/options.h"

namespace lathe::python {

void setOption(nb::handle options, nb::handle name, nb::handle value) {
  if (!nb::hasattr(options, name)) {
    std::string known;
    for (nb::handle field : nb::steal(PyObject_Dir(options.type().ptr()))) {
      std::string text = nb::cast<std::string>(field);
      if (!text.starts_with("_") && !PyCallable_Check(options.attr(text.c_str()).ptr()))
        known += (known.empty() ? "" : ", ") + text;
    }
    throw Error(ErrorCode::InvalidArgument, nb::cast<std::string>(options.type().attr("__name__")) +
                                                " has no field '" + nb::cast<std::string>(name) +
                                                "'; it has " + known);
  }
  nb::setattr(options, name, value);
}

}  // namespace lathe::python
