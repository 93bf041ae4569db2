// SPDX-License-Identifier: Apache-2.0
#include "lathe/backends/backend.h"

namespace lathe {

std::string Backend::whyNotWith(const BackendRequest& request) const {
  const BackendFeatures has = features();
  if (request.float64 && !has.float64)
    return "float64 is not supported on backend '" + std::string(name()) +
           "'; it is an option of the backend reference";
  if (!request.target.empty() && !has.target)
    return "the target '" + request.target + "' is not supported on backend '" +
           std::string(name()) + "'; it is an option of the backend cuda";
  if (request.weights.any() && !has.weights)
    return "weights of the format " + textOf(request.weights) + " are not supported on backend '" +
           std::string(name()) + "', which takes them as they are stored";
  if (request.ranks > 1 && !has.ranks)
    return "a mesh of " + std::to_string(request.ranks) + " ranks is not supported on backend '" +
           std::string(name()) +
           "'; cpu, cuda and reference run it, and every backend a mesh that is simulated";
  return "";
}

}  // namespace lathe
