// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/backend.h"

namespace lathe {

std::string Backend::whyNotWith(const BackendOptions& options) const {
  if (options.float64)
    return "float64 is not supported on backend '" + std::string(name()) +
           "'; it is an option of the backend reference";
  if (!options.target.empty())
    return "the target '" + options.target + "' is not supported on backend '" +
           std::string(name()) + "'; it is an option of the backend cuda";
  if (options.weights.any())
    return "weights of the format " + textOf(options.weights) + " are not supported on backend '" +
           std::string(name()) + "', which takes them as they are stored";
  return "";
}

}  // namespace lathe
