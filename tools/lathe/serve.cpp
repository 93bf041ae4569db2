// SPDX-License-Identifier: Apache-2.0
// lathe serve: a model behind OpenAI's routes. HTTP is in liblathe_serve.so.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/generator.h"
#include "lathe/runtime/kv_slots.h"
#include "runtime/mapped_file.h"
#include "tools/lathe/compiler_library.h"
#include "tools/lathe/console.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/prompt.h"
#include "tools/lathe/prompt_reader.h"
#include "tools/lathe/rank_launcher.h"
#include "tools/lathe/ranks.h"
#include "tools/lathe/sampling_flags.h"
#include "tools/lathe/shared_library.h"
#include "tools/lathe/verbs.h"
#include "tools/serve/serve_api.h"

namespace lathe::cli {
namespace {

constexpr int64_t kDefaultSlots = 8, kDefaultContext = 4096, kDefaultBlock = 32;

struct ServeFlags {
  std::string path, name, keyFile, keyVariable;
  int64_t slots = kDefaultSlots, waiting = 256, context = 0, cacheTokens = 0, chunk = 64;
  int64_t port = 8080;
  std::optional<int64_t> cacheBlock;
  serve::Options options;
};

void addFlags(CLI::App& parser, ServeFlags& flags) {
  serve::Limits& limits = flags.options.limits;
  parser.add_option("MODEL", flags.path, "Hugging Face folder or .lathe program")->required();
  parser.add_option("--host", flags.options.host,
                    "address to listen on (default: 127.0.0.1, this machine alone)");
  parser.add_option("--port", flags.port, "port (default: 8080); 0 takes a free one")
      ->check(WholeNumber{0, 65535});
  parser.add_option("--name", flags.name,
                    "what requests call the model (default: its folder's name)");
  auto* file = parser.add_option("--api-key-file", flags.keyFile,
                                 "file with a key that requests must bring");
  parser.add_option("--api-key-env", flags.keyVariable, "environment variable with that key")
      ->excludes(file);
  parser
      .add_option("--slots", flags.slots,
                  fmt::format("texts that run at once (default: {})", kDefaultSlots))
      ->check(WholeNumber{1, 4096});
  parser
      .add_option(
          "--context", flags.context,
          fmt::format("tokens of a text, its prompt included (default: the model's, at most {})",
                      kDefaultContext))
      ->check(WholeNumber{1});
  parser
      .add_option("--cache-block", flags.cacheBlock,
                  fmt::format("tokens of a block of the cache, which texts share (default: {}, on "
                              "cuda 0); 0: a row for each slot",
                              kDefaultBlock))
      ->check(WholeNumber{0, kMostBlockTokens});
  parser
      .add_option("--cache-tokens", flags.cacheTokens,
                  "tokens that a cache in blocks holds, those that texts share once (default: "
                  "what all slots can fill)")
      ->check(WholeNumber{1});
  parser
      .add_option("--queue", flags.waiting,
                  "texts that may wait for a slot (default: 256), of one client no more "
                  "than places are free")
      ->check(WholeNumber{1, 1'000'000});
  parser
      .add_option(
          "--chunk", flags.chunk,
          "tokens of a prompt that are read between two tokens of running texts (default: 64)")
      ->check(WholeNumber{1, 65536});
  parser
      .add_option("--max-tokens", limits.newTokens,
                  "tokens that a request may ask for (default: 4096)")
      ->check(WholeNumber{1});
  parser.add_option("--max-body", limits.bodyBytes, "bytes of a request's body (default: 8 MiB)")
      ->check(WholeNumber{1, int64_t(1) << 32});
  parser.add_option("--max-connections", limits.connections, "connections at once (default: 256)")
      ->check(WholeNumber{1, 900});
  parser.add_option("--timeout", limits.requestSeconds, "seconds of a request (default: 600)")
      ->check(RealNumber{0.1, 1e6});
  parser
      .add_option("--stop-timeout", limits.stopSeconds,
                  "seconds that running texts have after SIGTERM or SIGINT (default: 30)")
      ->check(RealNumber{0, 1e6});
}

std::string keyOf(const ServeFlags& flags) {
  std::string key;
  if (!flags.keyVariable.empty()) {
    const char* value = std::getenv(flags.keyVariable.c_str());
    key = value ? value : "";
  } else if (!flags.keyFile.empty()) {
    key = readWholeFile(flags.keyFile, kPromptFile);
    while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) key.pop_back();
  } else {
    return "";
  }
  if (key.empty())
    throw Error(ErrorCode::InvalidArgument,
                "expected a key, got an empty one; see --api-key-file and --api-key-env");
  return key;
}

std::string nameOf(const Model& model) {
  const std::filesystem::path path = std::filesystem::weakly_canonical(model.path);
  return path.extension() == ".lathe" ? path.stem().string() : path.filename().string();
}

bool hasEntry(const Program& program, std::string_view name) {
  return std::ranges::find(program.entries, name, &EntryPoint::name) != program.entries.end();
}

std::unique_ptr<KvSlots> blockSlots(const ServeFlags& flags, Session& session,
                                    const GeneratorLimits& limits, int64_t slots,
                                    int64_t positions) {
  const int64_t most = slots * positions;
  const bool isMore = flags.cacheTokens > most;
  if (isMore)
    console().note(
        fmt::format("--cache-tokens: {} texts of {} tokens fill {}, the cache holds no more than "
                    "they do; see --slots and --context",
                    slots, positions, most));
  auto made = pagedSlots(session, limits, slots, positions, isMore ? 0 : flags.cacheTokens);
  if (made->positions() < positions)
    console().note(
        fmt::format("--cache-tokens: a text has at most {} tokens, which is all that the cache "
                    "holds, instead of {}",
                    made->positions(), positions));
  return made;
}

std::unique_ptr<KvSlots> slotsOf(const ServeFlags& flags, Session& session,
                                 const GeneratorLimits& limits, int64_t slots, int64_t positions) {
  if (hasPagedCache(session.program())) return blockSlots(flags, session, limits, slots, positions);
  if (flags.cacheTokens)
    throw Error(ErrorCode::InvalidArgument,
                "--cache-tokens is of a cache in blocks, this one has a row for each slot; give "
                "--slots and --context, or --cache-block where the model is compiled here");
  return contiguousSlots(session, limits, slots, positions);
}

// Of decoders that are compiled here: nothing else has a cache in blocks.
int64_t usualBlock(const Model& model, const ModelConfig& config, const CompileFlags& flags) {
  const bool isCompiled = model.kind == ModelKind::Artifact || model.kind == ModelKind::Mlir ||
                          model.kind == ModelKind::Onnx;
  if (isCompiled || backendOf(flags) == "cuda") return 0;
  return compiler().isDecoder(config.architecture) ? std::min(kDefaultBlock, maxPositionsOf(config))
                                                   : 0;
}

// Fills in what a language model has; the engine is the caller's to keep.
std::unique_ptr<BatchEngine> startEngine(const ServeFlags& flags, const Model& model,
                                         const ModelConfig& config, Session& session,
                                         serve::Model& served) {
  if (!served.tokenizer) throw missingTokenizer(model);
  refuseRewriting(session.program(), model.path, "lathe serve");
  const GenerationConfig generation = generationConfigOf(model);
  served.endIds = generation.eosIds.empty() ? config.eosIds : generation.eosIds;
  served.stopTexts = generation.stopStrings;
  served.newTokens = generation.maxNewTokens;
  served.sampling = samplingOf({}, generation);
  const Tokenizer tokenizer = *served.tokenizer;
  served.encodeText = [tokenizer](const std::string& text) { return tokenizer.encode(text); };
  if (const auto chat = chatTemplateOf(model))
    served.encodeMessages = [chat = *chat, tokenizer](const std::string& messages) {
      return encodeMessages(chat, messages, tokenizer);
    };
  const GeneratorLimits limits{config.vocabSize, maxPositionsOf(config)};
  const KvLimits largest = kvLimits(session, limits);
  const int64_t most = largest.positions;
  if (flags.context > most)
    throw Error(
        ErrorCode::InvalidArgument,
        fmt::format("--context: the model takes at most {} tokens, got {}", most, flags.context));
  const int64_t positions = flags.context ? flags.context : std::min(most, kDefaultContext);
  const int64_t slots = std::min(flags.slots, largest.slots);
  if (slots < flags.slots)
    console().note(fmt::format("the program runs at most {} texts at once", slots));
  return std::make_unique<BatchEngine>(slotsOf(flags, session, limits, slots, positions), tokenizer,
                                       BatchEngineOptions{flags.waiting, flags.chunk});
}

}  // namespace

int serveVerb(const ArgumentList& arguments) {
  auto parser =
      makeParser("serve",
                 "Answers OpenAI's routes (/v1/chat/completions, /v1/completions, /v1/embeddings, "
                 "/v1/models) and a chat page at / on this machine.",
                 "lathe serve examples/models/stories --port 8080");
  ServeFlags flags;
  CompileFlags compileFlags;
  SessionFlags sessionFlags;
  addFlags(*parser, flags);
  addDType(*parser, compileFlags.dtype);
  addPipelineFlags(*parser, compileFlags);
  addRanks(*parser, compileFlags.compile.pipeline.mesh);
  addRankThreads(*parser, sessionFlags.rankThreads);
  addBackend(*parser, compileFlags.compile.backend);
  parser->add_option("--weights", sessionFlags.weights, ".safetensors file or folder of weights");
  parser->add_flag("--random-weights", sessionFlags.randomWeights,
                   "made-up weights, to measure with");
  addThreads(*parser, sessionFlags.threads);
  addDevice(*parser, sessionFlags.device);
  if (!parseArguments(*parser, arguments)) return kOk;
  sessionFlags.stopsInOrder = true;
  becomeLauncher(compileFlags.compile.pipeline.mesh.ranks, sessionFlags.rankThreads, true);
  flags.options.port = int(flags.port);
  flags.options.apiKey = keyOf(flags);
  // No more than may wait of one who asks alone: more would be refused for ever.
  flags.options.limits.choices = std::min(flags.options.limits.choices, (flags.waiting + 2) / 3);
  compileFlags.randomWeights = sessionFlags.randomWeights;

  const Model model = openModel(flags.path);
  const ModelConfig config = configOf(model);
  if (flags.cacheBlock && model.program)
    throw Error(ErrorCode::InvalidArgument,
                "--cache-block: " + flags.path + " is a compiled program, whose cache is as it is");
  compileFlags.family.cacheBlock =
      flags.cacheBlock.value_or(usualBlock(model, config, compileFlags));

  const LoadedSymbol loaded = loadSymbol("liblathe_serve.so", serve::kServeSymbol);
  if (!loaded.address)
    throw Error(ErrorCode::Unsupported,
                "serve needs its HTTP library, which could not be loaded (" + loaded.reason +
                    "); install liblathe_serve.so beside liblathe.so, or build it: "
                    "scripts/build release lathe_serve");
  serve::Model served;
  served.name = flags.name.empty() ? nameOf(model) : flags.name;
  served.tokenizer = tokenizerOf(model);
  Session session = openSession(model, programOf(model, compileFlags), sessionFlags);
  std::unique_ptr<BatchEngine> engine;
  std::optional<TextEmbedder> embedder;
  if (hasEntry(session.program(), "embed") && served.tokenizer) {
    embedder.emplace(session, *served.tokenizer, maxPositionsOf(config), config.padId.value_or(0));
    served.embedder = &*embedder;
  } else {
    engine = startEngine(flags, model, config, session, served);
    served.engine = engine.get();
  }
  const bool isLocal = flags.options.host.starts_with("127.") ||
                       flags.options.host == "localhost" || flags.options.host == "::1";
  if (!isLocal && flags.options.apiKey.empty())
    console().note("whoever reaches " + flags.options.host +
                   " can use this server: there is no key (--api-key-file) and no encryption");
  flags.options.onListening = [&](int port) {
    const std::string host = flags.options.host.find(':') == std::string::npos
                                 ? flags.options.host
                                 : "[" + flags.options.host + "]";
    fmt::print("{} at http://{}:{}\n", served.name, host, port);
    flushOutput();
  };
  reinterpret_cast<serve::ServeFunction>(loaded.address)(served, flags.options);
  return kOk;
}

}  // namespace lathe::cli
