// SPDX-License-Identifier: Apache-2.0
// lathe tokenize: what a model's tokenizer makes of a text, and of ids.
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/json_reader.h"
#include "runtime/folder_tokenizer.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/prompt.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

namespace fs = std::filesystem;

// A tokenizer needs no config.json beside it.
Model openTokenizerFiles(const std::string& path) {
  std::error_code ignored;
  const bool isFile = fs::path(path).filename() == "tokenizer.json";
  if (!isFile && !fs::is_directory(path, ignored)) return openModel(path);
  Model model;
  model.path = isFile ? fs::path(path).parent_path().string() : path;
  model.files = readModelFiles(model.path);
  return model;
}

int decode(const Tokenizer& tokenizer, const std::string& text, bool json) {
  const std::vector<int> ids = parseIds(text, "--decode");
  const std::string decoded = tokenizer.decode(ids, /*skipSpecial=*/false);
  if (!json) return fmt::print("{}\n", decoded), kOk;
  Json out = document("tokenize");
  out["ids"] = ids;
  out["text"] = decoded;
  printJson(out);
  return kOk;
}

int show(const Tokenizer& tokenizer, const Prompt& prompt, bool json) {
  if (json) {
    Json out = document("tokenize");
    out["text"] = prompt.text;
    out["ids"] = prompt.ids;
    Json tokens = Json::array();
    for (int id : prompt.ids)
      tokens.push_back(
          {{"id", id}, {"token", tokenizer.idToToken(id)}, {"control", tokenizer.isSpecial(id)}});
    out["tokens"] = tokens;
    printJson(out);
    return kOk;
  }
  for (int id : prompt.ids)
    fmt::print("{:>7}  {}{}\n", id, inQuotes(tokenizer.idToToken(id), SIZE_MAX),
               tokenizer.isSpecial(id) ? "  control" : "");
  return kOk;
}

}  // namespace

int tokenizeVerb(const ArgumentList& arguments) {
  auto parser = makeParser("tokenize", "Shows the token ids of a text, or the text of ids.",
                           "lathe tokenize examples/models/stories -p \"Once upon a time\"");
  std::string path, ids;
  PromptFlags flags;
  bool json = false;
  parser->add_option("MODEL", path, "Hugging Face folder, tokenizer.json or .lathe program")
      ->required();
  addPromptFlags(*parser, flags, "encode");
  parser->add_option("--decode", ids, "the text of token ids: 1,2,3")
      ->excludes(parser->get_option("--prompt"))
      ->excludes(parser->get_option("--file"))
      ->excludes(parser->get_option("--messages"))
      ->excludes(parser->get_option("--chat"));
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  finishPromptFlags(*parser, flags);
  if (!flags.isGiven() && ids.empty())
    throw Error(ErrorCode::InvalidArgument,
                "expected a text: -p TEXT, -f FILE, --messages FILE or --decode 1,2,3; see `lathe "
                "tokenize --help`");
  const Model model = openTokenizerFiles(path);
  const std::optional<Tokenizer> tokenizer = tokenizerOf(model);
  if (!tokenizer) throw missingTokenizer(model);
  if (!ids.empty()) return decode(*tokenizer, ids, json);
  return show(*tokenizer, encodePrompt(flags, model, tokenizer), json);
}

}  // namespace lathe::cli
