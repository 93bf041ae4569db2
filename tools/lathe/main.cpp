// SPDX-License-Identifier: Apache-2.0
// The `lathe` command: picks the verb.
#include <algorithm>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/describe.h"
#include "tools/lathe/exit_status.h"
#include "tools/lathe/nearest.h"
#include "tools/lathe/verbs.h"

namespace lathe::cli {
namespace {

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> list{
      {"inspect", "show entry points, sizes, weights and the IR of a model", inspectVerb},
      {"compile", "write a model as a .lathe program", compileVerb},
      {"run", "run an entry point on named inputs", runVerb},
      {"generate", "continue a text", generateVerb},
      {"chat", "talk with a language model", chatVerb},
      {"serve", "answer OpenAI's routes for completions, chats and embeddings", serveVerb},
      {"embed", "turn texts into vectors", embedVerb},
      {"tokenize", "show a text's token ids, or the text of ids", tokenizeVerb},
      {"bench", "measure prefill and decode against the machine's limits", benchVerb},
      {"explain", "predict work, memory and time at given sizes without running", explainVerb},
      {"bisect", "name the rewrite that made a result wrong, and write a reproducer", bisectVerb},
      {"why-not", "say why ops were not fused", whyNotVerb},
      {"diff", "compare two graphs op by op", diffVerb},
      {"selftest", "test and measure each backend's ops on this machine", selftestVerb},
      {"tune", "write the candidates of a model's CUDA kernels, to measure on a GPU", tuneVerb},
      {"env", "describe this machine and this build", envVerb},
  };
  return list;
}

void printHelp() {
  fmt::print("Lathe compiles transformers and runs them.\n\nUsage: lathe VERB [ARGUMENTS]\n\n");
  for (const Verb& verb : verbs()) fmt::print("  {:<10}{}\n", verb.name, verb.summary);
  fmt::print(
      "\n  --help     print this help; `lathe VERB --help` has each verb's flags\n"
      "  --version  print the version\n\n"
      "MODEL is a Hugging Face folder, a .gguf, .onnx or .mlir file or a .lathe program.\n"
      "Data goes to standard output, all else to standard error. Exit status: 0 done, 1 failed,\n"
      "2 usage, 3 bad input file, 4 unsupported, 5 numeric mismatch, 6 out of memory,\n"
      "70 internal error.\n\n"
      "Example:\n  lathe generate examples/models/stories -p \"Once upon a time\" -n 100\n");
}

int dispatch(const ArgumentList& arguments) {
  // Flags that all verbs have may come first; they go to the verb.
  static const std::vector<std::string> common{"-q", "--quiet", "-v", "--verbose"};
  ArgumentList leading;
  size_t at = 0;
  for (; at < arguments.size() && arguments[at].starts_with('-'); ++at) {
    const std::string& word = arguments[at];
    if (word == "-h" || word == "--help") return printHelp(), kOk;
    if (word == "--version") return fmt::print("lathe {}\n", LATHE_VERSION), kOk;
    bool isCommon = std::find(common.begin(), common.end(), word) != common.end();
    if (!isCommon && !word.starts_with("--color")) {
      static const std::vector<std::string> flags{"--help", "--version", "--color", "--quiet",
                                                  "--verbose"};
      throw Error(ErrorCode::InvalidArgument, "unknown flag '" + word + "'" +
                                                  didYouMean(word, flags) +
                                                  "; the verb comes first, see `lathe --help`");
    }
    leading.push_back(word);
    if (word == "--color" && at + 1 < arguments.size()) leading.push_back(arguments[++at]);
  }
  if (at == arguments.size())
    throw Error(ErrorCode::InvalidArgument, "expected a verb; see `lathe --help`");
  const std::string& name = arguments[at];
  const bool asksForHelp =
      name == "help" && at + 1 < arguments.size() && arguments[at + 1] != "help";
  if (name == "help" && !asksForHelp) return printHelp(), kOk;
  if (name == "describe") return describeCommand(verbs(), arguments, at + 1);
  const std::string& wanted = asksForHelp ? arguments[at + 1] : name;
  for (const Verb& verb : verbs()) {
    if (verb.name != wanted) continue;
    if (asksForHelp) return verb.run({"--help"});
    leading.insert(leading.end(), arguments.begin() + ptrdiff_t(at) + 1, arguments.end());
    return verb.run(leading);
  }
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.push_back(verb.name);
  std::string hint = didYouMean(wanted, names);
  throw Error(ErrorCode::InvalidArgument,
              "unknown verb '" + wanted + "'" + (hint.empty() ? "; see `lathe --help`" : hint));
}

}  // namespace
}  // namespace lathe::cli

int main(int argc, char** argv) {
  const lathe::cli::ArgumentList arguments(argv + 1, argv + argc);
  return lathe::cli::guarded([&] { return lathe::cli::dispatch(arguments); },
                             std::ranges::find(arguments, "--json") != arguments.end());
}
