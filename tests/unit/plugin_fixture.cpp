// SPDX-License-Identifier: Apache-2.0
// Small plugins, most of them with a mistake; tests/CMakeLists.txt says which is which.
#include "lathe/backends/backend.h"
#include "lathe/runtime/backend_plugin.h"

#ifndef FIXTURE_VERSION
#define FIXTURE_VERSION lathe::kBackendPluginVersion
#endif
#ifndef FIXTURE_BACKEND
#define FIXTURE_BACKEND nullptr
#endif
#ifndef FIXTURE_DEVICE
#define FIXTURE_DEVICE nullptr
#endif

namespace {
[[maybe_unused]] std::unique_ptr<lathe::Backend> noBackend() { return nullptr; }

struct NoKernels final : lathe::Device {
  std::unique_ptr<lathe::Kernel> makeKernel(const lathe::Program&, const lathe::EntryPoint&,
                                            const lathe::Call&) override {
    return nullptr;
  }
};
[[maybe_unused]] std::unique_ptr<lathe::Device> noKernels(std::shared_ptr<const lathe::Program>,
                                                          const lathe::DeviceOptions&) {
  return std::make_unique<NoKernels>();
}
}  // namespace

extern "C" const lathe::BackendPlugin* lathe_backend_plugin() {
  static const lathe::BackendPlugin plugin{FIXTURE_VERSION, FIXTURE_NAME, FIXTURE_BACKEND,
                                           FIXTURE_DEVICE};
  return &plugin;
}
