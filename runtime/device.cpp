// SPDX-License-Identifier: Apache-2.0
#include "lathe/runtime/device.h"

#include <mutex>

#include "lathe/runtime/error.h"

namespace lathe {
namespace {
struct Registry {
  std::mutex mutex;
  struct Entry {
    DeviceFactory factory;
    int64_t promptTokens = kPromptTokens;
  };
  std::map<std::string, Entry, std::less<>> devices;
};
Registry& registry() {
  static Registry r;
  return r;
}
}  // namespace

void DeviceMemory::copyRows(void* to, size_t toStride, const void* from, size_t fromStride,
                            size_t bytes, size_t rows) {
  for (size_t row = 0; row < rows; ++row)
    copy(static_cast<std::byte*>(to) + row * toStride,
         static_cast<const std::byte*>(from) + row * fromStride, bytes);
}

void registerDevice(std::string name, DeviceFactory factory, int64_t promptTokens) {
  if (promptTokens < 1)
    throw Error(ErrorCode::InvalidArgument, "device '" + name +
                                                "': expected promptTokens of 1 or more, got " +
                                                std::to_string(promptTokens));
  std::lock_guard lock(registry().mutex);
  registry().devices[std::move(name)] = {std::move(factory), promptTokens};
}

bool hasDevice(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  return registry().devices.contains(name);
}

int64_t promptTokensOf(std::string_view backend) {
  std::lock_guard lock(registry().mutex);
  auto it = registry().devices.find(backend);
  return it == registry().devices.end() ? kPromptTokens : it->second.promptTokens;
}

std::unique_ptr<Device> openDevice(std::shared_ptr<const Program> program,
                                   const DeviceOptions& options) {
  DeviceFactory factory;
  std::string known;
  {
    std::lock_guard lock(registry().mutex);
    for (auto& [name, entry] : registry().devices) known += (known.empty() ? "" : ", ") + name;
    auto it = registry().devices.find(program->backend);
    if (it != registry().devices.end()) factory = it->second.factory;
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
