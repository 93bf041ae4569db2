// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flags of the verbs that run a model on random data to compare results.
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "lathe/inspect/trial.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/model.h"

namespace lathe::cli {

struct TrialFlags {
  std::vector<std::string> sizes, inputs;
  std::string weights, precision, entry, device;
  int64_t seed = 0;
  double tolerance = 0;
};
/// Adds --set, --input, --weights, --seed, --precision, --tolerance, --entry and --device.
void addTrialFlags(CLI::App& parser, TrialFlags& flags);

/// The flags that only a trial has: a parser may want them with its own flag alone.
const std::vector<const char*>& trialFlagNames();
/// The checkpoint of --weights, else the folder's own, else random weights.
TrialOptions trialOptions(const Model& model, const CompileFlags& compile, const TrialFlags& flags);

/// The flags of a trial, for a command that is printed: " --set seq=8 --seed 3".
std::string flagsText(const TrialFlags& flags);

/// Freed memory stays with the process: the interpreter makes and drops arrays of a gigabyte, and
/// clearing fresh pages for each takes longer than computing them.
void keepFreedMemory();

/// "batch = 2, seq = 5"
std::string sizesText(const SymbolValues& sizes);
Json deviationJson(const Deviation& deviation);

}  // namespace lathe::cli
