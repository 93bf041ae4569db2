// SPDX-License-Identifier: Apache-2.0
#pragma once
// A loaded shared object with compiled kernels.
#include <cstdint>
#include <memory>
#include <string>

namespace lathe::cuda::host {

/// Loaded until destroyed.
class Module {
 public:
  /// Throws Error (InvalidFile) where the file does not load.
  explicit Module(const std::string& path);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }
  bool contains(uintptr_t address) const { return address - base_ < size_; }
  uintptr_t base() const { return base_; }
  /// Its accesses call lt_access.
  bool checked() const { return checked_; }
  /// Null if there is none.
  void* symbol(const std::string& name) const;
  /// "softmax.cu:17" for an offset of the code, the innermost place in a kernel text.
  std::string lineOf(uint32_t offset) const;

 private:
  std::string path_;
  void* handle_ = nullptr;
  uintptr_t base_ = 0, size_ = 0;
  bool checked_ = false;
};

struct Kernel {
  std::string name;
  std::shared_ptr<Module> module;
  void (*entry)(void** arguments) = nullptr;
  int parameters = 0;
  const int* parameterBytes = nullptr;  ///< of each
};

}  // namespace lathe::cuda::host
