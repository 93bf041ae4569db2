// SPDX-License-Identifier: Apache-2.0
#pragma once
// Compiles kernel texts for this CPU with the machine's C++ compiler, and keeps the result in a
// folder of the user's cache.
#include <string>
#include <vector>

#include "backends/cuda/hostexec/module.h"
#include "backends/cuda/hostexec/options.h"

namespace lathe::cuda::host {

struct KernelText {
  std::string name;  ///< the extern "C" name
  std::string text;
};

class HostCompiler {
 public:
  /// The compiler that LATHE_HOST_CXX names, else c++, g++ or clang++ on PATH; throws Error
  /// (Unsupported) if there is none. `cache`: the folder; "" for LATHE_CACHE_DIR, else
  /// $XDG_CACHE_HOME/lathe, else ~/.cache/lathe (in cuda-host below it).
  explicit HostCompiler(Mode mode, std::string cache = "");

  /// "g++ 12.2.0".
  const std::string& version() const { return version_; }
  /// Kernels in the order of the texts. Texts not in the cache are compiled, many of them by two
  /// processes. Throws Error (InvalidArgument) with the compiler's messages and numbered source
  /// lines for a text that does not compile.
  std::vector<Kernel> compile(const std::vector<KernelText>& kernels);
  /// Texts compiled by this object, not found in the cache.
  int compiled() const { return compiled_; }

 private:
  struct Job;
  std::string pathOf(const KernelText& kernel) const;
  void build(const std::vector<const KernelText*>& kernels) const;
  void buildAll(const std::vector<const KernelText*>& kernels);

  Mode mode_;
  std::string compiler_, version_, folder_, headers_;
  std::vector<std::string> flags_;
  std::string key_;  ///< of everything but the text
  int compiled_ = 0;
};

}  // namespace lathe::cuda::host
