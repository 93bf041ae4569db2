// SPDX-License-Identifier: Apache-2.0
#pragma once
// The headers that kernel texts include, embedded in this library.
#include <map>
#include <string>

namespace lathe::cuda {

using Headers = std::map<std::string, std::string>;  ///< file name to text

/// For NVRTC: lathe_device.cuh, lathe_common.cuh and the templates.
const Headers& deviceHeaders();
/// For a host compiler: the twin of the same name, its companions and the same templates.
const Headers& hostHeaders();

}  // namespace lathe::cuda
