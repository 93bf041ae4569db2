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
#include "tools/lathe/json_output.h"

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

const char* wordOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::InvalidArgument:
      return "invalid_argument";
    case ErrorCode::InvalidFile:
      return "invalid_file";
    case ErrorCode::Io:
      return "io";
    case ErrorCode::Unsupported:
      return "unsupported";
    case ErrorCode::Numeric:
      return "numeric";
    case ErrorCode::OutOfMemory:
      return "out_of_memory";
  }
  return "internal";
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

static int tellFailure(const std::string& message, const char* kind, int status, bool json) {
  console().error(message);
  if (!json || hasPrintedJson()) return status;
  Json out = {{"schema_version", kSchemaVersion},
              {"error", {{"kind", kind}, {"message", message}, {"exit_status", status}}}};
  try {
    printJson(out);
    flushOutput();
  } catch (const std::exception&) {  // nobody reads: the status says it
  }
  return status;
}

int guarded(const std::function<int()>& command, bool json) {
  auto fail = [&](const std::string& message, const char* kind, int status) {
    return tellFailure(message, kind, status, json);
  };
  try {
    int status = command();
    flushOutput();
    return status;
  } catch (const Error& e) {
    return fail(e.what(), wordOf(e.code()), statusOf(e.code()));
  } catch (const OutputError& e) {
    return fail(e.what(), "output", kFailed);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; close other programs or use a smaller model or context",
                "out_of_memory", kOutOfMemory);
  } catch (const std::system_error& e) {  // a full disk or closed terminal under fmt::print
    return fail(e.what(), "output", kFailed);
  } catch (const std::exception& e) {
    return fail(std::string("internal error: ") + e.what() +
                    "; this is a bug of Lathe, please report it with the output of `lathe env`",
                "internal", kInternal);
  }
}

}  // namespace lathe::cli
