// SPDX-License-Identifier: Apache-2.0
// lathe embed: texts to vectors.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/npy.h"
#include "lathe/runtime/text_embedder.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/text_lines.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {

int embedVerb(const ArgumentList& arguments) {
  auto parser =
      makeParser("embed", "Turns texts into vectors with an encoder (BERT, RoBERTa, MiniLM).",
                 "lathe embed MINILM -p \"A text\" -p \"Another one\"");
  std::string path, file, output;
  std::vector<std::string> texts;
  CompileFlags compileFlags;
  SessionFlags sessionFlags;
  bool json = false;
  parser->add_option("MODEL", path, "Hugging Face folder or .lathe program")->required();
  auto* text = parser->add_option("-p,--prompt", texts, "a text; may be given again")
                   ->allow_extra_args(false);
  parser->add_option("-f,--file", file, "a file with a text in each line")->excludes(text);
  parser->add_option("-o,--output", output, "write an .npy file, f32 [texts, size]");
  addDType(*parser, compileFlags.dtype);
  addPipelineFlags(*parser, compileFlags);
  addBackend(*parser, compileFlags.compile.backend);
  parser->add_option("--weights", sessionFlags.weights, ".safetensors file or folder of weights");
  addThreads(*parser, sessionFlags.threads);
  addDevice(*parser, sessionFlags.device);
  parser->add_flag("--json", json, "print one JSON document");
  if (!parseArguments(*parser, arguments)) return kOk;
  if (!file.empty()) texts = linesOf(file);
  if (texts.empty())
    throw Error(ErrorCode::InvalidArgument,
                "expected a text: -p TEXT or -f FILE; see `lathe embed --help`");
  const Model model = openModel(path);
  const std::optional<Tokenizer> tokenizer = tokenizerOf(model);
  if (!tokenizer) throw missingTokenizer(model);
  const ModelConfig config = configOf(model);
  Session session = openSession(model, programOf(model, compileFlags), sessionFlags);
  TextEmbedder embedder(session, *tokenizer, maxPositionsOf(config), config.padId.value_or(0));
  std::vector<std::vector<int>> ids;
  for (const std::string& line : texts) {
    try {
      ids.push_back(embedder.encode(line));
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("text {}: {}", ids.size(), e.what()));
    }
  }
  Array vectors;
  {
    Progress progress(fmt::format("reading {} texts", texts.size()));
    vectors = embedder.embed(ids);
  }
  if (!output.empty()) writeOutput(output, [&] { saveNpy(output, vectors); });
  const size_t hidden = size_t(embedder.hidden());
  auto row = [&](size_t i) { return vectors.as<float>().subspan(i * hidden, hidden); };
  if (json) {
    Json out = document("embed"), list = Json::array();
    for (size_t i = 0; i < texts.size(); ++i) {
      Json vector = Json::array();
      for (float value : row(i)) vector.push_back(numberOrText(value));
      list.push_back({{"text", texts[i]}, {"tokens", ids[i].size()}, {"embedding", vector}});
    }
    out["size"] = hidden;
    out["texts"] = list;
    printJson(out);
  } else if (output.empty()) {
    // A JSON list a line, which other tools read as it is.
    for (size_t i = 0; i < texts.size(); ++i) fmt::print("[{}]\n", fmt::join(row(i), ","));
  }
  return kOk;
}

}  // namespace lathe::cli
