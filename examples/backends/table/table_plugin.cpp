// SPDX-License-Identifier: Apache-2.0
// The entry point, of a library with both sides and of one with the run side alone:
//   lathe run model.mlir --backend table --load-backend-plugin table_backend.so
//   lathe run program.lathe --load-backend-plugin table_device.so
#include "lathe/runtime/backend_plugin.h"
#include "table.h"

extern "C" const lathe::BackendPlugin* lathe_backend_plugin() {
  static const lathe::BackendPlugin plugin{
      .name = "table",
#ifndef TABLE_DEVICE_ONLY
      .makeBackend = table::makeBackend,
#endif
      .makeDevice = table::makeDevice,
  };
  return &plugin;
}
