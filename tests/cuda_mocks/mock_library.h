// SPDX-License-Identifier: Apache-2.0
#pragma once
// The mock libraries as a test sees them: where they are, and environment variables that are gone
// at the end of the test.
#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

namespace lathe::test {

/// An environment variable that is as before when this goes.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    const char* before = std::getenv(name);
    had_ = before;
    if (before) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  bool had_ = false;
  std::string before_;
};

inline std::string mockPath(const std::string& name) {
  return LATHE_BINARY_DIR "/tests/cuda_mocks/lib" + name + ".so";
}

/// A function that only the mock library `name` exports.
template <class Function>
Function* mockFunction(const std::string& name, const char* symbol) {
  void* library = dlopen(mockPath(name).c_str(), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(library, nullptr) << dlerror();
  void* address = library ? dlsym(library, symbol) : nullptr;
  EXPECT_NE(address, nullptr) << symbol;
  return reinterpret_cast<Function*>(address);
}

}  // namespace lathe::test
