// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `lathe inspect` tells about the pipeline: its rewrites, its numbers, its locations.
#include <CLI/CLI.hpp>

#include "tools/lathe/model.h"
#include "tools/lathe/trial_flags.h"

namespace lathe::cli {

struct PipelineQuestions {
  bool rewrites = false, numerics = false, locations = false;
  TrialFlags trial;
  bool asked() const { return rewrites || numerics || locations; }
};
/// Adds --rewrites, --check-numerics, --check-locations and the flags of a trial.
void addPipelineQuestions(CLI::App& parser, PipelineQuestions& questions);
/// Prints the answer; the exit status is kNumeric for results beyond the contract and kFailed for
/// lost locations.
int answer(const PipelineQuestions& questions, const Model& model, const CompileFlags& flags,
           bool json);

}  // namespace lathe::cli
