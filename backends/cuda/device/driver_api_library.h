// SPDX-License-Identifier: Apache-2.0
#pragma once
// Libraries of NVIDIA's that are looked for at first use, so that one binary runs with and without
// them: where one was looked for is part of every error.
#include <string>
#include <type_traits>
#include <vector>

namespace lathe::cuda {

class FoundLibrary {
 public:
  /// Opens the library that the environment variable names and only that one, or else the first of
  /// `candidates` (paths, or names for the loader) that opens. It stays open until the process
  /// ends.
  FoundLibrary(const char* variable, const std::vector<std::string>& candidates);

  explicit operator bool() const { return handle_; }
  /// The candidate that was opened.
  const std::string& path() const { return path_; }
  /// A line for every candidate that did not open, with the loader's reason.
  const std::string& tried() const { return tried_; }

  /// Sets `function` to the symbol's address; false, and null, where there is none.
  template <class Function>
  bool get(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(address(symbol));
    return function;
  }

 private:
  void* address(const char* symbol) const;
  void* handle_ = nullptr;
  std::string path_, tried_;
};

/// The places of a library inside installed CUDA toolkits: CUDA_HOME and CUDA_PATH, then
/// /usr/local/cuda; only files that are there.
std::vector<std::string> inCudaToolkits(const std::string& file);

}  // namespace lathe::cuda
