// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/prompt.h"

#include <cstdio>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "runtime/mapped_file.h"
#include "tools/lathe/arguments.h"
#include "tools/lathe/exit_status.h"

namespace lathe::cli {
namespace {

std::string readText(const std::string& path) {
  return path == "-" ? readWholeStream(stdin, "standard input", kPromptFile)
                     : readWholeFile(path, kPromptFile);
}

}  // namespace

Prompt readPrompt(const PromptFlags& flags, const std::string& model,
                  const std::optional<Tokenizer>& tokenizer, int64_t vocab) {
  Prompt prompt;
  if (!flags.ids.empty()) {
    prompt.ids = parseIds(flags.ids, "--ids");
    for (size_t i = 0; i < prompt.ids.size(); ++i)
      if (prompt.ids[i] < 0 || prompt.ids[i] >= vocab)
        throw Error(ErrorCode::InvalidArgument,
                    fmt::format("--ids: item {}: expected an id from 0 to {}, got {}", i, vocab - 1,
                                prompt.ids[i]));
    return prompt;
  }
  if (!tokenizer)
    throw Error(ErrorCode::InvalidFile,
                model +
                    ": expected a model with tokenizer.json, this one has none; give token ids "
                    "with --ids");
  prompt.text = flags.hasText ? flags.text : readText(flags.file);
  prompt.ids = tokenizer->encode(prompt.text);
  if (prompt.ids.empty())
    throw Error(ErrorCode::InvalidArgument, "the prompt has no tokens; write some text");
  for (int id : prompt.ids)
    if (id >= vocab)
      throw Error(ErrorCode::InvalidFile,
                  fmt::format("{}: the tokenizer gives the id {}, the model's vocabulary has {}",
                              model, id, vocab));
  return prompt;
}

TokenWriter::TokenWriter(const std::optional<Tokenizer>& tokenizer, bool prints) : prints_(prints) {
  if (tokenizer) decoder_.emplace(*tokenizer);
}

void TokenWriter::push(int id) {
  put(decoder_ ? decoder_->push(id) : (first_ ? "" : ",") + std::to_string(id));
  first_ = false;
}

void TokenWriter::finish() {
  if (decoder_) put(decoder_->finish());
  if (prints_) fmt::print("\n");
}

void TokenWriter::put(const std::string& piece) {
  text_ += piece;
  if (!prints_ || piece.empty()) return;
  fmt::print("{}", piece);
  flushOutput();
}

}  // namespace lathe::cli
