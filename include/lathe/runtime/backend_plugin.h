// SPDX-License-Identifier: Apache-2.0
#pragma once
// A backend in a shared library: what the library offers and how it is loaded. Without LLVM, so
// that a library with the run side alone serves machines that only run programs.
#include <memory>
#include <string>
#include <vector>

#include "lathe/runtime/device.h"

namespace lathe {

class Backend;  // lathe/backends/backend.h

/// Raised whenever this struct or a class that plugins derive from or fill in changes: Backend,
/// BackendRequest, Device, DeviceOptions, Kernel, KernelShapes, Program.
inline constexpr int kBackendPluginVersion = 3;

/// What a library's one entry point gives:
///   extern "C" const lathe::BackendPlugin* lathe_backend_plugin();
/// One library may have both sides, or two libraries of one name a side each.
struct BackendPlugin {
  int version = kBackendPluginVersion;  ///< stays the first field in every version
  const char* name = nullptr;           ///< what `--backend` says and programs hold
  /// Compile side; null in a library that runs programs alone. Its name() must be `name`.
  std::unique_ptr<Backend> (*makeBackend)() = nullptr;
  /// Run side; null in a library that compiles alone.
  std::unique_ptr<Device> (*makeDevice)(std::shared_ptr<const Program>,
                                        const DeviceOptions&) = nullptr;
};
inline constexpr char kBackendPluginSymbol[] = "lathe_backend_plugin";

/// Loads a shared library with a backend, which is then known by its name for the rest of the
/// process; it is never unloaded, and one that is loaded already is left alone. Throws Error
/// (InvalidFile) for a file that is missing or no shared library, a library without the entry point
/// or of another version, and a name that is taken. The library's code runs with the rights of the
/// process.
void loadBackendPlugin(const std::string& path);
void loadBackendPlugins(const std::vector<std::string>& paths);
/// Those loaded so far, in this order.
std::vector<const BackendPlugin*> backendPlugins();

}  // namespace lathe
