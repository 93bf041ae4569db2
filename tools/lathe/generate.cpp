// SPDX-License-Identifier: Apache-2.0
// lathe generate: continues a text, token by token.
#include <algorithm>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/text_generation.h"
#include "tools/lathe/console.h"
#include "tools/lathe/generate_many.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/prompt.h"
#include "tools/lathe/prompt_reader.h"
#include "tools/lathe/rank_launcher.h"
#include "tools/lathe/ranks.h"
#include "tools/lathe/sampling_flags.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

constexpr int64_t kDefaultNewTokens = 128;

struct GenerateFlags {
  std::string path;
  PromptFlags prompt;
  SamplingFlags sampling;
  ConstraintFlags constraint;
  bool ignoreEos = false, json = false;
  std::optional<int64_t> newTokens, logProbabilities;
  std::vector<std::string> stopTexts;
  int64_t speculate = 0, beams = 0;
  double lengthPenalty = 1;
  std::string draft, batch, saveCache, loadCache;
};

// Another model, with a session of its own.
struct DraftModel {
  DraftModel(const Model& model, const CompileFlags& compileFlags, const SessionFlags& flags)
      : config(configOf(model)),
        session(openSession(model, programOf(model, compileFlags), flags)),
        generator(session, {config.vocabSize, maxPositionsOf(config)}) {}

  ModelConfig config;
  Session session;
  Generator generator;
};

struct Timing {
  double firstToken = 0, decode = 0;  // seconds
};

TextGeneration generate(Generator& generator, PromptReader& reader,
                        const std::optional<Tokenizer>& tokenizer, const Prompt& prompt,
                        TextGenerationOptions options, TokenWriter& writer, Timing& timing) {
  const double start = steadySeconds();
  double first = 0;
  auto progress = std::make_unique<Progress>(fmt::format("reading {} tokens", prompt.ids.size()));
  options.onToken = [&](const GenerationEvent& event) {
    progress.reset();
    if (first == 0) timing.firstToken = (first = steadySeconds()) - start;
    std::optional<int> id;
    if (event.token && std::ranges::find(options.endIds, event.token->id) == options.endIds.end())
      id = event.token->id;
    writer.push(id, event.text);
    return true;
  };
  const std::vector<int> continued = reader.read({&prompt.ids, 1}).front();
  TextGeneration result = generateText(generator, tokenizer, continued, options);
  timing.decode = steadySeconds() - first;
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
  addSamplingFlags(parser, flags.sampling);
  parser.add_option("--stop", flags.stopTexts, "end in front of this text; may be given again")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        return text.empty() ? "expected a text to end in front of, got an empty one" : "";
      });
  parser
      .add_option("--logprobs", flags.logProbabilities,
                  "with --json: logarithms of probabilities, and those of the K likeliest tokens")
      ->check(WholeNumber{0, 1000});
  parser
      .add_option("--speculate", flags.speculate,
                  "guess so many tokens at a time and check them together; the same text")
      ->check(WholeNumber{1, 64});
  parser
      .add_option("--draft", flags.draft,
                  "a smaller model that guesses (default: what the text has had before)")
      ->needs(parser.get_option("--speculate"));
  parser.add_option("--batch", flags.batch, "continue each line of a file, several at a time")
      ->excludes(parser.get_option("--speculate"));
  parser
      .add_option("--save-cache", flags.saveCache,
                  "write what the model keeps of the text, for --load-cache")
      ->check(OutputFile{});
  parser.add_option("--load-cache", flags.loadCache,
                    "what --save-cache wrote; the prompt is read from where it differs");
  for (const char* cache : {"--save-cache", "--load-cache"})
    parser.get_option(cache)->excludes(parser.get_option("--batch"));
  auto* beams =
      parser.add_option("--beams", flags.beams, "search for the likeliest text with so many beams")
          ->check(WholeNumber{1, 64});
  for (const char* other : {"--speculate", "--batch", "--temp", "--top-k", "--top-p", "--min-p",
                            "--repetition-penalty", "--presence-penalty", "--frequency-penalty",
                            "--stop", "--logprobs", "--save-cache", "--load-cache"})
    beams->excludes(parser.get_option(other));
  parser
      .add_option("--length-penalty", flags.lengthPenalty,
                  "beams: above 0 favours long texts (default: 1)")
      ->check(RealNumber{-100, 100})
      ->needs(beams);
  addConstraintFlags(parser, flags.constraint);
  for (const char* constraint : {"--json-schema", "--regex"})
    beams->excludes(parser.get_option(constraint));
  parser.add_flag("--ignore-eos", flags.ignoreEos, "go on after the end-of-text token");
  auto* json =
      parser.add_flag("--json", flags.json, "print one JSON document at the end instead of text");
  parser.get_option("--logprobs")->needs(json)->excludes(parser.get_option("--batch"));
}

Json logProbabilitiesOf(const TextGeneration& result) {
  Json list = Json::array();
  for (const GeneratedToken& token : result.tokens) {
    Json likeliest = Json::array();
    for (const Choice& choice : token.likeliest)
      likeliest.push_back({{"id", choice.id}, {"logprob", choice.probability}});
    list.push_back({{"id", token.id}, {"logprob", token.logProbability}, {"likeliest", likeliest}});
  }
  return list;
}

void report(const GenerateFlags& flags, const Prompt& prompt, const TextGeneration& result,
            const Timing& timing, bool hasTokenizer) {
  // Steps after the first token: what `decode` took.
  const size_t count = result.tokens.size();
  const double rate = count > 1 && timing.decode > 0 ? double(count - 1) / timing.decode : 0;
  if (!flags.json) {
    const std::string guesses =
        flags.speculate ? fmt::format("; {} of {} guesses taken", result.accepted, result.drafted)
                        : "";
    console().echo(fmt::format(
        "[{} + {} tokens, stopped by {}; first after {:.0f} ms, then {:.1f} "
        "tokens/s{}]\n",
        prompt.ids.size(), count, nameOf(result.stopped), timing.firstToken * 1e3, rate, guesses));
    return;
  }
  Json out = document("generate");
  out["prompt_ids"] = prompt.ids;
  out["ids"] = result.ids();
  out["text"] = hasTokenizer ? Json(result.text) : Json(nullptr);
  out["stopped_by"] = nameOf(result.stopped);
  out["seed"] = flags.sampling.seed;
  if (flags.logProbabilities) out["logprobs"] = logProbabilitiesOf(result);
  if (flags.speculate) {
    out["drafted"] = result.drafted;
    out["accepted"] = result.accepted;
  }
  out["time_to_first_token_s"] = timing.firstToken;
  out["decode_s"] = timing.decode;
  out["tokens_per_second"] = rate;
  printJson(out);
}

// What is added unless the user says. A model may bound the whole text: of what it continues, or of
// what it writes behind its first token.
int64_t usualNewTokens(const GenerationConfig& generation, const Prompt& prompt,
                       const PromptReader& reader) {
  if (generation.maxNewTokens) return *generation.maxNewTokens;
  if (!generation.maxLength) return kDefaultNewTokens;
  if (reader.isRewriting()) return std::max<int64_t>(1, *generation.maxLength - 1);
  return std::clamp<int64_t>(*generation.maxLength - int64_t(prompt.ids.size()), 1,
                             kDefaultNewTokens);
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
  addRanks(*parser, compileFlags.compile.pipeline.mesh);
  addRankThreads(*parser, sessionFlags.rankThreads);
  addBackend(*parser, compileFlags.compile.backend);
  parser->add_option("--weights", sessionFlags.weights,
                     ".safetensors or .gguf file or folder of weights");
  addThreads(*parser, sessionFlags.threads);
  addDevice(*parser, sessionFlags.device);
  if (!parseArguments(*parser, arguments)) return kOk;
  if (compileFlags.compile.pipeline.mesh.ranks > 1 && !(flags.saveCache + flags.loadCache).empty())
    throw Error(ErrorCode::Unsupported,
                "--save-cache and --load-cache: each of several ranks has its own piece of the "
                "cache; leave out --ranks");
  becomeLauncher(compileFlags.compile.pipeline.mesh.ranks, sessionFlags.rankThreads);
  finishPromptFlags(*parser, flags.prompt);
  if (!flags.prompt.isGiven() && flags.batch.empty())
    throw Error(ErrorCode::InvalidArgument,
                "expected a prompt: -p TEXT, -f FILE, --messages FILE or --ids 1,2,3; see `lathe "
                "generate --help`");
  if (flags.prompt.isGiven() && !flags.batch.empty())
    throw Error(ErrorCode::InvalidArgument,
                "--batch takes its prompts from the file; leave out -p, -f, --messages and --ids");

  Model model = openModel(flags.path, compileFlags.loras);
  if (model.kind == ModelKind::Mlir || model.kind == ModelKind::Onnx)
    throw Error(
        ErrorCode::InvalidArgument,
        flags.path +
            ": a file of IR or ONNX has no tokenizer and no end-of-text token; give a Hugging "
            "Face folder or a program compiled from one");
  const ModelConfig config = configOf(model);
  const GenerationConfig generation = generationConfigOf(model);
  const std::optional<Tokenizer> tokenizer = tokenizerOf(model);
  const Prompt prompt =
      flags.batch.empty() ? readPrompt(flags.prompt, model, tokenizer, config.vocabSize) : Prompt();
  const SamplingOptions sampling = samplingOf(flags.sampling, generation);
  Sampler checked(sampling);  // bad options are told before anything is compiled

  if (int64_t(prompt.ids.size()) > maxPositionsOf(config))
    throw Error(ErrorCode::InvalidArgument,
                fmt::format("the prompt has {} tokens, the model takes at most {} positions",
                            prompt.ids.size(), maxPositionsOf(config)));
  compileFlags.family.verify = flags.speculate > 0;
  // A GPU would wait for the host at each token. Several ranks do without.
  compileFlags.family.greedy =
      backendOf(compileFlags) == "cuda" && compileFlags.compile.pipeline.mesh.ranks <= 1 &&
      flags.speculate == 0 && flags.beams == 0 && flags.batch.empty() && checked.isPlainGreedy() &&
      !flags.logProbabilities && flags.constraint.schemaFile.empty() &&
      flags.constraint.regex.empty();
  Session session = openSession(model, programOf(model, compileFlags), sessionFlags);
  const GeneratorLimits limits{config.targetVocabSize, maxPositionsOf(config)};
  PromptReader reader(session, config, generation);
  if (reader.isRewriting() && !(flags.saveCache + flags.loadCache + flags.draft).empty())
    throw Error(ErrorCode::InvalidArgument,
                flags.path +
                    " reads a text and writes another: it takes no --save-cache, --load-cache and "
                    "--draft");
  TextGenerationOptions options;
  options.newTokens = flags.newTokens.value_or(usualNewTokens(generation, prompt, reader));
  options.sampling = sampling;
  if (!flags.ignoreEos)
    options.endIds = generation.eosIds.empty() ? config.eosIds : generation.eosIds;
  options.stopTexts =
      flags.stopTexts.empty() && tokenizer ? generation.stopStrings : flags.stopTexts;
  options.logProbabilities = flags.logProbabilities;
  options.draftTokens = flags.speculate;
  options.constraint = constraintOf(flags.constraint, model, tokenizer);

  if (!flags.batch.empty() || flags.beams) {
    BatchGenerator generator(session, limits);
    if (flags.beams)
      generateBeams(generator, reader, prompt, tokenizer,
                    {.beams = flags.beams,
                     .newTokens = options.newTokens,
                     .lengthPenalty = flags.lengthPenalty,
                     .endIds = options.endIds,
                     .excluded = generation.excludedIds},
                    flags.json);
    else
      generateBatch(generator, reader, flags.batch, flags.prompt, model, tokenizer, options,
                    flags.json);
    return kOk;
  }

  std::optional<DraftModel> draft;
  std::unique_ptr<Drafter> drafter;
  if (!flags.draft.empty()) {
    const Model draftModel = openModel(flags.draft);
    compileFlags.family.verify = compileFlags.family.greedy = false;
    sessionFlags.weights.clear();
    compileFlags.compile.pipeline.mesh = {.ranks = 1};  // it is small: rank 0 runs it alone
    draft.emplace(draftModel, compileFlags, sessionFlags);
    if (draft->config.vocabSize != config.vocabSize)
      throw Error(ErrorCode::InvalidArgument,
                  fmt::format("--draft: expected a model with the vocabulary of {} tokens that {} "
                              "has, {} has {}",
                              config.vocabSize, flags.path, flags.draft, draft->config.vocabSize));
    drafter = std::make_unique<ModelDrafter>(draft->generator, sampling);
  } else if (flags.speculate) {
    drafter = std::make_unique<NgramDrafter>();
  }
  options.drafter = drafter.get();

  Generator generator(session, limits);
  if (flags.speculate) generator.requireVerify();
  if (!flags.loadCache.empty()) {
    const int64_t wanted = int64_t(prompt.ids.size()) + options.newTokens;
    generator.loadCache(flags.loadCache, std::min(wanted, generator.maxPositions()));
    options.resume = true;
  }
  if (!flags.json) console().echo(prompt.text);
  TokenWriter writer(tokenizer.has_value(), !flags.json);
  Timing timing;
  const TextGeneration result =
      generate(generator, reader, tokenizer, prompt, options, writer, timing);
  report(flags, prompt, result, timing, tokenizer.has_value());
  if (!flags.saveCache.empty()) generator.saveCache(flags.saveCache);
  return kOk;
}

}  // namespace lathe::cli
