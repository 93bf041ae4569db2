// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/device.h"

#include <mutex>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {
struct Registry {
  std::mutex mutex;
  std::map<std::string, DeviceFactory, std::less<>> factories;
};
Registry& registry() {
  static Registry r;
  return r;
}
}  // namespace

void registerDevice(std::string name, DeviceFactory factory) {
  std::lock_guard lock(registry().mutex);
  registry().factories[std::move(name)] = std::move(factory);
}

bool hasDevice(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  return registry().factories.contains(name);
}

std::unique_ptr<Device> openDevice(std::shared_ptr<const Program> program,
                                   const DeviceOptions& options) {
  DeviceFactory factory;
  std::string known;
  {
    std::lock_guard lock(registry().mutex);
    for (auto& [name, f] : registry().factories) known += (known.empty() ? "" : ", ") + name;
    auto it = registry().factories.find(program->backend);
    if (it != registry().factories.end()) factory = it->second;
  }
  if (!factory)
    throw Error(ErrorCode::Unsupported,
                "the program is for backend '" + program->backend +
                    "', this process has: " + known +
                    "; --load-backend-plugin (SessionOptions::backendPlugins) loads another from "
                    "a shared library");
  return factory(std::move(program), options);
}

}  // namespace lathe
