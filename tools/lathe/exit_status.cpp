// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/exit_status.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "lathe/runtime/error.h"
#include "tools/lathe/console.h"

namespace lathe::cli {
namespace {

int statusOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return kUsage;
    case ErrorCode::InvalidFile:
    case ErrorCode::Io:
      return kBadFile;
    case ErrorCode::Unsupported:
      return kUnsupported;
    case ErrorCode::Numeric:
      return kNumeric;
    case ErrorCode::OutOfMemory:
      return kOutOfMemory;
  }
  return kInternal;
}

}  // namespace

void writeOutput(const std::string& path, const std::function<void()>& write) {
  try {
    write();
  } catch (const Error& e) {
    if (e.code() != ErrorCode::Io) throw;
    throw OutputError("cannot write " + path + ": " + e.what());
  }
}

void flushOutput() {
  if (std::fflush(stdout) != 0)
    throw OutputError(std::string("cannot write to standard output: ") + std::strerror(errno));
}

int guarded(const std::function<int()>& command) {
  try {
    int status = command();
    flushOutput();
    return status;
  } catch (const Error& e) {
    console().error(e.what());
    return statusOf(e.code());
  } catch (const OutputError& e) {
    console().error(e.what());
    return kFailed;
  } catch (const std::bad_alloc&) {
    console().error("out of memory; close other programs or use a smaller model or context");
    return kOutOfMemory;
  } catch (const std::system_error& e) {  // a full disk or closed terminal under fmt::print
    console().error(e.what());
    return kFailed;
  } catch (const std::exception& e) {
    console().error(std::string("internal error: ") + e.what() +
                    "; this is a bug of Lathe, please report it with the output of `lathe env`");
    return kInternal;
  }
}

}  // namespace lathe::cli
