// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/lowering/codegen.h"

#include <mutex>
#include <shared_mutex>

#include "lathe/runtime/error.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

namespace lathe::cpu {
namespace {

struct Linked {
  std::string bytes, failure, strange;
};

// A symbol that nobody defines is a call that code generation made up: it would fail only at load.
void findStrangeSymbols(const std::string& object, Linked& out) {
  static const llvm::StringSet<> known{
      "memset", "memcpy", "memmove", "exp", "tanh", "erf", "log", "logf", "sin", "sinf", "cos",
      "cosf", "pow", "powf", "fmod", "fmodf",
      // What LLVM makes of a sine and a cosine of one number, of powers with a constant base, and
      // of square roots of whole numbers.
      "sincos", "sincosf", "exp2", "exp2f", "exp10", "exp10f", "ldexp", "ldexpf", "sqrt", "sqrtf"};
  auto buffer = llvm::MemoryBuffer::getMemBuffer(object, "kernels", false);
  auto file = llvm::object::ObjectFile::createObjectFile(*buffer);
  if (!file) {
    out.failure = llvm::toString(file.takeError());
    return;
  }
  for (const auto& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      out.failure = llvm::toString(flags ? name.takeError() : flags.takeError());
      if (!flags) llvm::consumeError(name.takeError());
      return;
    }
    if ((*flags & llvm::object::BasicSymbolRef::SF_Undefined) && !name->empty() &&
        *name != "_GLOBAL_OFFSET_TABLE_" && !known.contains(*name))
      out.strange += " " + name->str();
  }
}

// No exception may pass through lld's frames, so this reports by value.
Linked link(const std::string& object) {
  Linked out;
  findStrangeSymbols(object, out);
  if (!out.strange.empty() || !out.failure.empty()) return out;
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
    file.close();
    if (file.has_error()) {  // a full disk; unread, the error would end the process
      out.failure = input.str().str() + ": " + file.error().message();
      file.clear_error();
      return out;
    }
  }
  // lld maps its output: on a full disk it would end by a signal.
  if (auto space = llvm::sys::fs::disk_space(input);
      space && space->available < 2 * object.size() + (64 << 10)) {
    out.failure = input.str().str() + ": No space left on device for the linked kernels beside it";
    return out;
  }
  if (auto ec = llvm::sys::fs::createTemporaryFile("lathe", "so", output)) {
    out.failure = ec.message();
    return out;
  }
  llvm::FileRemover removeOutput(output);
  const char* arguments[] = {"ld.lld",       "-shared",     "-Bsymbolic",      "-z",
                             "now",          "--threads=1", "--build-id=none", "-o",
                             output.c_str(), input.c_str()};
  llvm::raw_string_ostream messages(out.failure);
  std::unique_lock lock(linkerGlobals());
  lld::Result result = lld::lldMain(arguments, messages, messages, {{lld::Gnu, &lld::elf::link}});
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

std::shared_mutex& linkerGlobals() {
  static std::shared_mutex globals;
  return globals;
}

std::string linkShared(const std::string& object) {
  Linked linked = link(object);
  if (!linked.strange.empty())
    throw Error(ErrorCode::Unsupported,
                "expected generated kernels to call only the C library, got calls of" +
                    linked.strange + "; keep the op that needs them out of fusion regions");
  if (!linked.failure.empty())
    throw Error(ErrorCode::Io, "expected the generated kernels to link, got: " + linked.failure +
                                   "; check that the temporary folder (TMPDIR) is writable and "
                                   "has space");
  return linked.bytes;
}

}  // namespace lathe::cpu
