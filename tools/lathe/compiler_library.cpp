// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/compiler_library.h"

#include "lathe/runtime/error.h"
#include "tools/lathe/shared_library.h"

namespace lathe::cli {
namespace {

const LoadedSymbol& loaded() {
  static const LoadedSymbol result = loadSymbol("liblathe.so", kCompilerApiSymbol);
  return result;
}

}  // namespace

const CompilerApi* findCompiler() {
  using Entry = const CompilerApi* (*)();
  return loaded().address ? reinterpret_cast<Entry>(loaded().address)() : nullptr;
}

const CompilerApi& compiler() {
  const CompilerApi* api = findCompiler();
  if (!api)
    throw Error(ErrorCode::Unsupported,
                "this needs the compiler library, which could not be loaded (" + loaded().reason +
                    "); install liblathe.so, or run a .lathe program compiled elsewhere");
  return *api;
}

}  // namespace lathe::cli
