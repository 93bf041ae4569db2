// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/generate_many.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/text_lines.h"

namespace lathe::cli {
namespace {

// Without the end token.
std::string textOf(const BeamText& beam, const std::optional<Tokenizer>& tokenizer) {
  const std::span<const int> ids = std::span(beam.ids).first(beam.ids.size() - beam.ended);
  if (!tokenizer) return fmt::format("{}", fmt::join(ids, ","));
  // Rows of the model that are no tokens have no text.
  std::vector<int> tokens;
  std::ranges::copy_if(ids, std::back_inserter(tokens),
                       [&](int id) { return id < tokenizer->vocabSize(); });
  return tokenizer->decode(tokens);
}

}  // namespace

void generateBatch(BatchGenerator& generator, PromptReader& reader, const std::string& file,
                   const PromptFlags& flags, const Model& model,
                   const std::optional<Tokenizer>& tokenizer, const TextGenerationOptions& options,
                   bool json) {
  std::vector<std::vector<int>> prompts;
  const std::vector<std::string> lines = linesOf(file);
  for (const std::string& line : lines) {
    PromptFlags prompt = flags;
    prompt.text = line;
    prompt.hasText = true;
    try {
      prompts.push_back(encodePrompt(prompt, model, tokenizer).ids);
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("{}: line {}: {}", file, prompts.size() + 1, e.what()));
    }
    if (prompts.back().empty())
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("{}: line {} has no tokens; write some text", file, prompts.size()));
  }
  std::vector<TextGeneration> results;
  const size_t group = size_t(generator.maxRows());
  for (size_t begin = 0; begin < prompts.size(); begin += group) {
    Progress progress(fmt::format("texts {} to {} of {}", begin + 1,
                                  std::min(begin + group, prompts.size()), prompts.size()));
    const std::span<const std::vector<int>> some =
        std::span(prompts).subspan(begin, std::min(group, prompts.size() - begin));
    for (TextGeneration& result : generateTexts(generator, tokenizer, reader.read(some), options))
      results.push_back(std::move(result));
  }
  if (!json) {
    for (const TextGeneration& result : results) fmt::print("{}\n", jsonString(result.text));
    return;
  }
  Json out = document("generate"), list = Json::array();
  for (size_t i = 0; i < results.size(); ++i)
    list.push_back({{"prompt", lines[i]},
                    {"prompt_ids", prompts[i]},
                    {"ids", results[i].ids()},
                    {"text", results[i].text},
                    {"stopped_by", nameOf(results[i].stopped)}});
  out["texts"] = list;
  printJson(out);
}

void generateBeams(BatchGenerator& generator, PromptReader& reader, const Prompt& prompt,
                   const std::optional<Tokenizer>& tokenizer, const BeamSearchOptions& options,
                   bool json) {
  std::vector<BeamText> beams;
  {
    Progress progress(fmt::format("{} beams", options.beams));
    const std::vector<std::vector<int>> rows(size_t(options.beams), prompt.ids);
    BeamSearchOptions own = options;
    own.forcedTokens = reader.forcedTokens();
    beams = beamSearch(generator, reader.read(rows).front(), own);
  }
  if (!json) {
    console().echo(prompt.text);
    fmt::print("{}\n", textOf(beams[0], tokenizer));
    return;
  }
  Json out = document("generate"), list = Json::array();
  for (const BeamText& beam : beams)
    list.push_back({{"ids", beam.ids},
                    {"text", tokenizer ? Json(textOf(beam, tokenizer)) : Json(nullptr)},
                    {"score", beam.score},
                    {"ended", beam.ended}});
  out["prompt_ids"] = prompt.ids;
  out["beams"] = list;
  printJson(out);
}

}  // namespace lathe::cli
