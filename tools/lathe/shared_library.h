// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of the product that are loaded when a verb first needs them.
#include <string>

namespace lathe::cli {

struct LoadedSymbol {
  void* address = nullptr;
  std::string reason;  ///< the loader's words where there is no address
};
/// Loads `library` ("liblathe.so", with its version if it has one) from ../lib beside the program,
/// or where there is none from where the system looks, and finds one of its symbols.
LoadedSymbol loadSymbol(const std::string& library, const char* symbol);

}  // namespace lathe::cli
