// SPDX-License-Identifier: Apache-2.0
#pragma once
// The AddressSanitizer that a test's program starts itself again under.
#include <dlfcn.h>

#include <filesystem>
#include <string>

#include "backends/cuda/hostexec/process.h"

namespace lathe::cuda {

struct AddressSanitizer {
  std::string compiler;
  std::string preload;  ///< LD_PRELOAD=LIBRARY, of nothing where this program has it already
  std::string missing;  ///< why it cannot run here; empty if it can
};

inline AddressSanitizer findAddressSanitizer() {
  AddressSanitizer found{.compiler = host::findProgram("g++")};
  std::string library;
  if (!found.compiler.empty())
    library = host::runProcess({found.compiler, "-print-file-name=libasan.so"}).output;
  library.erase(library.find_last_not_of('\n') + 1);
  if (found.compiler.empty())
    found.missing = "no g++";
  else if (library.find('/') == std::string::npos)
    found.missing = "g++ has no libasan";
  else if (dlsym(RTLD_DEFAULT, "__tsan_init"))
    found.missing = "this program has ThreadSanitizer, beside which there is no room for another";
  else
    // libasan.so may be a linker script's neighbour: the file that it links to is preloaded.
    found.preload =
        "LD_PRELOAD=" +
        (dlsym(RTLD_DEFAULT, "__asan_init") ? "" : std::filesystem::canonical(library).string());
  return found;
}

}  // namespace lathe::cuda
