// SPDX-License-Identifier: Apache-2.0
#pragma once
// The command line of one verb: what all verbs have in common.
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cstdint>
#include <limits>

#include <CLI/CLI.hpp>

#include "lathe/runtime/dtype.h"

namespace lathe::cli {

using ArgumentList = std::vector<std::string>;

/// A parser with --help, --color, --quiet and --verbose.
std::unique_ptr<CLI::App> makeParser(const std::string& verb, const std::string& summary,
                                     const std::string& example);
/// From now on parseArguments hands each parser to `reader` and throws DescribedOnly; null ends it.
void describeOnly(std::function<void(const CLI::App&)> reader);
struct DescribedOnly {};
/// Parses and sets up the console. False: help was printed and there is nothing left to do. Throws
/// Error(InvalidArgument) with the nearest flag for one that is unknown.
bool parseArguments(CLI::App& parser, const ArgumentList& arguments);

/// "1,2,3" as ids; Error(InvalidArgument) names the flag and the place.
std::vector<int> parseIds(const std::string& text, const std::string& flag);
/// A whole number of at least `least`; Error(InvalidArgument) names the flag.
int64_t parseCount(const std::string& text, const std::string& flag, int64_t least = 1);
/// "batch=1,seq=8" of every text together; Error(InvalidArgument) names the flag.
std::map<std::string, int64_t, std::less<>> parseSizes(const std::vector<std::string>& texts,
                                                       const std::string& flag);
/// What CLI11 asks of a number: an empty text, or what was expected instead.
struct WholeNumber {
  int64_t least = 0, most = INT64_MAX;
  std::string operator()(const std::string& text) const;
};
/// The same up to 2^64 - 1.
struct Seed {
  std::string operator()(const std::string& text) const;
};
struct RealNumber {
  double least = 0, most = std::numeric_limits<double>::infinity();
  std::string operator()(const std::string& text) const;
};
/// A file that will be written, checked before the work that makes its contents: its folder exists
/// and it is no folder itself.
struct OutputFile {
  std::string operator()(const std::string& text) const;
};
/// The stages of a graph, in order.
const std::vector<std::string>& stageNames();
/// Adds --stop-after, checked against the stages.
void addStopAfter(CLI::App& parser, std::string& stage);
/// Adds --dtype f32|bf16.
void addDType(CLI::App& parser, std::optional<DType>& dtype);
/// Adds --threads (and -t); 0 leaves the choice to LATHE_NUM_THREADS and the machine.
void addThreads(CLI::App& parser, int& threads);
/// Adds --backend.
void addBackend(CLI::App& parser, std::string& backend);
/// Adds --target: for which GPUs the cuda backend makes machine code.
void addTarget(CLI::App& parser, std::string& target);
/// Adds --device: where programs of the cuda backend run.
void addDevice(CLI::App& parser, std::string& device);

}  // namespace lathe::cli
