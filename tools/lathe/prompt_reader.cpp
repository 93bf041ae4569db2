// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/prompt_reader.h"

#include "lathe/runtime/error.h"
#include "lathe/runtime/source_text.h"

namespace lathe::cli {

PromptReader::PromptReader(Session& session, const ModelConfig& config,
                           const GenerationConfig& generation)
    : session_(session), vocab_(config.vocabSize) {
  if (!readsSource(session.program())) return;
  auto first = [](std::initializer_list<std::optional<int64_t>> ids) -> std::optional<int64_t> {
    for (const std::optional<int64_t>& id : ids)
      if (id) return id;
    return {};
  };
  const auto start =
      first({generation.decoderStartId, config.decoderStartId, generation.bosId, config.bosId});
  if (!start)
    throw Error(ErrorCode::InvalidFile,
                "config.json: expected a decoder_start_token_id or a bos_token_id, which the text "
                "begins with, found neither");
  start_ = {int(*start)};
  if (const auto forced = first({generation.forcedBosId, config.forcedBosId}))
    start_.push_back(int(*forced));
  padId_ = first({generation.padId, config.padId}).value_or(0);
}

void refuseRewriting(const Program& program, const std::string& path, const std::string& verb) {
  if (readsSource(program))
    throw Error(ErrorCode::Unsupported,
                path + " reads a text and writes another, which " + verb +
                    " cannot ask it for; expected a model that continues texts (`lathe generate` "
                    "runs both)");
}

std::vector<std::vector<int>> PromptReader::read(std::span<const std::vector<int>> prompts) {
  if (!isRewriting()) return {prompts.begin(), prompts.end()};
  encodeSources(session_, prompts, vocab_, padId_);
  return std::vector<std::vector<int>>(prompts.size(), start_);
}

}  // namespace lathe::cli
