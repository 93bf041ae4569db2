// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/backend_plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <mutex>
#include <string_view>

#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"

namespace lathe {
namespace {

// The names of what is built in, the device of the reference included, which comes later: with the
// compiler library.
constexpr std::string_view kBuiltIn[] = {"cpu", "cuda", "reference"};

struct Loaded {
  std::string file;  // canonical
  const BackendPlugin* plugin;
};
struct Registry {
  std::mutex mutex;
  std::vector<Loaded> libraries;
};
Registry& registry() {
  static Registry r;
  return r;
}

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw Error(ErrorCode::InvalidFile, path + ": " + what + "; see docs/adding-a-backend.md");
}

const BackendPlugin& open(const std::string& path, const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!library) {
    const char* why = dlerror();
    fail(path, std::string("no backend plugin: expected a shared library, ") +
                   (why ? why : "the loader gives no reason"));
  }
  void* address = dlsym(library, kBackendPluginSymbol);
  if (!address)
    fail(path, std::string("no backend plugin: expected a library with the entry point ") +
                   kBackendPluginSymbol + "; --load-pass-plugin takes libraries with passes");
  const auto* plugin = reinterpret_cast<const BackendPlugin* (*)()>(address)();
  if (!plugin) fail(path, std::string(kBackendPluginSymbol) + " gave no backend");
  if (plugin->version != kBackendPluginVersion)
    fail(path, "expected a backend plugin of version " + std::to_string(kBackendPluginVersion) +
                   ", got version " + std::to_string(plugin->version) +
                   "; build it against this version of Lathe");
  if (!plugin->name || !*plugin->name) fail(path, "the backend plugin has no name");
  if (!plugin->makeBackend && !plugin->makeDevice)
    fail(path, "the backend plugin '" + std::string(plugin->name) +
                   "' has neither a compile side nor a run side");
  return *plugin;
}

void expectFreeName(const std::string& path, const BackendPlugin& plugin,
                    const std::vector<Loaded>& libraries) {
  const std::string name = plugin.name;
  if (std::find(std::begin(kBuiltIn), std::end(kBuiltIn), name) != std::end(kBuiltIn))
    fail(path, "the backend '" + name + "' is built in; give the plugin a name of its own");
  for (const Loaded& other : libraries) {
    const bool sameSide = (plugin.makeBackend && other.plugin->makeBackend) ||
                          (plugin.makeDevice && other.plugin->makeDevice);
    if (sameSide && name == other.plugin->name)
      fail(path, "the backend '" + name + "' was loaded from " + other.file +
                     " already; load one of the two");
  }
  if (plugin.makeDevice && hasDevice(name))
    fail(path, "the program has registered a device '" + name + "' itself; load or register it");
}

}  // namespace

void loadBackendPlugin(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) fail(path, "expected a backend plugin, " + error.message());
  expectWholeLibrary(path);
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (const Loaded& other : r.libraries)
    if (other.file == file.string()) return;
  const BackendPlugin& plugin = open(path, file.string());
  expectFreeName(path, plugin, r.libraries);
  r.libraries.push_back({file.string(), &plugin});
  if (plugin.makeDevice) registerDevice(plugin.name, plugin.makeDevice);
}

void loadBackendPlugins(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) loadBackendPlugin(path);
}

std::vector<const BackendPlugin*> backendPlugins() {
  std::lock_guard lock(registry().mutex);
  std::vector<const BackendPlugin*> plugins;
  for (const Loaded& library : registry().libraries) plugins.push_back(library.plugin);
  return plugins;
}

}  // namespace lathe
