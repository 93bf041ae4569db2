// SPDX-License-Identifier: Apache-2.0
// lathe chat: a conversation, turn by turn.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "lathe/runtime/text_generation.h"
#include "tools/lathe/console.h"
#include "tools/lathe/json_output.h"
#include "tools/lathe/open_session.h"
#include "tools/lathe/prompt.h"
#include "tools/lathe/prompt_reader.h"
#include "tools/lathe/sampling_flags.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

constexpr int64_t kDefaultAnswerTokens = 512;
std::atomic<bool> interrupted{false};

// Ctrl-C ends the answer; without a restart of the call it ends the line that is being typed, too.
void catchInterrupts() {
  struct sigaction action{};
  action.sa_handler = [](int) { interrupted = true; };
  ::sigaction(SIGINT, &action, nullptr);
}

// A line of standard input; nothing at its end. Ctrl-C gives an empty line.
std::optional<std::string> readLine() {
  std::string line;
  while (true) {
    errno = 0;
    const int c = std::getc(stdin);
    if (c == '\n') return line;
    if (c != EOF) {
      line += char(c);
      continue;
    }
    std::clearerr(stdin);
    if (errno == EINTR && interrupted.exchange(false)) return std::string();
    if (errno == EINTR) continue;
    return line.empty() ? std::nullopt : std::optional(line);
  }
}

class Conversation {
 public:
  Conversation(Generator& generator, const Tokenizer& tokenizer, const ChatTemplate& chat,
               TextGenerationOptions options, const std::string& system)
      : generator_(generator),
        tokenizer_(tokenizer),
        chat_(chat),
        options_(std::move(options)),
        system_(system) {
    clear();
  }

  void clear() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({"system", system_});
  }

  // Prints the answer as it comes. What the cache holds of the conversation is not read again.
  void say(const std::string& text) {
    messages_.push_back({"user", text});
    std::vector<int> prompt;
    try {
      prompt = encode();
    } catch (const Error&) {
      messages_.pop_back();
      throw;
    }
    interrupted = false;
    TextGenerationOptions options = options_;
    options.resume = true;
    options.onToken = [&](const GenerationEvent& event) {
      fmt::print("{}", event.text);
      flushOutput();
      return !interrupted.exchange(false);
    };
    try {
      const TextGeneration answer = generateText(generator_, tokenizer_, prompt, options);
      messages_.push_back({"assistant", answer.text});
      fmt::print("\n");
      flushOutput();
      if (answer.stopped == StopReason::Length || answer.stopped == StopReason::Positions)
        console().note(fmt::format("the answer was cut after {} tokens", answer.tokens.size()));
      if (answer.stopped == StopReason::Cancelled) console().note("stopped");
    } catch (const Error&) {
      messages_.pop_back();
      throw;
    }
    ++options_.sampling.seed;
  }

 private:
  std::vector<int> encode() const {
    Json list = Json::array();
    for (const ChatMessage& message : messages_)
      list.push_back({{"role", message.role}, {"content", message.content}});
    return encodeMessages(chat_, list.dump(-1, ' ', false, Json::error_handler_t::replace),
                          tokenizer_);
  }

  Generator& generator_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& chat_;
  TextGenerationOptions options_;
  std::string system_;
  std::vector<ChatMessage> messages_;
};

}  // namespace

int chatVerb(const ArgumentList& arguments) {
  auto parser =
      makeParser("chat",
                 "Talks with a language model that has a chat template. Ctrl-C stops an answer, "
                 "Ctrl-D leaves, /clear begins anew.",
                 "lathe chat MODEL --temp 0.7");
  std::string path, system;
  std::optional<int64_t> newTokens;
  SamplingFlags sampling;
  ConstraintFlags constraint;
  CompileFlags compileFlags;
  SessionFlags sessionFlags;
  parser->add_option("MODEL", path, "Hugging Face folder or .lathe program")->required();
  parser->add_option("--system", system, "what the system says before");
  parser
      ->add_option("-n,--new-tokens", newTokens,
                   fmt::format("tokens of an answer at most (default: the model's, else {})",
                               kDefaultAnswerTokens))
      ->check(WholeNumber{1});
  addSamplingFlags(*parser, sampling);
  addConstraintFlags(*parser, constraint);
  addDType(*parser, compileFlags.dtype);
  addPipelineFlags(*parser, compileFlags);
  addBackend(*parser, compileFlags.compile.backend);
  parser->add_option("--weights", sessionFlags.weights, ".safetensors file or folder of weights");
  addThreads(*parser, sessionFlags.threads);
  addDevice(*parser, sessionFlags.device);
  if (!parseArguments(*parser, arguments)) return kOk;

  const Model model = openModel(path);
  const ModelConfig config = configOf(model);
  const GenerationConfig generation = generationConfigOf(model);
  const std::optional<Tokenizer> tokenizer = tokenizerOf(model);
  if (!tokenizer) throw missingTokenizer(model);
  const std::optional<ChatTemplate> chat = chatTemplateOf(model);
  if (!chat)
    throw Error(ErrorCode::InvalidFile,
                path +
                    ": expected a model with a chat template, this one has none; "
                    "`lathe generate` continues texts");
  TextGenerationOptions options;
  options.newTokens = newTokens.value_or(generation.maxNewTokens.value_or(kDefaultAnswerTokens));
  options.sampling = samplingOf(sampling, generation);
  options.endIds = generation.eosIds.empty() ? config.eosIds : generation.eosIds;
  options.stopTexts = generation.stopStrings;
  options.constraint = constraintOf(constraint, model, tokenizer);
  Sampler checked(options.sampling);
  const auto program = programOf(model, compileFlags);
  refuseRewriting(*program, path, "lathe chat");
  Session session = openSession(model, program, sessionFlags);
  Generator generator(session, {config.vocabSize, maxPositionsOf(config)});
  Conversation conversation(generator, *tokenizer, *chat, std::move(options), system);

  catchInterrupts();
  const bool isTerminal = ::isatty(STDIN_FILENO);
  while (true) {
    if (isTerminal) console().echo("> ");
    const std::optional<std::string> line = readLine();
    if (!line) break;
    if (line->find_first_not_of(" \t\r") == line->npos) {
      if (isTerminal) console().echo("\n");
      continue;
    }
    if (*line == "/clear") {
      conversation.clear();
      continue;
    }
    try {
      conversation.say(*line);
    } catch (const Error& e) {
      // A mistake of one line, or a conversation that has become too long, leaves the others.
      if (!isTerminal) throw;
      console().error(e.what());
    }
  }
  if (isTerminal) console().echo("\n");
  return kOk;
}

}  // namespace lathe::cli
