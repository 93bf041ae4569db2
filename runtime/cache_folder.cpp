// SPDX-License-Identifier: Apache-2.0
#include "runtime/cache_folder.h"

#include <cstdlib>

namespace lathe {

std::string cacheFolder() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string folder = variable("LATHE_CACHE_DIR"); !folder.empty()) return folder;
  if (std::string folder = variable("XDG_CACHE_HOME"); !folder.empty()) return folder + "/lathe";
  std::string home = variable("HOME");
  return home.empty() ? "" : home + "/.cache/lathe";
}

}  // namespace lathe
