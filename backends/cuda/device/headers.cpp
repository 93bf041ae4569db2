// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/device/headers.h"

namespace lathe::cuda {

const Headers& deviceHeaders() {
  static const Headers headers = {
#include "cuda_headers/device.inc"
  };
  return headers;
}

const Headers& hostHeaders() {
  static const Headers headers = {
#include "cuda_headers/host.inc"
  };
  return headers;
}

}  // namespace lathe::cuda
