// SPDX-License-Identifier: Apache-2.0
// lathe generate: continues a text, token by token.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/sampler.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/prompt.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

constexpr int64_t kDefaultNewTokens = 128;

struct GenerateFlags {
  std::string path;
  PromptFlags prompt;
  bool ignoreEos = false, json = false;
  std::optional<int64_t> newTokens, topK;
  std::optional<double> temperature, topP;
  uint64_t seed = 0;
};

// A flag wins over generation_config.json, whose sampling counts only where it asks to sample.
SamplingOptions samplingOf(const GenerateFlags& flags, const GenerationConfig& config) {
  const bool sample = config.doSample.value_or(false);
  SamplingOptions options;
  options.seed = flags.seed;
  options.temperature = flags.temperature.value_or(sample ? config.temperature.value_or(1) : 0);
  options.topK = flags.topK.value_or(sample ? config.topK.value_or(0) : 0);
  options.topP = flags.topP.value_or(sample ? config.topP.value_or(1) : 1);
  return options;
}

struct Result {
  std::vector<int> ids;
  const char* stopped = "length";
  double firstToken = 0, decode = 0;  // seconds
  /// Steps after the first token: what `decode` took.
  double tokensPerSecond() const {
    return ids.size() > 1 && decode > 0 ? double(ids.size() - 1) / decode : 0;
  }
};

Result generate(Generator& generator, const Prompt& prompt, const SamplingOptions& sampling,
                const std::vector<int64_t>& eos, int64_t count, TokenWriter& writer) {
  Result result;
  Sampler sampler(sampling);
  const double start = steadySeconds();
  std::span<const float> logits;
  {
    Progress progress(fmt::format("reading {} tokens", prompt.ids.size()));
    logits = generator.prefill(prompt.ids);
  }
  double first = 0;
  while (true) {
    int id = int(sampler.sample(logits));
    if (result.ids.empty()) {
      first = steadySeconds();
      result.firstToken = first - start;
    }
    result.ids.push_back(id);
    if (std::find(eos.begin(), eos.end(), id) != eos.end()) {
      result.stopped = "eos";
      break;
    }
    writer.push(id);
    if (int64_t(result.ids.size()) == count) break;
    logits = generator.next(id);
  }
  result.decode = steadySeconds() - first;
  writer.finish();
  return result;
}

void addFlags(CLI::App& parser, GenerateFlags& flags) {
  parser.add_option("MODEL", flags.path, "Hugging Face folder or .lathe program")->required();
  addPromptFlags(parser, flags.prompt, "continue");
  parser.add_option("--ids", flags.prompt.ids, "token ids instead of text: 1,2,3")
      ->excludes(parser.get_option("--prompt"))
      ->excludes(parser.get_option("--file"))
      ->excludes(parser.get_option("--messages"));
  parser
      .add_option(
          "-n,--new-tokens", flags.newTokens,
          fmt::format("tokens to add at most (default: the model's, else {})", kDefaultNewTokens))
      ->check(WholeNumber{1});
  parser
      .add_option("--temp,--temperature", flags.temperature,
                  "0 takes the likeliest token (default unless the model asks to sample)")
      ->check(RealNumber{});
  parser.add_option("--top-k", flags.topK, "keep the k likeliest tokens; 0 keeps all")
      ->check(WholeNumber{0});
  parser.add_option("--top-p", flags.topP, "keep the fewest tokens that reach this probability")
      ->check(RealNumber{0, 1});
  parser.add_option("--seed", flags.seed, "of the random draws (default: 0)");
  parser.add_flag("--ignore-eos", flags.ignoreEos, "go on after the end-of-text token");
  parser.add_flag("--json", flags.json, "print one JSON document at the end instead of text");
}

void report(const GenerateFlags& flags, const Prompt& prompt, const Result& result,
            const TokenWriter& writer, bool hasTokenizer) {
  if (!flags.json) {
    console().echo(
        fmt::format("[{} + {} tokens, stopped by {}; first after {:.0f} ms, then {:.1f} "
                    "tokens/s]\n",
                    prompt.ids.size(), result.ids.size(), result.stopped, result.firstToken * 1e3,
                    result.tokensPerSecond()));
    return;
  }
  Json out = document("generate");
  out["prompt_ids"] = prompt.ids;
  out["ids"] = result.ids;
  out["text"] = hasTokenizer ? Json(writer.text()) : Json(nullptr);
  out["stopped_by"] = result.stopped;
  out["seed"] = flags.seed;
  out["time_to_first_token_s"] = result.firstToken;
  out["decode_s"] = result.decode;
  out["tokens_per_second"] = result.tokensPerSecond();
  printJson(out);
}

}  // namespace

int generateVerb(const ArgumentList& arguments) {
  auto parser = makeParser("generate", "Continues a text with a language model.",
                           "lathe generate examples/models/stories -p \"Once upon a time\" -n 100");
  GenerateFlags flags;
  CompileFlags compileFlags;
  SessionFlags sessionFlags;
  addFlags(*parser, flags);
  addDType(*parser, compileFlags.dtype);
  addPipelineFlags(*parser, compileFlags);
  addBackend(*parser, compileFlags.backend);
  parser->add_option("--weights", sessionFlags.weights, ".safetensors file or folder of weights");
  addThreads(*parser, sessionFlags.threads);
  addDevice(*parser, sessionFlags.device);
  if (!parseArguments(*parser, arguments)) return kOk;
  finishPromptFlags(*parser, flags.prompt);
  if (!flags.prompt.isGiven())
    throw Error(ErrorCode::InvalidArgument,
                "expected a prompt: -p TEXT, -f FILE, --messages FILE or --ids 1,2,3; see `lathe "
                "generate --help`");

  Model model = openModel(flags.path);
  if (model.kind == ModelKind::Mlir)
    throw Error(ErrorCode::InvalidArgument,
                flags.path +
                    ": IR text has no tokenizer and no end-of-text token; give a Hugging "
                    "Face folder or a program compiled from one");
  const ModelConfig config = configOf(model);
  const GenerationConfig generation = generationConfigOf(model);
  const std::optional<Tokenizer> tokenizer = tokenizerOf(model);
  const Prompt prompt = readPrompt(flags.prompt, model, tokenizer, config.vocabSize);
  const SamplingOptions sampling = samplingOf(flags, generation);
  Sampler checked(sampling);  // bad options are told before anything is compiled

  auto positionsFor = [&](int64_t maxPositions) {
    const int64_t length = int64_t(prompt.ids.size());
    if (length > maxPositions)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("the prompt has {} tokens, the model takes at most {} positions",
                              length, maxPositions));
    return maxPositions - length + 1;  // the last token is not fed back
  };
  positionsFor(maxPositionsOf(config));
  std::shared_ptr<const Program> program = programOf(model, compileFlags);
  Session session = openSession(model, program, sessionFlags);
  Generator generator(session, {config.vocabSize, maxPositionsOf(config)});
  const int64_t wanted =
      flags.newTokens.value_or(generation.maxNewTokens.value_or(kDefaultNewTokens));
  const int64_t room = positionsFor(generator.maxPositions());
  const int64_t count = std::min(wanted, room);
  generator.reserve(int64_t(prompt.ids.size()) + count - 1);

  std::vector<int64_t> eos = generation.eosIds.empty() ? config.eosIds : generation.eosIds;
  if (flags.ignoreEos) eos.clear();
  if (!flags.json) console().echo(prompt.text);
  TokenWriter writer(tokenizer, !flags.json);
  Result result = generate(generator, prompt, sampling, eos, count, writer);
  if (count < wanted && int64_t(result.ids.size()) == count && result.stopped[0] == 'l')
    result.stopped = "positions";
  report(flags, prompt, result, writer, tokenizer.has_value());
  return kOk;
}

}  // namespace lathe::cli
