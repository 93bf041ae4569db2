// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/link.h"

#include <mutex>

#include "lld/Common/Driver.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/error.h"

LLD_HAS_DRIVER(elf)

namespace lathe::cpu {
namespace {

// A symbol that nobody defines: a call that code generation made up, which would fail only at load.
std::string strangeSymbols(const std::string& object) {
  static const llvm::StringSet<> known{
      "memset", "memcpy", "memmove", "exp",  "tanh", "erf",  "log",   "logf", "sin",
      "sinf",   "cos",    "cosf",    "pow",  "powf", "fmod", "fmodf", "exp2", "exp2f",
      "cbrt",   "cbrtf",  "sqrt",    "sqrtf"};
  auto buffer = llvm::MemoryBuffer::getMemBuffer(object, "kernels", false);
  auto file = llvm::object::ObjectFile::createObjectFile(*buffer);
  if (!file) return llvm::toString(file.takeError());
  std::string strange;
  for (const auto& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      continue;
    }
    if ((*flags & llvm::object::BasicSymbolRef::SF_Undefined) && !name->empty() &&
        *name != "_GLOBAL_OFFSET_TABLE_" && !known.contains(*name))
      strange += " " + name->str();
  }
  return strange;
}

struct Linked {
  std::string bytes, failure;
};

// No exception may pass through lld's frames, so this reports by value.
Linked link(const std::string& object) {
  Linked out;
  llvm::SmallString<128> input, output;
  int descriptor = -1;
  if (auto ec = llvm::sys::fs::createTemporaryFile("lathe", "o", descriptor, input)) {
    out.failure = ec.message();
    return out;
  }
  llvm::FileRemover removeInput(input);
  {
    llvm::raw_fd_ostream file(descriptor, true);
    file << object;
  }
  if (auto ec = llvm::sys::fs::createTemporaryFile("lathe", "so", output)) {
    out.failure = ec.message();
    return out;
  }
  llvm::FileRemover removeOutput(output);
  const char* arguments[] = {"ld.lld",    "-shared", "-Bsymbolic",     "-z", "now",
                             "--threads=1", "--build-id=none", "-o", output.c_str(), input.c_str()};
  llvm::raw_string_ostream messages(out.failure);
  // lld keeps its state in globals.
  static std::mutex one;
  std::lock_guard<std::mutex> lock(one);
  lld::Result result =
      lld::lldMain(arguments, messages, messages, {{lld::Gnu, &lld::elf::link}});
  if (result.retCode != 0) {
    if (out.failure.empty()) out.failure = "ld.lld failed";
    return out;
  }
  out.failure.clear();
  auto bytes = llvm::MemoryBuffer::getFile(output);
  if (!bytes)
    out.failure = bytes.getError().message();
  else
    out.bytes = (*bytes)->getBuffer().str();
  return out;
}

}  // namespace

std::string linkShared(const std::string& object) {
  if (std::string strange = strangeSymbols(object); !strange.empty())
    throw Error(ErrorCode::Unsupported,
                "expected generated kernels to call only the C library, got calls of" + strange +
                    "; keep the op that needs them out of fusion regions");
  Linked linked = link(object);
  if (!linked.failure.empty())
    throw Error(ErrorCode::Io, "expected the generated kernels to link, got: " + linked.failure +
                                   "; check that the temporary folder is writable");
  return linked.bytes;
}

}  // namespace lathe::cpu
