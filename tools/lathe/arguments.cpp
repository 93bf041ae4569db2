// SPDX-License-Identifier: Apache-2.0
#include "tools/lathe/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "lathe/runtime/error.h"
#include "tools/lathe/console.h"
#include "tools/lathe/nearest.h"

namespace lathe::cli {
namespace {

Error usage(const std::string& message) { return Error(ErrorCode::InvalidArgument, message); }

std::vector<std::string> flagsOf(const CLI::App& parser) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : parser.get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  return flags;
}

// The first word that no option took; flags before stray values.
void rejectRemaining(const CLI::App& parser) {
  std::vector<std::string> rest = parser.remaining();
  if (rest.empty()) return;
  auto isFlag = [](const std::string& word) { return word.size() > 1 && word[0] == '-'; };
  auto flag = std::find_if(rest.begin(), rest.end(), isFlag);
  if (flag == rest.end())
    throw usage("unexpected argument '" + rest[0] + "'; see `" + parser.get_name() + " --help`");
  std::string word = flag->substr(0, flag->find('='));
  std::string hint = didYouMean(word, flagsOf(parser));
  throw usage("unknown flag '" + word + "'" +
              (hint.empty() ? "; see `" + parser.get_name() + " --help`" : hint));
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// A stage that is misspelt gets the nearest one, as flags do.
std::string checkWord(const std::string& word, const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), word) != words.end()) return {};
  return fmt::format("expected one of {}, got '{}'{}", fmt::join(words, ", "), word,
                     didYouMean(word, words));
}

// As CLI::IsMember shows its words; `lathe describe bash` completes them.
std::string choiceOf(const std::vector<std::string>& words) {
  return fmt::format("{{{}}}", fmt::join(words, ","));
}

}  // namespace

std::unique_ptr<CLI::App> makeParser(const std::string& verb, const std::string& summary,
                                     const std::string& example) {
  auto parser = std::make_unique<CLI::App>(summary, "lathe " + verb);
  parser->allow_extras();
  parser->set_help_flag("-h,--help", "print this help");
  parser->add_option("--color", "colour of messages: auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  parser->add_flag("-q,--quiet")->description("errors alone on standard error");
  parser->add_flag("-v,--verbose")->description("more on standard error");
  parser->footer("Example:\n  " + example);
  return parser;
}

static std::function<void(const CLI::App&)> parserReader;
void describeOnly(std::function<void(const CLI::App&)> reader) { parserReader = std::move(reader); }

bool parseArguments(CLI::App& parser, const ArgumentList& arguments) {
  if (parserReader) {
    parserReader(parser);
    throw DescribedOnly{};
  }
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  auto setUpConsole = [&] {
    const auto& color = parser.get_option("--color")->results();
    if (!color.empty())
      console().setColor(color.back() == "always"  ? ColorMode::Always
                         : color.back() == "never" ? ColorMode::Never
                                                   : ColorMode::Auto);
    int verbose = int(parser.get_option("--verbose")->count());
    console().setVerbosity(parser.get_option("--quiet")->count() ? -1 : verbose);
  };
  try {
    parser.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", parser.help());
    return false;
  } catch (const CLI::ParseError& e) {
    setUpConsole();
    rejectRemaining(parser);
    throw usage(oneLine(e.what()) + "; see `" + parser.get_name() + " --help`");
  }
  setUpConsole();
  rejectRemaining(parser);
  return true;
}

std::vector<int> parseIds(const std::string& text, const std::string& flag) {
  std::vector<int> ids;
  const char *at = text.data(), *end = at + text.size();
  while (true) {
    int id = 0;
    auto [next, code] = std::from_chars(at, end, id);
    if (code != std::errc() || (next != end && *next != ','))
      throw usage(fmt::format("{}: expected whole numbers separated by commas, got '{}' at item {}",
                              flag, text.substr(size_t(at - text.data()), 20), ids.size()));
    ids.push_back(id);
    if (next == end) return ids;
    at = next + 1;
  }
}

int64_t parseCount(const std::string& text, const std::string& flag, int64_t least) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [next, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || next != end || value < least)
    throw usage(
        fmt::format("{}: expected a whole number of at least {}, got '{}'", flag, least, text));
  return value;
}

std::map<std::string, int64_t, std::less<>> parseSizes(const std::vector<std::string>& texts,
                                                       const std::string& flag) {
  std::map<std::string, int64_t, std::less<>> sizes;
  for (const std::string& text : texts)
    for (size_t at = 0; at <= text.size();) {
      size_t comma = std::min(text.find(',', at), text.size());
      std::string item = text.substr(at, comma - at);
      size_t equals = item.find('=');
      if (equals == item.npos || equals == 0)
        throw usage(flag + ": expected SYMBOL=NUMBER separated by commas, got '" + item + "'");
      std::string name = item.substr(0, equals);
      int64_t value = parseCount(item.substr(equals + 1), flag + " " + name, 0);
      if (!sizes.emplace(name, value).second) throw usage(flag + ": '" + name + "' is given twice");
      at = comma + 1;
    }
  return sizes;
}

std::string WholeNumber::operator()(const std::string& text) const {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return {};
  return most == INT64_MAX && error != std::errc::result_out_of_range
             ? fmt::format("expected a whole number of at least {}, got '{}'", least, text)
             : fmt::format("expected a whole number from {} to {}, got '{}'", least, most, text);
}
std::string Seed::operator()(const std::string& text) const {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return fmt::format("expected a whole number from 0 to {}, got '{}'", UINT64_MAX, text);
}
std::string OutputFile::operator()(const std::string& text) const {
  namespace fs = std::filesystem;
  if (text.empty()) return "expected the name of a file, got an empty text";
  std::error_code ignored;
  const fs::path path(text), folder = path.has_parent_path() ? path.parent_path() : ".";
  if (fs::is_directory(path, ignored))
    return fmt::format("expected the name of a file, got the folder {}", text);
  if (!fs::is_directory(folder, ignored))
    return fmt::format("cannot write {}: there is no folder {}; make it first", text,
                       folder.string());
  return {};
}
std::string RealNumber::operator()(const std::string& text) const {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && std::isfinite(value) &&
      value >= least && value <= most)
    return {};
  return std::isinf(most)
             ? fmt::format("expected a number of at least {}, got '{}'", least, text)
             : fmt::format("expected a number from {} to {}, got '{}'", least, most, text);
}

const std::vector<std::string>& stageNames() {
  static const std::vector<std::string> names{"recorded", "canonical", "fused",  "sharded",
                                              "laid-out", "lowered",   "program"};
  return names;
}

void addStopAfter(CLI::App& parser, std::string& stage) {
  parser.add_option("--stop-after", stage, "print the IR at a stage and stop")
      ->check([](const std::string& word) { return checkWord(word, stageNames()); },
              choiceOf(stageNames()));
}

void addDType(CLI::App& parser, std::optional<DType>& dtype) {
  parser
      .add_option_function<std::string>(
          "--dtype", [&](const std::string& word) { dtype = parseDType(word); },
          "arithmetic of a folder's model: f32 or bf16 (default: that of its weights)")
      ->check([](const std::string& word) { return checkWord(word, {"f32", "bf16"}); },
              choiceOf({"f32", "bf16"}));
}

void addThreads(CLI::App& parser, int& threads) {
  parser.add_option("-t,--threads", threads, "threads (LATHE_NUM_THREADS; default: every CPU)")
      ->check(WholeNumber{1, 4096});
}

void addBackend(CLI::App& parser, std::string& backend) {
  parser.add_option("--backend", backend,
                    "cpu (default; LATHE_BACKEND), cuda, reference or one of a plugin");
}

void addTarget(CLI::App& parser, std::string& target) {
  parser.add_option("--target", target,
                    "cuda backend: sm_90a adds machine code for GPUs of compute capability 9.0");
}

void addDevice(CLI::App& parser, std::string& device) {
  parser
      .add_option("--device", device,
                  "cuda backend: gpu (default; LATHE_CUDA_DEVICE), or host: its kernels on the CPU")
      ->check(CLI::IsMember({"gpu", "host"}));
}

}  // namespace lathe::cli
