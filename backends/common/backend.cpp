// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/backend.h"

namespace lathe {

std::string Backend::whyNotWith(const BackendOptions& options) const {
  const BackendFeatures has = features();
  if (options.float64 && !has.float64)
    return "float64 is not supported on backend '" + std::string(name()) +
           "'; it is an option of the backend reference";
  if (!options.target.empty() && !has.target)
    return "the target '" + options.target + "' is not supported on backend '" +
           std::string(name()) + "'; it is an option of the backend cuda";
  if (options.weights.any() && !has.weights)
    return "weights of the format " + textOf(options.weights) + " are not supported on backend '" +
           std::string(name()) + "', which takes them as they are stored";
  if (options.ranks > 1 && !has.ranks)
    return "a mesh of " + std::to_string(options.ranks) + " ranks is not supported on backend '" +
           std::string(name()) +
           "'; the backend cpu runs it, and every backend runs a mesh that is simulated";
  return "";
}

}  // namespace lathe
