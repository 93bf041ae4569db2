// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the exit status of `lathe` tells a script.
#include <functional>
#include <stdexcept>
#include <string>

namespace lathe::cli {

enum ExitStatus : int {
  kOk = 0,
  kFailed = 1,       ///< output could not be written, or the answer is no: graphs that differ
  kUsage = 2,        ///< flags or values that do not fit the command or the model
  kBadFile = 3,      ///< a file that is missing, unreadable or broken
  kUnsupported = 4,  ///< valid, but not on this backend, machine or version
  kNumeric = 5,      ///< NaN logits, results beyond the contract, contradicting measurements
  kOutOfMemory = 6,
  kInternal = 70,  ///< a bug of Lathe
};

/// Results that could not be written: a failure of the output and no bad input file.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs `write`, which writes the file `path`; turns its Error(Io) into OutputError.
void writeOutput(const std::string& path, const std::function<void()>& write);

/// Hands standard output to the system; throws where it is not taken (a full disk), so that text
/// which streams fails at once.
void flushOutput();

/// Runs a command and turns what it throws into one `error:` line and a status; with `json` into a
/// document on standard output, too, unless the command has printed one.
int guarded(const std::function<int()>& command, bool json = false);

}  // namespace lathe::cli
