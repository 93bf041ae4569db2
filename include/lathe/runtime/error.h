// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one exception type that leaves the library: a mistake of the user or a bad file.
// Bugs of our own are asserts; bad IR is reported through MLIR diagnostics and wrapped once.
#include <source_location>
#include <stdexcept>
#include <string>

namespace lathe {

/// What kind of mistake it was. The `lathe` command turns it into its exit status.
enum class ErrorCode {
  InvalidArgument,  ///< misuse of the C++ API: shapes, dtypes, names, ranges
  InvalidFile,      ///< a checkpoint, tokenizer, config, IR text or artifact that breaks its format
  Unsupported,      ///< valid, but not implemented on this backend or by this version
  Numeric,          ///< a numeric comparison failed
  OutOfMemory,
  Io,  ///< the operating system refused: missing file, full disk
};

/// `what()` reads: what was expected, what came, where, and how to mend it.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  /// Prefixes the message with the user's file and line.
  Error(ErrorCode code, const std::string& message, const std::source_location& at)
      : std::runtime_error(std::string(at.file_name()) + ":" + std::to_string(at.line()) + ": " +
                           message),
        code_(code),
        file_(at.file_name()),
        line_(at.line()) {}

  ErrorCode code() const { return code_; }
  /// The user's source file, empty when the mistake is not in a C++ call.
  const std::string& file() const { return file_; }
  unsigned line() const { return line_; }

 private:
  ErrorCode code_;
  std::string file_;
  unsigned line_ = 0;
};

}  // namespace lathe
