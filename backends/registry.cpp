// SPDX-License-Identifier: Apache-2.0
// The backends of this process, by name.
#include "lathe/backends/backend.h"

#include <map>
#include <mutex>
#include <set>

#include "backends/common/built_in.h"
#include "lathe/runtime/backend_plugin.h"
#include "lathe/runtime/error.h"

namespace lathe {
namespace {
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Backend>, std::less<>> backends;
  std::set<const BackendPlugin*> taken;  // plugins that were asked for their backends
};
// Built-in backends are there before the first look-up, whatever the order of initializers.
Registry& registry() {
  static Registry* r = [] {
    auto* made = new Registry;
    for (auto make : {makeCpuBackend, makeCudaBackend, makeReferenceBackend}) {
      auto backend = make();
      std::string name(backend->name());
      made->backends[name] = std::move(backend);
    }
    return made;
  }();
  return *r;
}

// The registry's lock is held.
void takePlugins(Registry& r) {
  for (const BackendPlugin* plugin : backendPlugins()) {
    // One that is refused is refused once: the other backends stay in reach.
    if (!plugin->makeBackend || !r.taken.insert(plugin).second) continue;
    std::unique_ptr<Backend> backend = plugin->makeBackend();
    const std::string name = plugin->name;
    if (!backend || backend->name() != name)
      throw Error(ErrorCode::InvalidFile,
                  "the backend plugin '" + name + "' makes " +
                      (backend ? "the backend '" + std::string(backend->name()) + "'" : "none") +
                      "; the two names must be the same");
    if (!r.backends.emplace(name, std::move(backend)).second)
      throw Error(ErrorCode::InvalidArgument, "the backend '" + name +
                                                  "' is registered by the program and loaded from "
                                                  "a plugin; take one of the two");
  }
}
}  // namespace

void registerBackend(std::unique_ptr<Backend> backend) {
  std::lock_guard lock(registry().mutex);
  std::string name(backend->name());
  registry().backends[name] = std::move(backend);
}

const Backend& findBackend(std::string_view name) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  takePlugins(r);
  auto it = r.backends.find(name);
  if (it != r.backends.end()) return *it->second;
  std::string known;
  for (auto& [n, backend] : r.backends) known += (known.empty() ? "" : ", ") + n;
  throw Error(ErrorCode::Unsupported,
              "no backend '" + std::string(name) + "'; this build has " + known +
                  "; --load-backend-plugin (CompileOptions::backendPlugins) loads another from a "
                  "shared library");
}

std::vector<std::string> backendNames() {
  std::lock_guard lock(registry().mutex);
  takePlugins(registry());
  std::vector<std::string> names;
  for (auto& [n, backend] : registry().backends) names.push_back(n);
  return names;
}

}  // namespace lathe
