// SPDX-License-Identifier: Apache-2.0
#pragma once
// `lathe generate` with several texts at once: --batch and --beams.
#include "lathe/runtime/beam_search.h"
#include "lathe/runtime/text_generation.h"
#include "tools/lathe/prompt.h"
#include "tools/lathe/prompt_reader.h"

namespace lathe::cli {

/// Continues each line of a file. Prints a line for each, the continuation as a JSON text, or with
/// `json` one document.
void generateBatch(BatchGenerator& generator, PromptReader& reader, const std::string& file,
                   const PromptFlags& flags, const Model& model,
                   const std::optional<Tokenizer>& tokenizer, const TextGenerationOptions& options,
                   bool json);

/// Prints the best text, or with `json` all of them.
void generateBeams(BatchGenerator& generator, PromptReader& reader, const Prompt& prompt,
                   const std::optional<Tokenizer>& tokenizer, const BeamSearchOptions& options,
                   bool json);

}  // namespace lathe::cli
